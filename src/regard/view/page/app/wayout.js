/** The ways out of the page: a file that is saved, a text on the clipboard. */

import { make } from "./dom.js";

/**
 * @param {Blob} blob
 * @param {string} name
 */
export function saveFile(blob, name) {
  const address = URL.createObjectURL(blob);
  const link = make("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
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
