/** Weights from queries and keys: exp(score − log-sum-exp of the row), row by row. The formula, and nothing beside it. */

/**
 * @typedef {object} Numbers All that the weights of one head follow from.
 * @property {number} rows
 * @property {number} cols
 * @property {Float32Array | null} weights Row by row, where the file holds them themselves.
 * @property {number} width
 * @property {Float32Array} queries Multiplied by the scale already.
 * @property {Float32Array} keys
 * @property {Float32Array} sums
 * @property {number | null} softcap
 * @property {Int32Array | null} firsts
 * @property {Int32Array | null} lasts
 * @property {Uint8Array | null} bits
 * @property {{ first: number, numbers: Float32Array } | null} bias
 * @property {number} offset
 */

/**
 * The weights of one row on the keys from `from` to before `to`. A row that sees nothing has the sum +∞, and so zeros; one
 * that is spoilt by what is not a number has the sum NaN, and is not a number itself, as in the record.
 * @param {Numbers} head
 * @param {number} row
 * @param {number} from
 * @param {number} to
 * @param {Float32Array} out
 */
function fillRow(head, row, from, to, out) {
  if (head.weights) {
    out.set(head.weights.subarray(row * head.cols + from, row * head.cols + to));
    return;
  }
  const begin = head.firsts ? Math.max(from, Math.min(to, head.firsts[row])) : from;
  const end = head.lasts ? Math.max(begin, Math.min(to, head.lasts[row] + 1)) : to;
  out.fill(0, 0, begin - from);
  out.fill(0, end - from, to - from);
  if (begin >= end) return;
  fillScores(head, row, begin, end, from, out);
  const { softcap, bias, bits } = head;
  const sum = head.sums[row];
  for (let key = begin; key < end; key += 1) {
    let score = out[key - from];
    if (softcap !== null) score = softcap * Math.tanh(score / softcap);
    if (bias) score += bias.numbers[key - row - head.offset - bias.first];
    out[key - from] = Math.exp(score - sum);
  }
  if (bits) {
    const stride = Math.ceil(head.cols / 8);
    for (let key = begin; key < end; key += 1) {
      if (!((bits[row * stride + (key >> 3)] >> (7 - (key & 7))) & 1)) out[key - from] = 0;
    }
  }
}

/**
 * q·k of one query with some keys, four keys at a time: each number of the query is read once for four.
 * @param {Numbers} head
 * @param {number} row
 * @param {number} begin
 * @param {number} end
 * @param {number} from
 * @param {Float32Array} out
 */
function fillScores(head, row, begin, end, from, out) {
  const { queries, keys, width } = head;
  const start = row * width;
  let key = begin;
  for (; key + 3 < end; key += 4) {
    const [first, second, third, fourth] = [key * width, (key + 1) * width, (key + 2) * width, (key + 3) * width];
    let a = 0;
    let b = 0;
    let c = 0;
    let d = 0;
    for (let place = 0; place < width; place += 1) {
      const value = queries[start + place];
      a += value * keys[first + place];
      b += value * keys[second + place];
      c += value * keys[third + place];
      d += value * keys[fourth + place];
    }
    out[key - from] = a;
    out[key + 1 - from] = b;
    out[key + 2 - from] = c;
    out[key + 3 - from] = d;
  }
  for (; key < end; key += 1) {
    let sum = 0;
    for (let place = 0; place < width; place += 1) sum += queries[start + place] * keys[key * width + place];
    out[key - from] = sum;
  }
}

/**
 * @typedef {object} Plan A rectangle and its cells, in tokens.
 * @property {Int32Array} rowEdges Where the rows of cells begin, and the end.
 * @property {Int32Array} colEdges
 * @property {Float32Array} rowShares For each query token from the first edge on: 1 / the tokens of its unit.
 * @property {Float32Array} colUnits For each column of cells: how many units it holds.
 * @property {number} step
 */

/**
 * The query tokens that stand for a row of cells: all of them, or every step-th, from the middle of a step.
 * @param {number} from
 * @param {number} to
 * @param {number} step
 * @returns {number[]}
 */
export function sampledRows(from, to, step) {
  if (step <= 1) return Array.from({ length: to - from }, (_, place) => from + place);
  const count = Math.max(1, Math.round((to - from) / step));
  return Array.from({ length: count }, (_, place) => from + Math.floor(((place + 0.5) * (to - from)) / count));
}

/**
 * The cells of a plan, one row of cells after the other, so that the caller may do something else in between.
 * @param {Numbers} head
 * @param {Plan} plan
 * @param {Float32Array} values height × width
 * @returns {Generator<number>} rows of cells that are done
 */
export function* fillTile(head, plan, values) {
  const { rowEdges, colEdges, rowShares, colUnits, step } = plan;
  const [height, width] = [rowEdges.length - 1, colEdges.length - 1];
  const [from, to] = [colEdges[0], colEdges[width]];
  const weights = new Float32Array(to - from);
  const sums = new Float64Array(width);
  for (let line = 0; line < height; line += 1) {
    sums.fill(0);
    let shares = 0;
    for (const row of sampledRows(rowEdges[line], rowEdges[line + 1], step)) {
      const share = rowShares[row - rowEdges[0]];
      shares += share;
      fillRow(head, row, from, to, weights);
      for (let cell = 0; cell < width; cell += 1) {
        let sum = 0;
        for (let key = colEdges[cell]; key < colEdges[cell + 1]; key += 1) sum += weights[key - from];
        sums[cell] += share * sum;
      }
    }
    for (let cell = 0; cell < width; cell += 1) values[line * width + cell] = sums[cell] / shares / colUnits[cell];
    yield line + 1;
  }
}

/**
 * The mean of some rows.
 * @param {Numbers} head
 * @param {number[]} rows
 * @returns {Float32Array}
 */
export function meanRow(head, rows) {
  const weights = new Float32Array(head.cols);
  const mean = new Float32Array(head.cols);
  for (const row of rows) {
    fillRow(head, row, 0, head.cols, weights);
    for (let key = 0; key < head.cols; key += 1) mean[key] += weights[key] / rows.length;
  }
  return mean;
}

/**
 * What each query gives to some keys together.
 * @param {Numbers} head
 * @param {number[]} cols
 * @returns {Float32Array}
 */
export function summedColumns(head, cols) {
  const one = new Float32Array(1);
  const sum = new Float32Array(head.rows);
  for (let row = 0; row < head.rows; row += 1) {
    for (const col of cols) {
      fillRow(head, row, col, col + 1, one);
      sum[row] += one[0];
    }
  }
  return sum;
}

/**
 * Exact cells.
 * @param {Numbers} head
 * @param {[number, number]} rows
 * @param {[number, number]} cols
 * @returns {Float32Array}
 */
export function exactCells(head, rows, cols) {
  const width = cols[1] - cols[0];
  const cells = new Float32Array((rows[1] - rows[0]) * width);
  for (let row = rows[0]; row < rows[1]; row += 1) {
    const start = (row - rows[0]) * width;
    fillRow(head, row, cols[0], cols[1], cells.subarray(start, start + width));
  }
  return cells;
}
