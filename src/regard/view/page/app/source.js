/** Where numbers come from: the file itself, or a server. Views know this face of it only. */

/**
 * @typedef {import("./description.js").Unit} Unit
 * @typedef {import("./description.js").Span} Span
 * @typedef {import("./description.js").Scores} Scores
 * @typedef {import("./description.js").Description} Description
 *
 * @typedef {object} Head
 * @property {number} layer Its place in the description.
 * @property {number} head Its place among the layer's heads.
 *
 * @typedef {object} TileRequest A rectangle in units, cut into height × width cells as equal as can be.
 * @property {number} layer
 * @property {number} head
 * @property {Unit} unit
 * @property {Span} rows
 * @property {Span} cols
 * @property {number} height
 * @property {number} width
 * @property {number} step Of so many query tokens one is used; 1 is exact.
 *
 * @typedef {object} Tile
 * @property {Float32Array} values Means over the cells, row by row.
 * @property {number} step What was used.
 *
 * @typedef {object} Thumbnails
 * @property {number} height
 * @property {number} width
 * @property {Float32Array} values Head by head, row by row.
 *
 * @typedef {object} Source
 * @property {Description} description
 * @property {(request: TileRequest, signal?: AbortSignal) => Promise<Tile>} tile
 * @property {(request: Head & { rows: number[] }) => Promise<Float32Array>} row The mean over some queries.
 * @property {(request: Head & { cols: number[] }) => Promise<Float32Array>} column The sum over some keys.
 * @property {(request: Head & { rows: Span, cols: Span }) => Promise<Float32Array>} rectangle Exact cells.
 * @property {(layer: number) => Promise<Thumbnails>} thumbnails
 * @property {(layer: number) => Promise<Scores & { step?: number }>} scores
 * @property {((layer: number, head: number) => Promise<Tile & { height: number, width: number } | null>)} overview
 *   The whole map made small, where it is ready; by tokens.
 */

/**
 * Where the cells of a span begin, and its end: as nearly equal as can be.
 * @param {number} from
 * @param {number} to
 * @param {number} cells
 * @returns {number[]}
 */
export function evenEdges(from, to, cells) {
  const count = Math.max(1, Math.min(cells, to - from));
  return Array.from({ length: count + 1 }, (_, cell) => from + Math.floor((cell * (to - from)) / count));
}
