/** Where the selected queries look most: the strongest key, and when asked again, the next one that is somewhere else. */

/**
 * @typedef {import("./description.js").Axis} Axis
 * @typedef {import("./view.js").Context} Context
 */

import { byUnit, chosenWeights } from "./choice.js";

/**
 * @param {Context} context
 * @returns {(rows: number[], axis: Axis, reach: number) => Promise<{ unit: number, weight: number } | null>}
 *   reach: so many units are seen at once; the next key is not among them.
 */
export function strongestAway({ source, state }) {
  let asked = "";
  /** @type {number[]} */
  let visited = [];
  return async (rows, axis, reach) => {
    const look = state.get();
    const key = [look.layer, look.head, look.unit, look.pair, ...rows].join(" ");
    if (key !== asked) visited = [];
    asked = key;
    const weights = byUnit(await chosenWeights(source, { ...look, rows }, "from"), axis, "from");
    if (key !== asked) return null;
    const next = () => {
      let best = -1;
      for (let unit = axis.from; unit < axis.to; unit += 1) {
        const seen = visited.some((one) => Math.abs(one - unit) < reach / 2);
        if (!seen && (weights[unit] ?? 0) > (best < 0 ? 0 : (weights[best] ?? 0))) best = unit;
      }
      return best;
    };
    let unit = visited.length < 20 ? next() : -1;
    if (unit < 0 || (visited.length && (weights[unit] ?? 0) < 0.01 * (weights[visited[0] ?? 0] ?? 0))) {
      visited = []; // all that matters was shown: from the strongest again
      unit = next();
    }
    if (unit < 0) return null;
    visited.push(unit);
    return { unit, weight: weights[unit] ?? 0 };
  };
}
