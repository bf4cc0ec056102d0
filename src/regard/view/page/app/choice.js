/** What is chosen: tokens of the queries or of the keys, by click, by range; and the weights that belong to them. */

/**
 * @typedef {import("./description.js").Axis} Axis
 * @typedef {import("./state.js").Look} Look
 * @typedef {import("./source.js").Source} Source
 * @typedef {"only" | "add" | "range"} How
 */

import { shown } from "./description.js";

/** More tokens than these are not chosen at once: each costs a row of the map. */
export const MOST_CHOSEN = 1024;

/**
 * How a click or a key chooses.
 * @param {MouseEvent | KeyboardEvent} event
 * @returns {How}
 */
export function howChosen(event) {
  return event.shiftKey ? "range" : event.ctrlKey || event.metaKey ? "add" : "only";
}

/**
 * The units that hold chosen tokens.
 * @param {Axis} axis
 * @param {readonly number[]} tokens
 * @returns {Set<number>}
 */
export function chosenUnits(axis, tokens) {
  return new Set(tokens.map((token) => axis.unitOf(token)));
}

/**
 * The tokens of a span of units, as many as may be chosen.
 * @param {Axis} axis
 * @param {number} one
 * @param {number} other Included; may stand before the first.
 * @returns {number[]}
 */
export function tokensBetween(axis, one, other) {
  const [from] = axis.tokens(Math.min(one, other));
  const [, to] = axis.tokens(Math.max(one, other));
  return Array.from({ length: Math.min(MOST_CHOSEN, to - from) }, (_, place) => from + place);
}

/**
 * The chosen tokens after a unit was clicked: clicked again, it is let go.
 * @param {Axis} axis
 * @param {readonly number[]} tokens
 * @param {number} unit
 * @param {boolean} adding
 * @returns {number[]}
 */
export function toggled(axis, tokens, unit, adding) {
  const [from, to] = axis.tokens(unit);
  const others = tokens.filter((token) => token < from || token >= to);
  const was = others.length < tokens.length;
  const kept = adding ? others : [];
  if (was && (adding || !others.length)) return kept;
  return [...kept, ...tokensBetween(axis, unit, unit)].sort((one, other) => one - other).slice(0, MOST_CHOSEN);
}

/**
 * Chosen tokens in a few words: the first, and how many more.
 * @param {import("./view.js").Context} context
 * @param {Axis} axis
 * @param {readonly number[]} tokens
 */
export function chosenName(context, axis, tokens) {
  const units = [...chosenUnits(axis, tokens)];
  const first = `“${shown(axis.label(units[0] ?? 0), 24)}”`;
  return units.length > 1 ? context.say("chosen_more", first, units.length - 1) : first;
}

/**
 * Which way is looked: as it is set, unless only the other side has something chosen.
 * @param {Readonly<Look>} look
 * @returns {"from" | "to"}
 */
export function directionOf(look) {
  const [mine, other] = look.direction === "from" ? [look.rows, look.cols] : [look.cols, look.rows];
  if (mine.length || !other.length) return look.direction;
  return look.direction === "from" ? "to" : "from";
}

/** @type {WeakMap<Source, Map<string, Promise<Float32Array>>>} */
const askedWeights = new WeakMap();

/**
 * The weights of what is chosen, by token: of the rows over all keys, or of the columns over all queries. The last few
 * are remembered, since several views ask for the same ones.
 * @param {Source} source
 * @param {Readonly<Look>} look
 * @param {"from" | "to"} direction
 * @returns {Promise<Float32Array>}
 */
export function chosenWeights(source, look, direction) {
  const asked = askedWeights.get(source) ?? new Map();
  askedWeights.set(source, asked);
  const key = weightsKey(look, direction);
  const known = asked.get(key);
  if (known) return known;
  const head = { layer: look.layer, head: look.head };
  const answer = direction === "from" ? source.row({ ...head, rows: look.rows }) : source.column({ ...head, cols: look.cols });
  asked.set(key, answer);
  answer.catch(() => asked.delete(key));
  if (asked.size > 8) asked.delete(asked.keys().next().value);
  return answer;
}

/**
 * What tells one question for weights from another.
 * @param {Readonly<Look>} look
 * @param {"from" | "to"} direction
 */
export function weightsKey(look, direction) {
  return [look.text, look.layer, look.head, direction, ...(direction === "from" ? look.rows : look.cols)].join(" ");
}

/**
 * Weights by token → by unit, all units of the side: summed over the keys of a word, averaged over its queries.
 * @param {Float32Array} weights
 * @param {Axis} axis
 * @param {"from" | "to"} direction
 * @returns {Float32Array}
 */
export function byUnit(weights, axis, direction) {
  if (axis.unit === "token") return weights;
  return Float32Array.from({ length: axis.count }, (_, unit) => {
    const [from, to] = axis.tokens(unit);
    let sum = 0;
    for (let token = from; token < to; token += 1) sum += weights[token] ?? 0;
    return direction === "from" ? sum : sum / Math.max(1, to - from);
  });
}
