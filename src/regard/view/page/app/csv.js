/** Weights as CSV, for spreadsheets. */

/** What a spreadsheet would take for a formula. */
const FORMULA = /^\s*[=+\-@＝＋－＠]|^[\t\r]/u;

/**
 * One cell after RFC 4180: quoted where it must be.
 * @param {string} text
 */
function csvCell(text) {
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
