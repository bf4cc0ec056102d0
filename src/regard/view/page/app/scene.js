/** The map at one moment: what is looked at, where it lies on the paper, and which tiles that takes. */

import { chosenUnits } from "./choice.js";
import { isNight } from "./colour.js";
import { axesOf } from "./description.js";
import { inside, wholeFrame } from "./frame.js";
import { labelRoom, slantedHeight, slantedReach } from "./gutters.js";
import { TILE } from "./tiles.js";

/**
 * @typedef {import("./description.js").Axis} Axis
 * @typedef {import("./tiles.js").Piece} Piece
 * @typedef {import("./tiles.js").Place} Place
 * @typedef {{ row: number, col: number }} Cell
 * @typedef {{ left: number, top: number, width: number, height: number, rowRoom: number, colRoom: number }} Plot
 *   Where the cells are, and the room for names beside and above them.
 *
 * @typedef {object} Scene
 * @property {Readonly<import("./state.js").Look>} look
 * @property {Axis} rows
 * @property {Axis} cols
 * @property {Plot} plot
 * @property {import("./frame.js").World} world
 * @property {import("./frame.js").Frame} frame
 * @property {number} level Of the tiles: 2^level units a cell.
 * @property {import("./tiles.js").Sheet} sheet
 * @property {{ rows: Set<number>, cols: Set<number> }} chosen In units.
 * @property {boolean} night
 */

const BELOW = 34; // pixels for the scale of colours
const BESIDE = 14; // pixels that are left free at the right, at least

/** How much room names take, of the sides that were measured last. */
const measured = { key: "", row: 40, col: 40 };

/**
 * @param {import("./description.js").Description} description
 * @param {Readonly<import("./state.js").Look>} look
 * @param {{ width: number, height: number }} paper
 * @returns {Scene}
 */
export function sceneOf(description, look, paper) {
  const { rows, cols } = axesOf(description, look.layer, look.unit, look.pair);
  const plot = plotOf(rows, cols, paper, `${look.layer} ${look.unit} ${look.pair}`);
  const world = { left: cols.from, right: cols.to, top: rows.from, bottom: rows.to, width: plot.width, height: plot.height };
  const frame = look.frame ? inside(look.frame, world) : wholeFrame(world);
  const { layer, head, unit } = look;
  return {
    look, rows, cols, plot, world, frame,
    level: Math.max(0, Math.round(Math.log2(1 / (frame.zoom * Math.min(2, window.devicePixelRatio || 1))))),
    sheet: { layer, head, unit, top: rows.from, bottom: rows.to, left: cols.from, right: cols.to },
    chosen: { rows: chosenUnits(rows, look.rows), cols: chosenUnits(cols, look.cols) },
    night: isNight(),
  };
}

/**
 * @param {Axis} rows
 * @param {Axis} cols
 * @param {{ width: number, height: number }} paper
 * @param {string} key Of the two sides: their names are measured once.
 * @returns {Plot}
 */
function plotOf(rows, cols, { width, height }, key) {
  if (measured.key !== key) Object.assign(measured, { key, row: labelRoom(rows), col: labelRoom(cols) });
  const rowRoom = Math.min(measured.row, width * 0.28);
  const colRoom = Math.min(measured.col, height * 0.3);
  const [left, top] = [Math.ceil(rowRoom) + 14, slantedHeight(colRoom)];
  const right = Math.max(BESIDE, slantedReach(colRoom));
  return { left, top, width: Math.max(40, width - left - right), height: Math.max(40, height - top - BELOW), rowRoom, colRoom };
}

/**
 * Where a column begins on the paper.
 * @param {Scene} scene
 * @param {number} col
 */
export function acrossOf({ plot, frame }, col) {
  return plot.left + (col - frame.x) * frame.zoom;
}

/**
 * Where a row begins.
 * @param {Scene} scene
 * @param {number} row
 */
export function downOf({ plot, frame }, row) {
  return plot.top + (row - frame.y) * frame.zoom;
}

/**
 * How much of the plot the map fills.
 * @param {Scene} scene
 */
export function filled({ plot, world, frame }) {
  return {
    wide: Math.min(plot.width, (world.right - frame.x) * frame.zoom),
    high: Math.min(plot.height, (world.bottom - frame.y) * frame.zoom),
  };
}

/**
 * The cell at a point of the paper.
 * @param {Scene} scene
 * @param {number} x
 * @param {number} y
 * @returns {Cell | null}
 */
export function cellUnder({ plot, world, frame }, x, y) {
  const [right, down] = [x - plot.left, y - plot.top];
  if (right < 0 || down < 0 || right > plot.width || down > plot.height) return null;
  const [col, row] = [Math.floor(frame.x + right / frame.zoom), Math.floor(frame.y + down / frame.zoom)];
  return col < world.right && row < world.bottom && col >= world.left && row >= world.top ? { row, col } : null;
}

/**
 * The tiles in sight, the middle first; none where the whole map made small is exact and fine enough.
 * @param {Scene} scene
 * @param {Piece | null} root
 * @returns {Place[]}
 */
export function placesIn({ sheet, plot, frame, level }, root) {
  if (root?.values && root.step === 1 && (root.bottom - root.top) / root.height <= 2 ** level * 1.01) return [];
  const side = TILE * 2 ** level;
  const touched = (/** @type {number} */ from, /** @type {number} */ seen, /** @type {number} */ first, /** @type {number} */ end) =>
    /** @type {[number, number]} */ ([
      Math.max(0, Math.floor((from - first) / side)), Math.floor((Math.min(from + seen, end) - first - 1e-6) / side),
    ]);
  const [top, bottom] = touched(frame.y, plot.height / frame.zoom, sheet.top, sheet.bottom);
  const [left, right] = touched(frame.x, plot.width / frame.zoom, sheet.left, sheet.right);
  /** @type {Place[]} */
  const places = [];
  for (let down = top; down <= bottom; down += 1) {
    for (let across = left; across <= right; across += 1) places.push({ level, down, across });
  }
  const away = (/** @type {Place} */ place) => Math.hypot(place.down - (top + bottom) / 2, place.across - (left + right) / 2);
  return places.sort((one, other) => away(one) - away(other));
}

/**
 * The tile that a cell is in.
 * @param {Scene} scene
 * @param {Cell} cell
 * @returns {Place}
 */
export function placeOf({ sheet, level }, cell) {
  const side = TILE * 2 ** level;
  return { level, down: Math.floor((cell.row - sheet.top) / side), across: Math.floor((cell.col - sheet.left) / side) };
}
