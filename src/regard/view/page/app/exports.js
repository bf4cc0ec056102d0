/** What is seen, as a picture: PNG at twice the size of the screen, or SVG; and the names of files. */

import { isNight } from "./colour.js";
import { make } from "./dom.js";
import { canvasPen, svgPen } from "./pen.js";
import { inks } from "./view.js";

const SHARPNESS = 2;

/**
 * @param {import("./view.js").View} view
 * @param {"png" | "svg"} kind
 * @returns {Promise<Blob>}
 */
export async function pictureOf(view, kind) {
  const { width, height } = view.size();
  const paper = inks(isNight()).paper;
  if (kind === "svg") {
    const { pen, finish } = svgPen(width, height);
    pen.rectangle(0, 0, width, height, paper);
    view.paint(pen);
    return new Blob([finish()], { type: "image/svg+xml" });
  }
  const canvas = make("canvas", { width: Math.round(width * SHARPNESS), height: Math.round(height * SHARPNESS) });
  const context = canvas.getContext("2d");
  if (!context) throw new Error("this browser has no canvas");
  context.scale(SHARPNESS, SHARPNESS);
  const pen = canvasPen(context);
  pen.rectangle(0, 0, width, height, paper);
  view.paint(pen);
  return new Promise((resolve, reject) =>
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the picture is too large")))),
  );
}

/**
 * A name for a file: the model, what is shown of it, and of which head unless it is of all.
 * @param {import("./description.js").Description} description
 * @param {Readonly<import("./state.js").Look>} look
 * @param {string} what
 * @param {string} ending
 */
export function fileName(description, look, what, ending) {
  const layer = description.layers[look.layer];
  const model = description.model.replace(/[^\p{L}\p{N}._-]+/gu, "-").replace(/^[-.]+|[-.]+$/g, "").slice(0, 60) || "attention";
  const which = what === "heads" || !layer ? what : `${layer.kind}-${layer.index}-${layer.heads[look.head]}-${what}`;
  return `${model}-${which}.${ending}`;
}
