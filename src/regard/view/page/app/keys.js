/** Keys that work everywhere in the page, unless something is being typed. */

import { VIEW_NAMES } from "./state.js";
import { hasWords, stepBy } from "./steps.js";

/**
 * @param {import("./view.js").Context} context
 * @param {{ search: () => void, help: () => void, exportMenu: () => void }} open
 */
export function listenToKeys({ state, source }, open) {
  /** @type {{ [key: string]: () => void }} */
  const keys = {
    "[": () => state.set(stepBy(source.description, state.get(), "layer", -1)),
    "]": () => state.set(stepBy(source.description, state.get(), "layer", 1)),
    ",": () => state.set(stepBy(source.description, state.get(), "head", -1)),
    ".": () => state.set(stepBy(source.description, state.get(), "head", 1)),
    w: () => {
      if (hasWords(source.description, state.get().layer)) state.set({ unit: state.get().unit === "word" ? "token" : "word" });
    },
    l: () => state.set({ scale: state.get().scale === "log" ? "linear" : "log" }),
    n: () => state.set({ byRow: !state.get().byRow }),
    "/": open.search,
    "?": open.help,
    e: open.exportMenu,
  };
  VIEW_NAMES.forEach((view, place) => (keys[String(place + 1)] = () => state.set({ view })));

  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (isTyping(event.target)) return;
    const act = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
}

/** @param {EventTarget | null} target */
function isTyping(target) {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || target.closest("input, textarea, select, dialog") !== null;
}
