/** Hands on the map: wheel, drag, pinch, and keys. */

import { wholeFrame, zoomed } from "./frame.js";

/**
 * @typedef {import("./frame.js").Frame} Frame
 * @typedef {import("./frame.js").World} World
 * @typedef {{ row: number, col: number }} Cell
 *
 * @typedef {object} Movable
 * @property {() => Frame} frame
 * @property {(frame: Frame) => void} go
 * @property {() => { left: number, top: number, width: number, height: number }} plot
 * @property {() => World} world
 * @property {(x: number, y: number) => Cell | null} cellAt
 * @property {(at: { x: number, y: number } | null) => void} point
 * @property {(cell: Cell, adding: boolean) => void} choose
 * @property {() => void} clear
 * @property {() => Cell | null} cursor
 * @property {(cell: Cell) => void} reveal
 */

const STILL = 4; // pixels that a click may move

/**
 * @param {HTMLCanvasElement} canvas
 * @param {Movable} map
 */
export function moves(canvas, map) {
  /** @type {Map<number, { x: number, y: number }>} */
  const pointers = new Map();
  let moved = 0;

  const spot = (/** @type {MouseEvent} */ event) => {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const zoomAt = (/** @type {number} */ factor, /** @type {number} */ x, /** @type {number} */ y) => {
    const plot = map.plot();
    map.go(zoomed(map.frame(), factor, x - plot.left, y - plot.top, map.world()));
  };
  const pan = (/** @type {number} */ dx, /** @type {number} */ dy) => {
    const frame = map.frame();
    map.go({ ...frame, x: frame.x + dx / frame.zoom, y: frame.y + dy / frame.zoom });
  };

  canvas.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      const { x, y } = spot(event);
      const lines = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 400 : 1;
      if (event.shiftKey) pan((event.deltaX || event.deltaY) * lines, 0);
      else zoomAt(Math.exp((-event.deltaY * lines) / (event.ctrlKey ? 150 : 400)), x, y);
    },
    { passive: false },
  );

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, spot(event));
    moved = 0;
  });

  canvas.addEventListener("pointermove", (event) => {
    const now = spot(event);
    const before = pointers.get(event.pointerId);
    if (!before) {
      map.point(now);
      return;
    }
    const others = [...pointers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
    pointers.set(event.pointerId, now);
    moved += Math.hypot(now.x - before.x, now.y - before.y);
    if (moved > STILL) pan((before.x - now.x) / (others.length + 1), (before.y - now.y) / (others.length + 1));
    if (others.length === 1) {
      const [other] = others;
      const apart = (/** @type {{ x: number, y: number }} */ at) => Math.max(8, Math.hypot(at.x - other.x, at.y - other.y));
      zoomAt(apart(now) / apart(before), (now.x + other.x) / 2, (now.y + other.y) / 2);
    }
  });

  const release = (/** @type {PointerEvent} */ event) => {
    const at = pointers.get(event.pointerId);
    pointers.delete(event.pointerId);
    if (event.type !== "pointerup" || !at || moved > STILL || pointers.size) return;
    const cell = map.cellAt(at.x, at.y);
    if (cell) map.choose(cell, event.ctrlKey || event.metaKey || event.shiftKey);
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", () => map.point(null));
  canvas.addEventListener("dblclick", (event) => {
    const { x, y } = spot(event);
    zoomAt(2.5, x, y);
  });

  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const plot = map.plot();
    const [middleX, middleY] = [plot.left + plot.width / 2, plot.top + plot.height / 2];
    const arrows = /** @type {{ [key: string]: [number, number] }} */ ({
      ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
    });
    const page = Math.max(1, Math.floor(plot.height / map.frame().zoom + 1e-6) - 1);
    const step = arrows[event.key];
    if (step && event.shiftKey) pan(step[1] * plot.width * 0.2, step[0] * plot.height * 0.2);
    else if (step) moveCursor(step[0], step[1]);
    else if (event.key === "PageUp" || event.key === "PageDown") moveCursor(event.key === "PageUp" ? -page : page, 0);
    else if (event.key === "Home" || event.key === "End") moveCursor(0, event.key === "Home" ? -Infinity : Infinity);
    else if (event.key === "+" || event.key === "=") zoomAt(1.5, middleX, middleY);
    else if (event.key === "-" || event.key === "_") zoomAt(1 / 1.5, middleX, middleY);
    else if (event.key === "0") map.go(wholeFrame(map.world()));
    else if (event.key === "Escape") map.clear();
    else if (event.key === "Enter" || event.key === " ") moveCursor(0, 0);
    else return;
    event.preventDefault();
  });

  /**
   * @param {number} down
   * @param {number} across
   */
  const moveCursor = (down, across) => {
    const world = map.world();
    const frame = map.frame();
    const plot = map.plot();
    const middle = {
      row: Math.floor(frame.y + Math.min(plot.height / frame.zoom, world.bottom - frame.y) / 2),
      col: Math.floor(frame.x + Math.min(plot.width / frame.zoom, world.right - frame.x) / 2),
    };
    const from = map.cursor();
    const cell = from
      ? {
          row: Math.min(world.bottom - 1, Math.max(world.top, from.row + down)),
          col: Math.min(world.right - 1, Math.max(world.left, from.col + across)),
        }
      : middle;
    map.choose(cell, false);
    map.reveal(cell);
  };
}
