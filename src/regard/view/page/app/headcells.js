/** A button for each head, and the way from one to the next. */

import { sidesOf } from "./description.js";
import { make } from "./dom.js";

/**
 * @typedef {object} Cell One head.
 * @property {number} layer
 * @property {number} head
 * @property {number} index The layer's number in the model.
 * @property {number} number The head's.
 * @property {HTMLButtonElement} button
 * @property {HTMLElement} picture
 * @property {HTMLElement} bar
 * @property {HTMLElement} under Its name and its score.
 * @property {string} drawn How it was drawn; empty where it was not.
 */

/**
 * @param {import("./description.js").Description} description
 * @param {readonly number[]} layers
 * @returns {Cell[]} In the model's order.
 */
export function headCells(description, layers) {
  return layers.flatMap((place) => {
    const { layer } = sidesOf(description, place);
    return layer.heads.map((number, head) => {
      const [picture, bar, under] = [make("span", { class: "picture" }), make("i"), make("span", { class: "name-of" })];
      const children = [picture, make("span", { class: "bar-of" }, [bar]), under];
      const button = make("button", { type: "button", class: "thumb", tabindex: -1 }, children);
      return { layer: place, head, index: layer.index, number, button, picture, bar, under, drawn: "" };
    });
  });
}

/**
 * The head that a key goes to; undefined where the key is not for going.
 * @param {readonly Cell[][]} rows
 * @param {Cell} cell
 * @param {string} key
 * @returns {Cell | undefined}
 */
export function neighbourOf(rows, cell, key) {
  const order = rows.flat();
  const row = rows.findIndex((one) => one.includes(cell));
  const column = rows[row]?.indexOf(cell) ?? 0;
  const beside = (/** @type {number} */ step) => rows[row + step]?.[Math.min(column, (rows[row + step]?.length ?? 1) - 1)];
  if (key === "ArrowLeft") return order[order.indexOf(cell) - 1] ?? cell;
  if (key === "ArrowRight") return order[order.indexOf(cell) + 1] ?? cell;
  if (key === "ArrowUp") return beside(-1) ?? cell;
  if (key === "ArrowDown") return beside(1) ?? cell;
  return key === "Home" ? order[0] : key === "End" ? order[order.length - 1] : undefined;
}
