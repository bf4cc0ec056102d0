/** What every view is given, and what it gives. */

/**
 * @typedef {object} Context
 * @property {import("./state.js").State} state
 * @property {import("./source.js").Source} source
 * @property {(word: import("./words.js").Word, ...parts: (string | number)[]) => string} say The interface in the reader's language.
 * @property {(message: string) => void} announce For screen readers, and the line at the bottom.
 * @property {(done: number, of: number) => void} progress How far the picture is; done === of: complete.
 *
 * @typedef {object} View
 * @property {HTMLElement} element Put into the page once, hidden while another view is seen.
 * @property {() => void} draw Everything anew: it has become visible, the size, the theme or the language has changed.
 * @property {() => unknown} [prepare] Asks for the numbers that it will draw, and draws nothing yet.
 * @property {() => { width: number, height: number }} size Of what is seen, in CSS pixels, for an export.
 * @property {(pen: import("./pen.js").Pen) => void} paint What is seen now, for an export.
 */

/**
 * Colours of the page around the picture, by theme.
 * @param {boolean} night
 */
export function inks(night) {
  return night
    ? { paper: "#12151f", ink: "#e8eaf2", faint: "#8b93a8", line: "#343b4f", accent: "#ffb454", written: "#7fd4a8" }
    : { paper: "#ffffff", ink: "#161a27", faint: "#667085", line: "#d5dae4", accent: "#c2410c", written: "#0f766e" };
}
