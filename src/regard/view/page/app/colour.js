/** A share from 0 to 1 → a colour. Each step is darker (or lighter) than the one before: the order survives in grey. */

/** @typedef {readonly [number, number, number]} Colour */

/** @type {readonly Colour[]} On paper: from white over green and teal to night blue. */
const ON_PAPER = [[255, 255, 255], [226, 240, 196], [128, 200, 145], [30, 138, 148], [38, 70, 132], [16, 18, 48]];
/** @type {readonly Colour[]} At night: the same way back, from night blue to yellow. */
const AT_NIGHT = [[17, 20, 34], [36, 56, 110], [30, 112, 142], [70, 170, 130], [188, 216, 106], [255, 240, 150]];

/**
 * Colours of heads next to each other: told apart by eyes of every kind (after Okabe and Ito), on paper and at night.
 * @type {readonly string[]}
 */
export const HEAD_COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5cc9", "#8a8a2a"];

const STEPS = 1024;
/** @type {Map<boolean, Uint32Array>} */
const rampTables = new Map();

/**
 * 1025 colours as pixels of an ImageData (little-endian: alpha, blue, green, red).
 * @param {boolean} night
 * @returns {Uint32Array}
 */
export function colourTable(night) {
  let table = rampTables.get(night);
  if (!table) {
    table = new Uint32Array(STEPS + 1);
    for (let place = 0; place <= STEPS; place += 1) {
      const [red, green, blue] = colourAt(place / STEPS, night);
      table[place] = ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
    }
    rampTables.set(night, table);
  }
  return table;
}

/**
 * @param {number} share
 * @param {boolean} night
 * @returns {Colour}
 */
function colourAt(share, night) {
  const ramp = night ? AT_NIGHT : ON_PAPER;
  const place = Math.min(1, Math.max(0, share)) * (ramp.length - 1);
  const step = Math.min(ramp.length - 2, Math.floor(place));
  const [one, other] = [/** @type {Colour} */ (ramp[step]), /** @type {Colour} */ (ramp[step + 1])];
  const blend = (/** @type {0 | 1 | 2} */ part) => Math.round(one[part] + (other[part] - one[part]) * (place - step));
  return [blend(0), blend(1), blend(2)];
}

/**
 * @param {number} share
 * @param {boolean} night
 */
export function cssColour(share, night) {
  return `rgb(${colourAt(share, night).join(" ")})`;
}

/**
 * Black or white, whichever reads better on a colour of the scale.
 * @param {number} share
 * @param {boolean} night
 */
export function inkOn(share, night) {
  const [red, green, blue] = colourAt(share, night);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 135 ? "#10131f" : "#ffffff";
}

/** The least weight that a logarithmic scale shows, of the largest. */
export const LOG_REACH = 1e-4;

/**
 * A weight's place on the scale, given the largest weight on it.
 * @param {number} weight
 * @param {number} largest
 * @param {"linear" | "log"} scale
 */
export function shareOf(weight, largest, scale) {
  if (!(weight > 0) || !(largest > 0)) return 0;
  const part = weight / largest;
  if (scale === "linear") return Math.min(1, part);
  return part <= LOG_REACH ? 0 : Math.min(1, 1 - Math.log(part) / Math.log(LOG_REACH));
}

/** What is not a number: neither on the scale of paper nor on that of night. */
export const NOT_A_NUMBER = 0xffb48a9c; // as a pixel: alpha, blue, green, red

/** Whether the page is dark now. */
export function isNight() {
  const chosen = document.documentElement.dataset["theme"];
  if (chosen === "dark" || chosen === "light") return chosen === "dark";
  return window.matchMedia("(prefers-color-scheme: dark)").matches;
}
