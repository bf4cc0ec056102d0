/** The same tiles on a graphics card, through WebGPU, where there is one. What it cannot do, the plain way does. */

import { sampledRows } from "./kernel.js";

/**
 * @typedef {import("./kernel.js").Numbers} Numbers
 * @typedef {import("./kernel.js").Plan} Plan
 * @typedef {"auto" | "gpu" | "cpu"} Compute
 */

const USAGE = { map: 0x01, source: 0x04, target: 0x08, uniform: 0x40, storage: 0x80 }; // of a buffer, as WebGPU numbers them
const READ = 1; // how one is mapped
const GROUP = 64; // invocations of a workgroup
const AT_ONCE = 4e9; // multiply-adds of one dispatch: a card that computes too long is taken away
const WORTH_IT = 2e7; // and from how many on a tile goes there

// One invocation computes one cell: over the sampled queries of its line, over its keys.
const SHADER = `
struct Shape { first_line: u32, lines: u32, width: u32, size: u32, softcap: f32, bias: u32, offset: i32, first: i32 }
@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> queries: array<f32>;
@group(0) @binding(2) var<storage, read> keys: array<f32>;
@group(0) @binding(3) var<storage, read> rows: array<vec4<f32>>; // share, log-sum-exp, first key, last key
@group(0) @binding(4) var<storage, read> places: array<u32>;     // of those rows
@group(0) @binding(5) var<storage, read> edges: array<u32>;      // where lines begin among rows, then where columns do
@group(0) @binding(6) var<storage, read> biases: array<f32>;
@group(0) @binding(7) var<storage, read_write> cells: array<f32>;

@compute @workgroup_size(${GROUP})
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= shape.width * shape.lines) { return; }
  let line = shape.first_line + id.x / shape.width;
  let column = id.x % shape.width;
  let columns = arrayLength(&edges) - shape.width - 1u;
  let begin = edges[columns + column];
  let end = edges[columns + column + 1u];
  var total = 0.0;
  var shares = 0.0;
  for (var at = edges[line]; at < edges[line + 1u]; at++) {
    let row = rows[at];
    shares += row.x;
    if (row.w < row.z) { continue; }
    let start = places[at] * shape.size;
    var sum = 0.0;
    for (var key = max(begin, u32(row.z)); key < min(end, u32(row.w) + 1u); key++) {
      var score = 0.0;
      for (var part = 0u; part < shape.size; part++) { score += queries[start + part] * keys[key * shape.size + part]; }
      if (shape.softcap > 0.0) { score = shape.softcap * tanh(score / shape.softcap); }
      if (shape.bias > 0u) { score += biases[i32(key) - i32(places[at]) - shape.offset - shape.first]; }
      sum += exp(score - row.y);
    }
    total += row.x * sum;
  }
  cells[line * shape.width + column] = select(0.0, total / shares, shares > 0.0);
}`;

/** @type {Promise<any> | null} */
let cardReady = null;

/**
 * The card, if there is one that is a card and not a program that acts as one.
 * @param {Compute} compute
 * @returns {Promise<any>}
 */
function card(compute) {
  const gpu = /** @type {any} */ (navigator).gpu;
  if (!gpu) return Promise.resolve(null);
  cardReady ??= (async () => {
    const adapter = await gpu.requestAdapter();
    if (!adapter || (compute === "auto" && (adapter.isFallbackAdapter || adapter.info?.isFallbackAdapter))) return null;
    const device = await adapter.requestDevice();
    device.lost.then(() => (cardReady = Promise.resolve(null)));
    const code = device.createShaderModule({ code: SHADER });
    const pipeline = await device.createComputePipelineAsync({ layout: "auto", compute: { module: code, entryPoint: "main" } });
    return { device, pipeline, held: new WeakMap() };
  })().catch(() => null);
  return cardReady;
}

/**
 * The cells of a plan, or null where the plain way has to do it.
 * @param {Numbers} head
 * @param {Plan} plan
 * @param {Compute} compute
 * @returns {Promise<Float32Array | null>}
 */
export async function tileOnCard(head, plan, compute) {
  if (compute === "cpu" || head.weights || head.bits) return null;
  const [height, width] = [plan.rowEdges.length - 1, plan.colEdges.length - 1];
  const columns = plan.colEdges[width] - plan.colEdges[0];
  const chosen = Array.from({ length: height }, (_, line) => sampledRows(plan.rowEdges[line], plan.rowEdges[line + 1], plan.step));
  if (chosen.some((rows) => rows.some((row) => Number.isNaN(head.sums[row])))) return null; // cards may leave NaN out
  const work = chosen.reduce((sum, rows) => sum + rows.length, 0) * columns * head.width;
  if (compute === "auto" && work < WORTH_IT) return null;
  const found = await card(compute);
  const most = found?.device.limits.maxStorageBufferBindingSize ?? 0;
  if (!found || Math.max(head.queries.byteLength, head.keys.byteLength) > most) return null;
  try {
    return await dispatched(found, head, plan, chosen, Math.max(1, Math.ceil(work / AT_ONCE)));
  } catch {
    cardReady = Promise.resolve(null);
    return null;
  }
}

/**
 * @param {any} found
 * @param {Numbers} head
 * @param {Plan} plan
 * @param {number[][]} chosen For each line of cells, its queries.
 * @param {number} turns
 * @returns {Promise<Float32Array>}
 */
async function dispatched({ device, pipeline, held }, head, plan, chosen, turns) {
  const [height, width] = [plan.rowEdges.length - 1, plan.colEdges.length - 1];
  const places = chosen.flat();
  const rows = new Float32Array(4 * places.length);
  places.forEach((place, at) => {
    const seen = [head.firsts ? head.firsts[place] : 0, head.lasts ? head.lasts[place] : head.cols - 1];
    const blind = !Number.isFinite(head.sums[place]);
    rows.set([plan.rowShares[place - plan.rowEdges[0]], blind ? 0 : head.sums[place], Math.max(0, seen[0]), blind ? -1 : seen[1]], 4 * at);
  });
  const edges = [0];
  for (const line of chosen) edges.push(edges[edges.length - 1] + line.length);
  const stay = (/** @type {Float32Array} */ numbers) => {
    if (!held.has(numbers)) held.set(numbers, bufferOf(device, numbers));
    return held.get(numbers);
  };
  const passing = [
    bufferOf(device, rows), bufferOf(device, Uint32Array.from(places)), bufferOf(device, Uint32Array.from([...edges, ...plan.colEdges])),
    bufferOf(device, head.bias?.numbers ?? new Float32Array(1)),
  ];
  const cells = device.createBuffer({ size: 4 * height * width, usage: USAGE.storage | USAGE.source });
  const lines = Math.ceil(height / turns);
  for (let first = 0; first < height; first += lines) {
    const shape = new DataView(new ArrayBuffer(32));
    [first, Math.min(lines, height - first), width, head.width].forEach((value, place) => shape.setUint32(4 * place, value, true));
    shape.setFloat32(16, head.softcap ?? 0, true);
    shape.setUint32(20, head.bias ? 1 : 0, true);
    shape.setInt32(24, head.offset, true);
    shape.setInt32(28, head.bias?.first ?? 0, true);
    const uniform = device.createBuffer({ size: 32, usage: USAGE.uniform | USAGE.target });
    device.queue.writeBuffer(uniform, 0, shape.buffer);
    const buffers = [uniform, stay(head.queries), stay(head.keys), ...passing, cells];
    const entries = buffers.map((buffer, binding) => ({ binding, resource: { buffer } }));
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries }));
    pass.dispatchWorkgroups(Math.ceil((Math.min(lines, height - first) * width) / GROUP));
    pass.end();
    device.queue.submit([encoder.finish()]);
    await device.queue.onSubmittedWorkDone();
    uniform.destroy();
  }
  const back = device.createBuffer({ size: 4 * height * width, usage: USAGE.target | USAGE.map });
  const encoder = device.createCommandEncoder();
  encoder.copyBufferToBuffer(cells, 0, back, 0, 4 * height * width);
  device.queue.submit([encoder.finish()]);
  await back.mapAsync(READ);
  const values = new Float32Array(back.getMappedRange().slice(0));
  for (const buffer of [...passing, cells, back]) buffer.destroy();
  for (let place = 0; place < values.length; place += 1) values[place] /= plan.colUnits[place % width];
  return values;
}

/**
 * @param {any} device
 * @param {Float32Array | Uint32Array} numbers
 */
function bufferOf(device, numbers) {
  const buffer = device.createBuffer({ size: Math.max(16, numbers.byteLength), usage: USAGE.storage | USAGE.target });
  device.queue.writeBuffer(buffer, 0, numbers.buffer, numbers.byteOffset, numbers.byteLength);
  return buffer;
}
