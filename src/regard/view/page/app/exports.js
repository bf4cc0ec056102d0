/** What is seen, as a file: PNG at twice the size of the screen, or SVG. */

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
 * @param {Blob} blob
 * @param {string} name
 */
export function saveFile(blob, name) {
  const address = URL.createObjectURL(blob);
  const link = make("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/**
 * A name for a file, of what is seen.
 * @param {import("./description.js").Description} description
 * @param {Readonly<import("./state.js").Look>} look
 * @param {string} ending
 */
export function fileName(description, look, ending) {
  const layer = description.layers[look.layer];
  const model = (description.model || "regard").replace(/[^A-Za-z0-9._-]+/g, "-").slice(0, 40);
  const which = look.view === "heads" ? "heads" : `${look.view}-${layer.kind}-${layer.index}-${layer.heads[look.head]}`;
  return `${model}-${which}.${ending}`;
}
