/** A graph as a picture of its own: title, axes, layers and legend. For PNG, SVG and small graphs. */
import { niceTicks, ticks, type Unit } from "../units.ts";
import type { Graph } from "./catalogue.ts";
import { paintShades, type Shade } from "./chart.ts";
import { type Layer, type Shape, sign } from "./layers.ts";
import { clipped, type Frame, type Pen, SANS, x, y } from "./pen.ts";
import { nameOutside, yRange } from "./scale.ts";
import type { Palette } from "../theme.ts";

/** What stands in a picture beside the graph. */
export interface Caption {
  readonly title: string;
  readonly subtitle: string;
  readonly palette: Palette;
  readonly shades: readonly Shade[];
}

/** A tick: where it is, and its label. */
export type Tick = readonly [at: number, label: string];

/** Round ticks of an axis with about so many pixels between them. */
export function ticksOf(
  low: number,
  high: number,
  pixels: number,
  apart: number,
  unit: Unit,
): Tick[] {
  const at = niceTicks(low, high, Math.max(2, pixels / apart));
  return ticks(at, unit).map((label, i) => [at[i], label]);
}

/** About the width of a letter of a label, in pixels. */
const LETTER = 6.2;

/** Draws grid and labels of both axes around a frame. */
export function axes(pen: Pen, frame: Frame, across: readonly Tick[], up: readonly Tick[]): void {
  const { ratio, palette } = frame;
  pen.font = `${11 * ratio}px ${SANS}`;
  pen.textAlign = "center";
  pen.textBaseline = "top";
  let free = -Infinity;
  for (const [at, label] of across) {
    const here = Math.round(x(frame, at));
    pen.fillStyle = palette.grid;
    pen.fillRect(here, frame.top, ratio, frame.height);
    // A label that would touch the one before it is left out; its line stays.
    const half = (label.length * LETTER + 6) * ratio * 0.5;
    if (here - half < free) continue;
    free = here + half;
    pen.fillStyle = palette.muted;
    pen.fillText(label, here, frame.top + frame.height + 8 * ratio);
  }
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  for (const [at, label] of up) {
    const here = Math.round(y(frame, at));
    pen.fillStyle = palette.grid;
    pen.fillRect(frame.left, here, frame.width, ratio);
    pen.fillStyle = palette.muted;
    pen.fillText(label, frame.left - 8 * ratio, here);
  }
}

/** Draws how the legend shows a layer, around a place. */
export function swatch(
  pen: Pen,
  shape: Shape,
  colour: string,
  here: number,
  middle: number,
  ratio: number,
): void {
  pen.fillStyle = pen.strokeStyle = colour;
  pen.lineWidth = 2 * ratio;
  if (shape === "line" || shape === "dash" || shape === "area") {
    pen.setLineDash(shape === "dash" ? [4 * ratio, 3 * ratio] : []);
    pen.beginPath();
    pen.moveTo(here - 8 * ratio, middle);
    pen.lineTo(here + 8 * ratio, middle);
    pen.stroke();
    pen.setLineDash([]);
  } else if (shape === "stroke" || shape === "dot") {
    const [width, height] = shape === "dot" ? [4, 4] : [2.5, 10];
    pen.fillRect(
      here - (width / 2) * ratio,
      middle - (height / 2) * ratio,
      width * ratio,
      height * ratio,
    );
  } else {
    sign(pen, shape, here, middle - 4 * ratio, middle + 4 * ratio, ratio);
  }
}

/** The whole picture, `width` by `height` pixels of the page. */
export function paintGraph(
  pen: Pen,
  graph: Graph,
  shown: readonly Layer[],
  view: readonly [number, number],
  size: { width: number; height: number },
  ratio: number,
  caption: Caption,
): void {
  const { palette } = caption;
  const [start, end] = view;
  const [low, high] = yRange(graph, shown, start, end, size.width - 98);
  pen.fillStyle = palette.surface;
  pen.fillRect(0, 0, size.width * ratio, size.height * ratio);
  heading(pen, caption, size.width, ratio);
  const rows = legendRows(shown, size.width - 40);
  const foot = 34 + rows.length * 20 + 10;
  const frame: Frame = {
    left: 78 * ratio,
    top: 64 * ratio,
    width: (size.width - 78 - 20) * ratio,
    height: (size.height - 64 - foot) * ratio,
    start,
    end,
    low,
    high,
    ratio,
    palette,
  };
  axes(
    pen,
    frame,
    ticksOf(start, end, size.width - 98, 90, graph.over === "time" ? "us" : "bytes"),
    ticksOf(low, high, size.height - 64 - foot, 40, graph.unit),
  );
  if (graph.over === "time") paintShades(pen, frame, caption.shades);
  clipped(pen, frame, () => shown.forEach((layer) => layer.draw(pen, frame)));
  nameOutside(pen, frame, shown);
  legend(pen, rows, palette, (size.height - foot + 44) * ratio, ratio);
}

function heading(pen: Pen, caption: Caption, width: number, ratio: number): void {
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  pen.fillStyle = caption.palette.ink;
  pen.font = `600 ${16 * ratio}px ${SANS}`;
  pen.fillText(caption.title, 20 * ratio, 24 * ratio);
  pen.fillStyle = caption.palette.muted;
  pen.font = `${12 * ratio}px ${SANS}`;
  pen.fillText(shorten(caption.subtitle, (width - 40) / 6.4), 20 * ratio, 46 * ratio);
}

function shorten(text: string, most: number): string {
  const wide = [...text].map((c) => (c > "\u2e80" ? 1.9 : 1));
  let room = most;
  const kept = wide.findIndex((size) => (room -= size) < 0);
  return kept < 0 ? text : `${[...text].slice(0, kept - 1).join("")}…`;
}

/** Layers in rows that fit the width, by a guess of how wide their names are. */
function legendRows(shown: readonly Layer[], width: number): [Layer, number][][] {
  const rows: [Layer, number][][] = [[]];
  let left = 0;
  for (const layer of shown) {
    const wide =
      36 + [...layer.entry.name].reduce((sum, c) => sum + (c > "\u2e80" ? 12.5 : 6.8), 0);
    if (left + wide > width && left > 0) {
      rows.push([]);
      left = 0;
    }
    rows[rows.length - 1].push([layer, left]);
    left += wide;
  }
  return rows;
}

function legend(
  pen: Pen,
  rows: [Layer, number][][],
  palette: Palette,
  top: number,
  ratio: number,
): void {
  pen.font = `${12 * ratio}px ${SANS}`;
  rows.forEach((row, i) => {
    for (const [layer, left] of row) {
      const middle = top + i * 20 * ratio;
      swatch(pen, layer.shape, palette[layer.colour], (30 + left) * ratio, middle, ratio);
      pen.textAlign = "left";
      pen.textBaseline = "middle";
      pen.fillStyle = palette.ink;
      pen.fillText(layer.entry.name, (42 + left) * ratio, middle);
    }
  });
}
