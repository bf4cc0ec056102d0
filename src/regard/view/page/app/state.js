/** What is looked at: one state for all views, so that a choice in one is a choice in all. */

/**
 * @typedef {import("./description.js").Unit} Unit
 * @typedef {import("./description.js").Pair} Pair
 * @typedef {import("./description.js").Measure} Measure
 * @typedef {"map" | "links" | "heads" | "text"} ViewName
 *
 * @typedef {object} Look
 * @property {ViewName} view
 * @property {number} text Which text of the record.
 * @property {number} layer Its place in the description.
 * @property {number} head Its place among the layer's heads.
 * @property {[number, number][]} more Further heads, [layer, head], for the links.
 * @property {number[]} rows Query tokens that are selected.
 * @property {number[]} cols Key tokens that are selected.
 * @property {"from" | "to"} direction What the rows look at, or who looks at the columns.
 * @property {Unit} unit
 * @property {Pair} pair
 * @property {"linear" | "log"} scale
 * @property {boolean} byRow Each row by its own strongest cell.
 * @property {{ x: number, y: number, zoom: number } | null} frame The map's window: first column, first row, pixels a unit.
 * @property {"model" | Measure} sort By what heads are sorted.
 * @property {"auto" | "light" | "dark"} theme
 * @property {"auto" | "en" | "zh"} language
 *
 * @typedef {keyof Look} Part
 * @typedef {object} State
 * @property {() => Readonly<Look>} get
 * @property {(change: Partial<Look>) => void} set Tells everybody who listens, once, unless nothing has changed.
 * @property {(listener: (look: Readonly<Look>, changed: Set<Part>) => void) => () => void} listen
 */

/** @type {readonly ViewName[]} In the order of the tabs, and of the keys 1 to 4. */
export const VIEW_NAMES = ["map", "links", "heads", "text"];
/** @type {readonly Pair[]} Which text of a pair looks at which. */
export const PAIRS = ["all", "aa", "ab", "ba", "bb"];
/** @type {readonly Measure[]} What heads are scored by. */
export const MEASURES = ["entropy", "distance", "sink", "induction", "previous_token"];

/** @type {Readonly<Look>} */
export const FIRST_LOOK = {
  view: "map", text: 0, layer: 0, head: 0, more: [], rows: [], cols: [], direction: "from", unit: "token", pair: "all",
  scale: "linear", byRow: false, frame: null, sort: "model", theme: "auto", language: "auto",
};

/**
 * @param {Readonly<Look>} first
 * @returns {State}
 */
export function stateOf(first) {
  let look = first;
  /** @type {Set<(look: Readonly<Look>, changed: Set<Part>) => void>} */
  const listeners = new Set();
  return {
    get: () => look,
    set(change) {
      const parts = /** @type {Part[]} */ (Object.keys(change));
      const changed = new Set(parts.filter((name) => JSON.stringify(look[name]) !== JSON.stringify(change[name])));
      if (!changed.size) return;
      look = { ...look, ...change };
      for (const listener of listeners) listener(look, changed);
    },
    listen(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
