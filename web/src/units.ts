/** Quantities in words: times in s, ms and µs, rates in bit/s and B/s, bytes by powers of 1000.
 * A line never breaks between a number and its unit. */

/** Three digits that count, without trailing zeros behind the point. */
export function digits(value: number): string {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  const places = size >= 100 || size === 0 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3;
  return String(Number(value.toFixed(places)));
}

function scaled(value: number, units: readonly (readonly [number, string])[]): string {
  const size = Math.abs(value);
  const [factor, name] =
    units.find(([factor]) => size >= factor * 0.9995) ?? units[units.length - 1];
  return `${digits(value / factor)}\u00a0${name}`;
}

const BITS = [
  [1e9, "Gbit/s"],
  [1e6, "Mbit/s"],
  [1e3, "kbit/s"],
  [1, "bit/s"],
] as const;
const BYTES_A_SECOND = [
  [1e9, "GB/s"],
  [1e6, "MB/s"],
  [1e3, "kB/s"],
  [1, "B/s"],
] as const;
const BYTES = [
  [1e12, "TB"],
  [1e9, "GB"],
  [1e6, "MB"],
  [1e3, "kB"],
  [1, "B"],
] as const;
const TIME = [
  [1e6, "s"],
  [1e3, "ms"],
  [1, "µs"],
] as const;

/** A rate: `158.9 Mbit/s`. */
export const rate = (bps: number): string => scaled(bps, BITS);
/** The same rate in bytes: `19.9 MB/s`. */
export const byteRate = (bps: number): string => scaled(bps / 8, BYTES_A_SECOND);
/** Both, for people who think in either. */
export const bothRates = (bps: number): string => `${rate(bps)} (${byteRate(bps)})`;
/** An amount of data: `2.9 MB`. */
export const bytes = (amount: number): string => scaled(amount, BYTES);
/** A time, given in µs: `146 ms`. */
export const time = (us: number): string => (us === 0 ? "0\u00a0s" : scaled(us, TIME));
/** A share: `93 %`. */
export function percent(share: number): string {
  const of = share * 100;
  if (of > 0 && of < 0.5) return "<\u00a01\u00a0%";
  return `${Math.round(of)}\u00a0%`;
}
/** A whole number with narrow spaces that do not break between thousands. */
export const count = (value: number): string =>
  String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, "\u202f");

/** What an axis measures. */
export type Unit = "us" | "bytes" | "bps" | "share" | "count";

/** The labels of an axis: one unit for all of them, and as many digits as tell them apart. */
export function ticks(values: readonly number[], unit: Unit): string[] {
  const most = Math.max(...values.map(Math.abs), 0);
  if (unit === "share") return values.map((value) => `${Number((value * 100).toPrecision(4))} %`);
  if (unit === "count") return values.map(count);
  const units = unit === "us" ? TIME : unit === "bytes" ? BYTES : BITS;
  const [factor, name] = units.find(([factor]) => most >= factor) ?? units[units.length - 1];
  const step = values.length > 1 ? Math.abs(values[1] - values[0]) / factor : most / factor || 1;
  const places = Math.min(6, Math.max(0, Math.ceil(-Math.log10(step) - 1e-9), oddPlaces(step)));
  return values.map((value) => (value === 0 ? "0" : `${(value / factor).toFixed(places)} ${name}`));
}

/** Digits behind the point that a step such as 2.5 needs. */
function oddPlaces(step: number): number {
  for (let places = 0; places < 6; places++) {
    const whole = step * 10 ** places;
    if (Math.abs(whole - Math.round(whole)) < 1e-6 * whole) return places;
  }
  return 6;
}

/** Round positions for about `wanted` ticks between two values. */
export function niceTicks(low: number, high: number, wanted: number): number[] {
  const span = high - low;
  if (!(span > 0) || wanted < 1) return [low];
  const rough = span / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step =
    [1, 2, 2.5, 5, 10].map((of) => of * power).find((of) => of >= rough * 0.999) ?? 10 * power;
  const out: number[] = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++)
    out.push(i * step + 0);
  return out;
}
