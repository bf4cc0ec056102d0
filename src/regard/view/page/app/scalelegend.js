/** The scale of colours, small: from nothing to the largest weight that is seen. */

import { cssColour, LOG_REACH } from "./colour.js";
import { figure } from "./description.js";
import { fitCanvas, make } from "./dom.js";
import { canvasPen } from "./pen.js";
import { inks } from "./view.js";

const LEGEND_STEPS = 60;

/**
 * @param {import("./pen.js").Pen} pen
 * @param {number} left
 * @param {number} top
 * @param {number} width
 * @param {number} height
 * @param {boolean} night
 */
export function paintScale(pen, left, top, width, height, night) {
  const wide = width / LEGEND_STEPS;
  for (let step = 0; step < LEGEND_STEPS; step += 1) {
    pen.rectangle(left + step * wide, top, wide + (step < LEGEND_STEPS - 1 ? 0.5 : 0), height, cssColour((step + 0.5) / LEGEND_STEPS, night));
  }
  pen.frame(left + 0.5, top + 0.5, width - 1, height - 1, inks(night).line);
}

/** The scale between its ends, in the page. */
export function scaleLegend() {
  const least = make("span", { class: "scale-least" });
  const canvas = make("canvas", { class: "scale-colours", "aria-hidden": "true" });
  const most = make("span", { class: "scale-most" });
  const element = make("div", { class: "scale-legend" }, [least, canvas, most]);
  let night = false;
  return {
    element,
    texts: [least, most],
    /**
     * @param {number} largest
     * @param {"linear" | "log"} scale
     * @param {boolean} atNight
     */
    show(largest, scale, atNight) {
      night = atNight;
      element.hidden = !(largest > 0);
      least.textContent = scale === "log" ? `≤ ${figure(largest * LOG_REACH)}` : "0";
      most.textContent = figure(largest);
      if (canvas.clientWidth) paintScale(canvasPen(fitCanvas(canvas).context), 0, 0, canvas.clientWidth, canvas.clientHeight, night);
    },
    /**
     * @param {import("./pen.js").Pen} pen
     * @param {DOMRect} origin
     */
    paint(pen, origin) {
      const box = canvas.getBoundingClientRect();
      if (box.width) paintScale(pen, box.left - origin.left, box.top - origin.top, box.width, box.height, night);
    },
  };
}
