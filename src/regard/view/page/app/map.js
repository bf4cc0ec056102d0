/** The map: the whole matrix on a canvas, from afar and down to single cells with their names and numbers. */

import { cellWords } from "./cellwords.js";
import { MOST_CHOSEN, tokensBetween } from "./choice.js";
import { fitCanvas, make, nextFrame } from "./dom.js";
import { inside, revealing, wholeFrame } from "./frame.js";
import { colouringOf, paintMap } from "./mappaint.js";
import { minimap } from "./minimap.js";
import { moves } from "./moves.js";
import { canvasPen } from "./pen.js";
import { cellUnder, placesIn, sceneOf } from "./scene.js";
import { tileStore } from "./tiles.js";
import { inks } from "./view.js";

/**
 * @typedef {import("./view.js").Context} Context
 * @typedef {import("./view.js").View} View
 * @typedef {import("./frame.js").Frame} Frame
 * @typedef {import("./scene.js").Cell} Cell
 */

const READABLE = 22; // pixels of a cell that is jumped to

/**
 * @param {Context} context
 * @returns {View}
 */
export function mapView(context) {
  const { state, source, say } = context;
  const canvas = make("canvas", { class: "map", tabindex: 0, role: "application" });
  const tip = make("div", { class: "tip", hidden: true });
  const redraw = nextFrame(() => draw());
  const tiles = tileStore(source, redraw, (reason) => context.announce(say("failed", reason)));
  const small = minimap(tiles, (x, y) => go({ ...scene().frame, x, y }));
  const element = make("section", { class: "view map-view" }, [canvas, tip, small.element]);

  /** @type {{ x: number, y: number } | null} */
  let pointer = null;
  let own = false; // whether a change of the state is ours
  let painted = false;
  let sharp = false;
  let size = { width: 800, height: 600 };

  const scene = () => sceneOf(source.description, state.get(), size);

  /** @param {Partial<import("./state.js").Look>} change */
  const set = (change) => {
    own = true;
    state.set(change);
    own = false;
  };

  /** @param {Frame} next */
  const go = (next) => {
    const { world } = scene();
    const frame = inside(next, world);
    const all = frame.zoom <= wholeFrame(world).zoom * 1.0001;
    set({ frame: all ? null : { x: shortened(frame.x), y: shortened(frame.y), zoom: shortened(frame.zoom) } });
    redraw();
  };

  /** Asks for what will be seen. */
  const prepare = () => {
    if (!element.isConnected || canvas.clientWidth === 0) return null;
    size = { width: canvas.clientWidth, height: canvas.clientHeight };
    const now = scene();
    void tiles.show(now.sheet);
    const places = placesIn(now, tiles.root());
    tiles.want(places);
    return { now, places };
  };

  const draw = () => {
    const prepared = prepare();
    if (!prepared) return;
    const { now, places } = prepared;
    const { width, height, context: paper } = fitCanvas(canvas);
    const pointed = showTip(now);
    paper.fillStyle = inks(now.night).paper;
    paper.fillRect(0, 0, width, height);
    paintMap(canvasPen(paper), now, tiles, places, pointed, say);
    small.draw(now.frame, now.world, colouringOf(now), now.level);
    canvas.setAttribute("aria-label", say("map_label"));
    tell(places);
  };

  /**
   * How far the picture is.
   * @param {import("./tiles.js").Place[]} places
   */
  const tell = (places) => {
    const pieces = places.map((place) => tiles.at(place));
    const there = pieces.filter((piece) => piece?.values).length;
    const settled = pieces.filter((piece) => piece?.settled).length;
    const done = pieces.reduce((sum, piece) => sum + (piece?.settled ? 2 : piece?.values ? 1 : 0), 0); // or has failed
    context.progress(done, 2 * places.length);
    if (!painted && (there === places.length || tiles.root()?.values)) {
      painted = true;
      requestAnimationFrame(() => performance.mark("regard:picture"));
    }
    const now = painted && settled === places.length;
    if (now && !sharp) performance.mark("regard:sharp");
    sharp = now;
  };

  /**
   * The cell under the pointer, and its tip: the map may have moved below it.
   * @param {import("./scene.js").Scene} now
   */
  const showTip = (now) => {
    const cell = pointer && cellUnder(now, pointer.x, pointer.y);
    tip.hidden = !cell;
    if (cell && pointer) {
      const { text, places } = cellWords(now, tiles, cell, say);
      tip.textContent = `${text}\n${places}`;
      const wide = Math.min(tip.offsetWidth || 160, size.width);
      tip.style.left = `${Math.max(4, Math.min(pointer.x + 16, size.width - wide - 4))}px`;
      tip.style.top = `${pointer.y + 76 > size.height ? pointer.y - 62 : pointer.y + 18}px`;
    }
    return cell;
  };

  /**
   * @param {Cell} cell
   * @param {boolean} adding
   */
  const choose = (cell, adding) => {
    const { look, rows, cols } = scene();
    const [row, col] = [tokensBetween(rows, cell.row, cell.row), tokensBetween(cols, cell.col, cell.col)];
    const both = (/** @type {number[]} */ some, /** @type {number[]} */ more) => [...new Set([...some, ...more])].slice(0, MOST_CHOSEN);
    set(adding ? { rows: both(look.rows, row), cols: both(look.cols, col) } : { rows: row, cols: col });
    const { text, places } = cellWords(scene(), tiles, cell, say);
    context.announce(`${text} (${places})`);
    redraw();
  };

  moves(canvas, {
    go, choose,
    frame: () => scene().frame, plot: () => scene().plot, world: () => scene().world,
    cellAt: (x, y) => cellUnder(scene(), x, y),
    point(at) {
      pointer = at;
      redraw();
    },
    clear: () => set({ rows: [], cols: [] }),
    cursor() {
      const { rows, cols } = scene().chosen;
      return rows.size && cols.size ? { row: [...rows][0], col: [...cols][0] } : null;
    },
    reveal(cell) {
      const { frame, world } = scene();
      go(revealing(frame, cell.row, cell.col, world, frame.zoom));
    },
  });

  state.listen((look, changed) => {
    if (look.view !== "map") return;
    if (!own && (changed.has("rows") || changed.has("cols")) && (look.rows.length || look.cols.length)) {
      const { chosen, frame, world } = scene();
      const row = [...chosen.rows][0] ?? null;
      // A token found in the text it looks at itself: where it looks at itself.
      const itself = row !== null && source.description.layers[look.layer].kind !== "cross" ? row : null;
      go(revealing(frame, row, [...chosen.cols][0] ?? itself, world, READABLE));
    }
    redraw();
  });

  return {
    element, draw, prepare,
    size: () => size,
    paint(pen) {
      const now = scene();
      paintMap(pen, now, tiles, placesIn(now, tiles.root()), null, say);
    },
  };
}

/**
 * A number for the address: a cell of a long map is a hundredth of a pixel.
 * @param {number} value
 */
function shortened(value) {
  return Number(value.toPrecision(10));
}
