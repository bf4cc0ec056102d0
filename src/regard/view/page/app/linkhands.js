/** Mouse, touch and keys on the links: scroll, point at a token, choose it. */

/**
 * @typedef {import("./linklines.js").Place} Place
 * @typedef {import("./linkpaint.js").Scene} Scene
 *
 * @typedef {object} LinkActions
 * @property {() => Scene} scene
 * @property {(units: number, apart: boolean) => void} move apart: the right side alone.
 * @property {(side: "rows" | "cols", share: number) => void} jump To a part of the whole, from 0 to 1.
 * @property {(place: Place, adding: boolean) => void} choose
 * @property {(place: Place | null) => void} hover
 * @property {() => Place | null} cursor
 * @property {(place: Place | null) => void} setCursor
 * @property {() => void} bring
 * @property {() => void} clear
 */

import { linkGeometry, LINK_ROW, LINK_TOP } from "./linkpaint.js";

/**
 * @param {HTMLCanvasElement} canvas
 * @param {LinkActions} actions
 */
export function linkHands(canvas, actions) {
  canvas.addEventListener("wheel", (event) => {
    if (event.ctrlKey) return; // the browser's own zoom
    event.preventDefault();
    const pixels = (event.deltaY || event.deltaX) * (event.deltaMode === 1 ? LINK_ROW : event.deltaMode === 2 ? canvas.clientHeight : 1);
    actions.move(pixels / LINK_ROW, event.shiftKey || spotOf(actions.scene(), event).side === "cols");
  }, { passive: false });

  /** @type {{ x: number, y: number, apart: boolean, strip: "rows" | "cols" | null, dragged: boolean } | null} */
  let held = null;
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    const spot = spotOf(actions.scene(), event);
    held = { x: event.offsetX, y: event.offsetY, apart: event.shiftKey || spot.side === "cols", strip: spot.strip, dragged: false };
    canvas.setPointerCapture(event.pointerId);
    if (spot.strip) actions.jump(spot.strip, spot.share);
  });
  canvas.addEventListener("pointermove", (event) => {
    const spot = spotOf(actions.scene(), event);
    canvas.style.cursor = held?.dragged ? "grabbing" : spot.strip ? "ns-resize" : spot.place ? "pointer" : "grab";
    if (!held) actions.hover(spot.place);
    else if (held.strip) actions.jump(held.strip, spot.share);
    else if (held.dragged || Math.abs(event.offsetY - held.y) > 4) {
      held.dragged = true;
      actions.hover(null);
      actions.move((held.y - event.offsetY) / LINK_ROW, held.apart);
      held.y = event.offsetY;
    }
  });
  canvas.addEventListener("pointerup", (event) => {
    const { place } = spotOf(actions.scene(), event);
    if (held && !held.dragged && !held.strip && place) actions.choose(place, event.ctrlKey || event.metaKey || event.shiftKey);
    held = null;
  });
  canvas.addEventListener("pointercancel", () => { held = null; });
  canvas.addEventListener("pointerleave", () => actions.hover(null));
  canvas.addEventListener("blur", () => actions.setCursor(null));
  canvas.addEventListener("keydown", (event) => {
    if (event.altKey || !pressed(event, actions)) return;
    event.preventDefault();
    event.stopPropagation();
  });
}

/**
 * What lies under a point: a token, a strip, or the space between.
 * @param {Scene} scene
 * @param {MouseEvent} event
 * @returns {{ side: "rows" | "cols" | null, strip: "rows" | "cols" | null, share: number, place: Place | null }}
 */
function spotOf(scene, { offsetX, offsetY }) {
  const { edge, strip, visible } = linkGeometry(scene);
  const side = offsetX < edge ? "rows" : offsetX > scene.width - edge ? "cols" : null;
  const axis = side ? scene.axes[side] : null;
  const scrolls = axis !== null && axis.to - axis.from > visible;
  const onStrip = scrolls && (offsetX <= strip + 3 || offsetX >= scene.width - strip - 3);
  const share = Math.min(1, Math.max(0, (offsetY - LINK_TOP) / Math.max(1, scene.height - LINK_TOP)));
  const unit = side ? Math.floor(scene.first[side] + (offsetY - LINK_TOP) / LINK_ROW) : -1;
  const isToken = side && axis && !onStrip && offsetY >= LINK_TOP && unit >= axis.from && unit < axis.to;
  return { side, strip: onStrip ? side : null, share, place: isToken ? { side, unit } : null };
}

/**
 * @param {KeyboardEvent} event
 * @param {LinkActions} actions
 * @returns {boolean} Whether the key means something here.
 */
function pressed(event, actions) {
  const scene = actions.scene();
  const { visible } = linkGeometry(scene);
  const now = actions.cursor() ?? scene.weighed ?? { side: /** @type {const} */ ("rows"), unit: Math.ceil(scene.first.rows) - 1 };
  const page = Math.max(1, Math.floor(visible) - 1);
  const axis = scene.axes[now.side];
  const steps = { ArrowUp: -1, ArrowDown: 1, PageUp: -page, PageDown: page, Home: -axis.count, End: axis.count };
  const step = steps[/** @type {keyof typeof steps} */ (event.key)];
  if (step !== undefined) {
    actions.setCursor({ side: now.side, unit: Math.max(axis.from, Math.min(axis.to - 1, now.unit + step)) });
  } else if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
    const side = event.key === "ArrowLeft" ? "rows" : "cols";
    const other = scene.axes[side];
    const level = Math.round(now.unit - scene.first[now.side] + scene.first[side]); // the token at the same height
    if (side !== now.side) actions.setCursor({ side, unit: Math.max(other.from, Math.min(other.to - 1, level)) });
  } else if (event.key === "Enter" || event.key === " ") {
    const place = actions.cursor();
    if (place) actions.choose(place, event.ctrlKey || event.metaKey || event.shiftKey);
  } else if (event.key === "Escape") {
    actions.setCursor(null);
    actions.clear();
  } else if (event.key.toLowerCase() === "b" && !event.ctrlKey && !event.metaKey) {
    actions.bring();
  } else {
    return false;
  }
  return true;
}
