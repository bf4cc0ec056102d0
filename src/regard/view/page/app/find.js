/** Finds words in tokens: across their borders, whatever their case, in text with blanks between words and without. */

import { lastAtMost } from "./description.js";

/**
 * @typedef {import("./description.js").Tokens} Tokens
 * @typedef {import("./description.js").Span} Span
 *
 * @typedef {object} Running The text of a side as it is searched: a blank stands only between two letters or figures.
 * @property {string} text
 * @property {Int32Array} starts Where each token begins in it.
 * @property {Uint8Array} inside Tokens whose text stands with the first token of their word.
 */

/** Letters and figures of writing that puts blanks between words. */
const SPACED = /[\p{L}\p{N}\p{M}]/u;
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}\p{Script=Tibetan}]/u;

/** @type {WeakMap<Tokens, Running>} */
const runningTexts = new WeakMap();

/**
 * @param {Tokens} tokens
 * @returns {Running} Made once.
 */
function runningText(tokens) {
  let running = runningTexts.get(tokens);
  if (!running) {
    running = joinedUp(tokens);
    runningTexts.set(tokens, running);
  }
  return running;
}

/**
 * Every place where a text is found, as spans of tokens.
 * @param {Tokens} tokens
 * @param {string} wanted
 * @returns {Span[]}
 */
export function occurrences(tokens, wanted) {
  const sought = searched(wanted).body;
  if (!sought) return [];
  const { text, starts, inside } = runningText(tokens);
  /** @type {Span[]} */
  const found = [];
  for (let at = text.indexOf(sought); at >= 0; at = text.indexOf(sought, at + sought.length)) {
    const first = lastAtMost(starts, at);
    let end = lastAtMost(starts, at + sought.length - 1) + 1;
    while (inside[end]) end += 1;
    found.push([first, end]);
  }
  return found;
}

/**
 * @param {Tokens} tokens
 * @returns {Running}
 */
function joinedUp(tokens) {
  const { texts, words, word_texts: wordTexts } = tokens;
  const [starts, inside] = [new Int32Array(texts.length), new Uint8Array(texts.length)];
  /** @type {Map<string, ReturnType<typeof searched>>} */
  const known = new Map();
  /** @type {string[]} */
  const pieces = [];
  let [length, blank, spaced] = [0, false, false];
  const add = (/** @type {number} */ place, /** @type {string} */ text, /** @type {boolean} */ begins) => {
    let piece = known.get(text);
    if (!piece) known.set(text, (piece = searched(text)));
    blank ||= begins || piece.before;
    if (piece.body && blank && spaced && piece.opens) {
      pieces.push(" ");
      length += 1;
    }
    starts[place] = length;
    if (!piece.body) return;
    pieces.push(piece.body);
    length += piece.body.length;
    [blank, spaced] = [piece.after, piece.closes];
  };
  for (let word = 0; word < words.length; word += 1) {
    const [from, to] = [words[word] ?? 0, words[word + 1] ?? texts.length];
    // Where a character is cut into bytes, it can be read in its word alone: the word is found as a whole.
    let cut = false;
    for (let place = from; to - from > 1 && place < to; place += 1) cut ||= /** @type {string} */ (texts[place]).includes("⟨");
    for (let place = from; place < to; place += 1) {
      const whole = place === from ? (wordTexts[word] ?? "") : "";
      inside[place] = cut && place > from ? 1 : 0;
      add(place, cut ? whole : (texts[place] ?? ""), place === from);
    }
  }
  return { text: pieces.join(""), starts, inside };
}

/**
 * A text as it is searched: lower case, in one form, without blanks that mean nothing.
 * @param {string} text
 */
function searched(text) {
  const one = (/[^\x00-\x7f]/.test(text) ? text.normalize("NFKC") : text).toLowerCase();
  const trimmed = one.trim();
  const body = /\s/.test(trimmed) ? withoutIdleBlanks(trimmed) : trimmed;
  return {
    body, before: one.trimStart().length < one.length, after: one.trimEnd().length < one.length,
    opens: body !== "" && takesBlanks(body.codePointAt(0) ?? 0), closes: body !== "" && takesBlanks(lastSign(body)),
  };
}

/** @param {string} text */
function withoutIdleBlanks(text) {
  return text.split(/\s+/).reduce((left, right) =>
    left + (takesBlanks(lastSign(left)) && takesBlanks(right.codePointAt(0) ?? 0) ? " " : "") + right);
}

/** @param {number} code Of a sign. */
function takesBlanks(code) {
  if (code < 128) return (code >= 97 && code <= 122) || (code >= 48 && code <= 57) || code === 95;
  const sign = String.fromCodePoint(code);
  return SPACED.test(sign) && !UNSPACED.test(sign);
}

/** @param {string} text */
function lastSign(text) {
  const last = text.length - 1;
  const low = text.charCodeAt(last);
  return (low >= 0xdc00 && low <= 0xdfff && last > 0 ? text.codePointAt(last - 1) : text.codePointAt(last)) ?? 0;
}
