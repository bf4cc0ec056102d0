/** Small drawings on buttons: strokes of one width in a square of 16. */

/** Each a path; drawn in the colour of the text around it. */
const ICON_PATHS = {
  previous: "M10 3.5 5.5 8l4.5 4.5",
  next: "M6 3.5 10.5 8 6 12.5",
  up: "M3.5 10 8 5.5l4.5 4.5",
  down: "M3.5 6 8 10.5 12.5 6",
  add: "M8 3v10M3 8h10",
  added: "M3 8.5 6.5 12 13 4.5",
  close: "M4 4l8 8M12 4l-8 8",
  search: "M11 7a4 4 0 1 1-8 0 4 4 0 0 1 8 0ZM10 10l3.5 3.5",
  export: "M8 10V2.5M5 5.5l3-3 3 3M3 9.5v4h10v-4",
  settings: "M2.5 5H8M12 5h1.5M2.5 11H4M8 11h5.5M12 5a2 2 0 1 1-4 0 2 2 0 0 1 4 0ZM8 11a2 2 0 1 1-4 0 2 2 0 0 1 4 0Z",
  help: "M5.7 6a2.3 2.3 0 1 1 3.6 1.9C8.4 8.5 8 9 8 10M8 12.6v.3",
  panel: "M2.5 3h11v10h-11zM10 3v10",
  rising: "M3 12.5h3v-3H3zM6 12.5h3.5v-6H6zM9.5 12.5H13v-9H9.5z",
  falling: "M3 12.5h3v-9H3zM6 12.5h3.5v-6H6zM9.5 12.5H13v-3H9.5z",
};

/**
 * @param {keyof typeof ICON_PATHS} which
 * @returns {SVGSVGElement}
 */
export function icon(which) {
  const drawing = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  drawing.setAttribute("viewBox", "0 0 16 16");
  drawing.setAttribute("class", "icon");
  drawing.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", ICON_PATHS[which]);
  drawing.append(path);
  return drawing;
}
