/** Small pictures of heads: loaded layer by layer, a few at a time, and drawn pixel by pixel. */

import { colourTable, shareOf } from "./colour.js";
import { make } from "./dom.js";

/** @typedef {import("./source.js").Thumbnails} Thumbnails */

/** So many layers are asked for at a time. */
const LAYERS_AT_ONCE = 2;

/**
 * Work that is done a little at a time: `next` says what is wanted most whenever there is room for more.
 * @param {() => (() => Promise<void>) | null} next
 * @returns {() => void} Looks whether there is something to do.
 */
export function inTurns(next) {
  let running = 0;
  const look = () => {
    while (running < LAYERS_AT_ONCE) {
      const work = next();
      if (!work) return;
      running += 1;
      const done = () => {
        running -= 1;
        look();
      };
      work().then(done, done);
    }
  };
  return look;
}

/** @type {HTMLCanvasElement | null} */
let thumbSheet = null;

/**
 * One head of a layer's small pictures on a canvas of as many pixels: one canvas for all, to be used at once. Hundreds
 * of canvases in a page are slow to scroll; as images they are not.
 * @param {Thumbnails} pictures
 * @param {number} head
 * @param {{ night: boolean, scale: "linear" | "log", byRow: boolean }} look
 * @returns {HTMLCanvasElement}
 */
export function drawThumb({ height, width, values }, head, { night, scale, byRow }) {
  thumbSheet ??= make("canvas");
  [thumbSheet.width, thumbSheet.height] = [width, height];
  const context = thumbSheet.getContext("2d", { willReadFrequently: true });
  if (!context || !width || !height) return thumbSheet;
  const cells = values.subarray(head * height * width, (head + 1) * height * width);
  const picture = context.createImageData(width, height);
  const pixels = new Uint32Array(picture.data.buffer);
  const table = colourTable(night);
  const largestOf = (/** @type {Float32Array} */ some) => some.reduce((most, weight) => (weight > most ? weight : most), 0);
  let largest = byRow ? 0 : largestOf(cells);
  for (let place = 0; place < cells.length; place += 1) {
    if (byRow && place % width === 0) largest = largestOf(cells.subarray(place, place + width));
    pixels[place] = table[Math.round(shareOf(cells[place] ?? 0, largest, scale) * (table.length - 1))] ?? 0;
  }
  context.putImageData(picture, 0, 0);
  return thumbSheet;
}
