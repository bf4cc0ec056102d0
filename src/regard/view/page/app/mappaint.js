/** The picture of the map: tiles, lines and figures of large cells, what is chosen, names, and the scale of colours. */

import { cssColour, inkOn, LOG_REACH, shareOf } from "./colour.js";
import { figure } from "./description.js";
import { paintColumnLabels, paintRowLabels } from "./gutters.js";
import { textWidth } from "./measuring.js";
import { paintScale } from "./scalelegend.js";
import { acrossOf, downOf, filled } from "./scene.js";
import { ROOT } from "./tiles.js";
import { inks } from "./view.js";

/**
 * @typedef {import("./pen.js").Pen} Pen
 * @typedef {import("./scene.js").Scene} Scene
 * @typedef {import("./scene.js").Cell} Cell
 * @typedef {import("./tiles.js").Piece} Piece
 * @typedef {import("./tiles.js").Place} Place
 * @typedef {ReturnType<import("./tiles.js").tileStore>} Tiles
 */

const GRID_FROM = 16; // pixels a cell from which lines are drawn between cells
const FIGURES_FROM = 46; // and from which they hold their numbers
const FRAMED_FROM = 6; // and from which the one under the pointer has a frame
const MANY = 40; // rows or columns from which on those chosen are tinted less

/**
 * @param {Pen} pen
 * @param {Scene} scene
 * @param {Tiles} tiles
 * @param {Place[]} places
 * @param {Cell | null} pointed The cell under the pointer.
 * @param {import("./view.js").Context["say"]} say
 */
export function paintMap(pen, scene, tiles, places, pointed, say) {
  const ink = inks(scene.night);
  paintTiles(pen, scene, tiles, places);
  const failure = places.map((place) => tiles.at(place)?.failure).find(Boolean);
  if (failure) {
    const { left, top, width, height } = scene.plot;
    pen.text(say("failed", failure), left + width / 2, top + height / 2, { size: 13, fill: ink.accent, align: "middle" });
  }
  paintMapMarks(pen, scene, pointed, ink.accent);
  const { rows, cols, frame, plot, chosen } = scene;
  const named = pointed && !chosen.rows.size ? { rows: new Set([pointed.row]), cols: new Set([pointed.col]) } : chosen;
  paintRowLabels(pen, rows, frame, { ...plot, room: plot.rowRoom }, ink, named.rows);
  paintColumnLabels(pen, cols, frame, { ...plot, room: plot.colRoom }, ink, named.cols);
  paintMapLegend(pen, scene, tiles.peak(scene.level), ink.faint, say);
}

/**
 * @param {Scene} scene
 * @returns {import("./tiles.js").Colouring}
 */
export function colouringOf({ look, night }) {
  return { scale: look.scale, byRow: look.byRow, night };
}

/**
 * @param {Pen} pen
 * @param {Scene} scene
 * @param {Tiles} tiles
 * @param {Place[]} places
 */
function paintTiles(pen, scene, tiles, places) {
  const { plot, frame, level, night } = scene;
  const colouring = colouringOf(scene);
  const { wide, high } = filled(scene);
  const peaksOf = rowPeaksAmong(tiles, places);
  const put = (/** @type {Piece | null} */ piece) => {
    const image = piece && tiles.image(piece, colouring, peaksOf, level);
    if (!piece || !image) return;
    const [x, y] = [Math.round(acrossOf(scene, piece.left)), Math.round(downOf(scene, piece.top))];
    pen.picture(image, x, y, Math.round(acrossOf(scene, piece.right)) - x, Math.round(downOf(scene, piece.bottom)) - y);
  };
  pen.within(plot.left, plot.top, wide, high, () => {
    pen.rectangle(plot.left, plot.top, wide, high, cssColour(0, night));
    if (!places.length || places.some((place) => !tiles.at(place)?.values)) put(tiles.root());
    for (const place of places) put(tiles.at(place));
    if (frame.zoom >= GRID_FROM) paintCellGrid(pen, scene);
    if (frame.zoom >= FIGURES_FROM) {
      for (const place of places) paintCellFigures(pen, scene, tiles.at(place), tiles.peak(level), peaksOf);
    }
  });
  pen.frame(plot.left - 0.5, plot.top - 0.5, wide + 1, high + 1, inks(night).line);
}

/**
 * The largest of each row of cells, over a tile and all that are seen beside it.
 * @param {Tiles} tiles
 * @param {Place[]} places
 */
function rowPeaksAmong(tiles, places) {
  return (/** @type {Piece} */ piece) => {
    if (piece.level === ROOT) return piece.rowPeaks;
    const together = Float32Array.from(piece.rowPeaks);
    for (const place of places) {
      const other = tiles.at(place);
      if (!other || other.top !== piece.top || other.level !== piece.level) continue;
      other.rowPeaks.forEach((peak, row) => (together[row] = Math.max(together[row], peak)));
    }
    return together;
  };
}

/**
 * The cells in sight.
 * @param {Scene} scene
 */
function cellsInSight({ frame, plot, world }) {
  return {
    left: Math.floor(frame.x), right: Math.min(world.right, Math.ceil(frame.x + plot.width / frame.zoom)),
    top: Math.floor(frame.y), bottom: Math.min(world.bottom, Math.ceil(frame.y + plot.height / frame.zoom)),
  };
}

/**
 * @param {Pen} pen
 * @param {Scene} scene
 */
function paintCellGrid(pen, scene) {
  const { left, right, top, bottom } = cellsInSight(scene);
  const colour = scene.night ? "#ffffff" : "#20304f";
  const [x0, x1, y0, y1] = [acrossOf(scene, left), acrossOf(scene, right), downOf(scene, top), downOf(scene, bottom)];
  for (let col = left; col <= right; col += 1) pen.line(acrossOf(scene, col), y0, acrossOf(scene, col), y1, colour, 1, 0.08);
  for (let row = top; row <= bottom; row += 1) pen.line(x0, downOf(scene, row), x1, downOf(scene, row), colour, 1, 0.08);
}

/**
 * @param {Pen} pen
 * @param {Scene} scene
 * @param {Piece | null} piece
 * @param {number} peak
 * @param {(piece: Piece) => Float32Array} peaksOf
 */
function paintCellFigures(pen, scene, piece, peak, peaksOf) {
  if (!piece?.values) return;
  const { left, right, top, bottom } = cellsInSight(scene);
  const peaks = scene.look.byRow ? peaksOf(piece) : null;
  for (let row = Math.max(top, piece.top); row < Math.min(bottom, piece.bottom); row += 1) {
    for (let col = Math.max(left, piece.left); col < Math.min(right, piece.right); col += 1) {
      const weight = piece.values[(row - piece.top) * piece.width + col - piece.left];
      const share = shareOf(weight, peaks ? peaks[row - piece.top] : peak, scene.look.scale);
      const style = { size: 11, align: /** @type {const} */ ("middle"), fill: inkOn(share, scene.night) };
      pen.text(figure(weight), acrossOf(scene, col + 0.5), downOf(scene, row + 0.5), style);
    }
  }
}

/**
 * What is chosen, and the cell under the pointer.
 * @param {Pen} pen
 * @param {Scene} scene
 * @param {Cell | null} pointed
 * @param {string} accent
 */
function paintMapMarks(pen, scene, pointed, accent) {
  const { plot, frame, chosen } = scene;
  const { wide, high } = filled(scene);
  const thick = Math.max(2, frame.zoom);
  pen.within(plot.left - 1, plot.top - 1, wide + 2, high + 2, () => {
    for (const row of chosen.rows) {
      const y = downOf(scene, row);
      pen.rectangle(plot.left, y, wide, thick, accent, chosen.rows.size > MANY ? 0.04 : 0.07);
      for (const edge of [y, y + thick]) pen.line(plot.left, edge, plot.left + wide, edge, accent, 1, 0.7);
    }
    for (const col of chosen.cols) {
      const x = acrossOf(scene, col);
      pen.rectangle(x, plot.top, thick, high, accent, chosen.cols.size > MANY ? 0.04 : 0.07);
      for (const edge of [x, x + thick]) pen.line(edge, plot.top, edge, plot.top + high, accent, 1, 0.7);
    }
    if (pointed && frame.zoom >= FRAMED_FROM) {
      const [x, y] = [acrossOf(scene, pointed.col), downOf(scene, pointed.row)];
      pen.frame(x + 0.5, y + 0.5, frame.zoom - 1, frame.zoom - 1, accent, 2);
    }
  });
}

/**
 * The scale of colours, below.
 * @param {Pen} pen
 * @param {Scene} scene
 * @param {number} peak
 * @param {string} faint
 * @param {import("./view.js").Context["say"]} say
 */
function paintMapLegend(pen, { look, plot, night }, peak, faint, say) {
  const y = plot.top + plot.height + 14;
  const wide = Math.min(180, plot.width * 0.4);
  paintScale(pen, plot.left, y - 1, wide, 10, night);
  const most = look.byRow ? say("map_row_peak") : figure(peak);
  const least = look.scale === "log" ? figure(look.byRow ? LOG_REACH : peak * LOG_REACH) : "0";
  const ends = `${least} – ${most}`;
  pen.text(ends, plot.left + wide + 10, y + 4, { size: 11, fill: faint });
  const after = plot.left + wide + 34 + textWidth(ends, 11);
  const names = say("map_axes");
  if (after + textWidth(names, 11) <= plot.left + plot.width) pen.text(names, after, y + 4, { size: 11, fill: faint });
}
