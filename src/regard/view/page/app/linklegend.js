/** The heads whose links are drawn: a chip in its colour for each, to take it away, and a list to add one. */

/**
 * @typedef {import("./view.js").Context} Context
 * @typedef {import("./state.js").Look} Look
 *
 * @typedef {object} ShownHead
 * @property {number} layer
 * @property {number} head
 * @property {string} colour
 * @property {string} name
 * @property {boolean} fits Whether its tokens are those of the first head, so that its links can be drawn here.
 */

import { HEAD_COLOURS } from "./colour.js";
import { make } from "./dom.js";

/**
 * The main head, then the further ones; each once, as many as there are colours.
 * @param {Context} context
 * @param {Readonly<Look>} look
 * @returns {ShownHead[]}
 */
export function shownHeads({ source, say }, look) {
  const layers = source.description.layers;
  const main = layers[look.layer];
  /** @type {Map<string, ShownHead>} */
  const heads = new Map();
  for (const [layer, head] of /** @type {[number, number][]} */ ([[look.layer, look.head], ...look.more])) {
    const found = layers[layer];
    const key = `${layer} ${head}`;
    if (!found || !main || heads.has(key) || heads.size === HEAD_COLOURS.length) continue;
    heads.set(key, {
      layer, head, colour: HEAD_COLOURS[heads.size] ?? "", name: say("layer_head", found.index, found.heads[head] ?? head),
      fits: found.queries === main.queries && found.keys === main.keys,
    });
  }
  return [...heads.values()];
}

/**
 * @param {Context} context
 * @returns {{ element: HTMLElement, draw: () => void }}
 */
export function headLegend(context) {
  const { state, say } = context;
  const chips = make("ul", { class: "head-chips" });
  const adding = make("select", { class: "head-add" });
  const element = make("div", { class: "head-legend" }, [chips, adding]);
  let listed = "";
  adding.addEventListener("change", () => {
    const [layer, head] = adding.value.split(" ").map(Number);
    adding.value = "";
    if (layer !== undefined && head !== undefined) state.set({ more: [...state.get().more, [layer, head]] });
  });
  /** @param {ShownHead} gone */
  const remove = (gone) => {
    const look = state.get();
    const left = look.more.filter(([layer, head]) => layer !== gone.layer || head !== gone.head);
    const isMain = gone.layer === look.layer && gone.head === look.head;
    const [next] = left;
    if (isMain && next) state.set({ layer: next[0], head: next[1], more: left.slice(1) });
    else state.set({ more: left });
  };
  return {
    element,
    draw() {
      const heads = shownHeads(context, state.get());
      chips.replaceChildren(...heads.map((head) => {
        const close = make("button", { type: "button", class: "chip-close", "aria-label": `${say("head_remove")}: ${head.name}`, text: "×" });
        close.addEventListener("click", () => remove(head));
        const mark = make("span", { class: "chip-mark" });
        mark.style.background = head.colour;
        const name = make("span", { class: "chip-name", text: head.name });
        const note = head.fits ? null : say("links_apart");
        return make("li", { class: head.fits ? "chip" : "chip chip-apart", title: note }, [mark, name, heads.length > 1 ? close : null]);
      }));
      adding.title = say("links_add_long");
      adding.setAttribute("aria-label", say("links_add_long"));
      adding.hidden = heads.length === HEAD_COLOURS.length;
      const key = [state.get().layer, state.get().text, say("links_add")].join(" ");
      if (key !== listed) fillHeadList(context, adding);
      listed = key;
    },
  };
}

/**
 * Every head that can be drawn beside the present one, layer by layer.
 * @param {Context} context
 * @param {HTMLSelectElement} list
 */
function fillHeadList({ source, state, say }, list) {
  const { layers, texts } = source.description;
  const look = state.get();
  const main = layers[look.layer];
  const mine = new Set(texts[look.text]?.layers ?? []);
  const groups = layers.map((layer, place) => {
    if (!main || layer.queries !== main.queries || layer.keys !== main.keys || !mine.has(layer.id)) return null;
    const heads = layer.heads.map((number, head) => make("option", { value: `${place} ${head}`, text: say("layer_head", layer.index, number) }));
    return make("optgroup", { label: say("layer_n", layer.index) }, heads);
  });
  list.replaceChildren(make("option", { value: "", text: say("links_add") }), ...groups.filter((group) => group !== null));
  list.value = "";
}
