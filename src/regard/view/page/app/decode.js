/** Packed bytes → numbers. */

/**
 * @param {string} text base64
 * @returns {Promise<Uint8Array>} what was deflated into it
 */
export async function inflated(text) {
  const { readable, writable } = new DecompressionStream("deflate-raw");
  const writer = writable.getWriter();
  const written = writer.write(/** @type {BufferSource} */ (bytesOf(text))).then(() => writer.close());
  const [bytes] = await Promise.all([new Response(readable).arrayBuffer(), written]);
  return new Uint8Array(bytes);
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

/**
 * Half precision, bit by bit: the exponent moves by 112, the fraction by 13 places.
 * @param {Uint8Array} bytes
 * @returns {Float32Array}
 */
export function floats16(bytes) {
  const halves = joinedPlanes(bytes);
  const numbers = new Float32Array(halves.length);
  const bits = new Uint32Array(numbers.buffer);
  for (let place = 0; place < halves.length; place += 1) {
    const half = halves[place];
    const sign = (half & 0x8000) << 16;
    const rest = half & 0x7fff;
    if (rest >= 0x7c00) bits[place] = sign | 0x7f800000 | ((rest & 0x3ff) << 13); // infinite, or not a number
    else if (rest >= 0x400) bits[place] = sign | ((rest << 13) + (112 << 23));
    else numbers[place] = (sign ? -1 : 1) * rest * 2 ** -24; // too small for an exponent
  }
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
