/**
 * Bytes by time as a rate. A rate over less than a round trip shows bursts at the wire's own speed
 * and pauses, which says nothing of the transfer; so a graph shows bars of two round trips or more,
 * until a reader zooms in.
 */
import type { Series } from "./decode.ts";

/** Pixels of a bar, at least. */
const BAR = 6;
/** Bars that a graph has at least, where the report's bins are fine enough. */
const FEWEST = 8;
const ROUND_TRIPS = 2;

/** Bytes in bins, and their sums. */
export class Rates {
  /** Bits before each bin. */
  private readonly before: Float64Array;
  private last: { key: string; series: Series } | undefined;
  private readonly width: number;
  private readonly roundTrip: number;

  /** Bins of `width` µs; the path's round trip in µs. */
  constructor(bytes: readonly number[], width: number, roundTrip: number) {
    this.width = width;
    this.roundTrip = roundTrip;
    this.before = new Float64Array(bytes.length + 1);
    bytes.forEach((sum, i) => (this.before[i + 1] = this.before[i] + 8 * sum));
  }

  /** Bars for a part of the time, drawn so many pixels wide: whole bins, in places that stay where
   * they are while a reader moves along. */
  bars(start: number, end: number, pixels: number): Series {
    const span = end - start,
      { before, width } = this;
    const wanted = Math.max(
      (span * BAR) / pixels,
      Math.min(ROUND_TRIPS * this.roundTrip, span / FEWEST),
    );
    const bins = Math.max(1, Math.round(wanted / width));
    const bar = bins * width,
      count = before.length - 1;
    const from = Math.max(0, Math.floor(start / bar)),
      to = Math.min(Math.ceil(count / bins), Math.ceil(end / bar) + 1);
    const key = `${bins} ${from} ${to}`;
    if (this.last?.key === key) return this.last.series;
    const at = new Float64Array(Math.max(0, to - from)),
      line = new Float64Array(at.length);
    for (let i = 0; i < at.length; i++) {
      const first = (from + i) * bins;
      at[i] = first * width;
      line[i] = ((before[Math.min(count, first + bins)] - before[first]) * 1e6) / bar;
    }
    const series = { at, low: line, high: line, line, bucket: bar };
    this.last = { key, series };
    return series;
  }

  /** The mean of the last `time` µs at each bin; nearer times weigh no less, the ends of the window
   * less, so that it does not jump as bursts come and go. */
  mean(time: number): Series {
    const bins = Math.max(1, Math.round(time / this.width / 2));
    const rates = Float64Array.from(
      { length: this.before.length - 1 },
      (_, i) => ((this.before[i + 1] - this.before[i]) * 1e6) / this.width,
    );
    const line = movingMean(movingMean(rates, bins), bins);
    const at = Float64Array.from(line, (_, i) => (i + 1) * this.width);
    return { at, low: line, high: line, line, bucket: 0 };
  }
}

/** The mean of `span` values up to and with each; fewer at the start count as if zeros were before. */
export function movingMean(of: Float64Array, span: number): Float64Array {
  const out = new Float64Array(of.length);
  let sum = 0;
  for (let i = 0; i < of.length; i++) {
    sum += of[i] - (i >= span ? of[i - span] : 0);
    out[i] = Math.max(0, sum / span);
  }
  return out;
}
