/** The calculator: sliders, the answer in a sentence, and the curve over one of the quantities. */
import type { Curve } from "../data.ts";
import { h } from "../dom.ts";
import { paintCurve } from "../graphs/curve.ts";
import type { Palette } from "../theme.ts";
import { bothRates, bytes, count, percent, rate, time } from "../units.ts";
import type { Program } from "./program.ts";
import type { Quantity, ViewWords } from "./words.ts";

/** What the program answers: `Answer` of crates/view/src/law.rs. */
interface Answer {
  goodput_bps: number;
  limit: string;
  needs: {
    bdp_bytes: number;
    goodput_bps: number;
    sndbuf_for_bdp_bytes: number;
    slow_start_us: number;
    gigabyte?: { total_us: number } | null;
    kernels: { kernel: string; rcvbuf_for_bdp_bytes: number }[];
  };
  curve: { x: number; goodput_bps: number; limit: string }[];
}

/** A slider: from, to, and whether its end means that nothing limits. */
interface Range {
  readonly from: number;
  readonly to: number;
  readonly isOpen?: boolean;
  readonly unit: Curve["unit"];
  show(value: number): string;
}

const RANGES: Record<Quantity, Range> = {
  rate: { from: 2.56e5, to: 1e11, unit: "bps", show: rate },
  rtt: { from: 100, to: 1e6, unit: "us", show: time },
  window: { from: 4096, to: 1e9, isOpen: true, unit: "bytes", show: bytes },
  send_buffer: { from: 4096, to: 1e9, isOpen: true, unit: "bytes", show: bytes },
  loss: { from: 1e-6, to: 0.1, unit: "share", show: (share) => (share ? percentOf(share) : "0 %") },
  connections: { from: 1, to: 64, unit: "count", show: count },
};
const QUANTITIES = Object.keys(RANGES) as Quantity[];
const STEPS = 1000;

/** Small shares need more digits than `percent` has. */
function percentOf(share: number): string {
  return share >= 0.01 ? percent(share) : `${Number((share * 100).toPrecision(2))} %`;
}

/** The values that the sliders stand at. `null`: nothing limits. */
type Values = Record<Quantity, number | null>;

export class Calculator {
  private readonly values: Values = {
    rate: 1e9,
    rtt: 50_000,
    window: 3_145_728,
    send_buffer: null,
    loss: 0,
    connections: 1,
  };
  private over: Quantity = "rtt";
  private asked = 0;
  private answer: Answer | undefined;
  private readonly sentence = h("p", { class: "sentence", "aria-live": "polite" });
  private readonly list = h("ul", { class: "needs" });
  private readonly canvas = h("canvas", { role: "img" });
  private readonly resized = new ResizeObserver(() => this.paint());

  constructor(
    private readonly program: Program,
    private readonly words: ViewWords,
    private readonly palette: Palette,
  ) {}

  /** The calculator's elements. */
  element(): HTMLElement {
    const { words } = this;
    this.resized.observe(this.canvas);
    const axis = h(
      "select",
      {
        id: "over",
        onchange: (event: Event) => {
          this.over = (event.target as HTMLSelectElement).value as Quantity;
          this.ask();
        },
      },
      QUANTITIES.map((one) =>
        h("option", { value: one, selected: one === this.over }, words.quantity[one].name),
      ),
    );
    this.ask();
    return h(
      "div",
      { class: "calculator" },
      h(
        "div",
        { class: "sliders" },
        QUANTITIES.map((one) => this.slider(one)),
      ),
      h(
        "div",
        { class: "answer" },
        this.sentence,
        this.list,
        h("p", { class: "quiet" }, words.units),
        h("div", { class: "axis" }, h("label", { for: "over" }, words.over), axis),
        this.canvas,
      ),
    );
  }

  /** Stops watching the page. */
  stop(): void {
    this.resized.disconnect();
  }

  private slider(quantity: Quantity): HTMLElement {
    const { words } = this;
    const range = RANGES[quantity];
    const shown = h("output", { for: `slider-${quantity}` }, this.text(quantity));
    const input = h("input", {
      id: `slider-${quantity}`,
      type: "range",
      min: 0,
      max: STEPS,
      step: 1,
      "aria-describedby": `means-${quantity}`,
      oninput: () => {
        this.values[quantity] = valueAt(range, quantity, Number(input.value));
        shown.textContent = input.ariaValueText = this.text(quantity);
        this.ask();
      },
    });
    input.value = String(stepOf(range, quantity, this.values[quantity]));
    input.ariaValueText = this.text(quantity);
    return h(
      "div",
      { class: "slider" },
      h("label", { for: `slider-${quantity}` }, words.quantity[quantity].name),
      shown,
      input,
      h("p", { class: "quiet", id: `means-${quantity}` }, words.quantity[quantity].means),
    );
  }

  private text(quantity: Quantity): string {
    const value = this.values[quantity];
    return value === null ? this.words.unlimited : RANGES[quantity].show(value);
  }

  /** Asks the program; an answer to an older question is left aside. */
  private ask(): void {
    const { values } = this;
    const number = ++this.asked;
    const question = {
      rate_bps: Math.round(values.rate ?? 0),
      rtt_us: Math.round(values.rtt ?? 0),
      window_bytes: rounded(values.window),
      send_buffer_bytes: rounded(values.send_buffer),
      loss: values.loss ?? 0,
      connections: values.connections ?? 1,
      over: this.over,
    };
    this.program.law(question).then(
      (text) => {
        if (number !== this.asked) return;
        this.answer = JSON.parse(text) as Answer;
        this.show(this.answer);
        this.paint();
      },
      (error: Error) => {
        this.sentence.textContent = error.message;
      },
    );
  }

  private show({ goodput_bps, limit, needs }: Answer): void {
    const { words } = this;
    this.sentence.textContent = words.answer(bothRates(goodput_bps), words.limit[limit] ?? limit);
    const kernel = needs.kernels.at(-1);
    const line = (value: string, means: string) => h("li", {}, h("b", {}, value), ` ${means}`);
    this.list.replaceChildren(
      line(bytes(needs.bdp_bytes), words.needs.bdp),
      line(bothRates(needs.goodput_bps), words.needs.goodput),
      ...(kernel
        ? [line(bytes(kernel.rcvbuf_for_bdp_bytes), `${words.needs.rcvbuf} ${kernel.kernel}`)]
        : []),
      line(bytes(needs.sndbuf_for_bdp_bytes), words.needs.sndbuf),
      line(time(needs.slow_start_us), words.needs.slow_start),
      ...(needs.gigabyte ? [line(time(needs.gigabyte.total_us), words.needs.gigabyte)] : []),
    );
  }

  private paint(): void {
    const { answer, canvas, over, words } = this;
    const pen = canvas.getContext("2d");
    if (!answer || !pen) return;
    const ratio = devicePixelRatio || 1;
    const size = { width: canvas.clientWidth, height: canvas.clientHeight };
    canvas.width = size.width * ratio;
    canvas.height = size.height * ratio;
    const here = this.values[over];
    const curve: Curve = {
      title: "",
      key: over,
      unit: RANGES[over].unit,
      law_name: "",
      points: here ? [{ x: here, goodput_bps: answer.goodput_bps, run: 0 }] : [],
      law: answer.curve.map((point) => ({ x: point.x, bps: point.goodput_bps })),
    };
    paintCurve(pen, curve, size, ratio, this.palette);
    canvas.setAttribute("aria-label", `${words.over} ${words.quantity[over].name}`);
  }
}

const rounded = (value: number | null): number | null =>
  value === null ? null : Math.round(value);

/** The value at a step of a slider, on a logarithmic scale. The lowest loss is none. */
function valueAt(range: Range, quantity: Quantity, step: number): number | null {
  if (range.isOpen && step === STEPS) return null;
  if (quantity === "loss" && step === 0) return 0;
  const value = range.from * (range.to / range.from) ** (step / STEPS);
  return quantity === "connections" ? Math.round(value) : Number(value.toPrecision(3));
}

function stepOf(range: Range, quantity: Quantity, value: number | null): number {
  if (value === null) return STEPS;
  if (quantity === "loss" && value === 0) return 0;
  return Math.round((STEPS * Math.log(value / range.from)) / Math.log(range.to / range.from));
}
