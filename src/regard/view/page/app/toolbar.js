/** The toolbar: what is looked at and how. Each control is there only where it has a meaning. */

import { giveName, iconButton, offer, opens, segmented } from "./controls.js";
import { isPair, shown, sidesOf } from "./description.js";
import { make } from "./dom.js";
import { helpDialog } from "./help.js";
import { icon } from "./icons.js";
import { listenToKeys } from "./keys.js";
import { runForm } from "./run.js";
import { searchBox } from "./search.js";
import { PAIRS } from "./state.js";
import { KINDS, hasWords, layersAround, layersOf, moveTo, moveToKind, shortName, stepBy, withHead } from "./steps.js";

/**
 * @typedef {import("./view.js").Context} Context
 * @typedef {import("./state.js").Look} Look
 * @typedef {import("./controls.js").Control} Control
 *
 * @typedef {object} Actions
 * @property {(kind: "png" | "svg") => void} exportAs
 * @property {() => void} copyLink
 * @property {(text: string, pair: string | null, generate: number) => Promise<void>} run
 */

/** @type {readonly (keyof Look)[]} What the toolbar shows; after a change of view, theme or language all is drawn anyway. */
const SHOWN_PARTS = ["text", "layer", "head", "more", "unit", "pair", "scale", "byRow"];

/**
 * @param {Context} context
 * @param {Actions} actions
 * @returns {Control}
 */
export function toolbar(context, actions) {
  const { state, source } = context;
  const search = searchBox(context);
  const help = helpDialog(context);
  const exporting = exportMenu(context, actions);
  const settings = settingsMenu(context);
  const helping = iconButton("help", help.open);
  const choices = [
    textChoice(context), kindChoice(context), layerChoice(context), headChoice(context), unitChoice(context),
    pairChoice(context), colourChoice(context),
  ];
  const form = source.description.runs_text ? runForm(context, actions.run) : null;
  const element = make("div", {}, [
    form && form.element,
    make("div", { class: "bar" }, [
      make("div", { class: "choices" }, choices.map((choice) => choice.element)),
      make("div", { class: "tools" }, [search.element, exporting.element, settings.element, helping]),
    ]),
    help.element,
  ]);

  function draw() {
    for (const control of [...choices, search, exporting, settings, help]) control.draw();
    if (form) form.draw();
    giveName(helping, context.say("help"), "?");
  }
  listenToKeys(context, { search: search.focus, help: help.open, exportMenu: exporting.open });
  state.listen((_, changed) => {
    if (SHOWN_PARTS.some((part) => changed.has(part))) draw(); // not at every step of the map
  });
  return { element, draw };
}

/** @param {Context} context @returns {Control} */
function textChoice({ state, source, say }) {
  const list = make("select");
  const element = make("div", { class: "group texts" }, [list]);
  list.addEventListener("change", () => {
    const [{ description }, look, text] = [source, state.get(), Number(list.value)];
    const kind = description.layers[look.layer]?.kind ?? "encoder";
    state.set({ ...moveToKind(description, look, kind, text), text });
  });
  return {
    element,
    draw() {
      const { texts } = source.description;
      element.hidden = texts.length < 2;
      giveName(list, say("text_choice"));
      offer(list, texts.map(({ name }, value) => ({ value, label: `${value + 1} · ${shown(name, 60)}` })), state.get().text);
    },
  };
}

/** @param {Context} context @returns {Control} */
function kindChoice({ state, source, say }) {
  const { element, show } = segmented(KINDS, (kind) => state.set(moveToKind(source.description, state.get(), kind)));
  return {
    element,
    draw() {
      const [{ description }, look] = [source, state.get()];
      const offered = KINDS.filter((kind) => layersOf(description, look.text, kind).length);
      element.hidden = offered.length < 2;
      show(description.layers[look.layer]?.kind ?? "encoder", say("kind"), say, offered);
    },
  };
}

/** @param {Context} context @returns {Control} */
function layerChoice({ state, source, say }) {
  const list = make("select");
  const go = (/** @type {1 | -1} */ step) => state.set(stepBy(source.description, state.get(), "layer", step));
  const [back, on] = [iconButton("previous", () => go(-1)), iconButton("next", () => go(1))];
  const caption = make("span", { class: "caption", "aria-hidden": "true" });
  list.addEventListener("change", () => state.set(moveTo(source.description, state.get(), Number(list.value))));
  return {
    element: make("div", { class: "group layers" }, [caption, back, list, on]),
    draw() {
      const [{ description }, look] = [source, state.get()];
      const around = layersAround(description, look);
      const options = around.map((value) => {
        const { layer } = sidesOf(description, value);
        return { value, label: `${layer.index} · ${shortName(layer)}` };
      });
      offer(list, options, look.layer);
      caption.textContent = say("layer");
      giveName(list, say("layer"));
      list.title = description.layers[look.layer]?.name ?? "";
      giveName(back, say("layer_previous"), "[");
      giveName(on, say("layer_next"), "]");
      back.disabled = around.indexOf(look.layer) <= 0;
      on.disabled = around.indexOf(look.layer) === around.length - 1;
    },
  };
}

/** @param {Context} context @returns {Control} */
function headChoice({ state, source, say, announce }) {
  const list = make("select");
  const go = (/** @type {1 | -1} */ step) => state.set(stepBy(source.description, state.get(), "head", step));
  const [back, on] = [iconButton("previous", () => go(-1)), iconButton("next", () => go(1))];
  const add = iconButton("add", () => {
    const look = state.get();
    const { layer } = sidesOf(source.description, look.layer);
    const more = withHead(look, look.layer, look.head);
    state.set({ more });
    announce(say(more.length > look.more.length ? "head_added" : "head_removed", layer.index, layer.heads[look.head] ?? look.head));
  });
  const caption = make("span", { class: "caption", "aria-hidden": "true" });
  list.addEventListener("change", () => state.set({ head: Number(list.value) }));
  return {
    element: make("div", { class: "group headstep" }, [caption, back, list, on, add]),
    draw() {
      const look = state.get();
      const { layer } = sidesOf(source.description, look.layer);
      offer(list, layer.heads.map((number, value) => ({ value, label: String(number) })), look.head);
      caption.textContent = say("head");
      giveName(list, say("head"));
      giveName(back, say("head_previous"), ",");
      giveName(on, say("head_next"), ".");
      back.disabled = look.head <= 0;
      on.disabled = look.head >= layer.heads.length - 1;
      const there = look.more.some(([one, other]) => one === look.layer && other === look.head);
      giveName(add, say(there ? "head_remove" : "head_add"));
      add.setAttribute("aria-pressed", String(there));
      add.replaceChildren(icon(there ? "added" : "add"));
    },
  };
}

/** @param {Context} context @returns {Control} */
function unitChoice({ state, source, say }) {
  /** @type {readonly ("token" | "word")[]} */
  const units = ["token", "word"];
  const { element, show } = segmented(units, (unit) => state.set({ unit }));
  return {
    element,
    draw() {
      const look = state.get();
      element.hidden = !hasWords(source.description, look.layer);
      show(look.unit, say("unit"), (unit) => say(unit === "word" ? "words" : "tokens"));
    },
  };
}

/** @param {Context} context @returns {Control} */
function pairChoice({ state, source, say }) {
  const { element, show } = segmented(PAIRS, (pair) => state.set({ pair }));
  return {
    element,
    draw() {
      const look = state.get();
      const { queries, keys } = sidesOf(source.description, look.layer);
      element.hidden = !isPair(queries) && !isPair(keys);
      show(look.pair, say("pair"), (pair) => say(`pair_${pair}`));
    },
  };
}

/** @param {Context} context @returns {Control} */
function colourChoice({ state, say }) {
  /** @type {readonly ("linear" | "log")[]} */
  const scales = ["linear", "log"];
  const { element, show } = segmented(scales, (scale) => state.set({ scale }));
  const byRow = make("button", { type: "button", class: "plain" });
  byRow.addEventListener("click", () => state.set({ byRow: !state.get().byRow }));
  return {
    element: make("div", { class: "group colours" }, [element, byRow]),
    draw() {
      const look = state.get();
      show(look.scale, say("colour"), say);
      byRow.textContent = say("by_row");
      byRow.title = `${say("by_row_long")} (n)`;
      byRow.setAttribute("aria-keyshortcuts", "n");
      byRow.setAttribute("aria-pressed", String(look.byRow));
    },
  };
}

/**
 * @param {Context} context
 * @param {Actions} actions
 * @returns {Control & { open: () => void }}
 */
function exportMenu({ say }, actions) {
  const button = make("button", { type: "button", class: "plain" }, [icon("export")]);
  const menu = make("div", { class: "menu" });
  const entries = [() => actions.exportAs("png"), () => actions.exportAs("svg"), actions.copyLink].map((act) => {
    const entry = make("button", { type: "button", class: "plain" });
    entry.addEventListener("click", () => {
      menu.hidePopover();
      act();
    });
    menu.append(entry);
    return entry;
  });
  opens(button, menu);
  menu.addEventListener("toggle", (event) => {
    if (/** @type {ToggleEvent} */ (event).newState === "open") entries[0]?.focus();
  });
  menu.addEventListener("keydown", (event) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (!step) return;
    event.preventDefault();
    const place = entries.indexOf(/** @type {HTMLButtonElement} */ (document.activeElement));
    entries[(place + step + entries.length) % entries.length]?.focus();
  });
  return {
    element: make("div", { class: "group" }, [button, menu]),
    open: () => menu.togglePopover(),
    draw() {
      giveName(button, say("export"), "e");
      menu.setAttribute("aria-label", say("export"));
      const words = /** @type {const} */ (["export_png", "export_svg", "copy_link"]);
      words.forEach((word, place) => {
        const entry = entries[place];
        if (entry) entry.textContent = say(word);
      });
    },
  };
}

/** @param {Context} context @returns {Control} */
function settingsMenu({ state, say }) {
  const button = make("button", { type: "button", class: "plain" }, [icon("settings")]);
  const [theme, language] = [make("select"), make("select")];
  const captions = [make("span"), make("span")];
  const menu = make("div", { class: "settings" }, [
    make("label", {}, [captions[0] ?? null, theme]), make("label", {}, [captions[1] ?? null, language]),
  ]);
  opens(button, menu);
  theme.addEventListener("change", () => state.set({ theme: /** @type {Look["theme"]} */ (theme.value) }));
  language.addEventListener("change", () => state.set({ language: /** @type {Look["language"]} */ (language.value) }));
  return {
    element: make("div", { class: "group" }, [button, menu]),
    draw() {
      const look = state.get();
      giveName(button, say("settings"));
      menu.setAttribute("aria-label", say("settings"));
      captions[0]?.replaceChildren(say("theme"));
      captions[1]?.replaceChildren(say("language"));
      const themes = /** @type {const} */ (["auto", "light", "dark"]);
      offer(theme, themes.map((value) => ({ value, label: say(`theme_${value}`) })), look.theme);
      const languages = [{ value: "auto", label: say("language_auto") }, { value: "en", label: "English" }, { value: "zh", label: "中文" }];
      offer(language, languages, look.language);
    },
  };
}
