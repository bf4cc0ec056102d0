/** What is known of one cell of the map, in words: for the tip beside the pointer, and for screen readers. */

import { figure, shown } from "./description.js";
import { placeOf } from "./scene.js";

/**
 * @param {import("./scene.js").Scene} scene
 * @param {ReturnType<import("./tiles.js").tileStore>} tiles
 * @param {import("./scene.js").Cell} cell
 * @param {import("./view.js").Context["say"]} say
 * @returns {{ text: string, places: string }}
 */
export function cellWords(scene, tiles, cell, say) {
  const tile = tiles.at(placeOf(scene, cell));
  const piece = tile?.values ? tile : tiles.root();
  const pair = `${shown(scene.rows.label(cell.row), 24)} → ${shown(scene.cols.label(cell.col), 24)}`;
  const places = say("map_cell", cell.row, cell.col);
  if (!piece?.values) return { text: `${pair}  ${say("computing")}`, places };
  const [high, wide] = [(piece.bottom - piece.top) / piece.height, (piece.right - piece.left) / piece.width];
  const down = Math.min(piece.height - 1, Math.floor((cell.row - piece.top + 0.5) / high));
  const across = Math.min(piece.width - 1, Math.floor((cell.col - piece.left + 0.5) / wide));
  const weight = figure(piece.values[down * piece.width + across]);
  if (high === 1 && wide === 1) return { text: `${pair}  ${weight}`, places };
  const about = piece.step > 1 ? ` ${say("map_estimate", piece.step)}` : "";
  return { text: `${pair}  ${say("map_mean", weight, Math.round(high), Math.round(wide))}${about}`, places };
}
