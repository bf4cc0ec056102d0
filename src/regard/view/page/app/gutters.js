/** The names beside the map: a token for every row and column where there is room, else one for every so many. */

import { shown } from "./description.js";
import { fittedText, textWidth } from "./measuring.js";

/**
 * @typedef {import("./description.js").Axis} Axis
 * @typedef {import("./pen.js").Pen} Pen
 * @typedef {import("./frame.js").Frame} Frame
 */

const LONGEST = 26; // signs of a label
const WIDEST = 150; // pixels
const SLANT = 55; // degrees
const BOLD = 1.1; // times as wide
const LINE = 13; // pixels that a label needs

/**
 * A label that fits: cut short where it is too wide.
 * @param {string} text
 * @param {number} most Pixels.
 * @param {number} size
 */
function fittedLabel(text, most, size) {
  return fittedText(shown(text, LONGEST), most, size);
}

/**
 * The room that the labels of a side want, by the longest among some of them.
 * @param {Axis} axis
 */
export function labelRoom(axis) {
  const count = axis.to - axis.from;
  const step = Math.max(1, Math.floor(count / 300));
  let widest = 0;
  for (let unit = axis.from; unit < axis.to; unit += step) widest = Math.max(widest, textWidth(shown(axis.label(unit), LONGEST), 13));
  const places = count > 30 ? textWidth(` ${axis.count}`, 10) : 0;
  return Math.min(count > 200 ? WIDEST / 2 : WIDEST, Math.max(36, Math.ceil(widest))) + places;
}

/**
 * Every how many units a label is drawn: 1, 2, 5, 10, 20, …
 * @param {number} zoom
 */
function labelStep(zoom) {
  for (let ten = 1; ; ten *= 10) {
    for (const part of [1, 2, 5]) if (zoom * ten * part >= LINE) return ten * part;
  }
}

/**
 * The labels of rows, to the left of the plot.
 * @param {Pen} pen
 * @param {Axis} axis
 * @param {Frame} frame
 * @param {{ left: number, top: number, height: number, room: number }} plot
 * @param {{ ink: string, faint: string, written: string, accent: string }} ink
 * @param {Set<number>} chosen
 */
export function paintRowLabels(pen, axis, frame, plot, ink, chosen) {
  const step = labelStep(frame.zoom);
  const size = Math.min(13, Math.max(11, frame.zoom * 0.7));
  for (const unit of labelledUnits(axis, frame.y, plot.height / frame.zoom, step, chosen, frame.zoom)) {
    const y = plot.top + (unit + 0.5 - frame.y) * frame.zoom;
    if (y < plot.top - 1 || y > plot.top + plot.height + 1) continue;
    const place = step > 1 ? `${unit} ` : "";
    const most = plot.room - (place ? textWidth(place, 10) : 0);
    const colour = chosen.has(unit) ? ink.accent : axis.written(unit) ? ink.written : ink.ink;
    const label = fittedLabel(axis.label(unit), chosen.has(unit) ? most / BOLD : most, size);
    pen.text(label, plot.left - 8, y, { size, fill: colour, align: "end", bold: chosen.has(unit) });
    if (place) pen.text(place.trim(), plot.left - 13 - textWidth(label, size, chosen.has(unit)), y, { size: 10, fill: ink.faint, align: "end" });
    if (axis.written(unit)) pen.rectangle(plot.left - 5, plot.top + (unit - frame.y) * frame.zoom, 2, Math.max(2, frame.zoom * step), ink.written);
  }
}

/**
 * The labels of columns, slanting above the plot.
 * @param {Pen} pen
 * @param {Axis} axis
 * @param {Frame} frame
 * @param {{ left: number, top: number, width: number, room: number }} plot
 * @param {{ ink: string, faint: string, written: string, accent: string }} ink
 * @param {Set<number>} chosen
 */
export function paintColumnLabels(pen, axis, frame, plot, ink, chosen) {
  const step = labelStep(frame.zoom);
  const size = Math.min(13, Math.max(11, frame.zoom * 0.7));
  const units = labelledUnits(axis, frame.x, plot.width / frame.zoom, step, chosen, frame.zoom);
  const fits = (/** @type {number} */ unit) => textWidth(fittedLabel(axis.label(unit), plot.room, size), size) <= frame.zoom - 6;
  const flat = step === 1 && frame.zoom > 24 && units.every(fits);
  for (const unit of units) {
    const x = plot.left + (unit + 0.5 - frame.x) * frame.zoom;
    if (x < plot.left - 1 || x > plot.left + plot.width + 1) continue;
    const colour = chosen.has(unit) ? ink.accent : axis.written(unit) ? ink.written : ink.ink;
    const label = fittedLabel(axis.label(unit), plot.room, size);
    const wide = textWidth(label, size);
    const style = { size, fill: colour, bold: chosen.has(unit) };
    if (flat) pen.text(label, x, plot.top - 12, { ...style, align: "middle" });
    else pen.text(label, x, plot.top - 9, { ...style, turn: -SLANT });
    if (step > 1) {
      const [dx, dy] = [Math.cos((SLANT * Math.PI) / 180), Math.sin((SLANT * Math.PI) / 180)];
      pen.text(String(unit), x + dx * (wide + 6), plot.top - 9 - dy * (wide + 6), { size: 10, fill: ink.faint, turn: -SLANT });
    }
    if (axis.written(unit)) pen.rectangle(plot.left + (unit - frame.x) * frame.zoom, plot.top - 5, Math.max(2, frame.zoom * step), 2, ink.written);
  }
}

/**
 * How high slanting labels are.
 * @param {number} room
 */
export function slantedHeight(room) {
  return Math.ceil(Math.sin((SLANT * Math.PI) / 180) * room + 18);
}

/**
 * How far they reach beyond the column they belong to.
 * @param {number} room
 */
export function slantedReach(room) {
  return Math.ceil(Math.cos((SLANT * Math.PI) / 180) * room);
}

/**
 * Which units get a label: every step-th one, and those that are chosen, which push others aside.
 * @param {Axis} axis
 * @param {number} first
 * @param {number} seen
 * @param {number} step
 * @param {Set<number>} chosen
 * @param {number} zoom
 * @returns {number[]}
 */
function labelledUnits(axis, first, seen, step, chosen, zoom) {
  const from = Math.max(axis.from, Math.floor(first));
  const to = Math.min(axis.to, Math.ceil(first + seen));
  const ours = [...chosen].filter((unit) => unit >= from && unit < to);
  const units = ours.length > 60 ? [] : ours;
  const near = LINE / zoom;
  for (let unit = Math.ceil(from / step) * step; unit < to; unit += step) {
    if (!units.some((one) => Math.abs(one - unit) < near && one !== unit) && !units.includes(unit)) units.push(unit);
  }
  return units;
}
