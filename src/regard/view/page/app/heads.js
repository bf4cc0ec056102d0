/** All heads: a small picture of each, layers × heads as in the model, or the most remarkable first. */

import { isNight } from "./colour.js";
import { giveName, offer } from "./controls.js";
import { sidesOf } from "./description.js";
import { make, nextFrame } from "./dom.js";
import { headCells, neighbourOf } from "./headcells.js";
import { byScore, headScores, LOWEST_FIRST } from "./headscores.js";
import { paintSheet } from "./headspaint.js";
import { icon } from "./icons.js";
import { MEASURES } from "./state.js";
import { layersAround, moveTo, shortName, withHead } from "./steps.js";
import { drawThumb, inTurns } from "./thumbs.js";

/**
 * @typedef {import("./view.js").Context} Context
 * @typedef {import("./view.js").View} View
 * @typedef {import("./source.js").Thumbnails} Thumbnails
 * @typedef {import("./description.js").Measure} Measure
 * @typedef {import("./headcells.js").Cell} Cell
 */

const [SMALLEST, LARGEST, WITH_SCORE] = [32, 120, 92]; // pixels of a picture
const [GAP, LABEL] = [6, 46]; // as in heads.css
const LINGER = 160; // milliseconds over a head before its scores are asked for

/**
 * @param {Context} context
 * @returns {View}
 */
export function headsView(context) {
  const { state, source, say } = context;
  const sorting = make("select");
  const sortCaption = make("span", { class: "caption", "aria-hidden": "true" });
  const turning = make("button", { type: "button", class: "plain" });
  const hint = make("p", { class: "hint" });
  const grid = make("div", { class: "heads-grid", role: "group" });
  const sheet = make("div", { class: "heads-sheet" }, [grid]);
  const told = make("p", { class: "heads-told" });
  const element = make("section", { class: "heads" }, [
    make("div", { class: "heads-bar" }, [make("label", { class: "group" }, [sortCaption, sorting]), turning, hint]), sheet, told,
  ]);

  const scores = headScores(source);
  /** @type {Map<number, Thumbnails | null>} null while they are on their way. */
  const pictures = new Map();
  /** @type {Cell[]} In the model's order. */
  let cells = [];
  /** @type {Cell[][]} As they are seen. */
  let rows = [];
  /** @type {Map<Element, Cell>} */
  const cellOf = new Map();
  /** @type {Set<Cell>} */
  const visible = new Set();
  let [made, arranged, turned, lingering] = ["", "", false, 0];
  /** @type {Cell | null} */
  let pointed = null;

  const measure = () => MEASURES.find((one) => one === state.get().sort) ?? null;
  const rising = (/** @type {Measure} */ one) => LOWEST_FIRST.includes(one) !== turned;

  /** @type {Set<number>} Layers whose scores are on their way. */
  const scoring = new Set();
  /** @type {Set<number>} Layers that could not be scored. */
  const refused = new Set();
  // What is wanted most: the pictures that are seen, then the scores by which heads are sorted.
  const load = inTurns(() => {
    if (state.get().view !== "heads") return null;
    for (const { layer } of visible) if (!pictures.has(layer)) return () => loadPictures(layer);
    if (!measure()) return null;
    const next = cells.find(({ layer }) => !scores.has(layer) && !scoring.has(layer) && !refused.has(layer));
    return next ? () => loadScores(next.layer) : null;
  });

  async function loadScores(/** @type {number} */ layer) {
    scoring.add(layer);
    try {
      await scores.load(layer);
    } catch (reason) {
      refused.add(layer);
      context.announce(say("failed", reason instanceof Error ? reason.message : String(reason)));
    }
    scoring.delete(layer);
    for (const cell of cells) if (cell.layer === layer) nameCell(cell);
    if (measure()) drawSoon();
    tellOne();
  }

  async function loadPictures(/** @type {number} */ layer) {
    pictures.set(layer, null);
    try {
      pictures.set(layer, await source.thumbnails(layer));
      for (const cell of visible) if (cell.layer === layer) drawCell(cell);
    } catch (reason) {
      context.announce(say("failed", reason instanceof Error ? reason.message : String(reason)));
    }
  }

  const watcher = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        const cell = cellOf.get(target);
        if (!cell) continue;
        if (isIntersecting) visible.add(cell);
        else visible.delete(cell);
        if (isIntersecting) drawCell(cell);
      }
      load();
    },
    { root: sheet, rootMargin: "160px" },
  );

  function drawCell(/** @type {Cell} */ cell) {
    const { scale, byRow } = state.get();
    const drawn = `${isNight()} ${scale} ${byRow}`;
    const canvas = cell.drawn === drawn ? null : canvasOf(cell);
    if (!canvas) return;
    cell.picture.style.backgroundImage = `url(${canvas.toDataURL()})`;
    cell.drawn = drawn;
  }

  function canvasOf(/** @type {Cell} */ cell) {
    const { scale, byRow } = state.get();
    const layer = pictures.get(cell.layer);
    return layer ? drawThumb(layer, cell.head, { night: isNight(), scale, byRow }) : null;
  }

  /** A button for each head of the layers that are seen now. */
  function makeCells() {
    const { description } = source;
    const layers = layersAround(description, state.get());
    if (made === layers.join()) return;
    made = layers.join();
    arranged = "";
    watcher.disconnect();
    visible.clear();
    cellOf.clear();
    pointed = null;
    cells = headCells(description, layers);
    for (const cell of cells) cellOf.set(cell.button, cell);
    for (const cell of cells) watcher.observe(cell.button);
    for (const place of layers) if (description.layers[place]?.scores) void loadScores(place); // they are in the file
  }

  /** The buttons in their order; as many in a row as the width holds. */
  function arrange() {
    const by = measure();
    const space = sheet.clientWidth - parseFloat(getComputedStyle(sheet).paddingLeft) - parseFloat(getComputedStyle(sheet).paddingRight);
    if (space <= 0) return;
    if (by) arrangeFlat(by, space);
    else arrangeByLayer(space);
    mark();
  }
  const drawSoon = nextFrame(() => {
    if (state.get().view === "heads") draw();
  });

  function arrangeByLayer(/** @type {number} */ space) {
    const numbers = [...new Set(cells.map((cell) => cell.number))].sort((one, other) => one - other);
    const layers = [...new Set(cells.map((cell) => cell.layer))];
    const size = Math.max(SMALLEST, Math.min(LARGEST, Math.floor((space - LABEL) / Math.max(1, numbers.length)) - GAP));
    grid.style.gridTemplateColumns = `auto repeat(${numbers.length}, ${size}px)`;
    rows = layers.map((layer) => cells.filter((cell) => cell.layer === layer));
    put(`model ${made}`, () => [
      make("span", { class: "corner", "aria-hidden": "true" }),
      ...numbers.map((number) => make("span", { class: "column", text: `H${number}`, "aria-hidden": "true" })),
      ...rows.flatMap((row) => {
        const label = make("span", { class: "row", text: `L${row[0]?.index}`, "aria-hidden": "true" });
        label.style.gridColumn = "1";
        for (const cell of row) cell.button.style.gridColumn = String(numbers.indexOf(cell.number) + 2);
        return [label, ...row.map((cell) => cell.button)];
      }),
    ]);
    grid.classList.remove("scored");
  }

  function arrangeFlat(/** @type {Measure} */ by, /** @type {number} */ space) {
    const across = Math.max(1, Math.floor((space + GAP) / (WITH_SCORE + GAP)));
    grid.style.gridTemplateColumns = `repeat(${across}, ${Math.min(LARGEST, Math.floor((space + GAP) / across) - GAP)}px)`;
    const order = byScore(cells, (cell) => scores.of(cell, by), rising(by));
    rows = Array.from({ length: Math.ceil(order.length / across) }, (_, row) => order.slice(row * across, (row + 1) * across));
    put(order.map((cell) => `${cell.layer}.${cell.head}`).join(), () => {
      for (const cell of order) cell.button.style.gridColumn = "auto";
      return order.map((cell) => cell.button);
    });
    const largest = Math.max(1e-12, ...cells.map((cell) => scores.of(cell, by) ?? 0));
    for (const cell of cells) {
      cell.bar.style.width = `${(100 * Math.max(0, scores.of(cell, by) ?? 0)) / largest}%`;
      cell.under.replaceChildren(make("span", { text: `L${cell.index} H${cell.number}` }), make("span", { text: scores.told(cell, by) }));
    }
    grid.classList.add("scored");
  }

  /** Into the page, unless they stand there so already; who has the focus keeps it. */
  function put(/** @type {string} */ how, /** @type {() => Node[]} */ children) {
    if (arranged === how) return;
    arranged = how;
    const focused = document.activeElement;
    grid.replaceChildren(...children());
    if (focused instanceof HTMLElement && cellOf.has(focused)) focused.focus({ preventScroll: true });
  }

  /** Which head is looked at, which are among the links, and which the tabulator key goes to. */
  function mark() {
    const look = state.get();
    const current = currentCell();
    const goal = cells.find((cell) => cell.button === document.activeElement) ?? current ?? rows[0]?.[0];
    for (const cell of cells) {
      const linked = look.more.some(([layer, head]) => layer === cell.layer && head === cell.head);
      cell.button.className = `thumb${cell === current ? " current" : ""}${linked ? " linked" : ""}`;
      nameCell(cell);
      cell.button.tabIndex = cell === goal ? 0 : -1;
      if (cell === current) cell.button.setAttribute("aria-current", "true");
      else cell.button.removeAttribute("aria-current");
    }
    tellOne();
  }

  function nameCell(/** @type {Cell} */ cell) {
    const known = MEASURES.filter((one) => scores.of(cell, one) !== null);
    const words = known.map((one) => `${say(one)} ${scores.told(cell, one)}`);
    if (cell.button.classList.contains("linked")) words.push(say("in_links"));
    cell.button.setAttribute("aria-label", [say("layer_head", cell.index, cell.number), ...words].join(", "));
  }

  function currentCell() {
    const { layer, head } = state.get();
    return cells.find((cell) => cell.layer === layer && cell.head === head);
  }

  /** Everything about the head that is pointed at, or looked at, in the line at the bottom. */
  function tellOne() {
    const cell = pointed ?? currentCell();
    if (!cell) return;
    const { layer } = sidesOf(source.description, cell.layer);
    const by = measure();
    told.replaceChildren(
      make("b", { text: say("layer_head", cell.index, cell.number) }),
      ...MEASURES.filter((one) => scores.of(cell, one) !== null).map((one) =>
        make("span", { class: one === by ? "chosen" : undefined, title: say(`${one}_long`) }, [make("em", { text: say(one) }), scores.told(cell, one)])),
      make("span", { class: "module", text: shortName(layer), title: layer.name }),
    );
  }

  function point(/** @type {EventTarget | null} */ target) {
    const button = target instanceof Element ? target.closest("button") : null;
    const cell = button && cellOf.get(button);
    clearTimeout(lingering);
    if (!cell) return;
    pointed = cell;
    tellOne();
    if (scores.has(cell.layer) || scoring.has(cell.layer) || refused.has(cell.layer)) return;
    lingering = window.setTimeout(() => void loadScores(cell.layer), LINGER);
  }
  grid.addEventListener("pointerover", (event) => point(event.target));
  grid.addEventListener("focusin", (event) => {
    point(event.target);
    mark();
  });

  function link(/** @type {Cell} */ cell) {
    const look = state.get();
    const more = withHead(look, cell.layer, cell.head);
    state.set({ more });
    context.announce(say(more.length > look.more.length ? "head_added" : "head_removed", cell.index, cell.number));
  }
  grid.addEventListener("click", (event) => {
    const button = event.target instanceof Element ? event.target.closest("button") : null;
    const cell = button && cellOf.get(button);
    if (!cell) return;
    if (event.ctrlKey || event.metaKey) link(cell);
    else state.set({ ...moveTo(source.description, state.get(), cell.layer, cell.head), view: "map" });
  });
  grid.addEventListener("keydown", (event) => {
    const cell = event.target instanceof Element ? cellOf.get(event.target) : undefined;
    if (!cell || event.altKey || event.metaKey) return;
    const goal = neighbourOf(rows, cell, event.key);
    if (goal) {
      goal.button.focus({ preventScroll: true });
      goal.button.scrollIntoView({ block: "nearest", inline: "nearest" });
    } else if (event.key === "+" || event.key === "=") link(cell);
    else return;
    event.preventDefault();
  });

  sorting.addEventListener("change", () => {
    turned = false;
    sheet.scrollTop = 0;
    state.set({ sort: MEASURES.find((one) => one === sorting.value) ?? "model" });
  });
  turning.addEventListener("click", () => {
    turned = !turned;
    sheet.scrollTop = 0;
    draw();
  });

  function draw() {
    const by = measure();
    sortCaption.textContent = say("sort");
    sorting.setAttribute("aria-label", say("sort"));
    const options = [{ value: "model", label: say("sort_model") }, ...MEASURES.map((value) => ({ value, label: say(value) }))];
    offer(sorting, options, by ?? "model");
    turning.hidden = !by;
    if (by) {
      const words = say(rising(by) ? "rising" : "falling");
      turning.replaceChildren(icon(rising(by) ? "rising" : "falling"), words);
      giveName(turning, words);
    }
    grid.setAttribute("aria-label", say("heads"));
    makeCells();
    const about = by ? say(`${by}_long`) : say("heads_help");
    hint.textContent = by && cells.some((cell) => scores.estimated(cell.layer)) ? `${about}; ${say("estimate")}` : about;
    hint.title = hint.textContent;
    arrange();
    for (const cell of visible) drawCell(cell);
    load();
  }

  state.listen((look, changed) => {
    if (look.view !== "heads" || changed.has("view")) return; // draw() follows a change of view
    if (["text", "layer", "sort", "scale", "byRow"].some((name) => changed.has(/** @type {import("./state.js").Part} */ (name)))) draw();
    else if (changed.has("head") || changed.has("more")) mark();
  });

  return {
    element,
    draw,
    size: () => ({ width: sheet.clientWidth, height: sheet.clientHeight }),
    paint: (pen) => paintSheet(pen, sheet, rows.flat(), canvasOf),
  };
}
