/** The links in words: for who cannot see them, and for what lies outside the window. */

/**
 * @typedef {import("./view.js").Context} Context
 * @typedef {import("./linklines.js").Place} Place
 * @typedef {import("./linkpaint.js").Scene} Scene
 */

import { figure, shown } from "./description.js";
import { blockWeight } from "./linklines.js";
import { seenSides } from "./linkpaint.js";

/**
 * How much of the weight of one query can be seen.
 * @param {Context} context
 * @param {Scene} scene
 */
export function shareInside({ say }, scene) {
  const { weighed, axes } = scene;
  const rows = scene.heads[0]?.block?.rows;
  if (!rows || weighed?.side !== "rows" || weighed.unit < rows[0] || weighed.unit >= rows[1]) return "";
  const inside = weightsSeen(scene, weighed).reduce((sum, { weight }) => sum + weight, 0);
  const percent = (100 * inside).toFixed(inside > 0.99 || inside < 0.01 ? 1 : 0);
  return say("links_inside", percent, `“${shown(axes.rows.label(weighed.unit), 20)}”`);
}

/**
 * A token and what it looks at most, or who looks at it most, within the window.
 * @param {Context} context
 * @param {Scene} scene
 * @param {Place} place
 */
export function placeInWords({ say }, scene, place) {
  const other = scene.axes[place.side === "rows" ? "cols" : "rows"];
  const most = weightsSeen(scene, place).sort((one, two) => two.weight - one.weight).slice(0, 3);
  const list = most.map(({ unit, weight }) => `${shown(other.label(unit), 20)} ${figure(weight)}`).join(", ");
  const name = shown(scene.axes[place.side].label(place.unit), 20);
  return say(place.side === "rows" ? "links_from" : "links_to", name, place.unit, list || "–");
}

/**
 * The weights between a token and the other side's window, those that are not 0.
 * @param {Scene} scene
 * @param {Place} place
 */
function weightsSeen(scene, place) {
  const block = scene.heads[0]?.block;
  const [from, to] = seenSides(scene)[place.side === "rows" ? "cols" : "rows"];
  const all = Array.from({ length: Math.max(0, to - from) }, (_, step) => {
    const unit = from + step;
    const weight = !block ? 0 : place.side === "rows" ? blockWeight(block, place.unit, unit) : blockWeight(block, unit, place.unit);
    return { unit, weight };
  });
  return all.filter(({ weight }) => weight > 0);
}
