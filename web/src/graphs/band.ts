/** The bands above the graphs: what the time went for, and which limit held the data. */
import { h } from "../dom.ts";
import type { Palette } from "../theme.ts";
import type { Span } from "../verdict.ts";
import { time } from "../units.ts";
import { AXIS_WIDTH, RIGHT } from "./chart.ts";
import type { Frame, Pen } from "./pen.ts";
import { x } from "./pen.ts";

const HEIGHT = 26;

/** A stretch of a band. */
export interface Piece {
  readonly span: Span;
  readonly colour: string;
  /** How much of the band's height it fills, 0 to 1. */
  readonly height: number;
  readonly name: string;
}

function paintBand(pen: Pen, frame: Frame, pieces: readonly Piece[]): void {
  pen.fillStyle = frame.palette.grid;
  pen.fillRect(frame.left, frame.top, frame.width, frame.height);
  for (const { span, colour, height: part } of pieces) {
    if (span[1] < frame.start || span[0] > frame.end) continue;
    const left = Math.max(frame.left, x(frame, span[0]));
    const right = Math.min(frame.left + frame.width, x(frame, span[1]));
    pen.fillStyle = colour;
    const height = frame.height * part;
    const top = frame.top + frame.height - height;
    pen.fillRect(left, top, Math.max(right - left, 0.5 * frame.ratio), height);
  }
}

/** A band on the page. */
export class Band {
  readonly element = h("div", { class: "band" });
  private readonly canvas = h("canvas", { height: HEIGHT });
  private readonly line = h("div", { class: "band-cursor", hidden: true });
  private view: Span = [0, 1];
  private width = 0;

  constructor(
    private readonly pieces: readonly Piece[],
    private readonly palette: Palette,
    pointed: (at: number | null) => void,
    clicked: (piece: Piece) => void,
  ) {
    const at = (event: PointerEvent | MouseEvent): number =>
      this.view[0] + (event.offsetX / Math.max(1, this.width)) * (this.view[1] - this.view[0]);
    const piece = (event: PointerEvent | MouseEvent): Piece | undefined =>
      this.pieces.find(({ span }) => span[0] <= at(event) && at(event) < span[1]);
    this.canvas.addEventListener("pointermove", (event) => {
      const found = piece(event);
      this.canvas.title = found ? `${found.name}, ${time(found.span[1] - found.span[0])}` : "";
      pointed(at(event));
    });
    this.canvas.addEventListener("pointerleave", () => pointed(null));
    this.canvas.addEventListener("click", (event) => {
      const found = piece(event);
      if (found) clicked(found);
    });
    this.element.style.marginLeft = `${AXIS_WIDTH}px`;
    this.element.style.marginRight = `${RIGHT}px`;
    this.element.append(this.canvas, this.line);
  }

  show(view: Span): void {
    this.view = view;
    const ratio = devicePixelRatio || 1;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(HEIGHT * ratio);
    const pen = this.canvas.getContext("2d");
    if (!pen || this.width <= 0) return;
    paintBand(
      pen,
      {
        left: 0,
        top: 0,
        width: this.canvas.width,
        height: this.canvas.height,
        start: view[0],
        end: view[1],
        low: 0,
        high: 1,
        ratio,
        palette: this.palette,
      },
      this.pieces,
    );
  }

  resize(width: number): void {
    this.width = Math.max(0, width - AXIS_WIDTH - RIGHT);
    this.canvas.style.width = `${this.width}px`;
    this.show(this.view);
  }

  point(at: number | null): void {
    this.line.hidden = at === null;
    if (at === null) return;
    const part = (at - this.view[0]) / (this.view[1] - this.view[0]);
    this.line.style.transform = `translateX(${Math.round(part * this.width)}px)`;
  }
}
