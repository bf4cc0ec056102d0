/** What stands around the views: names, tabs, and the switch of the panel. */

import { giveName, placeUnder } from "./controls.js";
import { part } from "./dom.js";
import { icon } from "./icons.js";
import { VIEW_NAMES } from "./state.js";

/**
 * @typedef {import("./view.js").Context} Context
 * @typedef {import("./state.js").ViewName} ViewName
 */

/** From here down the page is one column, as in style.css. */
const NARROW = "(max-width: 799px)";

/**
 * Takes the page's own elements into use. `draw` says everything anew.
 * @param {Context} context
 * @returns {{ draw: () => void }}
 */
export function shell(context) {
  const { state } = context;
  const tabs = VIEW_NAMES.map((view) => part(`tab-${view}`));
  tabs.forEach((tab, place) => tab.addEventListener("click", () => state.set({ view: VIEW_NAMES[place] })));
  part("tabs").addEventListener("keydown", (event) => {
    const place = tabs.indexOf(/** @type {HTMLElement} */ (event.target));
    const goal = place < 0 ? undefined : neighbourTab(event.key, place);
    if (goal === undefined) return;
    event.preventDefault();
    state.set({ view: VIEW_NAMES[goal] });
    tabs[goal]?.focus();
  });

  const [panel, numbers] = [part("panel"), part("numbers")];
  panel.append(icon("panel"));
  numbers.hidden = window.matchMedia(NARROW).matches;
  panel.addEventListener("click", () => {
    numbers.hidden = !numbers.hidden;
    draw();
  });

  const note = part("precision-note");
  note.addEventListener("beforetoggle", () => placeUnder(note, part("precision")));
  document.getElementById("waiting")?.remove();

  function draw() {
    const { say, source: { description } } = context;
    const look = state.get();
    document.title = description.title;
    part("title").textContent = description.title;
    part("title").title = description.title;
    part("model").textContent = description.model === description.title ? "" : description.model;
    const { precision } = description;
    note.textContent = precision
      ? say("precision_packed", precision.bits, smallNumber(precision.error), precision.checked.toLocaleString("en"))
      : say("precision_served");
    giveName(part("precision"), say("precision"));
    part("tabs").setAttribute("aria-label", say("views"));
    tabs.forEach((tab, place) => {
      const view = /** @type {ViewName} */ (VIEW_NAMES[place]);
      tab.textContent = say(view);
      tab.setAttribute("aria-selected", String(view === look.view));
      tab.tabIndex = view === look.view ? 0 : -1;
    });
    part("views").setAttribute("aria-labelledby", `tab-${look.view}`);
    panel.setAttribute("aria-expanded", String(!numbers.hidden));
    giveName(panel, say(numbers.hidden ? "numbers_show" : "numbers_hide"));
    numbers.setAttribute("aria-label", say("numbers"));
    part("progress").setAttribute("aria-label", say("computing"));
  }
  return { draw };
}

/**
 * @param {string} key
 * @param {number} place
 * @returns {number | undefined}
 */
function neighbourTab(key, place) {
  const last = VIEW_NAMES.length - 1;
  if (key === "ArrowRight" || key === "ArrowDown") return place === last ? 0 : place + 1;
  if (key === "ArrowLeft" || key === "ArrowUp") return place === 0 ? last : place - 1;
  return key === "Home" ? 0 : key === "End" ? last : undefined;
}

/** @param {number} value */
function smallNumber(value) {
  return value === 0 ? "0" : value.toExponential(1).replace("e-", "e−");
}
