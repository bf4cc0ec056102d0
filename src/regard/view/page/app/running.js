/** Units as they run in a text: what stands before each, what it shows, and where the text may be cut into chunks. */

/**
 * @typedef {import("./description.js").Axis} Axis
 * @typedef {import("./description.js").Tokens} Tokens
 * @typedef {import("./description.js").Span} Span
 */

import { lastAtMost, shown } from "./description.js";

/** Signs that cannot be seen, or that turn the text around them. */
const STRANGE = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u00ad\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|^[\u200c\u200d]+$/;
const LONGEST_SHOWN = 200;
/** Scripts that write no blanks, and signs that follow a word without one. */
const NO_BLANK_BEFORE = /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Pe}\p{Pf}.,;:!?%…’'，。、；：！？）】》]/u;
const NO_BLANK_AFTER = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Ps}\p{Pi}’'，。、；：！？（【《-]$/u;
const CHUNK = 400;

/**
 * Whether the tokens carry the blanks of their text; those of some tokenizers do not.
 * @param {Tokens} tokens
 */
export function carriesBlanks(tokens) {
  return tokens.texts.some((text) => text.length > 1 && /^\s|\s$/.test(text));
}

/**
 * What a unit shows, the blank before it and the ends of lines behind it.
 * @param {Tokens} tokens
 * @param {Axis} axis
 * @param {number} unit
 * @param {boolean} blanks Whether the tokens carry them.
 * @returns {{ gap: string, text: string, after: string }}
 */
export function unitText(tokens, axis, unit, blanks) {
  const [token] = axis.tokens(unit);
  const whole = tokens.texts[token] ?? "";
  const own = axis.unit === "word" ? axis.label(unit) : whole;
  const gap = blanks ? (/^ +(?=[^ ])/.exec(whole)?.[0] ?? "") : gapBefore(tokens, axis, unit, own);
  const text = seenText(own.startsWith(gap) ? own.slice(gap.length) : own);
  const after = /\n*$/.exec(blanks ? (tokens.texts[axis.tokens(unit)[1] - 1] ?? "") : own)?.[0] ?? "";
  return { gap: unit === axis.from ? "" : gap, text, after };
}

/**
 * The blank between words that the tokens do not carry.
 * @param {Tokens} tokens
 * @param {Axis} axis
 * @param {number} unit
 * @param {string} own
 */
function gapBefore(tokens, axis, unit, own) {
  const [token] = axis.tokens(unit);
  const before = tokens.texts[token - 1] ?? "";
  const begins = axis.unit === "word" || tokens.words[lastAtMost(tokens.words, token)] === token;
  return begins && !NO_BLANK_BEFORE.test(own) && !NO_BLANK_AFTER.test(before) && !before.endsWith("\n") ? " " : "";
}

/** @param {string} text */
function seenText(text) {
  if (text === "") return "∅";
  if (STRANGE.test(text) || text.length > LONGEST_SHOWN) return shown(text, LONGEST_SHOWN);
  return /^ +$/.test(text) ? "␣".repeat(text.length) : text.replace(/\n(?=[^\n])/g, "⏎\n").replace(/\n+$/, (ends) => "⏎".repeat(ends.length));
}

/**
 * A text cut into spans of some hundred units: behind the end of a line where there is one, else of a sentence.
 * @param {Axis} axis
 * @returns {Span[]}
 */
export function chunksOf(axis) {
  /** @type {Span[]} */
  const chunks = [];
  for (let from = axis.from; from < axis.to; ) {
    const last = Math.min(axis.to, from + CHUNK + CHUNK / 2);
    let to = axis.to - from <= CHUNK + CHUNK / 2 ? axis.to : 0;
    for (const end of [/\n/, /[.!?。！？]\s*$/]) {
      for (let unit = from + CHUNK / 2; !to && unit < last; unit += 1) if (end.test(axis.label(unit))) to = unit + 1;
    }
    to = to || Math.min(axis.to, from + CHUNK);
    chunks.push([from, to]);
    from = to;
  }
  return chunks;
}

/**
 * How wide a chunk would be in one line, in letters; wide ones count twice.
 * @param {Axis} axis
 * @param {Span} chunk
 */
export function lettersOf(axis, [from, to]) {
  let letters = 0;
  for (let unit = from; unit < to; unit += 1) {
    const text = axis.label(unit);
    letters += Math.min(text.length, LONGEST_SHOWN) * (text.charCodeAt(0) >= 0x2e80 ? 2 : 1) + 0.5;
  }
  return letters;
}
