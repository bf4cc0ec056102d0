/** A strip along the edge of a text: the shading of the whole, the strongest of what shares a line; click to go there. */

/**
 * @typedef {import("./description.js").Axis} Axis
 * @typedef {import("./description.js").Span} Span
 *
 * @typedef {object} Heat
 * @property {Axis} axis
 * @property {(unit: number) => number} share
 * @property {Iterable<number>} chosen
 * @property {Span} seen
 * @property {boolean} night
 */

import { cssColour } from "./colour.js";
import { fitCanvas, make } from "./dom.js";
import { canvasPen } from "./pen.js";
import { inks } from "./view.js";

/** @param {(unit: number) => void} jump */
export function heatStrip(jump) {
  const element = make("canvas", { class: "heat-strip", "aria-hidden": "true" });
  /** @type {Heat | null} */
  let shown = null;
  /** @type {Float32Array} */
  let pooled = new Float32Array();
  const go = (/** @type {PointerEvent} */ event) => {
    if (!shown || !(event.buttons & 1)) return;
    const share = Math.max(0, Math.min(0.9999, event.offsetY / Math.max(1, element.clientHeight)));
    jump(shown.axis.from + Math.floor(share * (shown.axis.to - shown.axis.from)));
  };
  element.addEventListener("pointerdown", (event) => {
    element.setPointerCapture(event.pointerId);
    go(event);
  });
  element.addEventListener("pointermove", go);

  /**
   * @param {import("./pen.js").Pen} pen
   * @param {number} left
   * @param {number} top
   */
  const paint = (pen, left = 0, top = 0) => {
    const [width, height] = [element.clientWidth, element.clientHeight];
    if (!shown || !height) return;
    const { axis, night, seen, chosen } = shown;
    const colours = inks(night);
    const count = Math.max(1, axis.to - axis.from);
    const yOf = (/** @type {number} */ unit) => top + ((unit - axis.from) / count) * height;
    pen.rectangle(left, top, width, height, cssColour(0, night));
    const thick = height / Math.max(1, pooled.length);
    pooled.forEach((share, line) => {
      if (share > 0.004) pen.rectangle(left, top + line * thick, width, Math.max(1, thick), cssColour(share, night));
    });
    for (const unit of chosen) pen.rectangle(left, yOf(unit + 0.5) - 1, width, 2, colours.accent);
    const high = Math.max(6, yOf(seen[1]) - yOf(seen[0]));
    if (seen[1] - seen[0] < count - 0.5) pen.frame(left + 1, Math.min(yOf(seen[0]), top + height - high) + 1, width - 2, high - 2, colours.faint, 2);
    pen.frame(left + 0.5, top + 0.5, width - 1, height - 1, colours.line);
  };
  const drawNow = () => {
    if (element.clientHeight) paint(canvasPen(fitCanvas(element).context));
  };
  return {
    element,
    paint,
    /** @param {Heat} heat */
    show(heat) {
      shown = heat;
      pooled = pooledShares(heat, Math.max(1, element.clientHeight));
      drawNow();
    },
    /** Only the window has moved. @param {Span} seen */
    move(seen) {
      if (shown) shown = { ...shown, seen };
      drawNow();
    },
  };
}

/**
 * @param {Heat} heat
 * @param {number} height
 */
function pooledShares({ axis, share }, height) {
  const count = axis.to - axis.from;
  const lines = new Float32Array(Math.min(height, Math.max(1, count)));
  for (let unit = axis.from; unit < axis.to; unit += 1) {
    const line = Math.floor(((unit - axis.from) * lines.length) / count);
    lines[line] = Math.max(lines[line] ?? 0, share(unit));
  }
  return lines;
}
