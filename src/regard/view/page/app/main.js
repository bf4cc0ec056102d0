/** The page: reads what it is told, makes the views, and keeps them, the address and the theme in step. */

import { isNight } from "./colour.js";
import { make, part } from "./dom.js";
import { fileName, pictureOf } from "./exports.js";
import { computeOf, fragmentOf, lookOf } from "./fragment.js";
import { headsView } from "./heads.js";
import { linksView } from "./links.js";
import { mapView } from "./map.js";
import { numbersPanel } from "./numbers.js";
import { packedSource } from "./packed.js";
import { runText, servedSource } from "./served.js";
import { shell } from "./shell.js";
import { FIRST_LOOK, stateOf } from "./state.js";
import { textView } from "./text.js";
import { toolbar } from "./toolbar.js";
import { copyText, saveFile } from "./wayout.js";
import { languageOf, speaker } from "./words.js";

/**
 * @typedef {import("./description.js").Description} Description
 * @typedef {import("./state.js").ViewName} ViewName
 */

const LONG = 256; // tokens from which a logarithmic scale shows more at first
const BYTES = /^⟨[0-9a-f]{2}( [0-9a-f]{2})*⟩$/; // tokens that are parts of characters; of many such only words can be read

/**
 * What an address says, and where it says nothing what suits the text.
 * @param {string} fragment
 * @param {Description} description
 * @returns {import("./state.js").Look}
 */
function lookAt(fragment, description) {
  const told = lookOf(fragment, description);
  const look = { ...FIRST_LOOK, ...told };
  const texts = description.tokens[description.layers[look.layer]?.queries ?? 0]?.texts ?? [];
  if (!told.scale && texts.length > LONG) look.scale = "log";
  if (!told.unit && 4 * texts.filter((text) => BYTES.test(text)).length > texts.length) look.unit = "word";
  return look;
}

/** @param {Description} description */
function start(description) {
  const source = description.source === "served" ? servedSource(description) : packedSource(description, computeOf(location.hash));
  const state = stateOf(lookAt(location.hash, description));
  const status = part("status");
  const bar = /** @type {HTMLProgressElement} */ (part("progress"));

  /** @type {import("./view.js").Context} */
  const context = {
    state, source,
    say: (word, ...parts) => speaker(languageOf(state.get().language))(word, ...parts),
    announce: (message) => (status.textContent = message),
    progress: (done, of) => {
      bar.hidden = done >= of;
      [bar.max, bar.value] = [of, done];
    },
  };

  if (description.record !== undefined && !location.search) {
    history.replaceState(null, "", `?record=${description.record}${location.hash}`); // so that Back comes back to it
  }
  Object.assign(globalThis, { regard: { state, source } }); // for the console

  const place = part("views");
  /** @type {{ [name in ViewName]?: import("./view.js").View }} */
  const views = {};
  const makers = { map: mapView, links: linksView, heads: headsView, text: textView };
  /** The view that is looked at, made when it is first wanted. */
  const seen = () => {
    const name = state.get().view;
    let view = views[name];
    if (!view) {
      view = makers[name](context);
      view.element.id = `view-${name}`;
      views[name] = view;
      place.append(view.element);
    }
    return view;
  };
  seen().prepare?.(); // its numbers are on their way while the rest is made
  const numbers = numbersPanel(context);
  part("numbers").append(numbers.element);

  const tools = toolbar(context, {
    exportAs: (kind) => {
      const look = state.get();
      const name = fileName(description, look, look.view, kind);
      pictureOf(seen(), kind).then(
        (blob) => {
          saveFile(blob, name);
          context.announce(context.say("export_done", name));
        },
        (reason) => context.announce(context.say("export_failed", String(reason))),
      );
    },
    copyLink: () => {
      writeAddress();
      const link = location.protocol === "about:" ? `#${fragmentOf(state.get())}` : location.href; // a notebook's frame has none
      void copyText(link).then((done) => context.announce(context.say(done ? "link_copied" : "link_failed")));
    },
    async run(text, pair, generate) {
      const record = await runText(text, pair, generate);
      const next = new URL(location.href);
      const { theme, language } = state.get();
      [next.search, next.hash] = [`?record=${record}`, fragmentOf({ ...FIRST_LOOK, theme, language }, false)];
      location.assign(next);
    },
  });
  part("toolbar").append(tools.element);
  const around = shell(context);

  const dress = () => {
    const look = state.get();
    const root = document.documentElement;
    if (look.theme === "auto") delete root.dataset["theme"];
    else root.dataset["theme"] = look.theme;
    root.lang = languageOf(look.language) === "zh" ? "zh-Hans" : "en";
    root.classList.toggle("night", isNight());
  };
  const drawAround = () => {
    dress();
    const view = seen();
    for (const other of Object.values(views)) other.element.hidden = other !== view;
    around.draw();
    tools.draw();
    numbers.draw();
  };
  const drawAll = () => {
    drawAround();
    seen().draw();
  };

  let waiting = 0;
  const writeAddress = () => {
    const fragment = fragmentOf(state.get());
    try {
      history.replaceState(null, "", fragment ? `#${fragment}` : location.pathname + location.search);
    } catch {
      // in a frame without an address there is nothing to restore
    }
  };
  state.listen((_, changed) => {
    clearTimeout(waiting);
    waiting = window.setTimeout(writeAddress, 250);
    if (changed.has("view") || changed.has("theme") || changed.has("language")) drawAll();
  });
  window.addEventListener("hashchange", () => state.set(lookAt(location.hash, description)));
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  drawAround();
  new ResizeObserver(() => seen().draw()).observe(place); // draws now, and whenever the room changes
  const requireEnd = () => void (document.getElementById("end") ?? warn(context.say("cut_short")));
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", requireEnd);
  else requireEnd();
  requestAnimationFrame(() => {
    performance.mark("regard:ready");
    if (state.get().view !== "map") requestAnimationFrame(() => performance.mark("regard:picture")); // the map sets its own
  });
}

/** @param {unknown} reason */
function complain(reason) {
  warn(`Regard: ${reason instanceof Error ? reason.message : String(reason)}`);
  throw reason;
}

/** @param {string} words */
function warn(words) {
  document.body.prepend(make("p", { class: "trouble", role: "alert", text: words }));
}

try {
  start(JSON.parse(part("description").textContent ?? ""));
} catch (reason) {
  complain(reason);
}
