/** Mouse, touch and keys on a running text: choose a token, draw over several, walk from one to the next. */

/**
 * @typedef {object} PassageParts
 * @property {(unit: number, event: MouseEvent | KeyboardEvent) => void} choose
 * @property {(from: number, to: number) => void} chooseSpan
 * @property {() => void} clear
 * @property {() => number} active
 * @property {() => import("./description.js").Axis | null} axis
 * @property {(unit: number) => HTMLElement | undefined} elementOf
 * @property {(unit: number) => void} point
 * @property {(unit: number) => void} reveal
 */

/**
 * @param {HTMLElement} element
 * @param {PassageParts} parts
 */
export function passageHands(element, parts) {
  let start = -1; // where the mouse went down
  let end = -1;
  element.addEventListener("pointerdown", (event) => {
    start = event.button === 0 && event.pointerType !== "touch" && !event.shiftKey && !event.ctrlKey && !event.metaKey ? unitUnder(event.target) : -1;
    end = start;
  });
  element.addEventListener("pointermove", (event) => {
    if (start < 0 || !(event.buttons & 1)) return;
    const unit = unitUnder(document.elementFromPoint(event.clientX, event.clientY));
    if (unit < 0 || unit === end) return;
    end = unit;
    parts.chooseSpan(start, end);
  });
  element.addEventListener("click", (event) => {
    const dragged = start >= 0 && end !== start;
    start = -1;
    const unit = unitUnder(event.target);
    if (unit < 0 || dragged) return;
    parts.choose(unit, event);
    parts.point(unit);
  });
  element.addEventListener("keydown", (event) => {
    if (event.altKey) return;
    const now = parts.active();
    if (event.key === "Enter" || event.key === " ") parts.choose(now, event);
    else if (event.key === "Escape") parts.clear();
    else if (!walk(event, element, parts)) return;
    event.preventDefault();
    event.stopPropagation();
  });
}

/**
 * @param {EventTarget | null} target
 * @returns {number} −1 where there is none.
 */
function unitUnder(target) {
  const found = target instanceof Element ? target.closest("[data-unit]") : null;
  return found instanceof HTMLElement ? Number(found.dataset["unit"]) : -1;
}

/**
 * @param {KeyboardEvent} event
 * @param {HTMLElement} element
 * @param {PassageParts} parts
 * @returns {boolean} Whether the key walks.
 */
function walk(event, element, parts) {
  const axis = parts.axis();
  if (!axis || event.ctrlKey || event.metaKey) return false;
  const now = parts.active();
  const page = Math.max(1, Math.floor(element.clientHeight / 28) - 2);
  /** @type {{ [key: string]: () => number }} */
  const ways = {
    ArrowLeft: () => now - 1, ArrowRight: () => now + 1, Home: () => axis.from, End: () => axis.to - 1,
    ArrowUp: () => otherLine(parts, now, -1), ArrowDown: () => otherLine(parts, now, 1),
    PageUp: () => otherLine(parts, now, -page), PageDown: () => otherLine(parts, now, page),
  };
  const way = ways[event.key];
  if (!way) return false;
  const unit = Math.max(axis.from, Math.min(axis.to - 1, way()));
  parts.point(unit);
  parts.reveal(unit);
  if (event.shiftKey) parts.choose(unit, event);
  return true;
}

/**
 * The unit so many lines above or below, nearest to where this one stands.
 * @param {PassageParts} parts
 * @param {number} unit
 * @param {number} lines
 */
function otherLine(parts, unit, lines) {
  const axis = parts.axis();
  const start = parts.elementOf(unit)?.getClientRects()[0];
  if (!axis || !start) return unit;
  const step = Math.sign(lines);
  let [left, line, best, near] = [Math.abs(lines), start.top, unit, Infinity];
  for (let next = unit + step; next >= axis.from && next < axis.to; next += step) {
    const box = parts.elementOf(next)?.getClientRects()[0];
    if (!box) break;
    if (Math.abs(box.top - line) > 8) {
      if (left === 0) break;
      [left, line, near] = [left - 1, box.top, Infinity];
    }
    const gap = Math.abs(box.left - start.left);
    if (left < Math.abs(lines) && gap < near) [best, near] = [next, gap];
  }
  return best;
}
