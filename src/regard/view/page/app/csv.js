/** Weights as CSV, and the ways out of the page: the clipboard, a file. */

import { make } from "./dom.js";

/** What a spreadsheet would take for a formula. */
const FORMULA = /^[=+\-@\t\r]/;

/**
 * One cell after RFC 4180: quoted where it must be.
 * @param {string} text
 */
export function csvCell(text) {
  return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

/**
 * Places, tokens and weights, a line for each; tokens never begin a formula.
 * @param {readonly string[]} header
 * @param {import("./description.js").Axis} axis
 * @param {Float32Array} weights By unit.
 * @returns {string}
 */
export function weightsCsv(header, axis, weights) {
  const lines = [header.map(csvCell).join(",")];
  for (let unit = axis.from; unit < axis.to; unit += 1) {
    const text = axis.label(unit);
    lines.push(`${unit},${csvCell(FORMULA.test(text) ? `'${text}` : text)},${(weights[unit] ?? 0).toPrecision(7)}`);
  }
  return lines.join("\r\n") + "\r\n";
}

/**
 * @param {string} text
 * @returns {Promise<boolean>} Whether the clipboard has it.
 */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyOldWay(text); // a page from a file, or one without the permission
  }
}

/** @param {string} text */
function copyOldWay(text) {
  const before = document.activeElement;
  const area = make("textarea", { class: "off-screen", "aria-hidden": "true", tabindex: "-1" });
  area.value = text;
  document.body.append(area);
  area.select();
  let done = false;
  try {
    done = document.execCommand("copy");
  } catch {
    done = false;
  }
  area.remove();
  if (before instanceof HTMLElement) before.focus();
  return done;
}

/**
 * @param {string} name
 * @param {string} text
 */
export function downloadCsv(name, text) {
  const address = URL.createObjectURL(new Blob(["\ufeff", text], { type: "text/csv;charset=utf-8" })); // the mark tells Excel: UTF-8
  const link = make("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
