/**
 * What graphs draw with: a part of the canvas, which an SVG can record as well. A graph that is
 * drawn on the page, saved as PNG or saved as SVG is drawn by the same code.
 */
import type { Palette } from "../theme.ts";

/** The part of a canvas that graphs use. */
export type Pen = Pick<
  CanvasRenderingContext2D,
  | "beginPath"
  | "moveTo"
  | "lineTo"
  | "closePath"
  | "rect"
  | "arc"
  | "stroke"
  | "fill"
  | "fillRect"
  | "fillText"
  | "setLineDash"
  | "save"
  | "restore"
  | "clip"
  | "strokeStyle"
  | "fillStyle"
  | "lineWidth"
  | "globalAlpha"
  | "lineJoin"
  | "font"
  | "textAlign"
  | "textBaseline"
>;

/** The type of all labels: the system's own. */
export const SANS = "system-ui, -apple-system, 'Segoe UI', 'Noto Sans CJK SC', sans-serif";

/** The plotting area, and what part of the data it shows. */
export interface Frame {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
  /** The x axis, in µs or sequence numbers. */
  readonly start: number;
  readonly end: number;
  /** The y axis. */
  readonly low: number;
  readonly high: number;
  /** The pen's units for each pixel of the page. */
  readonly ratio: number;
  readonly palette: Palette;
}

/** Where a value of the x axis is. */
export const x = (frame: Frame, at: number): number =>
  frame.left + ((at - frame.start) / (frame.end - frame.start)) * frame.width;

/** Where a value of the y axis is. */
export const y = (frame: Frame, value: number): number =>
  frame.top + (1 - (value - frame.low) / (frame.high - frame.low)) * frame.height;

/** Draws within the plotting area only. */
export function clipped(pen: Pen, frame: Frame, draw: () => void): void {
  pen.save();
  pen.beginPath();
  pen.rect(frame.left, frame.top, frame.width, frame.height);
  pen.clip();
  draw();
  pen.restore();
}
