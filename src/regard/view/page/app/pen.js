/** One way to draw, two papers: a canvas, or SVG. What is exported is what is seen, drawn by the same lines of code. */

/**
 * @typedef {object} TextStyle
 * @property {number} [size] Pixels.
 * @property {string} [fill]
 * @property {"start" | "middle" | "end"} [align]
 * @property {number} [turn] Degrees, around where it begins.
 * @property {boolean} [bold]
 *
 * @typedef {object} Pen
 * @property {(x: number, y: number, width: number, height: number, fill: string, opacity?: number) => void} rectangle
 * @property {(x: number, y: number, width: number, height: number, stroke: string, thickness?: number) => void} frame
 * @property {(x1: number, y1: number, x2: number, y2: number, stroke: string, thickness?: number, opacity?: number) => void} line
 * @property {(x1: number, y1: number, x2: number, y2: number, stroke: string, thickness?: number, opacity?: number) => void} curve
 *   An S from left to right.
 * @property {(text: string, x: number, y: number, style?: TextStyle) => void} text y is the middle of the line.
 * @property {(image: HTMLCanvasElement, x: number, y: number, width: number, height: number) => void} picture
 * @property {(x: number, y: number, width: number, height: number, draw: () => void) => void} within Nothing outside.
 */

export const FONT = 'system-ui, -apple-system, "Segoe UI", "Noto Sans", "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", sans-serif';

/**
 * @param {CanvasRenderingContext2D} context
 * @returns {Pen}
 */
export function canvasPen(context) {
  const stroked = (/** @type {string} */ stroke, thickness = 1, opacity = 1) => {
    context.strokeStyle = stroke;
    context.lineWidth = thickness;
    context.globalAlpha = opacity;
  };
  return {
    rectangle(x, y, width, height, fill, opacity = 1) {
      context.globalAlpha = opacity;
      context.fillStyle = fill;
      context.fillRect(x, y, width, height);
      context.globalAlpha = 1;
    },
    frame(x, y, width, height, stroke, thickness = 1) {
      stroked(stroke, thickness);
      context.strokeRect(x, y, width, height);
    },
    line(x1, y1, x2, y2, stroke, thickness, opacity) {
      stroked(stroke, thickness, opacity);
      context.beginPath();
      context.moveTo(x1, y1);
      context.lineTo(x2, y2);
      context.stroke();
      context.globalAlpha = 1;
    },
    curve(x1, y1, x2, y2, stroke, thickness, opacity) {
      stroked(stroke, thickness, opacity);
      const middle = (x1 + x2) / 2;
      context.beginPath();
      context.moveTo(x1, y1);
      context.bezierCurveTo(middle, y1, middle, y2, x2, y2);
      context.stroke();
      context.globalAlpha = 1;
    },
    text(text, x, y, { size = 12, fill = "#000", align = "start", turn = 0, bold = false } = {}) {
      context.save();
      context.font = `${bold ? "600 " : ""}${size}px ${FONT}`;
      context.fillStyle = fill;
      context.textAlign = align === "middle" ? "center" : align === "end" ? "right" : "left";
      context.textBaseline = "middle";
      context.direction = "ltr";
      context.translate(x, y);
      if (turn) context.rotate((turn * Math.PI) / 180);
      context.fillText(text, 0, 0);
      context.restore();
    },
    picture(image, x, y, width, height) {
      context.imageSmoothingEnabled = width < image.width; // made smaller: blended; made larger: cells stay cells
      context.drawImage(image, x, y, width, height);
    },
    within(x, y, width, height, draw) {
      context.save();
      context.beginPath();
      context.rect(x, y, width, height);
      context.clip();
      draw();
      context.restore();
    },
  };
}

/**
 * A pen that writes SVG.
 * @param {number} width
 * @param {number} height
 * @returns {{ pen: Pen, finish: () => string }}
 */
export function svgPen(width, height) {
  /** @type {string[]} */
  const lines = [];
  let clips = 0;
  const seen = (/** @type {number} */ opacity) => (opacity === 1 ? "" : ` opacity="${svgNumber(opacity)}"`);
  const stroke = (/** @type {string} */ colour, thickness = 1, opacity = 1) =>
    ` fill="none" stroke="${svgEscaped(colour)}" stroke-width="${svgNumber(thickness)}"${seen(opacity)}`;
  const box = (/** @type {number} */ x, /** @type {number} */ y, /** @type {number} */ wide, /** @type {number} */ high) =>
    `x="${svgNumber(x)}" y="${svgNumber(y)}" width="${svgNumber(wide)}" height="${svgNumber(high)}"`;
  /** @type {Pen} */
  const pen = {
    rectangle(x, y, wide, high, fill, opacity = 1) {
      lines.push(`<rect ${box(x, y, wide, high)} fill="${svgEscaped(fill)}"${seen(opacity)}/>`);
    },
    frame(x, y, wide, high, colour, thickness) {
      lines.push(`<rect ${box(x, y, wide, high)}${stroke(colour, thickness)}/>`);
    },
    line(x1, y1, x2, y2, colour, thickness, opacity) {
      const ends = `x1="${svgNumber(x1)}" y1="${svgNumber(y1)}" x2="${svgNumber(x2)}" y2="${svgNumber(y2)}"`;
      lines.push(`<line ${ends}${stroke(colour, thickness, opacity)}/>`);
    },
    curve(x1, y1, x2, y2, colour, thickness, opacity) {
      const middle = svgNumber((x1 + x2) / 2);
      const way = `M${svgNumber(x1)} ${svgNumber(y1)}C${middle} ${svgNumber(y1)} ${middle} ${svgNumber(y2)} ${svgNumber(x2)} ${svgNumber(y2)}`;
      lines.push(`<path d="${way}"${stroke(colour, thickness, opacity)}/>`);
    },
    text(text, x, y, { size = 12, fill = "#000", align = "start", turn = 0, bold = false } = {}) {
      const turned = turn ? ` transform="rotate(${svgNumber(turn)} ${svgNumber(x)} ${svgNumber(y)})"` : "";
      const weight = bold ? ' font-weight="600"' : "";
      lines.push(
        `<text x="${svgNumber(x)}" y="${svgNumber(y)}" font-size="${svgNumber(size)}" fill="${svgEscaped(fill)}" text-anchor="${align}"` +
          ` dominant-baseline="central"${weight}${turned} xml:space="preserve">${svgEscaped(text)}</text>`,
      );
    },
    picture(image, x, y, wide, high) {
      const look = 'preserveAspectRatio="none" style="image-rendering:pixelated"';
      lines.push(`<image ${box(x, y, wide, high)} ${look} href="${image.toDataURL("image/png")}"/>`);
    },
    within(x, y, wide, high, draw) {
      clips += 1;
      lines.push(`<clipPath id="clip${clips}"><rect ${box(x, y, wide, high)}/></clipPath><g clip-path="url(#clip${clips})">`);
      draw();
      lines.push("</g>");
    },
  };
  const size = `width="${svgNumber(width)}" height="${svgNumber(height)}" viewBox="0 0 ${svgNumber(width)} ${svgNumber(height)}"`;
  const start = `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family="${svgEscaped(FONT)}">`;
  return { pen, finish: () => [start, ...lines, "</svg>", ""].join("\n") };
}

/** @param {number} value */
function svgNumber(value) {
  return String(Math.round(value * 100) / 100);
}

/**
 * Text that XML takes: its five signs written out, and none that it forbids.
 * @param {string} text
 */
function svgEscaped(text) {
  return Array.from(text)
    .map((sign) => {
      const code = sign.codePointAt(0) ?? 0;
      const forbidden = (code < 32 && ![9, 10, 13].includes(code)) || (code >= 0xd800 && code <= 0xdfff) || code === 0xfffe || code === 0xffff;
      return forbidden ? "�" : sign;
    })
    .join("")
    .replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}
