/** Buttons and choices of the toolbar. They are made once; `draw` gives them names in the reader's language. */

import { make } from "./dom.js";
import { icon } from "./icons.js";

/**
 * @typedef {Parameters<typeof icon>[0]} IconName
 * @typedef {{ element: HTMLElement, draw: () => void }} Control
 */

/**
 * A name for eyes that point and for ears.
 * @param {HTMLElement} element
 * @param {string} words
 * @param {string} [key] That does the same.
 */
export function giveName(element, words, key) {
  element.setAttribute("aria-label", words);
  element.title = key ? `${words} (${key})` : words;
  if (key) element.setAttribute("aria-keyshortcuts", key);
}

/**
 * @param {IconName} drawing
 * @param {() => void} act
 * @returns {HTMLButtonElement}
 */
export function iconButton(drawing, act) {
  const button = make("button", { type: "button", class: "plain" }, [icon(drawing)]);
  button.addEventListener("click", act);
  return button;
}

/**
 * A few choices next to each other, one of them taken.
 * @template {string} Choice
 * @param {readonly Choice[]} choices
 * @param {(choice: Choice) => void} choose
 * @returns {{ element: HTMLElement, show: (taken: Choice, name: string, say: (choice: Choice) => string, offered?: readonly Choice[]) => void }}
 */
export function segmented(choices, choose) {
  const element = make("div", { class: "segments", role: "group" });
  const buttons = choices.map((choice) => {
    const button = make("button", { type: "button", class: "choice" });
    button.addEventListener("click", () => choose(choice));
    element.append(button);
    return button;
  });
  return {
    element,
    show(taken, name, say, offered = choices) {
      element.setAttribute("aria-label", name);
      buttons.forEach((button, place) => {
        const choice = /** @type {Choice} */ (choices[place]);
        button.textContent = say(choice);
        button.hidden = !offered.includes(choice);
        button.setAttribute("aria-pressed", String(choice === taken));
      });
    },
  };
}

/**
 * The options of a list, made anew only where they differ.
 * @param {HTMLSelectElement} list
 * @param {{ value: string | number, label: string }[]} options
 * @param {string | number} taken
 */
export function offer(list, options, taken) {
  const same =
    list.options.length === options.length &&
    options.every(({ value, label }, place) => {
      const there = list.options[place];
      return there && there.value === String(value) && there.text === label;
    });
  if (!same) list.replaceChildren(...options.map(({ value, label }) => make("option", { value, text: label })));
  list.value = String(taken);
}

/**
 * Puts something that pops up under what opened it, within the window.
 * @param {HTMLElement} popup
 * @param {HTMLElement} opener
 */
export function placeUnder(popup, opener) {
  requestAnimationFrame(() => {
    const [box, own] = [opener.getBoundingClientRect(), popup.getBoundingClientRect()];
    const left = Math.max(8, Math.min(box.left, window.innerWidth - own.width - 8));
    const below = box.bottom + 6;
    const top = below + own.height > window.innerHeight - 8 ? Math.max(8, box.top - own.height - 6) : below;
    popup.style.left = `${left}px`;
    popup.style.top = `${top}px`;
  });
}

/**
 * A button that opens something under itself; it closes by Escape and by a click elsewhere.
 * @param {HTMLButtonElement} button
 * @param {HTMLElement} popup
 */
export function opens(button, popup) {
  popup.popover = "auto";
  button.popoverTargetElement = popup;
  button.setAttribute("aria-expanded", "false");
  popup.addEventListener("beforetoggle", (event) => {
    const opening = /** @type {ToggleEvent} */ (event).newState === "open";
    button.setAttribute("aria-expanded", String(opening));
    if (opening) placeUnder(popup, button);
  });
}
