/** Ways to draw a series: each is one entry of a graph's legend. */
import { lowerBound, type Places, type Series } from "../decode.ts";
import { extent, type Levels, slice } from "../levels.ts";
import type { Rates } from "../rates.ts";
import type { Colour } from "../theme.ts";
import type { Entry } from "../words/words.ts";
import { type Frame, type Pen, x, y } from "./pen.ts";

/** How the legend shows a layer. */
export type Shape =
  | "line"
  | "dash"
  | "area"
  | "stroke"
  | "dot"
  | "square"
  | "diamond"
  | "up"
  | "down"
  | "cross"
  | "ring";

/** A part of a graph. */
export interface Layer {
  readonly key: string;
  readonly entry: Entry;
  readonly colour: Colour;
  readonly shape: Shape;
  /** Whether it is shown until the reader asks otherwise. */
  readonly isShown: boolean;
  /** Of a bound, where what matters is whether others meet it: it is left out of the picture where
   * it would make the others this many times smaller. */
  readonly farFrom?: number;
  /** Least and greatest value between two places of the x axis, drawn so many pixels wide. */
  extent(start: number, end: number, pixels: number): [number, number] | undefined;
  draw(pen: Pen, frame: Frame): void;
  /** The value at a place of the x axis; `[least, greatest, line]`. */
  value?(at: number, frame: Frame): [number, number, number] | undefined;
  /** Of marks: where they are. */
  readonly places?: Places;
}

interface Style {
  readonly key: string;
  readonly entry: Entry;
  readonly colour: Colour;
  readonly isShown?: boolean;
  readonly farFrom?: number;
}

const BAND = 0.2;

function base(style: Style, levels: Levels, shape: Shape): Omit<Layer, "draw"> {
  return {
    ...style,
    shape,
    isShown: style.isShown ?? true,
    extent: (start, end, pixels) => extent(levels, start, end, pixels),
    value(at, frame) {
      const of = slice(levels, frame.start, frame.end, frame.width / frame.ratio).series;
      const index = lowerBound(of.at, at + 1e-9) - 1;
      return index < 0 ? undefined : [of.low[index], of.high[index], of.line[index]];
    },
  };
}

/** A value that holds until the next: stairs. Where points are stretches, a band shows how far the
 * values of each reach. */
export function stairs(style: Style, levels: Levels, dash: number[] = [], width = 1.5): Layer {
  return {
    ...base(style, levels, dash.length ? "dash" : "line"),
    draw(pen, frame) {
      const { series, from, to } = band(pen, frame, levels, style.colour);
      pen.beginPath();
      for (let i = from; i < to; i++) {
        const here = x(frame, series.at[i]),
          value = y(frame, series.line[i]);
        if (i === from) pen.moveTo(here, value);
        else pen.lineTo(here, y(frame, series.line[i - 1]));
        pen.lineTo(here, value);
      }
      if (to > from) pen.lineTo(frame.left + frame.width, y(frame, series.line[to - 1]));
      strokeLine(pen, frame, style.colour, width, dash);
    },
  };
}

function strokeLine(pen: Pen, frame: Frame, colour: Colour, width: number, dash: number[]): void {
  pen.strokeStyle = frame.palette[colour];
  pen.lineWidth = width * frame.ratio;
  pen.lineJoin = "bevel";
  pen.setLineDash(dash.map((length) => length * frame.ratio));
  pen.stroke();
  pen.setLineDash([]);
}

/** The band from the least to the greatest value, where points stand for several. */
function band(pen: Pen, frame: Frame, levels: Levels, colour: Colour) {
  const of = slice(levels, frame.start, frame.end, frame.width / frame.ratio);
  const { series, from, to } = of;
  if (series.low === series.high) return of;
  pen.globalAlpha = BAND;
  pen.fillStyle = frame.palette[colour];
  // Columns of whole pixels: they neither overlap nor leave seams, and a browser fills them quickly.
  let left = NaN,
    right = NaN,
    low = NaN,
    high = NaN;
  const fill = (): void => {
    if (right > left)
      pen.fillRect(left, y(frame, high), right - left, y(frame, low) - y(frame, high));
  };
  for (let i = from; i < to; i++) {
    const start = Math.round(x(frame, series.at[i]));
    const end = i + 1 < to ? Math.round(x(frame, series.at[i + 1])) : start + 1;
    if (start === left) {
      right = Math.max(right, end);
      low = Math.min(low, series.low[i]);
      high = Math.max(high, series.high[i]);
    } else {
      fill();
      [left, right, low, high] = [start, Math.max(end, start + 1), series.low[i], series.high[i]];
    }
  }
  fill();
  pen.globalAlpha = 1;
  return of;
}

/** Points joined by straight lines. */
export function line(style: Style, levels: Levels, width = 1.5): Layer {
  return {
    ...base(style, levels, "line"),
    draw(pen, frame) {
      const { series, from, to } = band(pen, frame, levels, style.colour);
      pen.beginPath();
      for (let i = from; i < to; i++) {
        const here = x(frame, series.at[i]),
          value = y(frame, series.line[i]);
        if (i === from) pen.moveTo(here, value);
        else pen.lineTo(here, value);
      }
      strokeLine(pen, frame, style.colour, width, []);
    },
  };
}

/** A rate as bars; an area is filled down to the ground. */
export function bars(style: Style, rates: Rates, isFilled: boolean): Layer {
  const within = (frame: Frame): Series =>
    rates.bars(frame.start, frame.end, frame.width / frame.ratio);
  return {
    ...style,
    shape: isFilled ? "area" : "line",
    isShown: style.isShown ?? true,
    extent(start, end, pixels) {
      const { line } = rates.bars(start, end, pixels);
      return line.length ? [0, line.reduce((most, value) => Math.max(most, value), 0)] : undefined;
    },
    value(at, frame) {
      const { line, at: places } = within(frame);
      const index = lowerBound(places, at + 1e-9) - 1;
      return index < 0 ? undefined : [line[index], line[index], line[index]];
    },
    draw(pen, frame) {
      const { at, line, bucket } = within(frame);
      if (at.length === 0) return;
      const ground = y(frame, 0);
      pen.beginPath();
      pen.moveTo(x(frame, at[0]), ground);
      for (let i = 0; i < at.length; i++) {
        const value = y(frame, line[i]);
        pen.lineTo(x(frame, at[i]), value);
        pen.lineTo(x(frame, at[i] + bucket), value);
      }
      pen.lineTo(x(frame, at[at.length - 1] + bucket), ground);
      if (isFilled) {
        pen.globalAlpha = 0.16;
        pen.fillStyle = frame.palette[style.colour];
        pen.fill();
        pen.globalAlpha = 1;
      }
      strokeLine(pen, frame, style.colour, 1, []);
    },
  };
}

/** Single events as dots; where points are stretches, how far they reach, with the mean. Nothing is
 * drawn where there is nothing. */
export function dots(style: Style, levels: Levels): Layer {
  return {
    ...base(style, levels, "dot"),
    draw(pen, frame) {
      const { ratio } = frame;
      const pixels = frame.width / ratio;
      const { series, from, to } = slice(levels, frame.start, frame.end, pixels);
      const size = (to - from > pixels / 3 ? 2 : 3.5) * ratio;
      // A stretch is as wide as it is long, but never a hair and never a gap's width.
      const stretch = (series.bucket / (frame.end - frame.start)) * frame.width;
      const width = Math.max(stretch, size);
      pen.fillStyle = frame.palette[style.colour];
      for (let i = from; i < to; i++) {
        const left = x(frame, series.at[i]) - size / 2;
        const top = y(frame, series.high[i]);
        const height = y(frame, series.low[i]) - top;
        if (height > size) {
          const start = Math.round(x(frame, series.at[i]));
          const next = i + 1 < to ? Math.round(x(frame, series.at[i + 1])) : Infinity;
          pen.globalAlpha = 0.3;
          pen.fillRect(
            start,
            top,
            Math.min(Math.max(Math.round(stretch), ratio), next - start),
            height,
          );
          pen.globalAlpha = 1;
        }
        pen.fillRect(left, y(frame, series.line[i]) - size / 2, width, size);
      }
    },
  };
}

/** From the least to the greatest of each point: data in the time-sequence graph. */
export function strokes(style: Style, levels: Levels): Layer {
  return {
    ...base(style, levels, "stroke"),
    draw(pen, frame) {
      const { series, from, to, isFinest } = slice(
        levels,
        frame.start,
        frame.end,
        frame.width / frame.ratio,
      );
      const isEvent = isFinest && series.bucket === 0;
      pen.fillStyle = frame.palette[style.colour];
      const least = 1.5 * frame.ratio;
      for (let i = from; i < to; i++) {
        const here = x(frame, series.at[i]);
        const next = isEvent || i + 1 >= to ? here : x(frame, series.at[i + 1]);
        const top = y(frame, series.high[i]);
        const height = Math.max(y(frame, series.low[i]) - top, least);
        const width = Math.min(
          Math.max(next - here, least),
          Math.max(least, isEvent ? least : 6 * frame.ratio),
        );
        pen.fillRect(here - (isEvent ? least / 2 : 0), top, width, height);
      }
    },
  };
}

/** One value over the whole axis. */
export function constant(style: Style, value: number): Layer {
  return {
    ...style,
    shape: "dash",
    isShown: style.isShown ?? true,
    extent: () => [value, value],
    value: () => [value, value, value],
    draw(pen, frame) {
      pen.beginPath();
      pen.moveTo(frame.left, y(frame, value));
      pen.lineTo(frame.left + frame.width, y(frame, value));
      strokeLine(pen, frame, style.colour, 1.25, [5, 4]);
    },
  };
}

/** Places with a sign. A sign that would lie on the one before it is not drawn again. */
export function marks(style: Style, places: Places, shape: Shape): Layer {
  return {
    ...style,
    shape,
    isShown: style.isShown ?? true,
    places,
    extent: () => undefined,
    draw(pen, frame) {
      const from = lowerBound(places.at, frame.start),
        to = lowerBound(places.at, frame.end + 1);
      pen.strokeStyle = pen.fillStyle = frame.palette[style.colour];
      pen.lineWidth = 1.5 * frame.ratio;
      let [lastX, lastY] = [-Infinity, -Infinity];
      const near = 1.5 * frame.ratio;
      for (let i = from; i < to; i++) {
        const here = x(frame, places.at[i]);
        const low = y(frame, places.sequence[i]);
        const high = y(frame, places.sequence[i] + (places.length[i] ?? 0));
        if (Math.abs(here - lastX) < near && Math.abs(high - lastY) < near) continue;
        [lastX, lastY] = [here, high];
        sign(pen, shape, here, high, low, frame.ratio);
      }
    },
  };
}

/** Draws a sign; `high` and `low` are the ends of what it marks. */
export function sign(
  pen: Pen,
  shape: Shape,
  here: number,
  high: number,
  low: number,
  ratio: number,
): void {
  const size = 3.5 * ratio;
  const middle = (high + low) / 2;
  const polygon = (...points: [number, number][]): void => {
    pen.beginPath();
    points.forEach(([dx, dy], i) =>
      i ? pen.lineTo(here + dx, middle + dy) : pen.moveTo(here + dx, middle + dy),
    );
    pen.closePath();
    pen.fill();
  };
  switch (shape) {
    case "stroke":
      pen.globalAlpha = 0.6;
      pen.fillRect(here - 0.6 * ratio, high, 1.2 * ratio, Math.max(low - high, 3 * ratio));
      pen.globalAlpha = 1;
      break;
    case "square":
      pen.fillRect(
        here - size,
        Math.min(high, middle - size),
        2 * size,
        Math.max(low - high, 2 * size),
      );
      break;
    case "diamond":
      polygon([0, -1.3 * size], [1.3 * size, 0], [0, 1.3 * size], [-1.3 * size, 0]);
      break;
    case "up":
      polygon([0, -1.2 * size], [1.2 * size, size], [-1.2 * size, size]);
      break;
    case "down":
      polygon([0, 1.2 * size], [1.2 * size, -size], [-1.2 * size, -size]);
      break;
    case "ring":
      pen.beginPath();
      pen.arc(here, middle, size, 0, 7);
      pen.stroke();
      break;
    case "cross":
      pen.beginPath();
      pen.moveTo(here - size, middle - size);
      pen.lineTo(here + size, middle + size);
      pen.moveTo(here + size, middle - size);
      pen.lineTo(here - size, middle + size);
      pen.stroke();
      break;
    default:
      pen.fillRect(here - 1.5 * ratio, middle - 1.5 * ratio, 3 * ratio, 3 * ratio);
  }
}
