/** What is looked at, as the end of an address: a link restores the view. */

import { MOST_CHOSEN } from "./choice.js";
import { FIRST_LOOK, MEASURES, PAIRS, VIEW_NAMES } from "./state.js";

/** @typedef {import("./state.js").Look} Look */

const CHOICES = /** @type {{ [name: string]: readonly string[] }} */ ({
  view: VIEW_NAMES, direction: ["from", "to"], unit: ["token", "word"], pair: PAIRS, scale: ["linear", "log"],
  theme: ["auto", "light", "dark"], language: ["auto", "en", "zh"], sort: ["model", ...MEASURES],
});
const BY_TEXT = ["unit", "scale"]; // how these begin depends on the text, so an address always says them

/**
 * @param {Readonly<Look>} look
 * @param {boolean} [ofText] Whether what depends on the text is said too.
 * @returns {string} without the #
 */
export function fragmentOf(look, ofText = true) {
  const parts = new URLSearchParams();
  for (const name of Object.keys(CHOICES)) {
    const value = String(look[/** @type {keyof Look} */ (name)]);
    const first = String(FIRST_LOOK[/** @type {keyof Look} */ (name)]);
    if (value !== first || (ofText && BY_TEXT.includes(name))) parts.set(name, value);
  }
  for (const name of /** @type {const} */ (["text", "layer", "head"])) if (look[name]) parts.set(name, String(look[name]));
  if (look.byRow) parts.set("rows-alone", "1");
  if (look.more.length) parts.set("more", look.more.map((pair) => pair.join("-")).join(","));
  if (look.rows.length) parts.set("rows", runsOf(look.rows));
  if (look.cols.length) parts.set("cols", runsOf(look.cols));
  if (look.frame) parts.set("at", [look.frame.x, look.frame.y, look.frame.zoom].map((part) => Number(part.toPrecision(8))).join(","));
  return parts.toString();
}

/**
 * What an address says; anything that makes no sense in this record is passed over.
 * @param {string} fragment
 * @param {import("./description.js").Description} description
 * @returns {Partial<Look>}
 */
export function lookOf(fragment, description) {
  const parts = new URLSearchParams(fragment.replace(/^#/, ""));
  /** @type {{ [name: string]: unknown }} */
  const look = {};
  for (const [name, allowed] of Object.entries(CHOICES)) {
    const value = parts.get(name);
    if (value && allowed.includes(value)) look[name] = value;
  }
  const whole = (/** @type {string | null} */ text, /** @type {number} */ below) => {
    const number = text !== null && /^\d{1,9}$/.test(text) ? Number(text) : -1;
    return number >= 0 && number < below ? number : null;
  };
  const layer = whole(parts.get("layer"), description.layers.length) ?? description.texts[0]?.layers[0] ?? 0;
  const found = description.layers[layer];
  const text = description.texts.findIndex((one) => one.layers.includes(layer));
  Object.assign(look, { layer, text: Math.max(0, text), head: whole(parts.get("head"), found?.heads.length ?? 0) ?? 0 });
  look["byRow"] = parts.get("rows-alone") === "1";
  const more = (parts.get("more") ?? "").split(",").map((pair) => pair.split("-"));
  look["more"] = more.flatMap(([one, other]) => {
    const at = whole(one ?? null, description.layers.length);
    const head = at === null ? null : whole(other ?? null, description.layers[at].heads.length);
    return at === null || head === null ? [] : [[at, head]];
  });
  const sides = /** @type {const} */ ([["rows", found?.queries], ["cols", found?.keys]]);
  for (const [name, side] of sides) {
    look[name] = placesOf(parts.get(name) ?? "", description.tokens[side ?? 0]?.texts.length ?? 0);
  }
  const at = (parts.get("at") ?? "").split(",").map(Number);
  if (at.length === 3 && at.every(Number.isFinite) && at[2] > 0) look["frame"] = { x: at[0], y: at[1], zoom: at[2] };
  return /** @type {Partial<Look>} */ (look);
}

/**
 * Where an address wants tiles computed: compute=cpu, compute=gpu; unless it says, on the card if there is one.
 * @param {string} fragment
 * @returns {import("./gpu.js").Compute}
 */
export function computeOf(fragment) {
  const wanted = new URLSearchParams(fragment.replace(/^#/, "")).get("compute");
  return wanted === "cpu" || wanted === "gpu" ? wanted : "auto";
}

/**
 * Places as runs: 3, 4, 5, 9 is "3-5,9".
 * @param {number[]} places
 */
function runsOf(places) {
  const sorted = [...new Set(places)].sort((one, other) => one - other).slice(0, MOST_CHOSEN);
  /** @type {[number, number][]} */
  const runs = [];
  for (const place of sorted) {
    const last = runs[runs.length - 1];
    if (last && last[1] === place - 1) last[1] = place;
    else runs.push([place, place]);
  }
  return runs.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(",");
}

/**
 * @param {string} runs
 * @param {number} below
 * @returns {number[]}
 */
function placesOf(runs, below) {
  /** @type {number[]} */
  const places = [];
  for (const run of runs.split(",")) {
    const hit = /^(\d{1,9})(?:-(\d{1,9}))?$/.exec(run);
    if (!hit) continue;
    const to = Math.min(below - 1, Number(hit[2] ?? hit[1]));
    for (let place = Number(hit[1]); place <= to && places.length < MOST_CHOSEN; place += 1) places.push(place);
  }
  return places;
}
