/** The text view as a picture: the tokens where they stand in the page, one stroke of the pen for each line they touch. */

/**
 * @typedef {import("./pen.js").Pen} Pen
 * @typedef {{ x: number, y: number, width: number, height: number, text: string }} Piece
 */

import { inks } from "./view.js";

/**
 * @param {Pen} pen
 * @param {{ element: HTMLElement }[]} tokens
 * @param {DOMRect} origin
 * @param {boolean} night
 */
export function paintTokens(pen, tokens, origin, night) {
  const colours = inks(night);
  for (const { element } of tokens) {
    const style = getComputedStyle(element);
    const size = parseFloat(style.fontSize);
    for (const { x, y, width, height, text } of piecesOf(element)) {
      const [left, top] = [x - origin.left, y - origin.top];
      if (element.style.background) pen.rectangle(left, top, width, height, element.style.background);
      pen.text(text, left + 1, top + height / 2, { size, fill: style.color });
      if (element.classList.contains("written")) pen.line(left, top + height - 1, left + width, top + height - 1, colours.written, 2);
      if (element.classList.contains("chosen")) pen.frame(left, top, width, height, colours.accent, 2);
      else if (element.classList.contains("other")) pen.frame(left, top, width, height, colours.accent, 1);
    }
  }
}

/**
 * A short text of the page, where it stands.
 * @param {Pen} pen
 * @param {HTMLElement} element
 * @param {DOMRect} origin
 */
export function paintWords(pen, element, origin) {
  const text = element.textContent ?? "";
  const box = element.getBoundingClientRect();
  if (!text || !box.width) return;
  const style = getComputedStyle(element);
  pen.text(text, box.left - origin.left, box.top - origin.top + box.height / 2, { size: parseFloat(style.fontSize), fill: style.color });
}

/**
 * The parts of a token, one for each line it stands in.
 * @param {HTMLElement} element
 * @returns {Piece[]}
 */
function piecesOf(element) {
  const boxes = [...element.getClientRects()].filter((box) => box.width > 0.5);
  const text = element.textContent ?? "";
  const [only] = boxes;
  if (boxes.length === 1 && only) return [{ x: only.x, y: only.y, width: only.width, height: only.height, text: text.replace(/\n/g, "") }];
  const node = element.firstChild;
  if (!node) return [];
  const texts = boxes.map(() => "");
  const range = document.createRange();
  for (let from = 0; from < text.length; ) {
    const to = from + ((text.codePointAt(from) ?? 0) > 0xffff ? 2 : 1);
    range.setStart(node, from);
    range.setEnd(node, to);
    const sign = range.getClientRects()[0];
    const line = sign ? boxes.findIndex((box) => sign.top < box.bottom && sign.bottom > box.top) : -1;
    if (line >= 0) texts[line] += text.slice(from, to).replace("\n", "");
    from = to;
  }
  return boxes.map((box, line) => ({ x: box.x, y: box.y, width: box.width, height: box.height, text: texts[line] ?? "" }));
}
