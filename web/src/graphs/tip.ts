/** The box beside the cursor that tells what is there. */
import { h } from "../dom.ts";
import { type Story, story } from "../hover.ts";
import type { Palette } from "../theme.ts";
import type { Words } from "../words/words.ts";
import type { Chart } from "./chart.ts";
import type { Tracks } from "./tracks.ts";

/** A panel of less than so many pixels is a phone's: the box lies below the graph. */
export const NARROW = 600;

/** The box of one chart. */
export class Tip {
  readonly element = h("div", { class: "tip", hidden: true });

  constructor(
    private readonly tracks: Tracks,
    private readonly words: Words,
    private readonly palette: Palette,
  ) {}

  hide(): void {
    this.element.hidden = true;
  }

  /** Tells what is at a place of a chart's x axis, at a height in pixels; returns it as text. */
  tell(chart: Chart, at: number, top: number): string {
    const { element, words, palette } = this;
    const frame = chart.frame();
    const { graph, shown } = chart;
    const told = story(graph, shown, this.tracks, frame, at, top + frame.top, words);
    fill(element, told, palette);
    element.hidden = false;
    const left = frame.left + ((at - frame.start) / (frame.end - frame.start)) * frame.width;
    this.place(left, chart.plot.width, frame.left + frame.width / 2, graph.name === "sequence");
    return [
      told.title,
      ...told.said.map((one) => `${one.name} ${one.value ?? ""}`),
      ...told.notes,
    ].join(". ");
  }

  private place(here: number, width: number, middle: number, isRising: boolean): void {
    const { style, classList } = this.element;
    const isNarrow = width < NARROW;
    const isRight = here > middle;
    classList.toggle("below", isNarrow);
    style.left = isNarrow ? "0" : isRight ? "auto" : `${here + 14}px`;
    style.right = isNarrow ? "0" : isRight ? `${width - here + 14}px` : "auto";
    style.maxWidth = isNarrow ? "none" : `${Math.min(360, Math.max(here, width - here) - 20)}px`;
    // Data rises to the right: there is room below it on that side, and above it on the other.
    const isBelow = isRising && !isRight && !isNarrow;
    style.top = isBelow ? "auto" : "";
    style.bottom = isBelow ? "44px" : "";
  }
}

/** Puts a story into the box beside the cursor. */
function fill(tip: HTMLElement, told: Story, palette: Palette): void {
  const lines = told.said.map(({ colour, name, value, means }) => {
    const mark = h("i", { class: "swatch" });
    if (colour) mark.style.background = palette[colour];
    return h(
      "div",
      { class: "said" },
      h("div", {}, mark, h("span", {}, name), value ? h("b", {}, value) : null),
      means ? h("p", {}, means) : null,
    );
  });
  tip.replaceChildren(
    h("strong", {}, told.title),
    ...lines,
    ...told.notes.map((note) => h("p", { class: "note" }, note)),
  );
}
