/** The map in tiles, as maps of the world are: asked for as they come into sight, rough at first, then exact. */

import { colourTable, NOT_A_NUMBER, shareOf } from "./colour.js";

/**
 * @typedef {import("./source.js").Source} Source
 * @typedef {import("./description.js").Unit} Unit
 *
 * @typedef {object} Sheet One head, in units: what a set of tiles belongs to.
 * @property {number} layer
 * @property {number} head
 * @property {Unit} unit
 * @property {number} top
 * @property {number} bottom
 * @property {number} left
 * @property {number} right
 *
 * @typedef {object} Place One tile: 256 × 256 cells of 2^level units.
 * @property {number} level
 * @property {number} down
 * @property {number} across
 *
 * @typedef {object} Piece A tile, or the whole map made small.
 * @property {number} top In units.
 * @property {number} bottom
 * @property {number} left
 * @property {number} right
 * @property {number} height In cells.
 * @property {number} width
 * @property {number} level
 * @property {Float32Array | null} values
 * @property {Float32Array} rowPeaks The largest of each row of cells.
 * @property {number} step What it was made with; 1: exact.
 * @property {boolean} settled Whether nothing better will come.
 * @property {string} failure Why nothing has come.
 * @property {AbortController | null} asking
 * @property {HTMLCanvasElement | null} image
 * @property {string} coloured How the image is coloured,
 * @property {Float32Array | null} colouredBy and by which largest of each row, where each has its own.
 *
 * @typedef {object} Colouring
 * @property {"linear" | "log"} scale
 * @property {boolean} byRow
 * @property {boolean} night
 */

export const TILE = 256;
export const ROOT = 100; // the level of the whole map made small
const KEPT = 240; // tiles, half a megabyte each: numbers and picture

/**
 * @param {Source} source
 * @param {() => void} changed Called when a tile has come, or become better.
 * @param {(reason: string) => void} failed
 */
export function tileStore(source, changed, failed) {
  /** @type {Map<string, Piece>} */
  let pieces = new Map();
  /** @type {Map<number, number>} by level, the largest value so far */
  let peaks = new Map();
  /** @type {Sheet | null} */
  let sheet = null;
  /** @type {Piece | null} */
  let root = null;

  /**
   * @param {Sheet} of
   * @param {Piece} piece
   * @param {number} step
   */
  const ask = async (of, piece, step) => {
    const asking = new AbortController();
    piece.asking = asking;
    try {
      const rows = /** @type {[number, number]} */ ([piece.top, piece.bottom]);
      const cols = /** @type {[number, number]} */ ([piece.left, piece.right]);
      const { layer, head, unit } = of;
      const tile = await source.tile({ layer, head, unit, rows, cols, height: piece.height, width: piece.width, step }, asking.signal);
      if (of !== sheet) return;
      receive(piece, tile.values, tile.step);
      piece.settled = tile.step <= 1 || (step > 0 && tile.step > step);
    } catch (reason) {
      if (!asking.signal.aborted) {
        piece.settled = true;
        piece.failure = reason instanceof Error ? reason.message : String(reason);
        failed(piece.failure);
      }
    } finally {
      if (piece.asking === asking) piece.asking = null;
      if (of === sheet) changed();
    }
  };

  /**
   * @param {Piece} piece
   * @param {Float32Array} values
   * @param {number} step
   */
  const receive = (piece, values, step) => {
    piece.values = values;
    piece.step = step;
    piece.coloured = "";
    piece.rowPeaks = rowPeaksOf(values, piece.height, piece.width);
    const peak = piece.rowPeaks.reduce((one, other) => Math.max(one, other), peaks.get(piece.level) ?? 0);
    peaks.set(piece.level, peak);
  };

  const peak = (/** @type {number} */ level) => Math.max(peaks.get(level) ?? 0, peaks.get(ROOT) ?? 0);

  return {
    /**
     * From now on the tiles are those of this sheet.
     * @param {Sheet} next
     */
    async show(next) {
      if (sheet && sameSheet(sheet, next)) return;
      for (const piece of pieces.values()) piece.asking?.abort();
      root?.asking?.abort();
      const here = { ...next };
      [sheet, pieces, peaks] = [here, new Map(), new Map()];
      const [high, wide] = [next.bottom - next.top, next.right - next.left];
      const level = Math.max(0, Math.ceil(Math.log2(Math.max(high, wide, 1) / TILE)));
      root = emptyPiece(next.top, next.bottom, next.left, next.right, ROOT);
      const mine = root;
      const whole = next.unit === "token" && next.top === 0 && next.left === 0;
      const ready = whole ? await source.overview(next.layer, next.head).catch(() => null) : null;
      if (sheet !== here) return;
      if (!ready || ready.values.length !== ready.height * ready.width) {
        if (level > 0) void ask(here, mine, 0); // a map that fits into one tile needs no smaller one
        return;
      }
      [mine.height, mine.width, mine.settled] = [ready.height, ready.width, true];
      receive(mine, ready.values, 1);
      changed();
    },
    /**
     * The tile at a place, if it was ever wanted; it may be empty still.
     * @param {Place} place
     * @returns {Piece | null}
     */
    at(place) {
      return pieces.get(tileName(place)) ?? null;
    },
    root: () => root,
    /**
     * These are seen now, the most important first; others need not come any more.
     * @param {Place[]} places
     */
    want(places) {
      if (!sheet) return;
      const wanted = new Set(places.map(tileName));
      const blank = places.some((place) => !pieces.get(tileName(place))?.values); // first something everywhere, then better
      for (const [name, piece] of pieces) if (!wanted.has(name)) piece.asking?.abort();
      for (const place of [...places].reverse()) {
        const name = tileName(place);
        const found = pieces.get(name) ?? pieceAt(sheet, place);
        pieces.delete(name);
        pieces.set(name, found);
        if (found.settled || found.asking || (found.values && blank)) continue;
        void ask(sheet, found, found.values ? Math.max(1, Math.floor(found.step / 4)) : 0);
      }
      for (const [name, piece] of pieces) {
        if (pieces.size <= KEPT) break;
        if (!piece.asking && !wanted.has(name)) pieces.delete(name);
      }
    },
    /**
     * The largest value so far, of the whole map made small and of the tiles on a level: what the scale of colours ends with.
     * @param {number} level
     */
    peak,
    /**
     * A tile as a picture, coloured as is wanted now.
     * @param {Piece} piece
     * @param {Colouring} colouring
     * @param {(piece: Piece) => Float32Array | null} rowPeaks Of the rows of cells as they are seen, all tiles together.
     * @param {number} level The level that is seen.
     * @returns {HTMLCanvasElement | null}
     */
    image(piece, colouring, rowPeaks, level) {
      if (!piece.values || !piece.height || !piece.width) return null;
      const byRow = colouring.byRow ? rowPeaks(piece) : null;
      const mark = `${colouring.scale} ${colouring.night} ${byRow ? "by row" : peak(level)}`;
      if (piece.image && piece.coloured === mark && sameNumbers(piece.colouredBy, byRow)) return piece.image;
      piece.image = colourPiece(piece, colouring, peak(level), byRow);
      [piece.coloured, piece.colouredBy] = [mark, byRow];
      return piece.image;
    },
  };
}

/** @param {Place} place */
function tileName({ level, down, across }) {
  return `${level} ${down} ${across}`;
}

/**
 * @param {Sheet} one
 * @param {Sheet} other
 */
function sameSheet(one, other) {
  return /** @type {(keyof Sheet)[]} */ (["layer", "head", "unit", "top", "bottom", "left", "right"]).every((name) => one[name] === other[name]);
}

/**
 * @param {Float32Array | null} one
 * @param {Float32Array | null} other
 */
function sameNumbers(one, other) {
  return one === other || (one !== null && other !== null && one.every((number, place) => number === other[place]));
}

/**
 * @param {Sheet} sheet
 * @param {Place} place
 */
function pieceAt(sheet, { level, down, across }) {
  const side = TILE * 2 ** level;
  const [top, left] = [sheet.top + down * side, sheet.left + across * side];
  return emptyPiece(top, Math.min(sheet.bottom, top + side), left, Math.min(sheet.right, left + side), level);
}

/**
 * @param {number} top
 * @param {number} bottom
 * @param {number} left
 * @param {number} right
 * @param {number} level
 * @returns {Piece}
 */
function emptyPiece(top, bottom, left, right, level) {
  const cells = (/** @type {number} */ units) => (level === ROOT ? Math.min(TILE, units) : Math.ceil(units / 2 ** level));
  return {
    top, bottom, left, right, height: cells(bottom - top), width: cells(right - left), level, values: null,
    rowPeaks: new Float32Array(0), step: 0, settled: false, failure: "", asking: null, image: null, coloured: "", colouredBy: null,
  };
}

/**
 * @param {Float32Array} values
 * @param {number} height
 * @param {number} width
 */
function rowPeaksOf(values, height, width) {
  const peaks = new Float32Array(height);
  for (let row = 0; row < height; row += 1) {
    let peak = 0;
    for (let place = row * width; place < (row + 1) * width; place += 1) if (values[place] > peak) peak = values[place];
    peaks[row] = peak;
  }
  return peaks;
}

/**
 * @param {Piece} piece
 * @param {Colouring} colouring
 * @param {number} peak
 * @param {Float32Array | null} byRow
 * @returns {HTMLCanvasElement}
 */
function colourPiece(piece, { scale, night }, peak, byRow) {
  const canvas = piece.image ?? document.createElement("canvas");
  if (canvas.width !== piece.width || canvas.height !== piece.height) [canvas.width, canvas.height] = [piece.width, piece.height];
  const context = canvas.getContext("2d");
  if (!context || !piece.values) return canvas;
  const image = context.createImageData(piece.width, piece.height);
  const pixels = new Uint32Array(image.data.buffer);
  const table = colourTable(night);
  for (let row = 0, place = 0; row < piece.height; row += 1) {
    const largest = byRow ? byRow[row] : peak;
    for (let col = 0; col < piece.width; col += 1, place += 1) {
      const value = piece.values[place];
      pixels[place] = Number.isNaN(value) ? NOT_A_NUMBER : table[Math.round(1024 * shareOf(value, largest, scale))];
    }
  }
  context.putImageData(image, 0, 0);
  return canvas;
}
