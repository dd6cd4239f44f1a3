/**
 * The graphs of one direction of one connection: a band of limits and the charts, which share one
 * time axis. It owns zoom, cursor and keyboard.
 */
import { accountColour, accountName } from "../account.ts";
import { h, icon } from "../dom.ts";
import { lowerBound } from "../decode.ts";
import type { Palette } from "../theme.ts";
import { time } from "../units.ts";
import type { Span } from "../verdict.ts";
import type { Words } from "../words/words.ts";
import { Band, type Piece } from "./band.ts";
import { type Graph, graphsOf } from "./catalogue.ts";
import { Chart, type Shade } from "./chart.ts";
import { legend } from "./legend.ts";
import { NARROW, Tip } from "./tip.ts";
import { axisSwitch, pictureButtons } from "./tools.ts";
import type { Tracks } from "./tracks.ts";

/** What a panel is made of. */
export interface PanelOptions {
  readonly tracks: Tracks;
  readonly words: Words;
  readonly palette: Palette;
  readonly pathRtt: number | undefined;
  readonly isOverSequence: boolean;
  /** Shown at first; the whole time where it is absent. */
  readonly zoom: Span | undefined;
  /** Beneath the title of an exported picture. */
  readonly caption: string;
  /** Told whenever another time is shown; undefined is the whole. */
  zoomed(zoom: Span | undefined): void;
  setOverSequence(is: boolean): void;
}

interface Shown {
  readonly graph: Graph;
  readonly chart: Chart;
  readonly tip: Tip;
}

/** At least this much is shown, in µs or in bytes. */
const LEAST = 20;

/** The part of a band's height that is filled where nothing says how sure the verdict is. */
const UNSAID = 0.5;

/** A colour with its name. */
function key(colour: string, name: string, means: string): HTMLElement {
  const mark = h("i", { class: "swatch", "aria-hidden": "true" });
  mark.style.background = colour;
  return h("li", { title: means }, mark, name);
}

/** The part of `whole` that is nearest to a span, and as long where that is possible. */
function within([start, end]: Span, [first, last]: Span): Span {
  const length = Math.min(Math.max(end - start, LEAST), last - first);
  const from = Math.min(Math.max(start, first), last - length);
  return [from, from + length];
}

/** The graphs of a direction. */
export class Panel {
  readonly element: HTMLElement;
  private readonly charts: Shown[] = [];
  private readonly bands: Band[] = [];
  private readonly whole: Span;
  private readonly shades: Shade[];
  private readonly status = h("p", { class: "zoom-status", "aria-live": "polite" });
  private readonly spoken = h("p", { class: "off-screen", "aria-live": "polite" });
  private view: Span;
  private at: number | null = null;
  private readonly sizes: ResizeObserver;

  constructor(private readonly options: PanelOptions) {
    const { tracks, words } = options;
    this.whole = tracks.span;
    this.view = this.within(options.zoom ?? this.whole);
    this.shades = tracks.stalls.map((stall) => ({
      start: stall.start_us,
      end: stall.start_us + stall.length_us,
    }));
    this.element = h(
      "div",
      {
        class: "panel",
        tabindex: 0,
        role: "group",
        "aria-label": `${words.ui.graphs}. ${words.ui.keys}`,
        onkeydown: (event: KeyboardEvent) => this.key(event),
      },
      this.toolbar(),
      this.accountBox(),
      this.bandBox(),
      this.spoken,
    );
    this.sizes = new ResizeObserver(() => this.resize());
  }

  /** Draws everything; the element must be in the page, because graphs have its width. */
  start(): void {
    const { tracks, words, pathRtt, isOverSequence } = this.options;
    for (const graph of graphsOf(tracks, words, pathRtt, isOverSequence)) this.add(graph);
    this.sizes.observe(this.element);
    this.resize();
    this.show();
  }

  destroy(): void {
    this.sizes.disconnect();
    this.charts.forEach(({ chart }) => chart.destroy());
    this.element.remove();
  }

  /** Shows a part of the time with a little before and after it. */
  showSpan(span: Span): void {
    const room = Math.max((span[1] - span[0]) * 0.08, LEAST);
    this.zoom([span[0] - room, span[1] + room]);
    this.element.focus({ preventScroll: true });
  }

  /** Shows a part of the time. */
  zoom(to: Span): void {
    this.view = this.within(to);
    this.show();
    this.options.zoomed(this.isWhole() ? undefined : this.view);
  }

  reset(): void {
    for (const { graph, chart } of this.charts) {
      if (graph.over !== "time") chart.show(graph.span);
    }
    this.zoom(this.whole);
  }

  private isWhole(): boolean {
    return this.view[0] <= this.whole[0] && this.view[1] >= this.whole[1];
  }

  private within(span: Span): Span {
    return within(span, this.whole);
  }

  private show(): void {
    for (const { graph, chart } of this.charts) {
      if (graph.over === "time") chart.show(this.view);
    }
    this.bands.forEach((band) => band.show(this.view));
    this.point(null);
    const { words } = this.options;
    this.status.textContent = this.isWhole()
      ? words.ui.reset
      : words.say.zoomed(time(this.view[0]), time(this.view[1]));
  }

  private toolbar(): HTMLElement {
    const { ui } = this.options.words;
    const button = (name: string, path: string, act: () => void): HTMLElement =>
      h(
        "button",
        { type: "button", class: "icon", "aria-label": name, title: name, onclick: act },
        icon(path),
      );
    return h(
      "div",
      { class: "toolbar" },
      h(
        "div",
        { class: "buttons", role: "group", "aria-label": ui.graphs },
        button(ui.zoomIn, "M10 4v12M4 10h12", () => this.scale(0.5)),
        button(ui.zoomOut, "M4 10h12", () => this.scale(2)),
        button(ui.left, "M12 4l-6 6 6 6", () => this.pan(-0.25)),
        button(ui.right, "M8 4l6 6-6 6", () => this.pan(0.25)),
        button(ui.reset, "M3 8V3h5M17 8V3h-5M3 12v5h5M17 12v5h-5", () => this.reset()),
      ),
      this.status,
    );
  }

  /** What all the time of the connection went for; nothing where the report does not have it. */
  private accountBox(): HTMLElement | null {
    const { words, tracks, palette } = this.options;
    if (tracks.account.length === 0) return null;
    const pieces = tracks.account.map((span) => ({
      span: [span.start_us, span.start_us + span.length_us] as const,
      colour: accountColour(palette, span),
      height: 1,
      name: accountName(words, span),
    }));
    const keys = new Map(
      tracks.account.map((span) => [
        accountName(words, span),
        key(
          accountColour(palette, span),
          accountName(words, span),
          words.account.owner[span.owner] ?? span.owner,
        ),
      ]),
    );
    return this.band(words.account.title, null, pieces, [...keys.values()]);
  }

  private bandBox(): HTMLElement {
    const { words, tracks, palette } = this.options;
    const pieces = tracks.held.map(({ span, name, confidence }) => ({
      span,
      colour: palette.limits[name],
      height: confidence ?? UNSAID,
      name: words.limit[name].name,
    }));
    const keys = [...new Set(tracks.held.map(({ name }) => name))].map((name) =>
      key(palette.limits[name], words.limit[name].name, words.limit[name].means),
    );
    return this.band(words.ui.limitsBand, words.ui.limitsBandMeans, pieces, keys);
  }

  /** A band with its title and its key. */
  private band(
    title: string,
    means: string | null,
    pieces: readonly Piece[],
    keys: HTMLElement[],
  ): HTMLElement {
    const band = new Band(
      pieces,
      this.options.palette,
      (at) => this.point(at),
      ({ span }) => this.zoom(span),
    );
    this.bands.push(band);
    const question = means === null ? null : h("p", { class: "question" }, means);
    return h(
      "section",
      { class: "graph band-box", "aria-label": title },
      h("header", {}, h("div", {}, h("h3", {}, title), question)),
      band.element,
      h("ul", { class: "keys" }, keys),
    );
  }

  private add(graph: Graph): void {
    const { words, palette } = this.options;
    const tip = new Tip(this.options.tracks, words, palette);
    const plot = h("div", { class: "plot" }, tip.element);
    const title = words.graph[graph.name];
    const box = h("section", {
      class: "graph",
      "data-graph": graph.name,
      "aria-label": title.title,
    });
    const tools = h("div", { class: "tools" });
    box.append(
      h(
        "header",
        {},
        h("div", {}, h("h3", {}, title.title), h("p", { class: "question" }, title.question)),
        tools,
      ),
      plot,
    );
    this.element.append(box);
    const chart: Chart = new Chart(
      plot,
      graph,
      palette,
      graph.over === "time" ? this.view : graph.span,
      this.shades,
      {
        zoomed: (start, end) =>
          graph.over === "time"
            ? this.zoom([start, end])
            : chart.show(within([start, end], graph.span)),
        reset: () => (graph.over === "time" ? this.reset() : chart.show(graph.span)),
        pointed: (at, top) => this.pointed(shown, at, top),
      },
      { width: this.width(), height: this.height(graph) },
    );
    const shown: Shown = { graph, chart, tip };
    this.charts.push(shown);
    const { tracks, caption, isOverSequence, setOverSequence } = this.options;
    if (graph.name === "rtt") {
      const canBe = tracks.rttOverSequence !== undefined;
      tools.append(axisSwitch(words, isOverSequence, canBe, setOverSequence));
    }
    const drawn = { title: title.title, subtitle: caption, palette, shades: this.shades };
    tools.append(
      ...pictureButtons(words, title.title, () => ({
        graph,
        shown: chart.shown,
        view: chart.shownSpan,
        caption: drawn,
      })),
    );
    box.append(legend(graph, chart.hidden, words, palette, () => chart.redraw()));
  }

  /** The pointer is in a chart: all cursors follow, and the chart tells what is there. */
  private pointed(shown: Shown, at: number | null, top: number): void {
    if (shown.graph.over === "time") this.point(at, shown);
    if (at === null) {
      shown.tip.hide();
      return;
    }
    shown.tip.tell(shown.chart, at, top);
  }

  /** Puts all cursors at a time. */
  private point(at: number | null, from?: Shown): void {
    this.at = at;
    this.bands.forEach((band) => band.point(at));
    for (const shown of this.charts) {
      if (shown === from) continue;
      if (shown.graph.over === "time") shown.chart.point(at);
      shown.tip.hide();
    }
  }

  /** Steps from point to point of the data and tells of each. */
  private step(by: 1 | -1): void {
    const shown = this.charts[0];
    const { at } = this.options.tracks.segments.levels[0];
    if (!shown || at.length === 0) return;
    const now = this.at ?? (by > 0 ? this.view[0] - 1 : this.view[1] + 1);
    const index = by > 0 ? lowerBound(at, now + 0.5) : lowerBound(at, now - 0.5) - 1;
    if (index < 0 || index >= at.length) return;
    const to = at[index],
      length = this.view[1] - this.view[0];
    if (to < this.view[0] || to > this.view[1]) this.zoom([to - length / 2, to + length / 2]);
    this.point(to);
    this.spoken.textContent = shown.tip.tell(shown.chart, to, -1);
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target !== this.element && event.key !== "Escape") return;
    const acts: Record<string, () => void> = {
      "+": () => this.scale(0.5),
      "=": () => this.scale(0.5),
      "-": () => this.scale(2),
      _: () => this.scale(2),
      ArrowLeft: () => (event.shiftKey ? this.step(-1) : this.pan(-0.2)),
      ArrowRight: () => (event.shiftKey ? this.step(1) : this.pan(0.2)),
      "0": () => this.reset(),
      Escape: () => this.reset(),
      Home: () => this.pan(-Infinity),
      End: () => this.pan(Infinity),
    };
    const act = acts[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  private scale(by: number): void {
    const middle = this.at ?? (this.view[0] + this.view[1]) / 2;
    this.zoom([middle - (middle - this.view[0]) * by, middle + (this.view[1] - middle) * by]);
  }

  private pan(by: number): void {
    const length = this.view[1] - this.view[0];
    const start =
      by === -Infinity
        ? this.whole[0]
        : by === Infinity
          ? this.whole[1] - length
          : this.view[0] + by * length;
    this.zoom([start, start + length]);
  }

  private width(): number {
    return Math.max(240, Math.floor(this.element.clientWidth));
  }

  private height(graph: Graph): number {
    const isNarrow = this.width() < NARROW;
    return graph.name === "sequence" ? (isNarrow ? 300 : 400) : isNarrow ? 190 : 220;
  }

  private resize(): void {
    const width = this.width();
    this.bands.forEach((band) => band.resize(width));
    for (const { chart, graph } of this.charts) chart.resize(width, this.height(graph));
  }
}
