/** Packed bytes → numbers. */

/**
 * @param {string} text base64
 * @returns {Promise<Uint8Array>} what was deflated into it
 */
export async function inflated(text) {
  const packed = bytesOf(text);
  const stream = new Blob([/** @type {BlobPart} */ (packed)]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/**
 * @param {string} text
 * @returns {Uint8Array}
 */
function bytesOf(text) {
  const native = /** @type {{ fromBase64?: (text: string) => Uint8Array }} */ (/** @type {unknown} */ (Uint8Array));
  if (native.fromBase64) return native.fromBase64(text);
  const signs = atob(text);
  const bytes = new Uint8Array(signs.length);
  for (let place = 0; place < signs.length; place += 1) bytes[place] = signs.charCodeAt(place);
  return bytes;
}

/**
 * 16-bit numbers, as they lie in two planes: all low bytes, then all high ones.
 * @param {Uint8Array} planes
 * @returns {Uint16Array}
 */
function joinedPlanes(planes) {
  const count = planes.length / 2;
  const numbers = new Uint16Array(count);
  for (let place = 0; place < count; place += 1) numbers[place] = planes[place] | (planes[count + place] << 8);
  return numbers;
}

/**
 * The bytes alone, in a buffer that begins with them.
 * @param {Uint8Array} bytes
 */
function ownBuffer(bytes) {
  return Uint8Array.from(bytes).buffer;
}

/** @param {Uint8Array} bytes */
export function floats32(bytes) {
  return new Float32Array(ownBuffer(bytes));
}

/** @param {Uint8Array} bytes */
export function integers32(bytes) {
  return new Int32Array(ownBuffer(bytes));
}

/** @type {Float32Array | null} */
let halfTable = null;

/** Every half-precision number there is. */
function halves() {
  if (halfTable) return halfTable;
  halfTable = new Float32Array(65536);
  for (let bits = 0; bits < 65536; bits += 1) {
    const [sign, power, part] = [bits & 0x8000 ? -1 : 1, (bits >> 10) & 31, bits & 1023];
    halfTable[bits] =
      power === 31 ? (part ? NaN : sign * Infinity) : power ? sign * 2 ** (power - 15) * (1 + part / 1024) : sign * 2 ** -24 * part;
  }
  return halfTable;
}

/**
 * @param {Uint8Array} bytes
 * @returns {Float32Array}
 */
export function floats16(bytes) {
  const table = halves();
  const bits = joinedPlanes(bytes);
  const numbers = new Float32Array(bits.length);
  for (let place = 0; place < bits.length; place += 1) numbers[place] = table[bits[place]];
  return numbers;
}

/**
 * Queries or keys, row by row.
 * @param {Uint8Array} bytes
 * @param {"f16" | "bf16" | "i16"} dtype
 * @param {number} width
 * @param {number} [factor] All are multiplied by it.
 * @returns {Float32Array}
 */
export function vectors(bytes, dtype, width, factor = 1) {
  if (dtype === "i16") {
    const scales = floats32(bytes.subarray(0, 4 * width)).map((scale) => scale * factor);
    const bits = joinedPlanes(bytes.subarray(4 * width));
    const whole = new Int16Array(bits.buffer);
    const numbers = new Float32Array(whole.length);
    for (let place = 0, column = 0; place < whole.length; place += 1) {
      numbers[place] = whole[place] * scales[column];
      column = column + 1 === width ? 0 : column + 1;
    }
    return numbers;
  }
  if (dtype === "f16") return factor === 1 ? floats16(bytes) : floats16(bytes).map((value) => value * factor);
  const bits = joinedPlanes(bytes);
  const words = new Uint32Array(bits.length);
  for (let place = 0; place < bits.length; place += 1) words[place] = bits[place] << 16;
  const numbers = new Float32Array(words.buffer);
  return factor === 1 ? numbers : numbers.map((value) => value * factor);
}

/**
 * The means of thumbnails, from the logarithm of what a cell gets of a row, in one byte.
 * @param {Uint8Array} bytes
 * @param {number} columns Keys of a cell.
 * @returns {Float32Array}
 */
export function thumbnailMeans(bytes, columns) {
  const table = Float32Array.from({ length: 256 }, (_, step) => (step ? 10 ** (5 * (step / 255 - 1)) / columns : 0));
  return Float32Array.from(bytes, (step) => table[step]);
}
