/** The source that needs nothing but the file: blocks are read out of the page, and workers compute. */

import { answered } from "./answering.js";
import { blockNames } from "./blocknames.js";
import { blockNow, blockText } from "./blocks.js";
import { axisOf, sidesOf } from "./description.js";
import { evenEdges } from "./source.js";

/**
 * @typedef {import("./source.js").Source} Source
 * @typedef {import("./source.js").TileRequest} TileRequest
 * @typedef {import("./answering.js").Question} Question
 * @typedef {import("./answering.js").Answer} Answer
 * @typedef {import("./kernel.js").Plan} Plan
 */

const AT_HAND = 2e7; // multiply-adds that are done here and now while the workers are still being started
const WORK = 8e7; // multiply-adds of a tile's first answer; what is more is asked for with a larger step

/**
 * @param {import("./description.js").Description} description
 * @param {import("./gpu.js").Compute} compute Where tiles are computed.
 * @returns {Source}
 */
export function packedSource(description, compute) {
  const workers = workerPool(Math.max(1, Math.min(3, (navigator.hardwareConcurrency || 2) - 1)));
  const about = (/** @type {number} */ layer, head = 0) => {
    const sides = sidesOf(description, layer);
    const shape = /** @type {[number, number]} */ ([sides.queries.texts.length, sides.keys.texts.length]);
    return { layer: sides.layer, head, shape, compute };
  };
  return {
    description,
    async tile(request, signal) {
      const question = about(request.layer, request.head);
      const plan = planOf(description, request);
      const values = await workers.ask({ ...question, ask: "tile", plan }, signal);
      return { values, step: plan.step };
    },
    row: ({ layer, head, rows }) => workers.ask({ ...about(layer, head), ask: "row", rows }),
    column: ({ layer, head, cols }) => workers.ask({ ...about(layer, head), ask: "column", cols }),
    rectangle: ({ layer, head, rows, cols }) => workers.ask({ ...about(layer, head), ask: "rectangle", rows, cols }),
    async thumbnails(layer) {
      const [height, width] = description.layers[layer].thumbnail ?? [0, 0];
      if (!height) return { height: 0, width: 0, values: new Float32Array(0) };
      return { height, width, values: await workers.ask({ ...about(layer), ask: "thumbnails" }) };
    },
    scores: async (layer) => ({ ...description.layers[layer].scores, step: description.layers[layer].step ?? 1 }),
    async overview(layer, head) {
      const size = description.layers[layer].packed?.overview;
      if (!size) return null;
      const values = await workers.ask({ ...about(layer, head), ask: "overview" });
      return { values, step: 1, height: size[0], width: size[1] };
    },
  };
}

/**
 * What a request means in tokens. A step of 0 asks for whatever can be had at once.
 * @param {import("./description.js").Description} description
 * @param {TileRequest} request
 * @returns {Plan}
 */
function planOf(description, { layer, unit, rows, cols, height, width, step }) {
  const { layer: found, queries, keys } = sidesOf(description, layer);
  const [down, across] = [axisOf(queries, unit), axisOf(keys, unit)];
  const edgesOf = (/** @type {import("./description.js").Axis} */ axis, /** @type {number[]} */ edges) =>
    Int32Array.from(edges, (edge) => (edge < axis.count ? axis.tokens(edge)[0] : axis.tokens(axis.count - 1)[1]));
  const unitCols = evenEdges(cols[0], cols[1], width);
  const [rowEdges, colEdges] = [edgesOf(down, evenEdges(rows[0], rows[1], height)), edgesOf(across, unitCols)];
  const tokens = rowEdges[rowEdges.length - 1] - rowEdges[0];
  const rowShares = new Float32Array(tokens).fill(1);
  if (unit === "word") {
    for (let word = rows[0]; word < rows[1]; word += 1) {
      const [from, to] = down.tokens(word);
      rowShares.fill(1 / (to - from), from - rowEdges[0], to - rowEdges[0]);
    }
  }
  const columns = colEdges[colEdges.length - 1] - colEdges[0];
  const work = tokens * columns * (found.packed?.form === "weights" ? 1 : found.packed?.width ?? 1);
  return {
    rowEdges, colEdges, rowShares, colUnits: Float32Array.from(unitCols.slice(1), (edge, cell) => edge - unitCols[cell]),
    step: step || Math.max(1, 2 ** Math.ceil(Math.log2(work / WORK))),
  };
}

/**
 * Some workers, and questions that wait for one that is free: the latest first, since it is what is looked at now.
 * @param {number} size
 */
function workerPool(size) {
  const source = document.getElementById("worker")?.textContent ?? "";
  const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const workers = Array.from({ length: size }, () => ({ worker: new Worker(address), busy: 0, sent: /** @type {Set<string>} */ (new Set()) }));
  /** @typedef {{ question: Omit<Question, "id" | "blocks">, signal?: AbortSignal, resolve: (values: Float32Array) => void, reject: (reason: Error) => void }} Job */
  /** @type {Job[]} */
  const waiting = [];
  /** @type {Map<number, (answer: Answer) => void>} */
  const open = new Map();
  let count = 0;
  let up = false; // whether the workers are
  for (const one of workers) {
    one.worker.onmessage = (/** @type {MessageEvent<Answer | "up">} */ event) => {
      if (event.data === "up") {
        up = true;
        return;
      }
      const settle = open.get(event.data.id);
      open.delete(event.data.id);
      settle?.(event.data);
    };
    one.worker.onerror = (event) => {
      for (const settle of open.values()) settle({ id: -1, error: event.message || "the worker failed" });
      open.clear();
    };
  }

  /**
   * @param {{ worker: Worker }} one
   * @param {Job} job
   * @param {{ [name: string]: string }} blocks
   * @returns {Promise<Answer>}
   */
  const put = ({ worker }, job, blocks) =>
    new Promise((resolve) => {
      const id = (count += 1);
      const cancel = () => worker.postMessage({ id, ask: "cancel" });
      job.signal?.addEventListener("abort", cancel, { once: true });
      open.set(id, (answer) => {
        job.signal?.removeEventListener("abort", cancel);
        resolve(answer);
      });
      worker.postMessage({ ...job.question, id, blocks });
    });

  /**
   * A small answer, found here: to start a worker takes longer.
   * @param {Job} job
   */
  const workAtHand = async ({ question, resolve, reject }) => {
    const names = blockNames(question);
    const blocks = Object.fromEntries(names.map((name) => [name, blockNow(name) ?? ""]));
    const answer = await answered({ ...question, id: 0, compute: "cpu", blocks });
    if (answer.values) resolve(answer.values);
    else reject(new Error(answer.error ?? "there is no answer"));
  };

  /** @param {Job} job */
  const isAtHand = ({ question: { ask, layer, shape }, question }) =>
    !up && ask === "tile" && shape[0] * shape[1] * (layer.packed?.width ?? 1) <= AT_HAND && blockNames(question).every((name) => blockNow(name) !== null);

  /**
   * What a worker has not been sent and is here already: it will want it, and need not ask. It may have dropped the rest.
   * @param {{ sent: Set<string> }} one
   * @param {Job} job
   */
  const ready = ({ sent }, job) => {
    /** @type {{ [name: string]: string }} */
    const blocks = {};
    for (const name of blockNames(job.question)) {
      const text = sent.has(name) ? null : blockNow(name);
      if (text === null) continue;
      sent.add(name);
      blocks[name] = text;
    }
    return blocks;
  };

  /**
   * @param {{ worker: Worker, busy: number, sent: Set<string> }} one
   * @param {Job} job
   */
  const work = async (one, job) => {
    one.busy += 1;
    try {
      let answer = await put(one, job, ready(one, job));
      for (let turn = 0; answer.lacks && turn < 8; turn += 1) {
        const texts = await Promise.all(answer.lacks.map(async (name) => /** @type {const} */ ([name, await blockText(name)])));
        if (job.signal?.aborted) throw new Error("aborted");
        answer = await put(one, job, Object.fromEntries(texts));
      }
      if (answer.values) job.resolve(answer.values);
      else job.reject(new Error(answer.gone ? "aborted" : answer.error ?? "the worker gave no answer"));
    } catch (reason) {
      job.reject(reason instanceof Error ? reason : new Error(String(reason)));
    } finally {
      one.busy -= 1;
      next();
    }
  };

  const next = () => {
    for (const one of workers) {
      while (one.busy < 2 && waiting.length) {
        const job = /** @type {Job} */ (waiting.pop());
        if (job.signal?.aborted) job.reject(new Error("aborted"));
        else void work(one, job);
      }
    }
  };

  return {
    /**
     * @param {Omit<Question, "id" | "blocks">} question
     * @param {AbortSignal} [signal]
     * @returns {Promise<Float32Array>}
     */
    ask: (question, signal) =>
      new Promise((resolve, reject) => {
        const job = { question, signal, resolve, reject };
        if (isAtHand(job)) return void workAtHand(job);
        waiting.push(job);
        next();
      }),
  };
}
