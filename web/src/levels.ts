/**
 * Levels of detail: a series, and the same series with ever fewer points. Each point of a coarser
 * level has the least and the greatest of `STEP` points of the finer one, so that nothing that
 * stands out disappears. They are built once; a graph draws the finest level that fits its width.
 */
import { lowerBound, type Series } from "./decode.ts";

/** How many points become one. */
const STEP = 4;
/** At most this many points for each pixel of width; each is at most two ends of a line. */
export const POINTS_A_PIXEL = 2;
/** A series with its coarser levels. */
export interface Levels {
  readonly levels: readonly Series[];
}

/** What to draw: points `from` to `to` (without the latter) of a level. */
export interface Slice {
  readonly series: Series;
  readonly from: number;
  readonly to: number;
  /** Whether each point is one event, or one stretch as the report has it. */
  readonly isFinest: boolean;
}

/** The levels of a series of values: each point keeps the least, the greatest and the last. */
export function levelsOf(series: Series): Levels {
  return build(series, (of, _, end) => of.line[end - 1]);
}

/** The levels of a series of samples, through whose means the line goes. */
export function meansOf(series: Series): Levels {
  return build(series, mean);
}

type Line = (of: Series, start: number, end: number) => number;

function mean(of: Series, start: number, end: number): number {
  let sum = 0;
  for (let i = start; i < end; i++) sum += of.line[i];
  return sum / (end - start);
}

function build(series: Series, line: Line): Levels {
  const levels = [series];
  while (levels[levels.length - 1].at.length > 8)
    levels.push(coarser(levels[levels.length - 1], line));
  return { levels };
}

function coarser(of: Series, lineOf: Line): Series {
  const count = Math.ceil(of.at.length / STEP);
  const at = new Float64Array(count),
    low = new Float64Array(count);
  const high = new Float64Array(count),
    line = new Float64Array(count);
  for (let i = 0; i < count; i++) {
    const start = i * STEP,
      end = Math.min(start + STEP, of.at.length);
    let least = Infinity,
      most = -Infinity;
    for (let j = start; j < end; j++) {
      if (of.low[j] < least) least = of.low[j];
      if (of.high[j] > most) most = of.high[j];
    }
    at[i] = of.at[start];
    low[i] = least;
    high[i] = most;
    line[i] = lineOf(of, start, end);
  }
  return { at, low, high, line, bucket: of.bucket * STEP };
}

/** The finest level that has few enough points in `start..=end` for that many pixels. */
export function slice(of: Levels, start: number, end: number, pixels: number): Slice {
  const most = Math.max(2, pixels * POINTS_A_PIXEL);
  let at = 0;
  for (;;) {
    const series = of.levels[at];
    // One point before and one after: lines come in from the left and go on to the right.
    const from = Math.max(0, lowerBound(series.at, start) - 1);
    const to = Math.min(series.at.length, lowerBound(series.at, end) + 1);
    if (to - from <= most + 2 || at + 1 === of.levels.length) {
      return { series, from, to, isFinest: at === 0 };
    }
    at += 1;
  }
}

/** The least and the greatest value of what would be drawn; undefined where nothing would. */
export function extent(
  of: Levels,
  start: number,
  end: number,
  pixels: number,
): [number, number] | undefined {
  const { series, from, to } = slice(of, start, end, pixels);
  let low = Infinity,
    high = -Infinity;
  for (let i = from; i < to; i++) {
    if (series.at[i] > end) break;
    if (series.low[i] < low) low = series.low[i];
    if (series.high[i] > high) high = series.high[i];
  }
  return low <= high ? [low, high] : undefined;
}
