/** What the page is told of a record: its texts, layers and tokens; and what follows from that alone. */

/**
 * @typedef {object} Tokens One side of a map.
 * @property {string[]} texts
 * @property {number[]} words Where words begin; the first is 0.
 * @property {string[]} word_texts
 * @property {number[] | null} segments 0 and 1 for the two texts of a pair.
 * @property {number | null} generated From which place on the model wrote the tokens itself.
 *
 * @typedef {object} Packed How the numbers of a layer lie in the file.
 * @property {"weights" | "dots"} form
 * @property {"f16" | "bf16" | "i16"} dtype
 * @property {number} width
 * @property {number[]} groups
 * @property {number} scale
 * @property {number | null} softcap
 * @property {null | "ranges" | "bits"} mask
 * @property {null | { first: number }} bias
 * @property {null | [number, number]} overview
 *
 * @typedef {"entropy" | "distance" | "sink" | "induction" | "previous_token"} Measure
 * @typedef {{ [measure in Measure]?: (number | null)[] }} Scores A number for each head, null where it has no meaning.
 *
 * @typedef {object} Layer
 * @property {number} id
 * @property {string} name
 * @property {number} index Its number in the model.
 * @property {"encoder" | "decoder" | "cross"} kind
 * @property {number} queries
 * @property {number} keys
 * @property {number} offset The place of the first query among the keys.
 * @property {number[]} heads Their numbers in the model.
 * @property {Scores | null} scores
 * @property {number} [step] Of so many queries one was used for the scores; 1 is exact.
 * @property {[number, number] | null} thumbnail
 * @property {Packed | null} packed
 *
 * @typedef {object} Description
 * @property {number} version
 * @property {string} regard
 * @property {string} title
 * @property {string} model
 * @property {"packed" | "served"} source
 * @property {boolean} runs_text
 * @property {{ bits: number, error: number, checked: number } | null} precision
 * @property {Tokens[]} tokens
 * @property {{ name: string, layers: number[] }[]} texts
 * @property {Layer[]} layers
 * @property {number} [record] Served: the number by which it is asked for.
 */

/** @typedef {"token" | "word"} Unit */
/** @typedef {"all" | "aa" | "ab" | "ba" | "bb"} Pair */
/** @typedef {[number, number]} Span From the first to before the last. */

/**
 * One side of the map as it is drawn: tokens, or words, all of them or those of one text of a pair.
 * @typedef {object} Axis
 * @property {Unit} unit
 * @property {number} from The first unit that is shown.
 * @property {number} to The one after the last.
 * @property {number} count All units of the side.
 * @property {(unit: number) => string} label
 * @property {(unit: number) => Span} tokens The tokens of a unit.
 * @property {(token: number) => number} unitOf
 * @property {(unit: number) => boolean} written Whether the model wrote it.
 */

/**
 * @param {Description} description
 * @param {number} layer
 * @returns {{ layer: Layer, queries: Tokens, keys: Tokens }}
 */
export function sidesOf(description, layer) {
  const found = description.layers[layer];
  if (!found) throw new Error(`there is no layer ${layer}`);
  const queries = description.tokens[found.queries];
  const keys = description.tokens[found.keys];
  if (!queries || !keys) throw new Error(`layer ${layer} has no tokens`);
  return { layer: found, queries, keys };
}

/**
 * @param {Tokens} tokens
 * @param {Unit} unit
 * @param {Span} [shown] Tokens; all unless said.
 * @returns {Axis}
 */
export function axisOf(tokens, unit, shown = [0, tokens.texts.length]) {
  const size = tokens.texts.length;
  const written = (/** @type {number} */ token) => tokens.generated !== null && token >= tokens.generated;
  if (unit === "token") {
    return {
      unit, from: shown[0], to: shown[1], count: size,
      label: (place) => tokens.texts[place] ?? "", tokens: (place) => [place, place + 1],
      unitOf: (token) => token, written,
    };
  }
  const begins = tokens.words;
  const ofWord = (/** @type {number} */ word) => /** @type {Span} */ ([begins[word] ?? size, begins[word + 1] ?? size]);
  const wordOf = (/** @type {number} */ token) => lastAtMost(begins, token);
  return {
    unit, from: shown[0] < size ? wordOf(shown[0]) : begins.length, to: shown[1] ? wordOf(shown[1] - 1) + 1 : 0,
    count: begins.length, label: (word) => tokens.word_texts[word] ?? "", tokens: ofWord, unitOf: wordOf,
    written: (word) => written(ofWord(word)[0]),
  };
}

/**
 * The two sides of a layer as they are shown.
 * @param {Description} description
 * @param {number} layer
 * @param {Unit} unit
 * @param {Pair} pair
 * @returns {{ rows: Axis, cols: Axis }}
 */
export function axesOf(description, layer, unit, pair) {
  const { queries, keys } = sidesOf(description, layer);
  const [from, to] = pair === "all" ? [null, null] : [pair[0] === "a" ? 0 : 1, pair[1] === "a" ? 0 : 1];
  return { rows: axisOf(queries, unit, segmentSpan(queries, from)), cols: axisOf(keys, unit, segmentSpan(keys, to)) };
}

/**
 * Where one text of a pair stands; everything where there is none.
 * @param {Tokens} tokens
 * @param {number | null} segment
 * @returns {Span}
 */
function segmentSpan(tokens, segment) {
  const marks = tokens.segments;
  const first = marks && segment !== null ? marks.indexOf(segment) : -1;
  if (!marks || segment === null || first < 0) return [0, tokens.texts.length];
  let end = first;
  while (end < marks.length && marks[end] === segment) end += 1;
  return [first, end];
}

/**
 * Whether a side is a pair of texts.
 * @param {Tokens} tokens
 */
export function isPair(tokens) {
  return tokens.segments !== null && tokens.segments.includes(1);
}

/**
 * The last place whose number is at most a given one; numbers rise.
 * @param {ArrayLike<number>} numbers
 * @param {number} most
 */
export function lastAtMost(numbers, most) {
  let low = 0;
  let high = numbers.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (/** @type {number} */ (numbers[middle]) <= most) low = middle;
    else high = middle - 1;
  }
  return low;
}

/**
 * A token as it can be shown in a line: what cannot be seen is made visible, what is long is cut.
 * @param {string} text
 * @param {number} [most] Signs.
 */
export function shown(text, most = 40) {
  const visible = text
    .slice(0, most * 4)
    .replace(/\n/g, "⏎")
    .replace(/\t/g, "⇥")
    .replace(/[\u0000-\u001f\u007f-\u009f\u00ad\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g, (sign) => escapedSign(sign))
    .replace(/^[\u200c\u200d]+$/, (joiners) => Array.from(joiners, escapedSign).join("")) // within a word they join its letters
    .replace(/(\p{M}{6})\p{M}+/gu, "$1") // more marks on one letter would cover its neighbours
    .replace(/^ +$/, (blanks) => "␣".repeat(blanks.length));
  const signs = Array.from(visible.trim() || visible || "∅");
  return signs.length > most ? signs.slice(0, most - 1).join("") + "…" : signs.join("");
}

/** @param {string} sign */
function escapedSign(sign) {
  return "‹" + (sign.codePointAt(0) ?? 0).toString(16).padStart(4, "0") + "›";
}

/**
 * A weight in few signs.
 * @param {number} weight
 */
export function figure(weight) {
  if (!Number.isFinite(weight)) return "–";
  if (weight === 0) return "0";
  if (weight >= 0.0995) return weight.toFixed(3);
  if (weight >= 0.00095) return weight.toFixed(4);
  return weight.toExponential(2).replace("e-", "e−");
}
