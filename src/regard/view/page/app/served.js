/** The source that a server stands behind: each question is a request, a few at a time, the latest first. */

import { sidesOf } from "./description.js";

/**
 * @typedef {import("./source.js").Source} Source
 * @typedef {import("./description.js").Description} Description
 *
 * @typedef {object} ServedJob
 * @property {string} address
 * @property {AbortSignal} [signal]
 * @property {(response: Response) => void} resolve
 * @property {(reason: Error) => void} reject
 */

const SERVED_AT_ONCE = 4; // requests
const SERVED_PATIENCE = 5; // times that a busy server is asked again, a second apart
const SERVED_ROWS = 2 ** 27; // weights in the rows that a column is asked for at once: a server takes these up to a width of 512
const SERVED_PLACES = 256; // runs of places in one address

/**
 * @param {Description} description
 * @returns {Source}
 */
export function servedSource(description) {
  const ask = servedQueue();
  const record = description.record ?? 0;
  /** @type {(name: string, values: { [name: string]: string | number }, signal?: AbortSignal) => Promise<Response>} */
  const get = (name, values, signal) => {
    const pairs = Object.entries({ record, ...values }).map(([key, value]) => `${key}=${value}`);
    return ask(`/${name}?${pairs.join("&")}`, signal);
  };
  return {
    description,
    async tile({ layer, head, unit, rows, cols, height, width, step }, signal) {
      const about = { layer, head, unit, rows: rows.join(":"), cols: cols.join(":"), height, width, step };
      const response = await get("tile", about, signal);
      return { values: await servedNumbers(response), step: servedStep(response) };
    },
    async row({ layer, head, rows }) {
      const parts = servedRuns(rows);
      const found = await Promise.all(
        parts.map(async ({ text }) => servedNumbers(await get("row", { layer, head, rows: text }))),
      );
      return servedSum(found, parts.map(({ count }) => count / rows.length));
    },
    async column({ layer, head, cols }) {
      const { queries, keys } = sidesOf(description, layer);
      const size = queries.texts.length;
      const most = Math.max(1, Math.floor(SERVED_ROWS / Math.max(1, keys.texts.length)));
      const parts = servedRuns(cols);
      const whole = new Float32Array(size);
      for (let from = 0; from < size; from += most) {
        const rows = `${from}:${Math.min(size, from + most)}`;
        const found = await Promise.all(
          parts.map(async ({ text }) => servedNumbers(await get("column", { layer, head, cols: text, rows }))),
        );
        whole.set(servedSum(found, parts.map(() => 1)), from);
      }
      return whole;
    },
    rectangle: async ({ layer, head, rows, cols }) =>
      servedNumbers(await get("rectangle", { layer, head, rows: rows.join(":"), cols: cols.join(":") })),
    async thumbnails(layer) {
      const response = await get("thumbnails", { layer });
      const [, height = 0, width = 0] = (response.headers.get("X-Regard-Shape") ?? "").split(",").map(Number);
      return { height, width, values: await servedNumbers(response) };
    },
    scores: async (layer) => (await get("scores", { layer })).json(),
    overview: async () => null, // the first tile of the whole map is as quick
  };
}

/**
 * Let the model read a text, or a pair of texts, and write so many tokens.
 * @param {string} text
 * @param {string | null} pair
 * @param {number} generate
 * @returns {Promise<number>} The number of its record.
 */
export async function runText(text, pair, generate) {
  const response = await fetch("/run", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ text, pair, generate }),
  });
  if (!response.ok) throw await servedError(response);
  return (await response.json()).record;
}

/**
 * Requests that wait for each other; what was asked last is what is looked at now, and goes first.
 * @returns {(address: string, signal?: AbortSignal) => Promise<Response>}
 */
function servedQueue() {
  /** @type {ServedJob[]} */
  const waiting = [];
  let open = 0;
  const next = () => {
    while (open < SERVED_AT_ONCE) {
      const job = waiting.pop();
      if (!job) return;
      if (job.signal?.aborted) {
        job.reject(servedAborted());
        continue;
      }
      open += 1;
      servedFetch(job.address, job.signal)
        .then(job.resolve, job.reject)
        .finally(() => {
          open -= 1;
          next();
        });
    }
  };
  return (address, signal) =>
    new Promise((resolve, reject) => {
      waiting.push({ address, signal, resolve, reject });
      next();
    });
}

/**
 * @param {string} address
 * @param {AbortSignal} [signal]
 */
async function servedFetch(address, signal) {
  for (let turn = 0; ; turn += 1) {
    const response = await fetch(address, signal ? { signal } : {});
    if (response.ok) return response;
    if (response.status !== 503 || turn >= SERVED_PATIENCE) throw await servedError(response);
    await new Promise((resolve) => setTimeout(resolve, 1000));
    if (signal?.aborted) throw servedAborted();
  }
}

/**
 * What the server says is wrong.
 * @param {Response} response
 */
async function servedError(response) {
  const told = await response.json().catch(() => null);
  return new Error(told?.error ?? `the server answers ${response.status}`);
}

function servedAborted() {
  return new DOMException("aborted", "AbortError");
}

/**
 * @param {Response} response
 * @returns {Promise<Float32Array>}
 */
async function servedNumbers(response) {
  return new Float32Array(await response.arrayBuffer());
}

/** @param {Response} response */
function servedStep(response) {
  return Number(response.headers.get("X-Regard-Step") ?? 1);
}

/**
 * Places as an address has them: runs as 3:9, single ones as 5; in parts that are not too long.
 * @param {number[]} places
 * @returns {{ text: string, count: number }[]}
 */
function servedRuns(places) {
  const sorted = [...places].sort((one, other) => one - other);
  /** @type {{ text: string, count: number }[]} */
  const runs = [];
  for (let first = 0, last = 0; first < sorted.length; first = last) {
    for (last = first + 1; last < sorted.length && last - first < 1024 && sorted[last] === sorted[last - 1] + 1; ) last += 1;
    const [from, to] = [sorted[first], sorted[last - 1]];
    runs.push({ text: from === to ? `${from}` : `${from}:${to + 1}`, count: last - first });
  }
  /** @type {{ text: string, count: number }[]} */
  const parts = [];
  for (const run of runs) {
    const part = parts[parts.length - 1];
    if (part && part.count + run.count <= 1024 && part.text.split(",").length < SERVED_PLACES) {
      part.text += `,${run.text}`;
      part.count += run.count;
    } else parts.push({ ...run });
  }
  return parts;
}

/**
 * Σ share · numbers.
 * @param {Float32Array[]} found
 * @param {number[]} shares
 * @returns {Float32Array}
 */
function servedSum(found, shares) {
  if (found.length === 1 && shares[0] === 1) return found[0];
  const whole = new Float32Array(found[0]?.length ?? 0);
  found.forEach((numbers, place) => {
    for (let number = 0; number < whole.length; number += 1) whole[number] += numbers[number] * shares[place];
  });
  return whole;
}
