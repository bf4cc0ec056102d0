/** The weights behind the links: of the window and half a page around it, for every head that is shown. */

/**
 * @typedef {import("./description.js").Axis} Axis
 * @typedef {import("./description.js").Span} Span
 * @typedef {import("./linklines.js").Block} Block
 * @typedef {import("./source.js").Head} Head
 * @typedef {import("./source.js").Source} Source
 */

import { blockOf } from "./linklines.js";

/**
 * @param {Source} source
 * @param {ReturnType<typeof import("./newest.js").newestOnly>} ask
 * @param {() => void} changed
 */
export function linkBlocks(source, ask, changed) {
  /** @type {Map<string, Block>} */
  let known = new Map();
  let family = "";
  const nameOf = (/** @type {Head} */ { layer, head }) => `${layer} ${head}`;
  return {
    /** What is known of a head, even if it is of an older window. @param {Head} head */
    of: (head) => known.get(nameOf(head)) ?? null,

    /**
     * Asks for what the windows need and is not known.
     * @param {string} sides What the units belong to; other sides make all that is known worthless.
     * @param {Head[]} heads
     * @param {{ rows: Axis, cols: Axis }} axes
     * @param {{ rows: Span, cols: Span }} seen
     */
    want(sides, heads, axes, seen) {
      if (sides !== family) known = new Map();
      family = sides;
      if (seen.rows[0] >= seen.rows[1] || seen.cols[0] >= seen.cols[1]) return;
      const missing = heads.filter((head) => {
        const block = known.get(nameOf(head));
        return !block || !holds(block.rows, seen.rows) || !holds(block.cols, seen.cols);
      });
      if (!missing.length) return;
      const [rows, cols] = [widened(seen.rows, axes.rows), widened(seen.cols, axes.cols)];
      ask(
        () => Promise.all(missing.map((head) => exactWeights(source, head, axes.rows.unit, rows, cols))),
        (answers) => {
          missing.forEach((head, place) => known.set(nameOf(head), blockOf(rows, cols, answers[place] ?? new Float32Array())));
          for (const name of known.keys()) if (known.size > 24) known.delete(name);
          changed();
        },
        () => sides === family,
      );
    },
  };
}

/**
 * @param {Source} source
 * @param {Head} head
 * @param {import("./description.js").Unit} unit
 * @param {Span} rows
 * @param {Span} cols
 * @returns {Promise<Float32Array>}
 */
async function exactWeights(source, { layer, head }, unit, rows, cols) {
  if (unit === "token") return source.rectangle({ layer, head, rows, cols });
  const [height, width] = [rows[1] - rows[0], cols[1] - cols[0]];
  return (await source.tile({ layer, head, unit, rows, cols, height, width, step: 1 })).values;
}

/**
 * @param {Span} outer
 * @param {Span} inner
 */
export function holds(outer, inner) {
  return outer[0] <= inner[0] && outer[1] >= inner[1];
}

/**
 * A span and half of it on both sides, within the axis.
 * @param {Span} span
 * @param {Axis} axis
 * @returns {Span}
 */
function widened(span, axis) {
  const margin = Math.ceil((span[1] - span[0]) / 2);
  return [Math.max(axis.from, span[0] - margin), Math.min(axis.to, span[1] + margin)];
}
