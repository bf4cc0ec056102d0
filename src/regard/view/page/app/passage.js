/** A running text of any length: only what is near the eye is in the page, the rest is empty boxes of about its size. */

/**
 * @typedef {import("./description.js").Axis} Axis
 * @typedef {import("./description.js").Span} Span
 * @typedef {import("./description.js").Tokens} Tokens
 *
 * @typedef {object} Chunk
 * @property {HTMLElement} element
 * @property {Span} span
 * @property {number} letters
 * @property {HTMLElement[]} units Empty while it is not near.
 * @property {Int16Array} shades As they are painted now; −1: not yet.
 * @property {Uint8Array} marks
 *
 * @typedef {object} Shading
 * @property {(unit: number) => number} share From 0 to 1.
 * @property {(unit: number) => number} weight
 * @property {boolean} night
 *
 * @typedef {object} PassageActions
 * @property {(unit: number, event: MouseEvent | KeyboardEvent) => void} choose
 * @property {(from: number, to: number) => void} chooseSpan
 * @property {() => void} clear
 * @property {() => void} moved Scrolled, or filled.
 * @property {(unit: number) => string} nameOf For screen readers.
 */

import { cssColour, inkOn } from "./colour.js";
import { lastAtMost } from "./description.js";
import { make, nextFrame } from "./dom.js";
import { passageHands } from "./passagehands.js";
import { carriesBlanks, chunksOf, lettersOf, unitText } from "./running.js";

const SHADES = 255;
const LINE_HEIGHT = 28;
const LETTER_WIDTH = 8.4;
let passages = 0;

/** @param {PassageActions} actions */
export function passage(actions) {
  passages += 1;
  const prefix = `passage${passages}`;
  const element = make("div", { class: "passage", role: "listbox", "aria-multiselectable": "true", tabindex: "0" });
  /** @type {Chunk[]} */
  let chunks = [];
  /** @type {number[]} Their first units. */
  let begins = [];
  /** @type {Map<Element, Chunk>} */
  const chunkOfElement = new Map();
  /** @type {Axis | null} */
  let axis = null;
  /** @type {Tokens | null} */
  let tokens = null;
  let blanks = true;
  let active = -1;
  /** @type {HTMLElement | null} */
  let pointed = null;
  /** @type {Shading | null} */
  let shading = null;
  /** @type {(unit: number) => number} 1: chosen, 2: chosen on the other side. */
  let markOf = () => 0;

  const eye = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      const chunk = chunkOfElement.get(target);
      if (!chunk) continue;
      if (isIntersecting) fill(chunk);
      else empty(chunk);
    }
    moved();
  }, { root: element, rootMargin: "900px 0px" });
  const moved = nextFrame(actions.moved);
  element.addEventListener("scroll", moved, { passive: true });

  /** @param {Chunk} chunk */
  const fill = (chunk) => {
    if (chunk.units.length || !axis || !tokens) return;
    /** @type {(Node | string)[]} */
    const parts = [];
    for (let unit = chunk.span[0]; unit < chunk.span[1]; unit += 1) {
      const { gap, text, after } = unitText(tokens, axis, unit, blanks);
      const token = document.createElement("span");
      token.className = axis.written(unit) ? "token written" : "token";
      token.setAttribute("role", "option");
      token.setAttribute("aria-selected", "false");
      token.textContent = text;
      token.dataset["unit"] = String(unit);
      if (gap) parts.push(gap);
      parts.push(token);
      if (after) parts.push(after);
      chunk.units.push(token);
    }
    chunk.shades = new Int16Array(chunk.units.length).fill(-1);
    chunk.marks = new Uint8Array(chunk.units.length);
    chunk.element.replaceChildren(...parts);
    chunk.element.style.height = "";
    style(chunk);
    if (active >= chunk.span[0] && active < chunk.span[1]) point(active);
  };
  /** @param {Chunk} chunk */
  const empty = (chunk) => {
    if (!chunk.units.length || !element.clientHeight) return;
    chunk.element.style.height = `${chunk.element.offsetHeight}px`;
    chunk.element.replaceChildren();
    chunk.units = [];
  };

  /** @param {Chunk} chunk */
  const style = (chunk) => {
    chunk.units.forEach((token, place) => {
      const unit = chunk.span[0] + place;
      const shade = shading ? Math.round(SHADES * shading.share(unit)) : 0;
      if (shade !== chunk.shades[place]) {
        chunk.shades[place] = shade;
        token.style.background = shading && shade ? cssColour(shade / SHADES, shading.night) : "";
        token.style.color = shading && shade ? inkOn(shade / SHADES, shading.night) : "";
      }
      const mark = markOf(unit);
      if (mark !== chunk.marks[place]) {
        chunk.marks[place] = mark;
        token.classList.toggle("chosen", mark === 1);
        token.classList.toggle("other", mark === 2);
        token.setAttribute("aria-selected", String(mark === 1));
      }
    });
  };
  const guessHeights = () => {
    const letters = Math.max(20, (element.clientWidth - 40) / LETTER_WIDTH);
    for (const chunk of chunks) if (!chunk.units.length) chunk.element.style.height = `${Math.ceil(chunk.letters / letters) * LINE_HEIGHT}px`;
  };

  /** @param {number} unit @returns {Chunk | undefined} */
  const chunkOf = (unit) => chunks[lastAtMost(begins, unit)];
  /** The element of a unit, made if need be. @param {number} unit @returns {HTMLElement | undefined} */
  const elementOf = (unit) => {
    const chunk = chunkOf(unit);
    if (!chunk) return undefined;
    fill(chunk);
    return chunk.units[unit - chunk.span[0]];
  };

  /** Puts the keyboard on a unit. @param {number} unit */
  const point = (unit) => {
    for (const name of ["id", "aria-label", "aria-posinset", "aria-setsize"]) pointed?.removeAttribute(name);
    pointed?.classList.remove("active");
    active = unit;
    const token = elementOf(unit);
    pointed = token ?? null;
    if (!token || !axis) return;
    token.id = `${prefix}-active`;
    token.classList.add("active");
    token.setAttribute("aria-label", actions.nameOf(unit));
    token.setAttribute("aria-posinset", String(unit - axis.from + 1));
    token.setAttribute("aria-setsize", String(axis.to - axis.from));
    element.setAttribute("aria-activedescendant", token.id);
  };

  /** Scrolls a unit into the middle, unless it is seen. @param {number} unit @param {boolean} [always] */
  const reveal = (unit, always = false) => {
    const place = chunks.findIndex((chunk) => unit < chunk.span[1]);
    for (const near of [place - 1, place + 1]) if (chunks[near]) fill(/** @type {Chunk} */ (chunks[near]));
    const token = elementOf(unit);
    if (!token) return;
    const [inner, outer] = [token.getBoundingClientRect(), element.getBoundingClientRect()];
    if (always || inner.top < outer.top + 4 || inner.bottom > outer.bottom - 4) {
      element.scrollTop += inner.top + inner.height / 2 - outer.top - outer.height / 2;
    }
  };

  passageHands(element, { ...actions, active: () => active, axis: () => axis, elementOf, point, reveal });

  return {
    element,
    reveal,

    /** A text from its beginning. @param {Tokens} newTokens @param {Axis} newAxis */
    show(newTokens, newAxis) {
      eye.disconnect();
      chunkOfElement.clear();
      [tokens, axis, blanks, active, shading] = [newTokens, newAxis, carriesBlanks(newTokens), newAxis.from, null];
      markOf = () => 0;
      chunks = chunksOf(newAxis).map((span) => {
        const box = make("div", { class: "chunk", role: "presentation" });
        const chunk = { element: box, span, letters: lettersOf(newAxis, span), units: [], shades: new Int16Array(), marks: new Uint8Array() };
        chunkOfElement.set(box, chunk);
        return chunk;
      });
      begins = chunks.map((chunk) => chunk.span[0]);
      element.replaceChildren(...chunks.map((chunk) => chunk.element));
      element.scrollTop = 0;
      guessHeights();
      if (chunks[0]) fill(chunks[0]);
      for (const chunk of chunks) eye.observe(chunk.element);
      point(active);
    },
    /** @param {Shading | null} newShading @param {(unit: number) => number} newMarks */
    shade(newShading, newMarks) {
      const again = newShading?.night !== shading?.night;
      [shading, markOf] = [newShading, newMarks];
      for (const chunk of chunks) {
        if (again) chunk.shades.fill(-1);
        style(chunk);
      }
      if (active >= 0 && axis) point(active);
    },
    resized: guessHeights,
    fits: () => element.scrollHeight <= element.clientHeight + 1,

    /** The units that are seen now, about. @returns {Span} */
    seen() {
      if (!axis || !chunks.length) return [0, 0];
      const [top, bottom] = [element.scrollTop, element.scrollTop + element.clientHeight];
      const tops = chunks.map((chunk) => chunk.element.offsetTop);
      const at = (/** @type {number} */ y) => {
        const chunk = chunks[lastAtMost(tops, y)];
        if (!chunk) return 0;
        const share = (y - chunk.element.offsetTop) / Math.max(1, chunk.element.offsetHeight);
        return chunk.span[0] + Math.max(0, Math.min(1, share)) * (chunk.span[1] - chunk.span[0]);
      };
      return [at(top), at(bottom)];
    },
    /** What is in the page of the units that are seen. @returns {{ unit: number, element: HTMLElement }[]} */
    seenElements() {
      const box = element.getBoundingClientRect();
      return chunks.flatMap((chunk) => chunk.units.map((one, place) => ({ unit: chunk.span[0] + place, element: one }))).filter((one) => {
        const { top, bottom } = one.element.getBoundingClientRect();
        return bottom > box.top && top < box.bottom;
      });
    },
  };
}
