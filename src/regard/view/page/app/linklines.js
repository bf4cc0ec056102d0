/** Which links are drawn: those that can be seen, the strongest where there are too many. */

/**
 * @typedef {import("./description.js").Span} Span
 *
 * @typedef {object} Block The weights of a rectangle, in units, with what is largest in it.
 * @property {Span} rows
 * @property {Span} cols
 * @property {Float32Array} values
 * @property {Float32Array} rowMost
 * @property {Float32Array} colMost
 * @property {number} most
 *
 * @typedef {{ side: "rows" | "cols", unit: number }} Place
 *
 * @typedef {object} Link
 * @property {number} head Its place among the heads that are shown.
 * @property {number} row
 * @property {number} col
 * @property {number} share How strong it looks, from 0 to 1.
 * @property {boolean} strong Whether it is one of those asked for; the others stay in the background.
 *
 * @typedef {object} Choice What is asked for.
 * @property {Place | null} focus One token alone.
 * @property {Set<number>} rows
 * @property {Set<number>} cols
 * @property {"linear" | "log"} scale
 * @property {boolean} byRow
 */

import { shareOf } from "./colour.js";

/** A link weaker than this share of its row's strongest is not drawn. */
const LEAST_LINK = 0.01;
const LINK_BINS = 256;

/**
 * @param {Span} rows
 * @param {Span} cols
 * @param {Float32Array} values
 * @returns {Block}
 */
export function blockOf(rows, cols, values) {
  const [height, width] = [rows[1] - rows[0], cols[1] - cols[0]];
  const [rowMost, colMost] = [new Float32Array(height), new Float32Array(width)];
  for (let row = 0, place = 0; row < height; row += 1) {
    for (let col = 0; col < width; col += 1, place += 1) {
      const weight = values[place] ?? 0;
      if (weight > (rowMost[row] ?? 0)) rowMost[row] = weight;
      if (weight > (colMost[col] ?? 0)) colMost[col] = weight;
    }
  }
  return { rows, cols, values, rowMost, colMost, most: rowMost.reduce((one, other) => Math.max(one, other), 0) };
}

/**
 * A weight of a block; not a number where it is not known.
 * @param {Block} block
 * @param {number} row
 * @param {number} col
 */
export function blockWeight({ rows, cols, values }, row, col) {
  if (row < rows[0] || row >= rows[1] || col < cols[0] || col >= cols[1]) return NaN;
  return values[(row - rows[0]) * (cols[1] - cols[0]) + col - cols[0]] ?? NaN;
}

/**
 * The links between two windows, the strongest last, so that they lie on top.
 * @param {readonly (Block | null)[]} blocks One for each head.
 * @param {Span} rows
 * @param {Span} cols
 * @param {Choice} choice
 * @param {number} most
 * @returns {Link[]}
 */
export function pickLinks(blocks, rows, cols, choice, most) {
  /** @type {Link[]} */
  const found = [];
  blocks.forEach((block, head) => {
    if (!block) return;
    const [top, bottom] = commonSpan(rows, block.rows, choice.focus?.side === "rows" ? choice.focus.unit : null);
    const [left, right] = commonSpan(cols, block.cols, choice.focus?.side === "cols" ? choice.focus.unit : null);
    for (let row = top; row < bottom; row += 1) {
      for (let col = left; col < right; col += 1) {
        const link = linkOf(block, head, row, col, choice);
        if (link) found.push(link);
      }
    }
  });
  const kept = strongestLinks(found, most);
  return kept.sort((one, other) => Number(one.strong) - Number(other.strong) || one.share - other.share);
}

/**
 * @param {Block} block
 * @param {number} head
 * @param {number} row
 * @param {number} col
 * @param {Choice} choice
 * @returns {Link | null}
 */
function linkOf(block, head, row, col, { focus, rows, cols, scale, byRow }) {
  const weight = blockWeight(block, row, col);
  const ofRow = block.rowMost[row - block.rows[0]] ?? 0;
  const strong = focus !== null || ((!rows.size || rows.has(row)) && (!cols.size || cols.has(col)));
  const alone = focus?.side ?? (rows.size ? "rows" : cols.size ? "cols" : null);
  const largest = strong && alone === "cols" ? (block.colMost[col - block.cols[0]] ?? 0) : (strong && alone) || byRow ? ofRow : block.most;
  if (!(weight > 0) || weight < LEAST_LINK * Math.min(ofRow, largest)) return null;
  const share = shareOf(weight, largest, scale);
  return share > 0 ? { head, row, col, share, strong } : null;
}

/**
 * So many of them, the strongest; by counting, since sorting all would cost a frame.
 * @param {Link[]} links
 * @param {number} most
 */
function strongestLinks(links, most) {
  if (links.length <= most) return links;
  const binOf = (/** @type {Link} */ { share, strong }) => Math.min(LINK_BINS - 1, Math.floor(share * LINK_BINS)) + (strong ? LINK_BINS : 0);
  const counts = new Uint32Array(2 * LINK_BINS);
  for (const link of links) counts[binOf(link)] = (counts[binOf(link)] ?? 0) + 1;
  let bin = 2 * LINK_BINS - 1;
  for (let left = most - (counts[bin] ?? 0); bin > 0 && left >= (counts[bin - 1] ?? 0); bin -= 1) left -= counts[bin - 1] ?? 0;
  const kept = links.filter((link) => binOf(link) >= bin);
  return kept.length > most ? kept.slice(0, most) : kept;
}

/**
 * @param {Span} one
 * @param {Span} other
 * @param {number | null} only One unit of it.
 * @returns {Span}
 */
function commonSpan(one, other, only) {
  const [from, to] = [Math.max(one[0], other[0]), Math.min(one[1], other[1])];
  return only === null ? [from, to] : only >= from && only < to ? [only, only + 1] : [0, 0];
}
