/** The numbers panel: what the chosen tokens look at most, or who looks at them, in figures; to read, copy, save. */

/**
 * @typedef {import("./view.js").Context} Context
 * @typedef {import("./description.js").Axis} Axis
 */

import { byUnit, chosenName, chosenWeights, directionOf, tokensBetween, weightsKey } from "./choice.js";
import { weightsCsv } from "./csv.js";
import { axesOf, figure, shown } from "./description.js";
import { make, nextFrame } from "./dom.js";
import { fileName } from "./exports.js";
import { newestOnly } from "./newest.js";
import { copyText, saveFile } from "./wayout.js";

const FEW_NUMBERS = 12;
const MANY_NUMBERS = 100;

/**
 * @param {Context} context
 * @returns {{ element: HTMLElement, draw: () => void }}
 */
export function numbersPanel(context) {
  const { state, source, say, announce } = context;
  const title = make("h2", { class: "numbers-title" });
  const caption = make("p", { class: "numbers-caption", "aria-live": "polite" });
  const table = make("table", { class: "numbers-table" });
  const more = make("button", { type: "button", class: "small-button" });
  const facts = make("dl", { class: "numbers-facts" });
  const copy = make("button", { type: "button", class: "small-button" });
  const save = make("button", { type: "button", class: "small-button" });
  const ways = make("div", { class: "numbers-ways" }, [copy, save]);
  const element = make("section", { class: "numbers-panel" }, [title, caption, table, more, facts, ways]);
  const ask = newestOnly(element, (message) => {
    known = null; // what is shown would be another head's
    for (const part of [table, facts]) part.replaceChildren();
    more.hidden = true;
    caption.textContent = say("failed", message);
    announce(say("failed", message));
  });

  let many = false;
  /** @type {{ key: string, weights: Float32Array } | null} By token; the last that came. */
  let known = null;

  /** Everything that follows from the state: which way, which side is listed, and its weights by unit. */
  const view = () => {
    const look = state.get();
    const direction = directionOf(look);
    const axes = axesOf(source.description, look.layer, look.unit, look.pair);
    const from = direction === "from";
    const chosen = from ? look.rows : look.cols;
    const ready = known !== null && known.key === weightsKey(look, direction);
    return { look, direction, from, chosen, ready, mine: from ? axes.rows : axes.cols, listed: from ? axes.cols : axes.rows, other: from ? look.cols : look.rows };
  };
  const layerOf = () => source.description.layers[state.get().layer];
  const headNumber = () => layerOf()?.heads[state.get().head] ?? state.get().head;

  const fill = nextFrame(() => {
    const now = view();
    title.textContent = say("layer_head", layerOf()?.index ?? 0, headNumber());
    const empty = !now.chosen.length;
    for (const part of [table, more, facts, ways]) part.hidden = empty;
    if (empty) {
      caption.textContent = say("choose_token");
      table.replaceChildren();
      return;
    }
    if (now.ready && known) fillWith(now, known.weights);
  });

  /**
   * @param {ReturnType<typeof view>} now
   * @param {Float32Array} weights
   */
  const fillWith = (now, weights) => {
    const { listed, mine, from, direction, chosen } = now;
    const units = byUnit(weights, listed, direction);
    const top = strongestUnits(units, listed, many ? MANY_NUMBERS : FEW_NUMBERS);
    const spoilt = weights.some(Number.isNaN);
    const said = spoilt ? say("not_numbers") : say(from ? "numbers_from" : "numbers_to", chosenName(context, mine, chosen));
    if (caption.textContent !== said) caption.textContent = said;
    const others = new Set(now.other.map((token) => listed.unitOf(token)));
    const largest = units[top[0] ?? 0] ?? 0;
    const head = ["#", say(listed.unit), say("place"), say("weight")].map((text) => make("th", { scope: "col", text }));
    const focused = [...table.querySelectorAll("button")].findIndex((button) => button === document.activeElement);
    table.replaceChildren(
      make("thead", {}, [make("tr", {}, head)]),
      make("tbody", {}, top.map((unit, rank) => rowOf(listed, unit, rank, units[unit] ?? 0, largest, others.has(unit), from))),
    );
    table.querySelectorAll("button")[focused]?.focus();
    more.hidden = !many && top.length < FEW_NUMBERS;
    more.textContent = say(many ? "numbers_less" : "numbers_more");
    const sum = top.reduce((total, unit) => total + (units[unit] ?? 0), 0);
    const cell = now.other.reduce((total, token) => total + (weights[token] ?? 0), 0) / (from ? 1 : Math.max(1, now.other.length));
    const [one, two] = [chosenName(context, mine, chosen), chosenName(context, listed, now.other)];
    facts.replaceChildren(
      ...fact(say("numbers_sum", top.length), spoilt ? "–" : figure(sum)),
      ...(from ? fact(say("numbers_entropy"), spoilt ? "–" : entropyOf(weights).toFixed(3)) : fact(say("numbers_all"), figure(weights.reduce((a, b) => a + b, 0)))),
      ...(now.other.length ? fact(say("numbers_cell", from ? one : two, from ? two : one), cell === 0 ? "0" : cell.toPrecision(6)) : []),
    );
  };

  /**
   * @param {Axis} axis @param {number} unit @param {number} rank @param {number} weight @param {number} largest
   * @param {boolean} isChosen @param {boolean} from
   */
  const rowOf = (axis, unit, rank, weight, largest, isChosen, from) => {
    const bar = make("span", { class: "weight-bar" });
    bar.style.width = `${largest > 0 ? (100 * weight) / largest : 0}%`;
    const name = make("button", { type: "button", class: axis.written(unit) ? "token-button written" : "token-button", "aria-pressed": String(isChosen), title: axis.written(unit) ? say("written") : null }, [
      make("bdi", { text: shown(axis.label(unit), 40) || "∅" }),
    ]);
    const row = make("tr", { class: isChosen ? "chosen" : null }, [
      make("td", { class: "rank", text: rank + 1 }),
      make("td", { class: "name" }, [name]),
      make("td", { class: "place", text: unit }),
      make("td", { class: "weight", title: weight.toPrecision(7) }, [make("span", { class: "weight-figure", text: figure(weight) }), make("span", { class: "weight-track" }, [bar])]),
    ]);
    row.addEventListener("click", () => {
      const tokens = isChosen ? [] : tokensBetween(axis, unit, unit);
      state.set(from ? { direction: "from", cols: tokens } : { direction: "to", rows: tokens });
    });
    return row;
  };

  const draw = () => {
    for (const [button, word] of /** @type {const} */ ([[copy, "copy_csv"], [save, "download_csv"]])) button.textContent = say(word);
    element.setAttribute("aria-label", say("numbers"));
    table.setAttribute("aria-label", say("numbers"));
    const { look, direction, chosen, ready } = view();
    fill();
    if (!chosen.length || ready) return;
    const key = weightsKey(look, direction);
    ask(
      () => chosenWeights(source, look, direction),
      (weights) => {
        known = { key, weights };
        fill();
      },
      () => key === weightsKey(state.get(), directionOf(state.get())),
    );
  };

  const csv = async () => {
    const { look, direction, listed } = view();
    const weights = await chosenWeights(source, look, direction);
    return weightsCsv(["place", look.unit, "weight"], listed, byUnit(weights, listed, direction));
  };
  const failed = (/** @type {unknown} */ error) => announce(say("failed", error instanceof Error ? error.message : String(error)));
  copy.addEventListener("click", () => {
    csv().then(async (text) => announce((await copyText(text)) ? say("csv_copied", text.split("\r\n").length - 1) : say("csv_failed"))).catch(failed);
  });
  save.addEventListener("click", () => {
    const { look, direction, chosen } = view();
    const name = fileName(source.description, look, `${direction === "from" ? "query" : "key"}-${chosen[0] ?? 0}`, "csv");
    csv()
      .then((text) => saveFile(new Blob(["\ufeff", text], { type: "text/csv;charset=utf-8" }), name)) // the mark tells Excel: UTF-8
      .catch(failed);
  });
  more.addEventListener("click", () => {
    many = !many;
    fill();
  });
  state.listen((_, changed) => {
    const parts = /** @type {const} */ (["text", "layer", "head", "rows", "cols", "direction", "unit", "pair"]);
    if (parts.some((part) => changed.has(part))) draw();
  });
  return { element, draw };
}

/**
 * @param {string} name
 * @param {string} value
 */
function fact(name, value) {
  return [make("dt", { text: name }), make("dd", { text: value })];
}

/**
 * The units with the largest weights, the largest first; what is 0 is left out.
 * @param {Float32Array} weights
 * @param {Axis} axis
 * @param {number} most
 * @returns {number[]}
 */
function strongestUnits(weights, axis, most) {
  /** @type {number[]} */
  const top = [];
  for (let unit = axis.from; unit < axis.to; unit += 1) {
    const weight = weights[unit] ?? 0;
    if (!(weight > 0) || (top.length === most && weight <= (weights[top[most - 1] ?? 0] ?? 0))) continue;
    let place = top.length;
    while (place > 0 && (weights[top[place - 1] ?? 0] ?? 0) < weight) place -= 1;
    top.splice(place, 0, unit);
    if (top.length > most) top.pop();
  }
  return top;
}

/**
 * −Σ w·log w, in nats.
 * @param {Float32Array} weights
 */
function entropyOf(weights) {
  let sum = 0;
  for (const weight of weights) if (weight > 0) sum -= weight * Math.log(weight);
  return sum;
}
