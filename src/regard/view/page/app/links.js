/** The links view: queries at left, keys at right, a line for each weight; any window of a text of any length. */

/**
 * @typedef {import("./view.js").Context} Context
 * @typedef {import("./view.js").View} View
 * @typedef {import("./linklines.js").Place} Place
 * @typedef {import("./linkpaint.js").Scene} Scene
 * @typedef {"rows" | "cols"} Side
 */

import { chosenName, chosenUnits, tokensBetween, toggled } from "./choice.js";
import { isNight } from "./colour.js";
import { axesOf, figure, shown } from "./description.js";
import { fitCanvas, make, nextFrame } from "./dom.js";
import { strongestAway } from "./linkaway.js";
import { holds, linkBlocks } from "./linkblocks.js";
import { linkHands } from "./linkhands.js";
import { headLegend, shownHeads } from "./linklegend.js";
import { linkGeometry, paintLinks, seenSides } from "./linkpaint.js";
import { placeInWords, shareInside } from "./linkwords.js";
import { newestOnly } from "./newest.js";
import { canvasPen } from "./pen.js";

/** Lines in one frame; fewer while the window moves, as few as this browser needs to move it smoothly. */
const MOST_LINKS = 4000;
const MOST_LINKS_MOVING = [200, 1600];
/** @type {readonly Side[]} */
const BOTH_SIDES = ["rows", "cols"];

/**
 * @param {Context} context
 * @returns {View}
 */
export function linksView(context) {
  const { state, source, say, announce } = context;
  const legend = headLegend(context);
  const bring = make("button", { type: "button", class: "small-button" });
  const level = make("button", { type: "button", class: "small-button" });
  const bar = make("div", { class: "view-bar" }, [legend.element, bring, level]);
  const canvas = make("canvas", { class: "links-canvas", tabindex: "0", role: "application" });
  const element = make("div", { class: "links-view" }, [bar, canvas]);

  const first = { rows: 0, cols: 0 }; // what stands at the top of each side
  let placed = ""; // the sides they belong to
  let moving = 0;
  let telling = 0;
  let pace = 1200; // lines while it moves
  let lastFrame = 0;
  /** @type {Place | null} */
  let hover = null;
  /** @type {Place | null} */
  let cursor = null;

  const axes = () => {
    const { layer, unit, pair } = state.get();
    return axesOf(source.description, layer, unit, pair);
  };
  const heads = () => shownHeads(context, state.get()).filter((head) => head.fits);
  const sidesKey = () => {
    const { text, layer, unit, pair } = state.get();
    const found = source.description.layers[layer];
    return [text, found?.queries, found?.keys, unit, pair].join(" ");
  };

  /** @returns {Scene} */
  const scene = () => {
    const look = state.get();
    const sides = axes();
    const chosen = { rows: chosenUnits(sides.rows, look.rows), cols: chosenUnits(sides.cols, look.cols) };
    const focus = hover ?? cursor;
    return {
      width: Math.max(1, canvas.clientWidth), height: Math.max(1, canvas.clientHeight), night: isNight(), axes: sides, first, cursor,
      heads: heads().map((head) => ({ colour: head.colour, block: blocks.of(head) })), names: null, note: "",
      choice: { ...chosen, focus, scale: look.scale, byRow: look.byRow }, weighed: focus ?? onlyChosen(chosen),
      titles: { rows: say("queries"), cols: say("keys") }, most: moving ? pace : MOST_LINKS,
    };
  };

  const redraw = nextFrame(() => {
    if (state.get().view !== "links" || !canvas.clientWidth) return;
    keepPace();
    stayWithin();
    const now = scene();
    paintLinks(canvasPen(fitCanvas(canvas).context), { ...now, note: shareInside(context, now) });
    blocks.want(sidesKey(), heads(), now.axes, seenSides(now));
  });
  const blocks = linkBlocks(source, newestOnly(element, (message) => announce(say("failed", message))), redraw);

  const keepPace = () => {
    const frame = performance.now() - lastFrame;
    lastFrame += frame;
    const [least = 0, most = 0] = MOST_LINKS_MOVING;
    if (moving && frame < 500) pace = Math.max(least, Math.min(most, pace * (frame > 30 ? 0.75 : 1.1)));
  };
  const stayWithin = () => {
    const sides = axes();
    const { visible } = linkGeometry(scene());
    for (const side of BOTH_SIDES) {
      first[side] = Math.max(sides[side].from, Math.min(first[side], sides[side].to - visible));
    }
  };
  const centre = (/** @type {Side} */ side, /** @type {number} */ unit) => {
    first[side] = unit + 0.5 - linkGeometry(scene()).visible / 2;
    redraw();
  };
  const reveal = (/** @type {Side} */ side, /** @type {number} */ unit) => {
    if (unit < first[side] || unit + 1 > first[side] + linkGeometry(scene()).visible) centre(side, unit);
  };

  /** Both sides at the same place of the text; the keys of a layer that goes on from others begin before its queries. */
  const levelSides = () => {
    const layer = source.description.layers[state.get().layer];
    const { rows, cols } = axes();
    if (!layer || layer.kind === "cross") first.cols = cols.from + first.rows - rows.from;
    else first.cols = cols.unitOf(rows.tokens(Math.floor(first.rows))[0] + layer.offset);
    redraw();
  };

  /** What the keyboard stands on, in words, once it stands still. */
  const tell = () => {
    if (cursor) announce(placeInWords(context, scene(), cursor));
  };

  const away = strongestAway(context);
  const bringStrongest = async () => {
    const { rows, cols } = axes();
    const place = scene().weighed;
    const tokens = place?.side === "rows" ? tokensBetween(rows, place.unit, place.unit) : state.get().rows;
    if (!tokens.length) return announce(say("choose_token"));
    const found = await away(tokens, cols, linkGeometry(scene()).visible);
    if (!found) return;
    centre("cols", found.unit);
    const name = chosenName(context, rows, tokens);
    announce(say("links_from", name, rows.unitOf(tokens[0] ?? 0), `${shown(cols.label(found.unit), 20)} ${figure(found.weight)}`));
  };
  const bringNow = () => {
    bringStrongest().catch((error) => announce(say("failed", String(error?.message ?? error))));
  };
  bring.addEventListener("click", bringNow);
  level.addEventListener("click", levelSides);

  linkHands(canvas, {
    scene,
    move(units, apart) {
      first.cols += units;
      if (!apart) first.rows += units;
      clearTimeout(moving);
      moving = window.setTimeout(() => {
        moving = 0;
        redraw();
      }, 120);
      redraw();
    },
    jump: (side, share) => {
      const { from, to } = axes()[side];
      centre(side, from + share * (to - from) - 0.5);
    },
    choose({ side, unit }, adding) {
      const tokens = toggled(axes()[side], state.get()[side], unit, adding);
      state.set(side === "rows" ? { rows: tokens, direction: "from" } : { cols: tokens, direction: "to" });
    },
    hover(place) {
      if (place?.side === hover?.side && place?.unit === hover?.unit) return;
      hover = place;
      if (place) cursor = null;
      redraw();
    },
    cursor: () => cursor,
    setCursor(place) {
      cursor = place;
      hover = null;
      if (place) {
        reveal(place.side, place.unit);
        clearTimeout(telling);
        telling = window.setTimeout(tell, 200);
      }
      redraw();
    },
    bring: bringNow,
    clear: () => state.set({ rows: [], cols: [] }),
  });

  /** Sides that were not shown before: at what is chosen, else at the beginning. */
  const place = () => {
    if (sidesKey() === placed || !canvas.clientHeight) return;
    placed = sidesKey();
    hover = cursor = null;
    const look = state.get();
    const sides = axes();
    first.rows = sides.rows.from;
    const [row] = chosenUnits(sides.rows, look.rows);
    const [col] = chosenUnits(sides.cols, look.cols);
    if (row !== undefined) reveal("rows", row);
    stayWithin();
    levelSides();
    if (col !== undefined) reveal("cols", col);
  };

  const draw = () => {
    for (const [button, word, long] of /** @type {const} */ ([[bring, "links_bring", "links_bring_long"], [level, "links_level", "links_level_long"]])) {
      button.textContent = say(word);
      button.title = say(long);
    }
    canvas.setAttribute("aria-label", say("links_canvas"));
    legend.draw();
    place();
    redraw();
  };

  state.listen((look, changed) => {
    if (look.view !== "links" || changed.has("view")) return;
    draw();
    for (const side of BOTH_SIDES) {
      if (!changed.has(side)) continue;
      const units = [...chosenUnits(axes()[side], look[side])];
      const window = seenSides(scene())[side];
      if (units[0] !== undefined && !units.some((unit) => holds(window, [unit, unit + 1]))) reveal(side, units[0]);
    }
  });

  return {
    element, draw,
    size: () => ({ width: canvas.clientWidth, height: canvas.clientHeight }),
    paint: (pen) => paintLinks(pen, { ...scene(), cursor: null, most: MOST_LINKS, names: heads().map((head) => head.name) }),
  };
}

/**
 * The one token that is chosen, if it is one.
 * @param {{ rows: Set<number>, cols: Set<number> }} chosen
 * @returns {Place | null}
 */
function onlyChosen({ rows, cols }) {
  const [row] = rows;
  const [col] = cols;
  if (rows.size + cols.size !== 1) return null;
  return row !== undefined ? { side: "rows", unit: row } : col !== undefined ? { side: "cols", unit: col } : null;
}
