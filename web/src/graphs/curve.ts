/** Goodput over what a lab varied, beside the law. */
import type { Curve } from "../data.ts";
import type { Palette } from "../theme.ts";
import { ticks } from "../units.ts";
import { axes, type Tick, ticksOf } from "./paint.ts";
import { clipped, type Frame, type Pen, x, y } from "./pen.ts";

/** An axis is logarithmic where its values reach over more than this factor. */
const LOG_FROM = 25;

/** A scale: how values are laid out, and its ticks. */
interface Scale {
  readonly low: number;
  readonly high: number;
  of(value: number): number;
  ticks(pixels: number, apart: number): Tick[];
}

function scale(values: readonly number[], unit: Curve["unit"]): Scale {
  const least = Math.min(...values),
    most = Math.max(...values, least + Number.MIN_VALUE);
  if (least > 0 && most / least > LOG_FROM) {
    const low = Math.log10(least),
      high = Math.log10(most),
      room = (high - low) * 0.05;
    return {
      low: low - room,
      high: high + room,
      of: Math.log10,
      ticks: () => logTicks(low - room, high + room, unit),
    };
  }
  const high = most * 1.08 || 1;
  return {
    low: 0,
    high,
    of: (value) => value,
    ticks: (pixels, apart) => ticksOf(0, high, pixels, apart, unit),
  };
}

/** 1, 10, 100; with 2 and 5 where there are few of them. */
function logTicks(low: number, high: number, unit: Curve["unit"]): Tick[] {
  const steps = high - low > 3 ? [1] : [1, 2, 5];
  const out: Tick[] = [];
  for (let power = Math.floor(low); power <= high; power++) {
    for (const step of steps) {
      const value = step * 10 ** power,
        at = Math.log10(value);
      if (at >= low && at <= high) out.push([at, ticks([value], unit)[0]]);
    }
  }
  return out;
}

/** Where a measured point was drawn, in pixels of the page. */
export interface Spot {
  readonly left: number;
  readonly top: number;
  readonly run: number;
}

/** Paints a curve into a picture of this size and tells where its points are. */
export function paintCurve(
  pen: Pen,
  curve: Curve,
  size: { width: number; height: number },
  ratio: number,
  palette: Palette,
): Spot[] {
  const points = [...curve.points].sort((a, b) => a.x - b.x);
  const law = [...curve.law].sort((a, b) => a.x - b.x);
  const across = scale(
    [...points, ...law].map((one) => one.x),
    curve.unit,
  );
  const up = scale([...points.map((one) => one.goodput_bps), ...law.map((one) => one.bps)], "bps");
  const frame: Frame = {
    left: 84 * ratio,
    top: 12 * ratio,
    width: (size.width - 100) * ratio,
    height: (size.height - 48) * ratio,
    start: across.low,
    end: across.high,
    low: up.low,
    high: up.high,
    ratio,
    palette,
  };
  pen.fillStyle = palette.surface;
  pen.fillRect(0, 0, size.width * ratio, size.height * ratio);
  axes(pen, frame, across.ticks(size.width - 100, 80), up.ticks(size.height - 48, 40));
  const spots = points.map((one) => ({
    left: x(frame, across.of(one.x)) / ratio,
    top: y(frame, up.of(one.goodput_bps)) / ratio,
    run: one.run,
  }));
  clipped(pen, frame, () => {
    pen.beginPath();
    law.forEach((one, i) => {
      const here = x(frame, across.of(one.x)),
        there = y(frame, up.of(one.bps));
      if (i) pen.lineTo(here, there);
      else pen.moveTo(here, there);
    });
    pen.strokeStyle = palette.amber;
    pen.lineWidth = 2 * ratio;
    pen.setLineDash([6 * ratio, 4 * ratio]);
    pen.stroke();
    pen.setLineDash([]);
    pen.fillStyle = palette.blue;
    for (const { left, top } of spots) {
      pen.beginPath();
      pen.arc(left * ratio, top * ratio, 4 * ratio, 0, 7);
      pen.fill();
    }
  });
  return spots;
}
