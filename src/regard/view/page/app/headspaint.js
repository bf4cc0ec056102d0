/** All heads as they are seen, drawn by a pen: the small pictures, their scores, the labels beside them. */

import { isNight } from "./colour.js";
import { inks } from "./view.js";

/**
 * What is seen of the sheet: pictures and the labels beside them.
 * @param {import("./pen.js").Pen} pen
 * @param {HTMLElement} sheet
 * @param {import("./headcells.js").Cell[]} cells
 * @param {(cell: import("./headcells.js").Cell) => HTMLCanvasElement | null} canvasOf
 */
export function paintSheet(pen, sheet, cells, canvasOf) {
  const colours = inks(isNight());
  const origin = sheet.getBoundingClientRect();
  const boxOf = (/** @type {Element} */ element) => {
    const box = element.getBoundingClientRect();
    return { x: box.left - origin.left, y: box.top - origin.top, width: box.width, height: box.height };
  };
  const seen = (/** @type {{ x: number, y: number, width: number, height: number }} */ box) =>
    box.x < sheet.clientWidth && box.y < sheet.clientHeight && box.x + box.width > 0 && box.y + box.height > 0;
  pen.within(0, 0, sheet.clientWidth, sheet.clientHeight, () => {
    for (const cell of cells) {
      const box = boxOf(cell.picture);
      if (!seen(box)) continue;
      const current = cell.button.classList.contains("current");
      const canvas = canvasOf(cell);
      if (canvas) pen.picture(canvas, box.x, box.y, box.width, box.height);
      pen.frame(box.x, box.y, box.width, box.height, current ? colours.accent : colours.line, current ? 2.5 : 1);
      const bar = boxOf(cell.bar);
      if (!bar.height) continue; // in the model's order there are no scores
      pen.rectangle(box.x, bar.y, box.width, bar.height, colours.line);
      pen.rectangle(box.x, bar.y, bar.width, bar.height, colours.accent);
      const [name, score] = [cell.under.firstElementChild, cell.under.lastElementChild];
      const middle = boxOf(cell.under).y + boxOf(cell.under).height / 2;
      pen.text(name?.textContent ?? "", box.x, middle, { size: 11, fill: colours.faint });
      pen.text(score?.textContent ?? "", box.x + box.width, middle, { size: 11, fill: colours.ink, align: "end" });
    }
    for (const label of sheet.querySelectorAll(".row, .column, .corner")) {
      const box = boxOf(label);
      if (!seen(box)) continue;
      pen.rectangle(box.x, box.y, box.width, box.height, colours.paper);
      const row = label.classList.contains("row");
      const style = { size: 11, fill: colours.faint, align: /** @type {"end" | "middle"} */ (row ? "end" : "middle") };
      pen.text(label.textContent ?? "", row ? box.x + box.width - 8 : box.x + box.width / 2, box.y + box.height / 2, style);
    }
  });
}
