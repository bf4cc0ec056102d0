/** Answers out of the file's blocks: the numbers of a few heads are kept, and a long answer can be interrupted. */

import { blockNames } from "./blocknames.js";
import { floats16, floats32, inflated, integers32, thumbnailMeans, vectors } from "./decode.js";
import { tileOnCard } from "./gpu.js";
import { exactCells, fillTile, meanRow, summedColumns } from "./kernel.js";

/**
 * @typedef {import("./description.js").Layer} Layer
 * @typedef {import("./kernel.js").Numbers} Numbers
 * @typedef {import("./kernel.js").Plan} Plan
 *
 * @typedef {object} Question
 * @property {number} id
 * @property {"tile" | "row" | "column" | "rectangle" | "thumbnails" | "overview" | "cancel"} ask
 * @property {Layer} layer
 * @property {number} head
 * @property {[number, number]} shape Queries and keys of the layer.
 * @property {Plan} [plan]
 * @property {number[]} [rows]
 * @property {number[]} [cols]
 * @property {import("./gpu.js").Compute} compute
 * @property {{ [name: string]: string }} blocks Those that were lacking last time, or are not known yet.
 *
 * @typedef {{ id: number, values?: Float32Array, lacks?: string[], error?: string, gone?: boolean }} Answer
 */

const PATIENCE = 30; // milliseconds of one answer before others get their turn
const ROOM = 160e6; // bytes of numbers that are kept

/** @type {Map<string, Float32Array | Int32Array | Uint8Array>} the latest used is last */
const kept = new Map();
/** @type {Set<number>} */
const cancelled = new Set();

/**
 * The answer is no longer wanted.
 * @param {number} id
 */
export function giveUp(id) {
  cancelled.add(id);
}

/**
 * @param {Question} question
 * @returns {Promise<Answer>}
 */
export async function answered(question) {
  try {
    return await answerTo(question);
  } catch (reason) {
    return { id: question.id, error: String(reason instanceof Error ? reason.message : reason) };
  } finally {
    cancelled.delete(question.id);
  }
}

/**
 * @param {Question} question
 * @returns {Promise<Answer>}
 */
async function answerTo(question) {
  const { id, ask, layer, head } = question;
  for (const [name, text] of Object.entries(question.blocks)) keepBlock(name, await unpacked(name, text, layer, question.shape[1]));
  const lacks = blockNames(question).filter((name) => !kept.has(name));
  if (lacks.length) return { id, lacks };
  if (ask === "thumbnails") return { id, values: Float32Array.from(/** @type {Float32Array} */ (taken(`thumbnails:${layer.id}`))) };
  if (ask === "overview") return { id, values: Float32Array.from(/** @type {Float32Array} */ (taken(`overview:${layer.id}:${head}`))) };
  const numbers = numbersOf(question);
  const [rows, cols] = [question.rows ?? [], question.cols ?? []];
  if (ask === "row") return { id, values: meanRow(numbers, rows) };
  if (ask === "column") return { id, values: summedColumns(numbers, cols) };
  if (ask === "rectangle") return { id, values: exactCells(numbers, [rows[0], rows[1]], [cols[0], cols[1]]) };
  const plan = /** @type {Plan} */ (question.plan);
  const fromCard = await tileOnCard(numbers, plan, question.compute);
  return fromCard ? { id, values: fromCard } : tileOf(id, numbers, plan);
}

/**
 * @param {number} id
 * @param {Numbers} numbers
 * @param {Plan} plan
 * @returns {Promise<Answer>}
 */
async function tileOf(id, numbers, plan) {
  const values = new Float32Array((plan.rowEdges.length - 1) * (plan.colEdges.length - 1));
  let since = performance.now();
  for (const _ of fillTile(numbers, plan, values)) {
    if (performance.now() - since < PATIENCE) continue;
    await new Promise((resolve) => setTimeout(resolve, 0));
    if (cancelled.has(id)) return { id, gone: true };
    since = performance.now();
  }
  return { id, values };
}

/**
 * @param {string} name
 * @param {string} text
 * @param {Layer} layer
 * @param {number} keys How many the layer has.
 */
async function unpacked(name, text, layer, keys) {
  const bytes = await inflated(text);
  const packed = layer.packed;
  const kind = name.split(":")[0];
  if (kind === "thumbnails") return thumbnailMeans(bytes, Math.max(1, Math.floor(keys / (layer.thumbnail?.[1] || 1))));
  if (kind === "queries" && packed) return vectors(bytes, packed.dtype, packed.width, packed.scale);
  if (kind === "keys" && packed) return vectors(bytes, packed.dtype, packed.width);
  if (kind === "weights") return floats16(bytes);
  if (kind === "overview") return floats16(bytes).map((share) => share / keys); // 1 is an even share there
  if (kind === "ranges") return integers32(bytes);
  return kind === "bits" ? bytes : floats32(bytes);
}

/**
 * @param {string} name
 * @param {Float32Array | Int32Array | Uint8Array} block
 */
function keepBlock(name, block) {
  kept.set(name, block);
  let held = 0;
  for (const one of kept.values()) held += one.byteLength;
  for (const [oldest, one] of kept) {
    if (held <= ROOM || kept.size <= 8) break;
    kept.delete(oldest);
    held -= one.byteLength;
  }
}

/** @param {string} name */
function taken(name) {
  const block = kept.get(name);
  if (!block) throw new Error(`${name} is not here`);
  kept.delete(name);
  kept.set(name, block);
  return block;
}

/**
 * @param {Question} question
 * @returns {Numbers}
 */
function numbersOf({ layer, head, shape }) {
  const packed = /** @type {import("./description.js").Packed} */ (layer.packed);
  const [rows, cols] = shape;
  const floats = (/** @type {string} */ name) => /** @type {Float32Array} */ (taken(name));
  const nothing = new Float32Array(0);
  const plain = { rows, cols, width: packed.width, softcap: packed.softcap, offset: layer.offset };
  if (packed.form === "weights") {
    const weights = floats(`weights:${layer.id}:${head}`);
    return { ...plain, weights, queries: nothing, keys: nothing, sums: nothing, firsts: null, lasts: null, bits: null, bias: null };
  }
  const ranges = packed.mask === "ranges" ? /** @type {Int32Array} */ (taken(`ranges:${layer.id}`)) : null;
  return {
    ...plain, weights: null, queries: floats(`queries:${layer.id}:${head}`),
    keys: floats(`keys:${layer.id}:${packed.groups[head]}`), sums: floats(`sums:${layer.id}:${head}`),
    firsts: ranges && ranges.subarray(0, rows), lasts: ranges && ranges.subarray(rows),
    bits: packed.mask === "bits" ? /** @type {Uint8Array} */ (taken(`bits:${layer.id}`)) : null,
    bias: packed.bias && { first: packed.bias.first, numbers: floats(`bias:${layer.id}:${head}`) },
  };
}
