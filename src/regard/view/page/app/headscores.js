/** What heads are known by: their scores, asked for once a layer; and heads in the order of a score. */

import { figure } from "./description.js";

/**
 * @typedef {import("./source.js").Source} Source
 * @typedef {import("./source.js").Head} Head
 * @typedef {import("./description.js").Measure} Measure
 *
 * @typedef {object} HeadScores
 * @property {(layer: number) => boolean} has
 * @property {(layer: number) => Promise<void>} load
 * @property {(head: Head, measure: Measure) => number | null} of
 * @property {(head: Head, measure: Measure) => string} told With ≈ where it is an estimate.
 * @property {(layer: number) => boolean} estimated
 */

/** @type {readonly Measure[]} Of these a low score is the remarkable one, as in the tables of the command line. */
export const LOWEST_FIRST = ["entropy"];

/**
 * @param {Source} source
 * @returns {HeadScores}
 */
export function headScores(source) {
  /** @type {Map<number, import("./description.js").Scores & { step?: number }>} */
  const known = new Map();
  /** @type {Map<number, Promise<void>>} */
  const asked = new Map();
  const estimated = (/** @type {number} */ layer) => (known.get(layer)?.step ?? 1) > 1;
  const of = (/** @type {Head} */ { layer, head }, /** @type {Measure} */ measure) => {
    const value = known.get(layer)?.[measure]?.[head] ?? null;
    return value !== null && Number.isFinite(value) ? value : null;
  };
  return {
    has: (layer) => known.has(layer),
    load(layer) {
      let answer = asked.get(layer);
      if (!answer) {
        answer = source.scores(layer).then((scores) => void known.set(layer, scores));
        answer.catch(() => asked.delete(layer)); // it may be asked for again
        asked.set(layer, answer);
      }
      return answer;
    },
    of,
    estimated,
    told(head, measure) {
      const value = of(head, measure);
      if (value === null) return "–";
      return (estimated(head.layer) ? "≈" : "") + (value >= 10 ? value.toFixed(1) : value >= 1 ? value.toFixed(2) : figure(value));
    },
  };
}

/**
 * Heads by a score; those without one at the end, in the order in which they came.
 * @template {Head} One
 * @param {readonly One[]} heads
 * @param {(head: One) => number | null} score
 * @param {boolean} rising
 * @returns {One[]}
 */
export function byScore(heads, score, rising) {
  const [scored, without] = [heads.filter((one) => score(one) !== null), heads.filter((one) => score(one) === null)];
  const sign = rising ? 1 : -1;
  return [...scored.sort((one, other) => sign * (Number(score(one)) - Number(score(other)))), ...without];
}
