/** The map: the whole matrix on a canvas, from afar and down to single cells with their names and numbers. */

import { chosenUnits, MOST_CHOSEN, tokensBetween } from "./choice.js";
import { cssColour, inkOn, isNight, LOG_REACH, shareOf } from "./colour.js";
import { axesOf, figure, shown } from "./description.js";
import { fitCanvas, make, nextFrame } from "./dom.js";
import { inside, revealing, wholeFrame } from "./frame.js";
import { labelRoom, paintColumnLabels, paintRowLabels, slantedHeight, slantedReach } from "./gutters.js";
import { textWidth } from "./measuring.js";
import { minimap } from "./minimap.js";
import { moves } from "./moves.js";
import { canvasPen } from "./pen.js";
import { paintScale } from "./scalelegend.js";
import { ROOT, TILE, tileStore } from "./tiles.js";
import { inks } from "./view.js";

/**
 * @typedef {import("./view.js").Context} Context
 * @typedef {import("./view.js").View} View
 * @typedef {import("./pen.js").Pen} Pen
 * @typedef {import("./frame.js").Frame} Frame
 * @typedef {import("./frame.js").World} World
 * @typedef {import("./tiles.js").Piece} Piece
 * @typedef {import("./tiles.js").Place} Place
 * @typedef {{ left: number, top: number, width: number, height: number, rowRoom: number, colRoom: number }} Plot
 */

const LEGEND = 34; // pixels below the plot
const MARGIN = 14; // and to its right
const GRID_FROM = 16; // pixels a cell from which lines are drawn between cells
const FIGURES_FROM = 46; // and from which they hold their numbers
const READABLE = 22; // a cell that is jumped to

/**
 * @param {Context} context
 * @returns {View}
 */
export function mapView(context) {
  const { state, source, say } = context;
  const canvas = make("canvas", { class: "map", tabindex: 0, role: "application" });
  const tip = make("div", { class: "tip", hidden: true });
  const element = make("section", { class: "view map-view" }, [canvas, tip]);
  const redraw = nextFrame(() => draw());
  const tiles = tileStore(source, redraw, (reason) => context.announce(say("failed", reason)));
  const small = minimap(tiles, (x, y) => go({ ...frame, x, y }));
  element.append(small.element);

  /** @type {Frame} */
  let frame = { x: 0, y: 0, zoom: 0 };
  /** @type {{ row: number, col: number } | null} the cell under the pointer */
  let pointed = null;
  /** @type {{ x: number, y: number } | null} */
  let pointer = null;
  let own = false; // whether a change of the state is ours
  let painted = false;
  let sharp = false;
  let rooms = { key: "", row: 40, col: 40 };
  let size = { width: 0, height: 0 };

  const axes = () => {
    const look = state.get();
    return axesOf(source.description, look.layer, look.unit, look.pair);
  };

  /**
   * @param {number} width
   * @param {number} height
   * @returns {Plot}
   */
  const plotOf = (width, height) => {
    const look = state.get();
    const key = `${look.layer} ${look.unit} ${look.pair}`;
    if (rooms.key !== key) {
      const { rows, cols } = axes();
      rooms = { key, row: labelRoom(rows), col: labelRoom(cols) };
    }
    const rowRoom = Math.min(rooms.row, width * 0.28);
    const colRoom = Math.min(rooms.col, height * 0.3);
    const [left, top] = [Math.ceil(rowRoom) + 14, slantedHeight(colRoom)];
    const right = Math.max(MARGIN, slantedReach(colRoom));
    return { left, top, width: Math.max(40, width - left - right), height: Math.max(40, height - top - LEGEND), rowRoom, colRoom };
  };

  /**
   * @param {Plot} plot
   * @returns {World}
   */
  const worldOf = (plot) => {
    const { rows, cols } = axes();
    return { left: cols.from, right: cols.to, top: rows.from, bottom: rows.to, width: plot.width, height: plot.height };
  };

  const here = () => {
    const plot = plotOf(size.width || canvas.clientWidth, size.height || canvas.clientHeight);
    return { plot, world: worldOf(plot) };
  };

  /** @param {Partial<import("./state.js").Look>} change */
  const set = (change) => {
    own = true;
    state.set(change);
    own = false;
  };

  /** @param {Frame} next */
  const go = (next) => {
    const { world } = here();
    frame = inside(next, world);
    const whole = wholeFrame(world);
    const all = frame.zoom <= whole.zoom * 1.0001;
    set({ frame: all ? null : { x: round(frame.x), y: round(frame.y), zoom: round(frame.zoom) } });
    redraw();
  };

  const sheet = () => {
    const look = state.get();
    const { rows, cols } = axes();
    return { layer: look.layer, head: look.head, unit: look.unit, top: rows.from, bottom: rows.to, left: cols.from, right: cols.to };
  };

  const level = () => Math.max(0, Math.round(Math.log2(1 / (frame.zoom * Math.min(2, window.devicePixelRatio || 1)))));

  /**
   * Whether the whole map made small is exact, and fine enough for what is seen.
   * @param {number} at
   */
  const rootSuffices = (at) => {
    const root = tiles.root();
    return Boolean(root?.values && root.step === 1 && (root.bottom - root.top) / root.height <= 2 ** at * 1.01);
  };

  /**
   * The tiles in sight, the middle first.
   * @param {Plot} plot
   * @returns {Place[]}
   */
  const visible = (plot) => {
    const { top, bottom, left, right } = sheet();
    const at = level();
    if (rootSuffices(at)) return [];
    const side = TILE * 2 ** at;
    const span = (/** @type {number} */ from, /** @type {number} */ to, /** @type {number} */ first, /** @type {number} */ end) =>
      /** @type {[number, number]} */ ([Math.max(0, Math.floor((from - first) / side)), Math.floor((Math.min(to, end) - first - 1e-6) / side)]);
    const [one, last] = span(frame.y, frame.y + plot.height / frame.zoom, top, bottom);
    const [start, end] = span(frame.x, frame.x + plot.width / frame.zoom, left, right);
    /** @type {Place[]} */
    const places = [];
    for (let down = one; down <= last; down += 1) {
      for (let across = start; across <= end; across += 1) places.push({ level: at, down, across });
    }
    const away = (/** @type {Place} */ place) => Math.hypot(place.down - (one + last) / 2, place.across - (start + end) / 2);
    return places.sort((a, b) => away(a) - away(b));
  };

  /**
   * The largest of each row of cells over all tiles beside a tile.
   * @param {Place[]} places
   */
  const rowPeaks = (places) => (/** @type {Piece} */ piece) => {
    if (piece.level === ROOT) return piece.rowPeaks;
    const together = Float32Array.from(piece.rowPeaks);
    for (const place of places) {
      const other = tiles.at(place);
      if (!other || other.top !== piece.top || other.level !== piece.level) continue;
      other.rowPeaks.forEach((peak, row) => (together[row] = Math.max(together[row], peak)));
    }
    return together;
  };

  /**
   * @param {Pen} pen
   * @param {Plot} plot
   * @param {Place[]} places
   */
  const paintTiles = (pen, plot, places) => {
    const look = state.get();
    const colouring = { scale: look.scale, byRow: look.byRow, night: isNight() };
    const peaksOf = rowPeaks(places);
    const box = (/** @type {Piece} */ piece) => {
      const across = (/** @type {number} */ unit) => Math.round(plot.left + (unit - frame.x) * frame.zoom);
      const down = (/** @type {number} */ unit) => Math.round(plot.top + (unit - frame.y) * frame.zoom);
      const [x, y] = [across(piece.left), down(piece.top)];
      return /** @type {const} */ ([x, y, across(piece.right) - x, down(piece.bottom) - y]);
    };
    const { world } = here();
    const edge = (/** @type {number} */ at, /** @type {number} */ most) => Math.min(at, most);
    const width = edge((world.right - frame.x) * frame.zoom, plot.width);
    const height = edge((world.bottom - frame.y) * frame.zoom, plot.height);
    pen.within(plot.left, plot.top, width, height, () => {
      pen.rectangle(plot.left, plot.top, width, height, cssColour(0, colouring.night));
      const root = tiles.root();
      const missing = !places.length || places.some((place) => !tiles.at(place)?.values);
      const below = missing && root ? tiles.image(root, colouring, peaksOf, level()) : null;
      if (root && below) pen.picture(below, ...box(root));
      for (const place of [...places].reverse()) {
        const piece = tiles.at(place);
        const image = piece && tiles.image(piece, colouring, peaksOf, level());
        if (piece && image) pen.picture(image, ...box(piece));
      }
      if (frame.zoom >= GRID_FROM) paintCells(pen, plot, places, colouring, peaksOf);
    });
    pen.frame(plot.left - 0.5, plot.top - 0.5, width + 1, height + 1, inks(colouring.night).line);
  };

  /**
   * Lines between cells, and their numbers where there is room for them.
   * @param {Pen} pen
   * @param {Plot} plot
   * @param {Place[]} places
   * @param {import("./tiles.js").Colouring} colouring
   * @param {(piece: Piece) => Float32Array} peaksOf
   */
  const paintCells = (pen, plot, places, colouring, peaksOf) => {
    const { world } = here();
    const [x0, x1] = [Math.floor(frame.x), Math.min(world.right, Math.ceil(frame.x + plot.width / frame.zoom))];
    const [y0, y1] = [Math.floor(frame.y), Math.min(world.bottom, Math.ceil(frame.y + plot.height / frame.zoom))];
    const X = (/** @type {number} */ col) => plot.left + (col - frame.x) * frame.zoom;
    const Y = (/** @type {number} */ row) => plot.top + (row - frame.y) * frame.zoom;
    const line = colouring.night ? "#ffffff" : "#20304f";
    for (let col = x0; col <= x1; col += 1) pen.line(X(col), Y(y0), X(col), Y(y1), line, 1, 0.08);
    for (let row = y0; row <= y1; row += 1) pen.line(X(x0), Y(row), X(x1), Y(row), line, 1, 0.08);
    if (frame.zoom < FIGURES_FROM) return;
    for (const place of places) {
      const piece = tiles.at(place);
      if (!piece?.values) continue;
      const peaks = colouring.byRow ? peaksOf(piece) : null;
      for (let row = Math.max(y0, piece.top); row < Math.min(y1, piece.bottom); row += 1) {
        for (let col = Math.max(x0, piece.left); col < Math.min(x1, piece.right); col += 1) {
          const weight = piece.values[(row - piece.top) * piece.width + col - piece.left];
          const share = shareOf(weight, peaks ? peaks[row - piece.top] : tiles.peak(piece.level), colouring.scale);
          pen.text(figure(weight), X(col + 0.5), Y(row + 0.5), { size: 11, align: "middle", fill: inkOn(share, colouring.night) });
        }
      }
    }
  };

  /**
   * What is selected, and the cell under the pointer.
   * @param {Pen} pen
   * @param {Plot} plot
   * @param {{ rows: Set<number>, cols: Set<number> }} chosen
   */
  const paintMarks = (pen, plot, chosen) => {
    const ink = inks(isNight());
    const { world } = here();
    const wide = Math.min(plot.width, (world.right - frame.x) * frame.zoom);
    const high = Math.min(plot.height, (world.bottom - frame.y) * frame.zoom);
    pen.within(plot.left - 1, plot.top - 1, wide + 2, high + 2, () => {
      const thick = Math.max(2, frame.zoom);
      for (const row of chosen.rows) {
        const y = plot.top + (row - frame.y) * frame.zoom;
        pen.rectangle(plot.left, y, wide, thick, ink.accent, chosen.rows.size > 40 ? 0.04 : 0.07);
        pen.line(plot.left, y, plot.left + wide, y, ink.accent, 1, 0.7);
        pen.line(plot.left, y + thick, plot.left + wide, y + thick, ink.accent, 1, 0.7);
      }
      for (const col of chosen.cols) {
        const x = plot.left + (col - frame.x) * frame.zoom;
        pen.rectangle(x, plot.top, thick, high, ink.accent, chosen.cols.size > 40 ? 0.04 : 0.07);
        pen.line(x, plot.top, x, plot.top + high, ink.accent, 1, 0.7);
        pen.line(x + thick, plot.top, x + thick, plot.top + high, ink.accent, 1, 0.7);
      }
      if (pointed && frame.zoom >= 6) {
        const [x, y] = [plot.left + (pointed.col - frame.x) * frame.zoom, plot.top + (pointed.row - frame.y) * frame.zoom];
        pen.frame(x + 0.5, y + 0.5, frame.zoom - 1, frame.zoom - 1, ink.accent, 2);
      }
    });
  };

  /**
   * The scale of colours, below.
   * @param {Pen} pen
   * @param {Plot} plot
   */
  const paintLegend = (pen, plot) => {
    const look = state.get();
    const night = isNight();
    const ink = inks(night);
    const y = plot.top + plot.height + 14;
    const wide = Math.min(180, plot.width * 0.4);
    paintScale(pen, plot.left, y - 1, wide, 10, night);
    const peak = tiles.peak(level());
    const most = look.byRow ? say("map_row_peak") : figure(peak);
    const least = look.scale === "log" ? figure(look.byRow ? LOG_REACH : peak * LOG_REACH) : "0";
    const ends = `${least} – ${most}`;
    pen.text(ends, plot.left + wide + 10, y + 4, { size: 11, fill: ink.faint });
    const after = plot.left + wide + 34 + textWidth(ends, 11);
    const names = say("map_axes");
    if (after + textWidth(names, 11) <= plot.left + plot.width) pen.text(names, after, y + 4, { size: 11, fill: ink.faint });
  };

  const chosenNow = () => {
    const look = state.get();
    const { rows, cols } = axes();
    return { rows: chosenUnits(rows, look.rows), cols: chosenUnits(cols, look.cols) };
  };

  /**
   * @param {Pen} pen
   * @param {Plot} plot
   */
  const paintAll = (pen, plot) => {
    const night = isNight();
    const ink = inks(night);
    const { rows, cols } = axes();
    const places = visible(plot);
    const chosen = chosenNow();
    paintTiles(pen, plot, places);
    paintMarks(pen, plot, chosen);
    const marks = pointed && !chosen.rows.size ? { rows: new Set([pointed.row]), cols: new Set([pointed.col]) } : chosen;
    paintRowLabels(pen, rows, frame, { ...plot, room: plot.rowRoom }, ink, marks.rows);
    paintColumnLabels(pen, cols, frame, { ...plot, room: plot.colRoom }, ink, marks.cols);
    paintLegend(pen, plot);
    return places;
  };

  const draw = () => {
    if (!element.isConnected || canvas.clientWidth === 0) return;
    const { width, height, context: paper } = fitCanvas(canvas);
    size = { width, height };
    const { plot, world } = here();
    const wanted = state.get().frame;
    frame = wanted ? inside(wanted, world) : wholeFrame(world);
    void tiles.show(sheet());
    const places = visible(plot);
    tiles.want(places);
    showTip();
    paper.fillStyle = inks(isNight()).paper;
    paper.fillRect(0, 0, width, height);
    paintAll(canvasPen(paper), plot);
    canvas.setAttribute("aria-label", say("map_label"));
    small.draw(frame, world, { scale: state.get().scale, byRow: state.get().byRow, night: isNight() }, level());
    tell(places);
  };

  /**
   * How far the picture is.
   * @param {Place[]} places
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
   * The cell at a point of the canvas.
   * @param {number} x
   * @param {number} y
   */
  const cellAt = (x, y) => {
    const { plot, world } = here();
    const [px, py] = [x - plot.left, y - plot.top];
    if (px < 0 || py < 0 || px > plot.width || py > plot.height) return null;
    const [col, row] = [Math.floor(frame.x + px / frame.zoom), Math.floor(frame.y + py / frame.zoom)];
    return col < world.right && row < world.bottom && col >= world.left && row >= world.top ? { row, col } : null;
  };

  /**
   * What is known of a cell, in words.
   * @param {{ row: number, col: number }} cell
   */
  const described = (cell) => {
    const { rows, cols } = axes();
    const { top, left } = sheet();
    const at = level();
    const side = TILE * 2 ** at;
    const place = { level: at, down: Math.floor((cell.row - top) / side), across: Math.floor((cell.col - left) / side) };
    const tile = tiles.at(place);
    const piece = tile?.values ? tile : tiles.root();
    const pair = `${shown(rows.label(cell.row), 24)} → ${shown(cols.label(cell.col), 24)}`;
    if (!piece?.values) return { text: `${pair}  ${say("computing")}`, places: "" };
    const down = Math.min(piece.height - 1, Math.floor(((cell.row - piece.top + 0.5) * piece.height) / (piece.bottom - piece.top)));
    const across = Math.min(piece.width - 1, Math.floor(((cell.col - piece.left + 0.5) * piece.width) / (piece.right - piece.left)));
    const weight = figure(piece.values[down * piece.width + across]);
    const [high, wide] = [(piece.bottom - piece.top) / piece.height, (piece.right - piece.left) / piece.width];
    if (high === 1 && wide === 1) return { text: `${pair}  ${weight}`, places: say("map_cell", cell.row, cell.col) };
    const about = piece.step > 1 ? say("map_estimate", piece.step) : "";
    const mean = say("map_mean", weight, Math.round(high), Math.round(wide));
    return { text: `${pair}  ${mean} ${about}`, places: say("map_cell", cell.row, cell.col) };
  };

  /** @param {{ x: number, y: number } | null} at */
  const point = (at) => {
    pointer = at;
    redraw();
  };

  /** The cell under the pointer, and its tip: the map may have moved below it. */
  const showTip = () => {
    const cell = pointer && cellAt(pointer.x, pointer.y);
    pointed = cell;
    tip.hidden = !cell;
    if (cell && pointer) {
      const { x, y } = pointer;
      const { text, places } = described(cell);
      tip.textContent = `${text}\n${places}`;
      const wide = Math.min(tip.offsetWidth || 160, canvas.clientWidth);
      tip.style.left = `${Math.max(4, Math.min(x + 16, canvas.clientWidth - wide - 4))}px`;
      tip.style.top = `${y + 76 > canvas.clientHeight ? y - 62 : y + 18}px`;
    }
  };

  /**
   * @param {{ row: number, col: number }} cell
   * @param {boolean} adding
   */
  const choose = (cell, adding) => {
    const { rows, cols } = axes();
    const look = state.get();
    const [row, col] = [tokensBetween(rows, cell.row, cell.row), tokensBetween(cols, cell.col, cell.col)];
    const both = (/** @type {number[]} */ some, /** @type {number[]} */ more) => [...new Set([...some, ...more])].slice(0, MOST_CHOSEN);
    set(adding ? { rows: both(look.rows, row), cols: both(look.cols, col) } : { rows: row, cols: col });
    const { text, places } = described(cell);
    context.announce(`${text} (${places})`);
    redraw();
  };

  moves(canvas, {
    frame: () => frame, go, cellAt, point,
    choose, clear: () => set({ rows: [], cols: [] }),
    plot: () => here().plot, world: () => here().world,
    cursor: () => {
      const { rows, cols } = chosenNow();
      return rows.size && cols.size ? { row: [...rows][0], col: [...cols][0] } : null;
    },
    reveal: (cell) => go(revealing(frame, cell.row, cell.col, here().world, frame.zoom)),
  });

  state.listen((look, changed) => {
    if (look.view !== "map") return;
    if (!own && (changed.has("rows") || changed.has("cols")) && (look.rows.length || look.cols.length)) {
      const { rows, cols } = chosenNow();
      const row = [...rows][0] ?? null;
      // A token found in the text it looks at itself: where it looks at itself.
      const itself = row !== null && source.description.layers[look.layer].kind !== "cross" ? row : null;
      go(revealing(frame, row, [...cols][0] ?? itself, here().world, READABLE));
    }
    redraw();
  });

  return {
    element,
    draw,
    size: () => ({ width: size.width || 800, height: size.height || 600 }),
    paint(pen) {
      pointed = null;
      paintAll(pen, here().plot);
    },
  };
}

/** @param {number} value */
function round(value) {
  return Number(value.toPrecision(10)); // a cell of a long map is a hundredth of a pixel
}
