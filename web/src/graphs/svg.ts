/** A pen that records what it draws as SVG. */
import type { Pen } from "./pen.ts";

const NUMBER = (value: number): string => String(Math.round(value * 100) / 100);
const escape = (text: string): string =>
  text
    .replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`)
    // eslint-disable-next-line no-control-regex
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd");

interface State {
  strokeStyle: string;
  fillStyle: string;
  lineWidth: number;
  globalAlpha: number;
  lineJoin: CanvasLineJoin;
  font: string;
  textAlign: CanvasTextAlign;
  textBaseline: CanvasTextBaseline;
  dash: number[];
  clips: number;
}

/** Records the canvas calls that graphs use. */
export class SvgPen implements Pen {
  strokeStyle = "#000";
  fillStyle = "#000";
  lineWidth = 1;
  globalAlpha = 1;
  lineJoin: CanvasLineJoin = "miter";
  font = "12px sans-serif";
  textAlign: CanvasTextAlign = "left";
  textBaseline: CanvasTextBaseline = "alphabetic";
  private dash: number[] = [];
  private path: string[] = [];
  private readonly out: string[] = [];
  private readonly saved: State[] = [];
  private clips = 0;
  private clipCount = 0;

  beginPath(): void {
    this.path = [];
  }
  moveTo(x: number, y: number): void {
    this.path.push(`M${NUMBER(x)} ${NUMBER(y)}`);
  }
  lineTo(x: number, y: number): void {
    this.path.push(`L${NUMBER(x)} ${NUMBER(y)}`);
  }
  closePath(): void {
    this.path.push("Z");
  }
  rect(x: number, y: number, width: number, height: number): void {
    this.path.push(
      `M${NUMBER(x)} ${NUMBER(y)}h${NUMBER(width)}v${NUMBER(height)}h${NUMBER(-width)}Z`,
    );
  }
  /** Whole circles only. */
  arc(x: number, y: number, radius: number): void {
    const r = NUMBER(radius),
      d = NUMBER(2 * radius);
    this.path.push(
      `M${NUMBER(x - radius)} ${NUMBER(y)}a${r} ${r} 0 1 0 ${d} 0a${r} ${r} 0 1 0 -${d} 0`,
    );
  }
  setLineDash(dash: number[]): void {
    this.dash = [...dash];
  }
  stroke(): void {
    if (this.path.length === 0) return;
    const dash = this.dash.length ? ` stroke-dasharray="${this.dash.map(NUMBER).join(" ")}"` : "";
    this.out.push(
      `<path d="${this.path.join("")}" fill="none" stroke="${escape(this.strokeStyle)}" stroke-width="${NUMBER(this.lineWidth)}"${dash}${this.alpha()}/>`,
    );
  }
  fill(): void {
    if (this.path.length === 0) return;
    this.out.push(
      `<path d="${this.path.join("")}" fill="${escape(this.fillStyle)}"${this.alpha()}/>`,
    );
  }
  fillRect(x: number, y: number, width: number, height: number): void {
    this.out.push(
      `<rect x="${NUMBER(x)}" y="${NUMBER(y)}" width="${NUMBER(width)}" height="${NUMBER(height)}" fill="${escape(this.fillStyle)}"${this.alpha()}/>`,
    );
  }
  fillText(text: string, x: number, y: number): void {
    const anchor = { center: "middle", right: "end", end: "end", left: "start", start: "start" }[
      this.textAlign
    ];
    const base =
      this.textBaseline === "middle" ? "central" : this.textBaseline === "top" ? "hanging" : "auto";
    const [, weight, size, family] = /^(?:(\d+|bold) )?([\d.]+)px (.*)$/.exec(this.font) ?? [];
    this.out.push(
      `<text x="${NUMBER(x)}" y="${NUMBER(y)}" font-size="${size}" font-family="${escape(family ?? "sans-serif")}"${weight ? ` font-weight="${weight}"` : ""} text-anchor="${anchor}" dominant-baseline="${base}" fill="${escape(this.fillStyle)}">${escape(text)}</text>`,
    );
  }
  clip(): void {
    this.clipCount += 1;
    this.clips += 1;
    this.out.push(
      `<clipPath id="c${this.clipCount}"><path d="${this.path.join("")}"/></clipPath><g clip-path="url(#c${this.clipCount})">`,
    );
  }
  save(): void {
    const {
      strokeStyle,
      fillStyle,
      lineWidth,
      globalAlpha,
      lineJoin,
      font,
      textAlign,
      textBaseline,
      dash,
      clips,
    } = this;
    this.saved.push({
      strokeStyle,
      fillStyle,
      lineWidth,
      globalAlpha,
      lineJoin,
      font,
      textAlign,
      textBaseline,
      dash,
      clips,
    });
  }
  restore(): void {
    const state = this.saved.pop();
    if (!state) return;
    for (; this.clips > state.clips; this.clips--) this.out.push("</g>");
    Object.assign(this, state);
  }
  private alpha(): string {
    return this.globalAlpha < 1 ? ` opacity="${NUMBER(this.globalAlpha)}"` : "";
  }

  /** The picture. */
  text(width: number, height: number): string {
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">${this.out.join("")}</svg>\n`;
  }
}
