/** The window onto the map: which part of it is seen, and how large. */

/**
 * @typedef {object} Frame
 * @property {number} x The unit at the left edge; a fraction where the edge goes through it.
 * @property {number} y The unit at the top.
 * @property {number} zoom CSS pixels of a unit.
 *
 * @typedef {object} World What there is to be seen, and the room for it.
 * @property {number} left First column.
 * @property {number} right One after the last.
 * @property {number} top
 * @property {number} bottom
 * @property {number} width Pixels.
 * @property {number} height
 */

const LARGEST_CELL = 96;

/**
 * Everything at once.
 * @param {World} world
 * @returns {Frame}
 */
export function wholeFrame(world) {
  const zoom = Math.min(LARGEST_CELL, world.width / frameSpan(world.left, world.right), world.height / frameSpan(world.top, world.bottom));
  return { x: world.left, y: world.top, zoom };
}

/**
 * The nearest frame that shows something.
 * @param {Frame} frame
 * @param {World} world
 * @returns {Frame}
 */
export function inside(frame, world) {
  const least = wholeFrame(world).zoom;
  const zoom = Math.min(LARGEST_CELL, Math.max(least, frame.zoom || least));
  const within = (/** @type {number} */ at, /** @type {number} */ first, /** @type {number} */ end, /** @type {number} */ seen) =>
    end - first <= seen ? first : Math.min(end - seen, Math.max(first, at));
  return {
    x: within(frame.x || 0, world.left, world.right, world.width / zoom),
    y: within(frame.y || 0, world.top, world.bottom, world.height / zoom),
    zoom,
  };
}

/**
 * Larger or smaller, around a point of the plot that stays where it is.
 * @param {Frame} frame
 * @param {number} factor
 * @param {number} px
 * @param {number} py
 * @param {World} world
 * @returns {Frame}
 */
export function zoomed(frame, factor, px, py, world) {
  const zoom = inside({ ...frame, zoom: frame.zoom * factor }, world).zoom;
  return inside({ x: frame.x + px / frame.zoom - px / zoom, y: frame.y + py / frame.zoom - py / zoom, zoom }, world);
}

/**
 * A frame in which a cell can be seen: the same one if it can already.
 * @param {Frame} frame
 * @param {number | null} row
 * @param {number | null} col
 * @param {World} world
 * @param {number} readable The least size of a cell.
 * @returns {Frame}
 */
export function revealing(frame, row, col, world, readable) {
  const zoom = Math.max(frame.zoom, Math.min(LARGEST_CELL, readable));
  const [wide, high] = [world.width / zoom, world.height / zoom];
  const place = (/** @type {number} */ at, /** @type {number | null} */ unit, /** @type {number} */ seen) =>
    unit === null || (zoom === frame.zoom && unit >= at && unit + 1 <= at + seen) ? at : unit + 0.5 - seen / 2;
  return inside({ x: place(frame.x, col, wide), y: place(frame.y, row, high), zoom }, world);
}

/**
 * @param {number} from
 * @param {number} to
 */
function frameSpan(from, to) {
  return Math.max(1, to - from);
}
