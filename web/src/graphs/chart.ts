/**
 * One graph on the page: uPlot gives axes, grid, cursor and drag; layers draw what is in it.
 */
import uPlot from "uplot";
import { type Palette } from "../theme.ts";
import { ticks } from "../units.ts";
import type { Graph } from "./catalogue.ts";
import type { Layer } from "./layers.ts";
import { clipped, type Frame } from "./pen.ts";
import { nameOutside, yRange } from "./scale.ts";
import { followFingers } from "./touch.ts";

/** Room for the labels of the y axis, the same in all graphs, so that their times align. */
export const AXIS_WIDTH = 74;
/** Room to the right. */
export const RIGHT = 24;

/** A stretch to shade. */
export interface Shade {
  readonly start: number;
  readonly end: number;
}

/** What a chart tells. */
export interface ChartEvents {
  /** The reader dragged over this part of the x axis. */
  zoomed(start: number, end: number): void;
  reset(): void;
  /** The pointer is at a place of the x axis, and at a height in pixels; null where it left. */
  pointed(at: number | null, top: number): void;
}

const FONT = "11px system-ui, -apple-system, 'Segoe UI', 'Noto Sans CJK SC', sans-serif";

/** A graph on the page. */
export class Chart {
  readonly graph: Graph;
  readonly plot: uPlot;
  /** Keys of the layers that are not shown. */
  readonly hidden = new Set<string>();
  private view: readonly [number, number];
  private palette: Palette;
  private isSilent = false;
  /** Width of the plotting area. */
  private pixels: number;

  constructor(
    target: HTMLElement,
    graph: Graph,
    palette: Palette,
    view: readonly [number, number],
    private readonly shades: readonly Shade[],
    private readonly events: ChartEvents,
    size: { width: number; height: number },
  ) {
    this.graph = graph;
    this.view = view;
    this.palette = palette;
    for (const layer of graph.layers) if (!layer.isShown) this.hidden.add(layer.key);
    this.pixels = size.width - AXIS_WIDTH - RIGHT;
    this.plot = new uPlot(this.options(size), this.corners(), target);
    followFingers(this.plot.over, {
      shown: () => this.view,
      show: ([start, end]) => events.zoomed(start, end),
      reset: () => events.reset(),
    });
  }

  /** The layers that are shown. */
  get shown(): Layer[] {
    return this.graph.layers.filter((layer) => !this.hidden.has(layer.key));
  }

  /** The part of the x axis that is shown. */
  get shownSpan(): readonly [number, number] {
    return this.view;
  }

  /** Shows another part of the x axis, or other layers of the same. */
  show(view: readonly [number, number]): void {
    this.view = view;
    this.plot.setData(this.corners(), true);
  }

  /** Draws again. */
  redraw(): void {
    this.show(this.view);
  }

  resize(width: number, height: number): void {
    if (width === this.plot.width && height === this.plot.height) return;
    this.pixels = width - AXIS_WIDTH - RIGHT;
    this.plot.setSize({ width, height });
    this.redraw();
  }

  /** Puts the cursor's line at a place without telling of it. */
  point(at: number | null): void {
    this.isSilent = true;
    this.plot.setCursor({ left: at === null ? -10 : this.plot.valToPos(at, "x"), top: -10 });
    this.isSilent = false;
  }

  /** The plotting area in pixels of the page. */
  frame(ratio = 1, box = this.plot.bbox): Frame {
    const scale = ratio / uPlot.pxRatio;
    const { x, y } = this.plot.scales;
    return {
      left: box.left * scale,
      top: box.top * scale,
      width: box.width * scale,
      height: box.height * scale,
      start: x.min ?? 0,
      end: x.max ?? 1,
      low: y.min ?? 0,
      high: y.max ?? 1,
      ratio,
      palette: this.palette,
    };
  }

  destroy(): void {
    this.plot.destroy();
  }

  /** uPlot sees two points only, the corners of what is shown: the layers draw the rest. */
  private corners(): uPlot.AlignedData {
    const [start, end] = this.view;
    return [[start, end], yRange(this.graph, this.shown, start, end, this.pixels)];
  }

  private options(size: { width: number; height: number }): uPlot.Options {
    const { palette, graph } = this;
    const axis: uPlot.Axis = {
      stroke: palette.muted,
      font: FONT,
      grid: { stroke: palette.grid, width: 1 },
      ticks: { show: false },
    };
    return {
      ...size,
      legend: { show: false },
      padding: [10, RIGHT, 0, 0],
      scales: {
        x: { time: false, range: (_, low, high) => [low, high] },
        y: { range: (_, low, high) => [low, high] },
      },
      series: [{}, { paths: () => null, points: { show: false } }],
      axes: [
        {
          ...axis,
          space: 74,
          size: 30,
          values: (_, at) => ticks(at, graph.over === "time" ? "us" : "bytes"),
        },
        { ...axis, space: 34, size: AXIS_WIDTH, values: (_, at) => ticks(at, graph.unit) },
      ],
      cursor: {
        y: false,
        points: { show: false },
        drag: { x: true, y: false, setScale: false },
        bind: {
          dblclick: () => () => {
            this.events.reset();
            return null;
          },
        },
      },
      hooks: {
        drawAxes: [() => this.shade()],
        draw: [() => this.draw()],
        setSelect: [(plot) => this.selected(plot)],
        setCursor: [(plot) => this.cursor(plot)],
      },
    };
  }

  private shade(): void {
    if (this.graph.over !== "time") return;
    const frame = this.frame(uPlot.pxRatio);
    paintShades(this.plot.ctx, frame, this.shades);
  }

  private draw(): void {
    const frame = this.frame(uPlot.pxRatio);
    const pen = this.plot.ctx;
    clipped(pen, frame, () => this.shown.forEach((layer) => layer.draw(pen, frame)));
    nameOutside(pen, frame, this.shown);
  }

  private selected(plot: uPlot): void {
    const { left, width } = plot.select;
    if (width < 4) return;
    const start = plot.posToVal(left, "x"),
      end = plot.posToVal(left + width, "x");
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.events.zoomed(start, end);
  }

  private cursor(plot: uPlot): void {
    if (this.isSilent) return;
    const { left = -10, top = -10 } = plot.cursor;
    this.events.pointed(left < 0 ? null : plot.posToVal(left, "x"), top);
  }
}

/** Shades stretches of time. */
export function paintShades(
  pen: CanvasRenderingContext2D | import("./pen.ts").Pen,
  frame: Frame,
  shades: readonly Shade[],
): void {
  clipped(pen, frame, () => {
    pen.globalAlpha = 0.14;
    pen.fillStyle = frame.palette.stall;
    const scale = frame.width / (frame.end - frame.start);
    for (const { start, end } of shades) {
      if (end < frame.start || start > frame.end) continue;
      const left = frame.left + (start - frame.start) * scale;
      pen.fillRect(left, frame.top, Math.max((end - start) * scale, frame.ratio), frame.height);
    }
    pen.globalAlpha = 1;
  });
}
