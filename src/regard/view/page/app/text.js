/** The text view: the running text, shaded by what the chosen tokens look at, or by who looks at them. */

/**
 * @typedef {import("./view.js").Context} Context
 * @typedef {import("./view.js").View} View
 * @typedef {"rows" | "cols"} Side
 */

import { byUnit, chosenName, chosenUnits, chosenWeights, howChosen, MOST_CHOSEN, toggled, tokensBetween, weightsKey } from "./choice.js";
import { isNight, shareOf } from "./colour.js";
import { axesOf, figure, shown, sidesOf } from "./description.js";
import { make } from "./dom.js";
import { heatStrip } from "./heatstrip.js";
import { newestOnly } from "./newest.js";
import { passage } from "./passage.js";
import { FONT } from "./pen.js";
import { scaleLegend } from "./scalelegend.js";
import { paintTokens, paintWords } from "./textpaint.js";
import { inks } from "./view.js";

/**
 * @param {Context} context
 * @returns {View}
 */
export function textView(context) {
  const { state, source, say, announce } = context;
  const from = make("button", { type: "button", class: "choice" });
  const to = make("button", { type: "button", class: "choice" });
  const ways = make("div", { class: "segments", role: "group" }, [from, to]);
  const caption = make("p", { class: "view-caption" });
  const written = make("span", { class: "written-legend" });
  const scale = scaleLegend();
  const bar = make("div", { class: "view-bar" }, [ways, caption, written, scale.element]);
  const blocks = { rows: block("rows"), cols: block("cols") };
  const body = make("div", { class: "text-body" }, [blocks.rows.element, blocks.cols.element]);
  const element = make("div", { class: "text-view" }, [bar, body]);
  element.style.fontFamily = FONT; // as the pen writes, so that an export looks the same
  const ask = newestOnly(element, (message) => {
    known = null; // what is shown would be another head's
    shade();
    announce(say("failed", message));
  });

  let shownSides = "";
  let begun = false;
  /** @type {{ key: string, direction: "from" | "to", weights: Float32Array } | null} The last that came. */
  let known = null;
  const anchor = { rows: -1, cols: -1 }; // where a range begins

  /** Both sides, and whether they are one text: then the first block is both. */
  const sides = () => {
    const look = state.get();
    const { layer, queries, keys } = sidesOf(source.description, look.layer);
    const { rows, cols } = axesOf(source.description, look.layer, look.unit, look.pair);
    const one = layer.queries === layer.keys && rows.from === cols.from && rows.to === cols.to;
    return { axes: { rows, cols }, tokens: { rows: queries, cols: keys }, one, key: [layer.queries, layer.keys, look.unit, look.pair].join(" ") };
  };
  const chosenSide = () => /** @type {Side} */ (state.get().direction === "from" ? "rows" : "cols");

  /** @param {Side} name */
  function block(name) {
    const title = make("h3", { class: "passage-title" });
    const text = passage({
      choose(unit, event) {
        const side = clicked(name);
        const how = howChosen(event);
        const axis = sides().axes[side];
        const ranged = how === "range" && anchor[side] >= axis.from && anchor[side] < axis.to;
        if (!ranged) anchor[side] = unit;
        setChosen(side, ranged ? tokensBetween(axis, anchor[side], unit) : toggled(axis, state.get()[side], unit, how === "add"));
      },
      chooseSpan(one, other) {
        const side = clicked(name);
        anchor[side] = one;
        setChosen(side, tokensBetween(sides().axes[side], one, other));
      },
      clear: () => state.set({ rows: [], cols: [] }),
      moved: () => strip.move(text.seen()),
      nameOf: (unit) => nameOf(name, unit),
    });
    const strip = heatStrip((unit) => text.reveal(unit, true));
    return { title, text, strip, element: make("section", { class: "passage-block" }, [title, make("div", { class: "passage-frame" }, [text.element, strip.element])]) };
  }

  /** Which side a click in a block means. @param {Side} name @returns {Side} */
  const clicked = (name) => (sides().one ? chosenSide() : name);
  const setChosen = (/** @type {Side} */ side, /** @type {number[]} */ tokens) => {
    if (tokens.length === MOST_CHOSEN) announce(say("chosen_most", MOST_CHOSEN));
    state.set(side === "rows" ? { rows: tokens, direction: "from" } : { cols: tokens, direction: "to" });
  };

  /** What is shaded: its side, its weights by unit and the largest of them. */
  const shading = () => {
    const look = state.get();
    const { axes } = sides();
    const side = /** @type {Side} */ (look.direction === "from" ? "cols" : "rows");
    const axis = axes[side];
    if (known?.direction !== look.direction || !look[chosenSide()].length) return { side, axis, weights: null, largest: 0 };
    const weights = byUnit(known.weights, axis, look.direction);
    let largest = 0;
    for (let unit = axis.from; unit < axis.to; unit += 1) largest = Math.max(largest, weights[unit] ?? 0);
    return { side, axis, weights, largest };
  };

  /** @param {Side} name @param {number} unit */
  const nameOf = (name, unit) => {
    const { axes, one } = sides();
    const { side, weights } = shading();
    const label = shown(axes[name].label(unit)) || "∅";
    const weight = weights && (one || side === name) ? weights[unit] : undefined;
    return weight === undefined ? say("text_token", label, unit) : say("text_token_weight", label, unit, figure(weight));
  };

  const shade = () => {
    const look = state.get();
    const { axes, one } = sides();
    const { side, axis, weights, largest } = shading();
    const night = isNight();
    const shareOfUnit = (/** @type {number} */ unit) => (weights ? shareOf(weights[unit] ?? 0, largest, look.scale) : 0);
    for (const name of /** @type {Side[]} */ (one ? ["rows"] : ["rows", "cols"])) {
      const mine = one ? chosenSide() : name;
      const chosen = chosenUnits(axes[mine], look[mine]);
      const others = one ? chosenUnits(axis, look[side]) : new Set();
      const isShaded = weights !== null && (one || side === name);
      const share = isShaded ? shareOfUnit : () => 0;
      const { text, strip } = blocks[name];
      text.shade({ share, weight: (unit) => weights?.[unit] ?? 0, night }, (unit) => (chosen.has(unit) ? 1 : others.has(unit) ? 2 : 0));
      strip.element.hidden = text.fits(); // nothing to go to
      strip.show({ axis: axes[name], share, chosen, seen: text.seen(), night });
    }
    scale.show(largest, look.scale, night);
  };

  const write = () => {
    const look = state.get();
    const { axes, one } = sides();
    for (const [button, way, word, long] of /** @type {const} */ ([[from, "from", "direction_from", "direction_from_long"], [to, "to", "direction_to", "direction_to_long"]])) {
      button.textContent = say(word);
      button.title = say(long);
      button.setAttribute("aria-pressed", String(look.direction === way));
    }
    ways.setAttribute("aria-label", say("direction"));
    const chosen = look[chosenSide()];
    caption.textContent = chosen.length ? say(look.direction === "from" ? "text_from" : "text_to", chosenName(context, axes[chosenSide()], chosen)) : say("choose_token");
    written.textContent = axes.rows.written(axes.rows.to - 1) || axes.cols.written(axes.cols.to - 1) ? say("written") : "";
    for (const name of /** @type {Side[]} */ (["rows", "cols"])) {
      const title = say(name === "rows" ? "queries" : "keys");
      blocks[name].title.textContent = one ? "" : title;
      blocks[name].text.element.setAttribute("aria-label", one ? say("text") : title);
    }
    blocks.cols.element.hidden = one;
    body.classList.toggle("two", !one);
  };

  const load = () => {
    const look = state.get();
    const key = weightsKey(look, look.direction);
    if (!look[chosenSide()].length || known?.key === key) return;
    ask(
      () => chosenWeights(source, look, look.direction),
      (weights) => {
        known = { key, direction: look.direction, weights };
        shade();
      },
      () => key === weightsKey(state.get(), state.get().direction),
    );
  };

  const draw = () => {
    if (!element.clientWidth) return;
    if (!begun) begin();
    const { axes, tokens, one, key } = sides();
    write();
    if (key !== shownSides) {
      known = null;
      blocks.rows.text.show(tokens.rows, axes.rows);
      if (!one) blocks.cols.text.show(tokens.cols, axes.cols);
      shownSides = key;
      revealChosen();
    }
    for (const { text } of Object.values(blocks)) text.resized();
    shade();
    load();
  };

  /** The first time something is to be seen: the last token, unless something is chosen. */
  const begin = () => {
    begun = true;
    const look = state.get();
    const { axes } = sides();
    if (!look.rows.length && !look.cols.length) state.set({ direction: "from", rows: tokensBetween(axes.rows, axes.rows.to - 1, axes.rows.to - 1) });
    else if (!look[chosenSide()].length) state.set({ direction: look.direction === "from" ? "to" : "from" });
  };
  const revealChosen = () => {
    const { axes, one } = sides();
    const side = chosenSide();
    const [unit] = chosenUnits(axes[side], state.get()[side]);
    if (unit !== undefined && unit >= axes[side].from && unit < axes[side].to) blocks[one ? "rows" : side].text.reveal(unit);
  };

  /** The other way; within one text, the same tokens are looked at. @param {"from" | "to"} direction */
  const turn = (direction) => {
    const look = state.get();
    const [mine, other] = direction === "from" ? [look.rows, look.cols] : [look.cols, look.rows];
    const same = sides().one && !mine.length ? other : mine;
    state.set(direction === "from" ? { direction, rows: same } : { direction, cols: same });
  };
  from.addEventListener("click", () => turn("from"));
  to.addEventListener("click", () => turn("to"));

  state.listen((look, changed) => {
    if (look.view !== "text" || changed.has("view")) return;
    const parts = /** @type {const} */ (["text", "layer", "head", "rows", "cols", "direction", "unit", "pair", "scale"]);
    if (!parts.some((part) => changed.has(part))) return;
    draw();
    if (changed.has("rows") || changed.has("cols")) revealChosen();
  });

  return {
    element, draw,
    size: () => ({ width: element.clientWidth, height: element.clientHeight }),
    paint(pen) {
      const night = isNight();
      const origin = element.getBoundingClientRect();
      pen.rectangle(0, 0, origin.width, origin.height, inks(night).paper);
      for (const part of [caption, written, ...scale.texts]) paintWords(pen, part, origin);
      scale.paint(pen, origin);
      for (const { title, text, strip } of sides().one ? [blocks.rows] : [blocks.rows, blocks.cols]) {
        paintWords(pen, title, origin);
        const box = text.element.getBoundingClientRect();
        pen.within(box.left - origin.left, box.top - origin.top, box.width, box.height, () => paintTokens(pen, text.seenElements(), origin, night));
        const edge = strip.element.getBoundingClientRect();
        strip.paint(pen, edge.left - origin.left, edge.top - origin.top);
      }
    },
  };
}
