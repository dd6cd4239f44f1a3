/**
 * From the columns of the report's JSON to series: typed arrays that graphs draw and search.
 */
import type { Differences, DirectionTrace, Marks, Points, SocketSeries } from "./data.ts";

/** Points over an axis that never goes back: time in µs, or a sequence number. */
export interface Series {
  /** Where each point is; of a stretch, where it starts. */
  readonly at: Float64Array;
  /** The least and the greatest of each point; the same array where points are single events. */
  readonly low: Float64Array;
  readonly high: Float64Array;
  /** What the line goes through: the last value, or the mean. */
  readonly line: Float64Array;
  /** 0 where every event is a point; otherwise the length of the stretches in µs. */
  readonly bucket: number;
}

/** Numbers from the differences between them. */
export function sums(differences: Differences): Float64Array {
  const out = new Float64Array(differences.length);
  let sum = 0;
  for (let i = 0; i < differences.length; i++) out[i] = sum += differences[i];
  return out;
}

/** Points as a series; empty where columns are missing. */
export function series(points: Points | null | undefined): Series {
  if (!points) return empty;
  const at = sums(points.time_us);
  if (points.bucket_us === 0 || !points.last) {
    const value = sums(points.value ?? []);
    return { at: at.subarray(0, value.length), low: value, high: value, line: value, bucket: 0 };
  }
  const line = sums(points.last);
  const low = points.min ? sums(points.min) : line;
  const high = points.max ? sums(points.max) : line;
  return { at, low, high, line, bucket: points.bucket_us };
}

/** No points. */
export const empty: Series = {
  at: new Float64Array(),
  low: new Float64Array(),
  high: new Float64Array(),
  line: new Float64Array(),
  bucket: 0,
};

/** Segments: each reaches from its first byte to the byte after its last. */
export function segments(trace: DirectionTrace): Series {
  const all = series(trace.segments);
  const { length } = trace.segments;
  if (all.bucket !== 0 || !length) return all;
  return { ...all, low: all.high.map((end, i) => end - (length[i] ?? 0)) };
}

/** Round trips over the sequence number; undefined where stretches stand for events. */
export function overSequence(rtt: DirectionTrace["rtt"]): Series | undefined {
  const over = rtt.sequence && sums(rtt.sequence);
  const all = series(rtt);
  if (!over || all.bucket !== 0 || over.length !== all.at.length) return undefined;
  const order = Array.from(over.keys()).sort((a, b) => over[a] - over[b]);
  const line = Float64Array.from(order, (i) => all.line[i]);
  return { at: Float64Array.from(order, (i) => over[i]), low: line, high: line, line, bucket: 0 };
}

/** A column of samples without the times at which the kernel did not say. */
export function samples(socket: SocketSeries, name: keyof SocketSeries["columns"]): Series {
  const column = socket.columns[name];
  if (!column) return empty;
  const times = sums(socket.time_us);
  const known = Array.from(column.keys()).filter((i) => column[i] !== null && i < times.length);
  const line = Float64Array.from(known, (i) => column[i] as number);
  return { at: Float64Array.from(known, (i) => times[i]), low: line, high: line, line, bucket: 0 };
}

/** How fast a count of bytes rises, in bit/s: each point is the mean of so many µs before it. */
export function slope(count: Series, time: number): Series {
  const { at, line } = count;
  const kept: number[] = [];
  const rates: number[] = [];
  for (let i = 1, from = 0; i < at.length; i++) {
    while (at[i] - at[from + 1] >= time) from++;
    const passed = at[i] - at[from];
    if (passed < time) continue;
    kept.push(at[i]);
    rates.push(Math.max(0, ((line[i] - line[from]) * 8e6) / passed));
  }
  const rate = Float64Array.from(rates);
  return { at: Float64Array.from(kept), low: rate, high: rate, line: rate, bucket: 0 };
}

/** Marks with their columns as arrays. */
export interface Places {
  readonly count: number;
  readonly at: Float64Array;
  readonly sequence: Float64Array;
  readonly length: number[];
  readonly packet: Float64Array;
}

/** The places of one kind of mark. */
export function places(marks: Marks): Places {
  return {
    count: marks.count,
    at: sums(marks.time_us),
    sequence: sums(marks.sequence),
    length: marks.length,
    packet: sums(marks.packet),
  };
}

/** The first index whose value is not below `value`, in an ascending array. */
export function lowerBound(values: Float64Array, value: number): number {
  let low = 0,
    high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The index of the value nearest to `value`; -1 of an empty array. */
export function nearest(values: Float64Array, value: number): number {
  const after = lowerBound(values, value);
  if (after === 0) return values.length ? 0 : -1;
  if (after === values.length) return after - 1;
  return value - values[after - 1] <= values[after] - value ? after - 1 : after;
}
