/** A form for a text of one's own, where a model stands behind the page. */

import { make } from "./dom.js";

/**
 * @typedef {import("./view.js").Context} Context
 * @typedef {(text: string, pair: string | null, generate: number) => Promise<void>} Run
 */

/** The most tokens that a model is asked to write, as the server has it. */
const MOST_WRITTEN = 1024;

/**
 * @param {Context} context
 * @param {Run} run
 * @returns {{ element: HTMLFormElement, draw: () => void }}
 */
export function runForm(context, run) {
  const text = make("input", { class: "field first", name: "text", autocomplete: "off", dir: "auto" });
  const pair = make("input", { class: "field", name: "pair", autocomplete: "off", dir: "auto" });
  const amount = make("input", { class: "field", type: "number", name: "generate", min: 0, max: MOST_WRITTEN, step: 1, value: 0 });
  const caption = make("span");
  const button = make("button", { type: "submit", class: "strong" });
  const error = make("p", { class: "error", role: "alert", hidden: true });
  const element = make("form", { class: "own", novalidate: true }, [
    text, pair, make("label", { class: "amount" }, [caption, amount]), button, error,
  ]);
  let busy = false;

  element.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (busy) return;
    if (!text.value.trim()) {
      tell(context.say("run_empty"));
      text.focus();
      return;
    }
    tell("");
    busy = true;
    draw();
    context.announce(context.say("run_busy"));
    try {
      const written = Math.round(Number(amount.value) || 0);
      await run(text.value, pair.value.trim() ? pair.value : null, Math.max(0, Math.min(MOST_WRITTEN, written)));
    } catch (problem) {
      tell(problem instanceof Error ? problem.message : String(problem));
      context.announce("");
    } finally {
      busy = false;
      draw();
    }
  });

  function tell(/** @type {string} */ words) {
    error.textContent = words;
    error.hidden = !words;
  }

  function draw() {
    const { say } = context;
    text.placeholder = say("run_text_hint");
    text.setAttribute("aria-label", say("run_text"));
    pair.placeholder = say("run_pair_hint");
    pair.setAttribute("aria-label", say("run_pair"));
    caption.textContent = say("run_generate");
    button.textContent = say(busy ? "run_busy" : "run");
    button.disabled = busy;
    element.setAttribute("aria-label", say("run_open"));
    element.setAttribute("aria-busy", String(busy));
  }
  draw();
  return { element, draw };
}
