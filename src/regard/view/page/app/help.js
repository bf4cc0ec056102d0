/** The help: every key, in a dialog. */

import { giveName, iconButton } from "./controls.js";
import { make } from "./dom.js";

/**
 * @typedef {import("./view.js").Context} Context
 * @typedef {import("./words.js").Word} Word
 */

/** @type {readonly [Word, readonly [string, Word][]][]} */
const KEY_LISTS = [
  ["help_anywhere", [
    ["1 2 3 4", "keys_views"], ["[ ]", "keys_layer"], [", .", "keys_head"], ["w", "keys_words"], ["l", "keys_log"],
    ["n", "keys_row"], ["/", "keys_search"], ["e", "keys_export"], ["?", "keys_help"],
  ]],
  ["help_map", [
    ["← ↑ ↓ →", "keys_arrows"], ["+ − 0", "keys_zoom"], ["Home End", "keys_ends"], ["PgUp PgDn", "keys_pages"],
    ["Enter", "keys_enter"], ["Esc", "keys_escape"],
  ]],
  ["help_links", [["← ↑ ↓ →", "keys_arrows"], ["Enter", "keys_token"], ["b", "keys_bring"], ["Esc", "keys_escape"]]],
  ["help_heads", [["← ↑ ↓ →", "keys_heads_move"], ["Enter", "keys_heads_open"], ["+", "keys_heads_add"]]],
  ["help_text", [["← ↑ ↓ →", "keys_arrows"], ["Shift →", "keys_range"], ["Enter", "keys_token"], ["Esc", "keys_escape"]]],
];

/**
 * @param {Context} context
 * @returns {{ element: HTMLDialogElement, draw: () => void, open: () => void }}
 */
export function helpDialog(context) {
  const element = make("dialog");
  element.addEventListener("click", (event) => {
    if (event.target === element) element.close(); // beside it
  });

  function draw() {
    const { say } = context;
    const close = iconButton("close", () => element.close());
    giveName(close, say("close"));
    element.setAttribute("aria-label", say("help"));
    element.replaceChildren(make("header", {}, [make("h2", { text: say("help_keys") }), close]));
    for (const [heading, keys] of KEY_LISTS) {
      const list = make("dl");
      for (const [signs, meaning] of keys) {
        list.append(make("dt", {}, signs.split(" ").map((sign) => make("kbd", { text: sign }))), make("dd", { text: say(meaning) }));
      }
      element.append(make("h3", { text: say(heading) }), list);
      if (heading === "help_map") element.append(make("p", { class: "pointer", text: say("keys_pointer") }));
    }
  }
  return {
    element,
    draw() {
      if (element.open) draw();
    },
    open() {
      if (element.open) return;
      draw();
      element.showModal();
    },
  };
}
