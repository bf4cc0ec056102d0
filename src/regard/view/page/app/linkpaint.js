/** The links as a picture: two columns of tokens, the lines between them, and a strip beside each column. */

/**
 * @typedef {import("./description.js").Axis} Axis
 * @typedef {import("./description.js").Span} Span
 * @typedef {import("./linklines.js").Block} Block
 * @typedef {import("./linklines.js").Choice} Choice
 * @typedef {import("./linklines.js").Place} Place
 * @typedef {import("./pen.js").Pen} Pen
 *
 * @typedef {object} Scene Everything that the picture depends on.
 * @property {number} width
 * @property {number} height
 * @property {boolean} night
 * @property {{ rows: Axis, cols: Axis }} axes
 * @property {{ rows: number, cols: number }} first What stands at the top of each column, in units.
 * @property {{ colour: string, block: Block | null }[]} heads
 * @property {Choice} choice
 * @property {Place | null} weighed Whose weights stand in figures on the other side.
 * @property {Place | null} cursor Where the keyboard is.
 * @property {{ rows: string, cols: string }} titles
 * @property {string} note Above the picture.
 * @property {string[] | null} names Of the heads, where they are to stand above it instead.
 * @property {number} most Lines.
 */

import { figure, shown } from "./description.js";
import { blockWeight, pickLinks } from "./linklines.js";
import { fittedText, textWidth } from "./measuring.js";
import { inks } from "./view.js";

export const LINK_ROW = 20;
export const LINK_TOP = 24;
const LINK_SIDES = /** @type {const} */ (["rows", "cols"]);

/**
 * Where things stand.
 * @param {Scene} scene
 */
export function linkGeometry({ width, height, heads, axes }) {
  const narrow = width < 560;
  const strip = 8;
  const gap = narrow ? 3 : 8;
  const columns = Math.min(heads.length, Math.max(1, Math.floor((width * 0.2) / 56)));
  const figures = columns * (narrow ? 40 : 56);
  const label = Math.max(48, Math.min(190, width * 0.17, 6 + Math.max(widestLabel(axes.rows), widestLabel(axes.cols))));
  const edge = strip + gap + figures + gap + label + gap; // where the lines begin
  return { strip, gap, columns, figures, label, edge, visible: Math.max(1, (height - LINK_TOP) / LINK_ROW) };
}

/**
 * The units of both columns that are seen, at least in part.
 * @param {Scene} scene
 * @returns {{ rows: Span, cols: Span }}
 */
export function seenSides(scene) {
  const { visible } = linkGeometry(scene);
  const seen = (/** @type {Axis} */ axis, /** @type {number} */ first) =>
    /** @type {Span} */ ([Math.max(axis.from, Math.floor(first)), Math.min(axis.to, Math.ceil(first + visible))]);
  return { rows: seen(scene.axes.rows, scene.first.rows), cols: seen(scene.axes.cols, scene.first.cols) };
}

/**
 * @param {Pen} pen
 * @param {Scene} scene
 */
export function paintLinks(pen, scene) {
  const { width, height, first, night } = scene;
  const { edge } = linkGeometry(scene);
  const colours = inks(night);
  pen.rectangle(0, 0, width, height, colours.paper);
  pen.within(0, LINK_TOP, width, height - LINK_TOP, () => {
    const seen = seenSides(scene);
    const middleOf = (/** @type {"rows" | "cols"} */ side, /** @type {number} */ unit) => LINK_TOP + (unit - first[side] + 0.5) * LINK_ROW;
    const links = pickLinks(scene.heads.map((head) => head.block), seen.rows, seen.cols, scene.choice, scene.most);
    for (const { head, row, col, share, strong } of links) {
      const opacity = strong ? 0.08 + 0.92 * share : 0.02 + 0.1 * share;
      pen.curve(edge, middleOf("rows", row), width - edge, middleOf("cols", col), scene.heads[head]?.colour ?? colours.ink, 0.6 + 2.4 * share, opacity);
    }
    for (const side of LINK_SIDES) paintColumn(pen, scene, side, seen[side], (unit) => middleOf(side, unit));
  });
  for (const side of LINK_SIDES) paintStrip(pen, scene, side);
  paintHeader(pen, scene);
}

/**
 * What the columns are; between them a note, or the names of the heads.
 * @param {Pen} pen
 * @param {Scene} scene
 */
function paintHeader(pen, scene) {
  const { width, titles, names, note, night } = scene;
  const { edge, gap, label, figures } = linkGeometry(scene);
  const colours = inks(night);
  const [size, middle] = [12, LINK_TOP / 2];
  pen.text(fittedText(titles.rows, label + figures, size), edge - gap, middle, { size, fill: colours.faint, align: "end" });
  pen.text(fittedText(titles.cols, label + figures, size), width - edge + gap, middle, { size, fill: colours.faint });
  if (!names) pen.text(fittedText(note, width - 2 * edge, size), width / 2, middle, { size, fill: colours.faint, align: "middle" });
  const wide = (width - 2 * edge) / Math.max(1, names?.length ?? 0);
  names?.forEach((name, place) => {
    pen.rectangle(edge + place * wide, middle - 5, 10, 10, scene.heads[place]?.colour ?? colours.ink);
    pen.text(fittedText(name, wide - 24, size), edge + place * wide + 15, middle, { size, fill: colours.ink });
  });
}

/**
 * @param {Pen} pen
 * @param {Scene} scene
 * @param {"rows" | "cols"} side
 * @param {Span} seen
 * @param {(unit: number) => number} middleOf
 */
function paintColumn(pen, scene, side, seen, middleOf) {
  const { edge, gap, label, figures } = linkGeometry(scene);
  const { width, axes, choice, cursor, night } = scene;
  const colours = inks(night);
  const axis = axes[side];
  const left = side === "rows";
  const [labelAt, placeAt] = left ? [edge - gap, edge - gap - label - gap] : [width - edge + gap, width - edge + gap + label + gap];
  const showsFigures = scene.weighed !== null && scene.weighed.side !== side;
  for (let unit = seen[0]; unit < seen[1]; unit += 1) {
    const middle = middleOf(unit);
    const focused = choice.focus?.side === side && choice.focus.unit === unit;
    const box = /** @type {const} */ ([left ? labelAt - label - 4 : labelAt - 4, middle - LINK_ROW / 2 + 1, label + 8, LINK_ROW - 2]);
    if (choice[side].has(unit) || focused) pen.rectangle(...box, choice[side].has(unit) ? colours.accent : colours.faint, 0.22);
    if (cursor?.side === side && cursor.unit === unit) pen.frame(...box, colours.accent, 1.5);
    const written = axis.written(unit);
    const fill = written ? colours.written : colours.ink;
    const text = fittedText(shown(axis.label(unit), 60), label, 13, true);
    pen.text(text, labelAt, middle, { size: 13, fill, align: left ? "end" : "start", bold: choice[side].has(unit) || focused });
    if (written) pen.rectangle(left ? labelAt + 2 : labelAt - 5, middle - LINK_ROW / 2 + 3, 3, LINK_ROW - 6, colours.written);
    if (showsFigures) paintFigures(pen, scene, side, unit, middle, left ? placeAt - figures : placeAt);
    else pen.text(String(unit), placeAt, middle, { size: 11, fill: colours.faint, align: left ? "end" : "start" });
  }
}

/**
 * The weights between a token and the one that is looked at alone: a figure for each head, a mark in its colour before it.
 * @param {Pen} pen
 * @param {Scene} scene
 * @param {"rows" | "cols"} side
 * @param {number} unit
 * @param {number} middle
 * @param {number} x
 */
function paintFigures(pen, scene, side, unit, middle, x) {
  const { columns, figures } = linkGeometry(scene);
  const { weighed } = scene;
  if (!weighed) return;
  const wide = figures / columns;
  scene.heads.slice(0, columns).forEach(({ colour, block }, place) => {
    const weight = block ? (side === "cols" ? blockWeight(block, weighed.unit, unit) : blockWeight(block, unit, weighed.unit)) : NaN;
    if (!Number.isFinite(weight)) return;
    const size = wide < 48 ? 9 : 11;
    pen.rectangle(x + place * wide, middle - 5, 3, 10, colour, Math.min(1, 0.12 + weight));
    pen.text(figure(weight), x + place * wide + 6, middle, { size, fill: inks(scene.night)[weight < 0.001 ? "faint" : "ink"] });
  });
}

/**
 * Where the window is in the whole, and where the chosen tokens are.
 * @param {Pen} pen
 * @param {Scene} scene
 * @param {"rows" | "cols"} side
 */
function paintStrip(pen, scene, side) {
  const { width, height, axes, first, choice, night } = scene;
  const { strip, visible } = linkGeometry(scene);
  const colours = inks(night);
  const axis = axes[side];
  const x = side === "rows" ? 0 : width - strip;
  const count = Math.max(1, axis.to - axis.from);
  const high = height - LINK_TOP;
  if (count > visible) {
    const size = Math.max(14, (visible / count) * high);
    const start = ((first[side] - axis.from) / Math.max(1e-9, count - visible)) * (high - size);
    pen.rectangle(x, LINK_TOP, strip, high, colours.line, 0.5);
    pen.rectangle(x + 1, LINK_TOP + start, strip - 2, size, colours.faint, 0.8);
    for (const unit of choice[side]) pen.rectangle(x, LINK_TOP + ((unit - axis.from) / count) * high - 1, strip, 2, colours.accent);
  }
}

/** @type {Map<string, number>} */
const widestLabels = new Map();

/**
 * The widest label of a side in bold, or of a thousand of them: the columns do not jump about while they are scrolled.
 * @param {Axis} axis
 */
function widestLabel({ unit, from, to, count, label }) {
  const key = [unit, from, to, count, ...[from, (from + to) >> 1, to - 1].map((one) => label(one).slice(0, 40))].join(" ");
  let widest = widestLabels.get(key);
  if (widest === undefined) {
    const size = Math.min(1000, to - from);
    const sample = Array.from({ length: size }, (_, place) => label(from + Math.floor((place * (to - from)) / size)));
    widest = Math.max(0, ...sample.map((text) => Math.min(200, textWidth(shown(text, 40), 13, true))));
    widestLabels.set(key, widest);
  }
  return widest;
}
