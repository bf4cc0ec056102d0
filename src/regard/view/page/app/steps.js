/** From one layer, head or text to another: what else of the look changes with it. */

import { isPair, sidesOf } from "./description.js";

/**
 * @typedef {import("./description.js").Description} Description
 * @typedef {import("./description.js").Layer} Layer
 * @typedef {import("./state.js").Look} Look
 */

/** @type {readonly Layer["kind"][]} */
export const KINDS = ["encoder", "decoder", "cross"];

/**
 * The places of a text's layers, of one kind or of all.
 * @param {Description} description
 * @param {number} text
 * @param {Layer["kind"]} [kind]
 * @returns {number[]}
 */
export function layersOf(description, text, kind) {
  const places = description.texts[text]?.layers ?? [];
  return kind ? places.filter((place) => description.layers[place]?.kind === kind) : places;
}

/**
 * The layers that can be gone to by a step: those of the same text and kind.
 * @param {Description} description
 * @param {Readonly<Look>} look
 */
export function layersAround(description, look) {
  return layersOf(description, look.text, description.layers[look.layer]?.kind);
}

/**
 * Whether some word of a layer's sides has several pieces.
 * @param {Description} description
 * @param {number} layer
 */
export function hasWords(description, layer) {
  const { queries, keys } = sidesOf(description, layer);
  return [queries, keys].some((side) => side.words.length < side.texts.length);
}

/**
 * To a layer, and a head of it. What is selected stays where both have the same tokens.
 * @param {Description} description
 * @param {Readonly<Look>} look
 * @param {number} layer
 * @param {number} [head]
 * @returns {Partial<Look>}
 */
export function moveTo(description, look, layer, head = look.head) {
  const goal = sidesOf(description, layer);
  const from = description.layers[look.layer];
  const within = Math.max(0, Math.min(head, goal.layer.heads.length - 1));
  const text = description.texts.findIndex((one) => one.layers.includes(layer));
  const place = { text: Math.max(0, text), layer, head: within };
  if (from && from.queries === goal.layer.queries && from.keys === goal.layer.keys) {
    return place.text === look.text ? place : { ...place, more: [] };
  }
  const pair = isPair(goal.queries) || isPair(goal.keys) ? look.pair : "all";
  return { ...place, rows: [], cols: [], more: [], frame: null, pair };
}

/**
 * To the layer of a kind whose number is nearest.
 * @param {Description} description
 * @param {Readonly<Look>} look
 * @param {Layer["kind"]} kind
 * @param {number} [text]
 * @returns {Partial<Look>}
 */
export function moveToKind(description, look, kind, text = look.text) {
  const offered = layersOf(description, text, kind);
  const among = offered.length ? offered : layersOf(description, text);
  const index = description.layers[look.layer]?.index ?? 0;
  const distance = (/** @type {number} */ place) => Math.abs((description.layers[place]?.index ?? 0) - index);
  const nearest = among.reduce((best, place) => (distance(place) < distance(best) ? place : best), among[0] ?? look.layer);
  return moveTo(description, look, nearest);
}

/**
 * A step among the layers, or among the heads; none beyond the ends.
 * @param {Description} description
 * @param {Readonly<Look>} look
 * @param {"layer" | "head"} what
 * @param {1 | -1} step
 * @returns {Partial<Look>}
 */
export function stepBy(description, look, what, step) {
  if (what === "head") return moveTo(description, look, look.layer, look.head + step);
  const around = layersAround(description, look);
  const goal = around[around.indexOf(look.layer) + step];
  return goal === undefined ? {} : moveTo(description, look, goal);
}

/**
 * The heads for the links with one more, or one less where it was among them.
 * @param {Readonly<Look>} look
 * @param {number} layer
 * @param {number} head
 * @returns {[number, number][]}
 */
export function withHead(look, layer, head) {
  const without = look.more.filter(([one, other]) => one !== layer || other !== head);
  return without.length < look.more.length ? without : [...look.more, [layer, head]];
}

/**
 * A module's name up to its number, which says where it stands: "encoder.layer.3…".
 * @param {Layer} layer
 */
export function shortName(layer) {
  const parts = layer.name.split(".");
  const place = parts.lastIndexOf(String(layer.index));
  const kept = place < 0 || place === parts.length - 1 ? layer.name : parts.slice(0, place + 1).join(".") + "…";
  return kept.length > 40 ? "…" + kept.slice(-39) : kept;
}
