/** The whole map in a corner, and where the window is on it. */

import { fitCanvas, make } from "./dom.js";
import { inks } from "./view.js";

const LONGEST_SIDE = 132;

/**
 * @param {ReturnType<import("./tiles.js").tileStore>} tiles
 * @param {(x: number, y: number) => void} go To a column and row at the upper left.
 */
export function minimap(tiles, go) {
  const canvas = make("canvas", { class: "minimap", hidden: true, "aria-hidden": "true" });
  /** @type {import("./frame.js").Frame} */
  let frame = { x: 0, y: 0, zoom: 1 };
  /** @type {import("./frame.js").World | null} */
  let world = null;

  const jump = (/** @type {PointerEvent} */ event) => {
    if (!world || !event.buttons) return;
    event.preventDefault();
    event.stopPropagation();
    const box = canvas.getBoundingClientRect();
    const [wide, high] = [world.right - world.left, world.bottom - world.top];
    const x = world.left + ((event.clientX - box.left) / box.width) * wide - world.width / frame.zoom / 2;
    const y = world.top + ((event.clientY - box.top) / box.height) * high - world.height / frame.zoom / 2;
    go(x, y);
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    jump(event);
  });
  canvas.addEventListener("pointermove", jump);

  return {
    element: canvas,
    /**
     * @param {import("./frame.js").Frame} now
     * @param {import("./frame.js").World} around
     * @param {import("./tiles.js").Colouring} colouring As the map's own, so that one picture serves both.
     * @param {number} level
     */
    draw(now, around, colouring, level) {
      [frame, world] = [now, around];
      const [wide, high] = [around.right - around.left, around.bottom - around.top];
      const root = tiles.root();
      const image = root && tiles.image(root, colouring, (piece) => piece.rowPeaks, level);
      const all = wide * now.zoom <= around.width * 1.01 && high * now.zoom <= around.height * 1.01;
      canvas.hidden = all || !image;
      if (canvas.hidden || !image) return;
      const factor = LONGEST_SIDE / Math.max(wide, high);
      canvas.style.width = `${Math.max(12, wide * factor)}px`;
      canvas.style.height = `${Math.max(12, high * factor)}px`;
      const { width, height, context } = fitCanvas(canvas);
      context.imageSmoothingEnabled = true;
      context.drawImage(image, 0, 0, width, height);
      const ink = inks(colouring.night);
      const [x, y] = [((now.x - around.left) / wide) * width, ((now.y - around.top) / high) * height];
      const [w, h] = [(around.width / now.zoom / wide) * width, (around.height / now.zoom / high) * height];
      context.fillStyle = ink.accent;
      context.globalAlpha = 0.15;
      context.fillRect(x, y, Math.min(w, width), Math.min(h, height));
      context.globalAlpha = 1;
      context.strokeStyle = ink.accent;
      context.lineWidth = 2;
      context.strokeRect(Math.min(x, width - 4) + 1, Math.min(y, height - 4) + 1, Math.max(3, Math.min(w, width) - 2), Math.max(3, Math.min(h, height) - 2));
    },
  };
}
