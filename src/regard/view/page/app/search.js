/** The search box: a text, or a place as #1234, among the tokens of the layer. */

import { giveName, iconButton } from "./controls.js";
import { shown, sidesOf } from "./description.js";
import { make } from "./dom.js";
import { occurrences } from "./find.js";
import { icon } from "./icons.js";

/**
 * @typedef {import("./view.js").Context} Context
 * @typedef {import("./description.js").Span} Span
 * @typedef {{ side: "rows" | "cols", span: Span }} Hit
 */

/** Milliseconds without a key before what is typed is looked for. */
const TYPING = 180;

/**
 * @param {Context} context
 * @returns {{ element: HTMLElement, draw: () => void, focus: () => void }}
 */
export function searchBox(context) {
  const { state, source } = context;
  const input = make("input", { type: "search", autocomplete: "off", autocapitalize: "off", spellcheck: "false", enterkeyhint: "search" });
  const count = make("output");
  const [back, on] = [iconButton("up", () => step(-1)), iconButton("down", () => step(1))];
  const element = make("div", { class: "find", role: "search" }, [icon("search"), input, count, back, on]);

  /** @type {Hit[]} */
  let hits = [];
  let at = 0;
  let asked = "";
  let timer = 0;

  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = window.setTimeout(() => look(true), TYPING);
  });
  input.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (event.key === "Enter") {
      event.preventDefault();
      if (question() !== asked) look(true);
      else step(event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape") {
      event.preventDefault();
      clearTimeout(timer);
      input.value = "";
      look(false);
      input.blur();
    }
  });

  /** What is asked, and of which tokens: another layer may have others. */
  function question() {
    const { queries, keys } = source.description.layers[state.get().layer] ?? { queries: -1, keys: -1 };
    return `${queries} ${keys} ${input.value}`;
  }

  function look(/** @type {boolean} */ choose) {
    clearTimeout(timer);
    asked = question();
    hits = hitsOf(context, input.value);
    if (!hits.length && input.value.trim()) context.announce(context.say("search_none"));
    at = 0;
    if (choose && hits.length) take();
    draw();
  }

  function step(/** @type {1 | -1} */ by) {
    if (question() !== asked) return look(true);
    if (!hits.length) return;
    at = (at + by + hits.length) % hits.length;
    take();
    draw();
  }

  function take() {
    const hit = /** @type {Hit} */ (hits[at]);
    const places = Array.from({ length: hit.span[1] - hit.span[0] }, (_, place) => hit.span[0] + place);
    const chosen = hit.side === "rows" ? { rows: places, cols: [] } : { rows: [], cols: places };
    state.set({ ...chosen, direction: hit.side === "rows" ? "from" : "to" });
    const { queries, keys } = sidesOf(source.description, state.get().layer);
    const texts = (hit.side === "rows" ? queries : keys).texts.slice(hit.span[0], hit.span[1]);
    context.announce(context.say("search_found", at + 1, hits.length, `#${hit.span[0]}`, shown(texts.join(""))));
  }

  function draw() {
    const { say } = context;
    input.placeholder = say("search_hint");
    giveName(input, say("search"), "/");
    giveName(back, say("search_previous"));
    giveName(on, say("search_next"));
    const wanted = input.value.trim();
    back.hidden = on.hidden = hits.length < 2;
    count.className = wanted && !hits.length ? "none" : "";
    count.textContent = !wanted ? "" : hits.length ? say("search_at", at + 1, hits.length) : say("search_none");
    const { queries, keys } = sidesOf(source.description, state.get().layer);
    count.title = wanted.startsWith("#") ? say("search_range", Math.max(queries.texts.length, keys.texts.length) - 1) : "";
  }

  state.listen((_, changed) => {
    if (changed.has("layer") && question() !== asked) look(false);
  });
  return {
    element, draw,
    focus() {
      input.focus();
      input.select();
    },
  };
}

/**
 * Where a text stands among the queries, and among the keys where they are other tokens.
 * @param {Context} context
 * @param {string} typed
 * @returns {Hit[]}
 */
function hitsOf(context, typed) {
  const { layer, queries, keys } = sidesOf(context.source.description, context.state.get().layer);
  const wanted = typed.trim();
  const place = /^#\d+$/.test(wanted) ? Number(wanted.slice(1)) : null;
  if (place !== null) {
    /** @type {Span} */
    const span = [place, place + 1];
    if (place < queries.texts.length) return [{ side: "rows", span }];
    return place < keys.texts.length ? [{ side: "cols", span }] : [];
  }
  const found = occurrences(queries, wanted).map((span) => /** @type {Hit} */ ({ side: "rows", span }));
  if (layer.queries === layer.keys) return found;
  return [...found, ...occurrences(keys, wanted).map((span) => /** @type {Hit} */ ({ side: "cols", span }))];
}
