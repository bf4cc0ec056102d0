/** How wide a text is drawn, and as much of it as fits. */

import { FONT } from "./pen.js";

/** @type {CanvasRenderingContext2D | null} */
let ruler = null;
/** @type {Map<string, string>} */
const fittedTexts = new Map();

/**
 * Pixels that a text takes.
 * @param {string} text
 * @param {number} size Of the letters.
 * @param {boolean} [bold]
 */
export function textWidth(text, size, bold = false) {
  ruler ??= document.createElement("canvas").getContext("2d");
  if (!ruler) return text.length * size;
  ruler.font = `${bold ? "600 " : ""}${size}px ${FONT}`;
  return ruler.measureText(text).width;
}

/**
 * As much of a text as fits into a width, with a mark where something was cut off.
 * @param {string} text
 * @param {number} width
 * @param {number} size Of the letters.
 * @param {boolean} [bold]
 */
export function fittedText(text, width, size, bold = false) {
  const key = `${size} ${bold} ${Math.floor(width)} ${text}`;
  const known = fittedTexts.get(key);
  if (known !== undefined) return known;
  const signs = Array.from(text);
  let [low, high] = [0, signs.length];
  if (textWidth(text, size, bold) <= width) low = high;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (textWidth(signs.slice(0, middle).join("") + "…", size, bold) <= width) low = middle;
    else high = middle - 1;
  }
  const fitted = low === signs.length ? text : signs.slice(0, low).join("") + "…";
  if (fittedTexts.size > 4000) fittedTexts.clear();
  fittedTexts.set(key, fitted);
  return fitted;
}
