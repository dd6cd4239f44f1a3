/** A lab's results: before and after, curves against the law, and the table of runs. */
import type { ConnectionData, Curve, LabData, PageData } from "./data.ts";
import { headline } from "./card.ts";
import { h } from "./dom.ts";
import { bars } from "./graphs/layers.ts";
import { paintCurve } from "./graphs/curve.ts";
import { axes, ticksOf } from "./graphs/paint.ts";
import { clipped, type Frame } from "./graphs/pen.ts";
import { tracksOf } from "./graphs/tracks.ts";
import { limitName } from "./limits.ts";
import type { Palette } from "./theme.ts";
import { digits, percent, rate, ticks, time } from "./units.ts";
import { bulk, findings } from "./verdict.ts";
import type { Words } from "./words/words.ts";

/** A canvas that is painted anew for each width. */
function painted(
  height: number,
  label: string,
  paint: (pen: CanvasRenderingContext2D, width: number, ratio: number) => void,
): HTMLElement {
  const canvas = h("canvas", { role: "img", "aria-label": label });
  const box = h("div", { class: "plot" }, canvas);
  new ResizeObserver(() => {
    const width = box.clientWidth,
      ratio = devicePixelRatio || 1;
    if (width < 50) return;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const pen = canvas.getContext("2d");
    if (pen) paint(pen, width, ratio);
  }).observe(box);
  return box;
}

/** The two parts of a comparison; undefined where the report has none. */
export function comparison(data: PageData): [ConnectionData, ConnectionData] | undefined {
  const before = data.connections.find((one) => one.part === "before");
  const after = data.connections.find((one) => one.part === "after");
  return before && after && [before, after];
}

/** About as wide as a small graph is. */
const SMALL = 500;

/** What the run's row says, or else the capture. */
function goodput(of: ConnectionData, lab: LabData | undefined): number {
  const row = of.run === undefined ? undefined : lab?.runs[of.run];
  const told = row?.goodput_bps;
  return typeof told === "number" ? told : (of.facts[bulk(of.facts)].goodput_bps ?? 0);
}

/** The highest rate that a small graph of this time shows. */
function peak(of: ConnectionData, end: number): number {
  const tracks = tracksOf(of, bulk(of.facts));
  return tracks
    ? tracks.goodput.bars(0, end, SMALL).line.reduce((most, value) => Math.max(most, value), 0)
    : 0;
}

/** Before and after, side by side, their graphs on the same axes. */
export function beforeAfter(
  pair: [ConnectionData, ConnectionData],
  lab: LabData | undefined,
  words: Words,
  palette: Palette,
  select: (connection: ConnectionData) => void,
): HTMLElement {
  const { ui, say } = words;
  const [before, after] = pair.map((one) => goodput(one, lab)) as [number, number];
  const times = before > 0 ? digits(after / before) : "–";
  const end = Math.max(...pair.map((one) => one.facts.duration_us));
  const high = 1.08 * Math.max(1, ...pair.map((one) => peak(one, end)));
  const side = (of: ConnectionData, name: string): HTMLElement => {
    const [first] = findings(of.facts, bulk(of.facts));
    return h(
      "div",
      { class: "side" },
      h("p", { class: "eyebrow" }, name),
      h(
        "p",
        { class: "figure" },
        rate(goodput(of, lab)),
        h("span", { class: "quiet" }, ` · ${time(of.facts.duration_us)}`),
      ),
      h("p", {}, first ? headline(words, first) : words.noVerdict),
      throughput(of, end, high, words, palette),
      h(
        "p",
        {},
        h(
          "button",
          {
            type: "button",
            class: "small",
            "aria-label": `${ui.select}: ${name}`,
            onclick: () => select(of),
          },
          ui.select,
        ),
      ),
    );
  };
  return h(
    "section",
    { class: "card compare", "aria-labelledby": "compare" },
    h("h2", { id: "compare" }, ui.compare),
    h("p", { class: "lead" }, after > before ? say.faster(times) : say.slower(times)),
    h("div", { class: "sides" }, side(pair[0], ui.before), side(pair[1], ui.after)),
  );
}

function throughput(
  of: ConnectionData,
  end: number,
  high: number,
  words: Words,
  palette: Palette,
): HTMLElement | null {
  const tracks = tracksOf(of, bulk(of.facts));
  if (!tracks) return null;
  const layer = bars(
    { key: "goodput", entry: words.line.goodput, colour: "blue" },
    tracks.goodput,
    true,
  );
  return painted(180, words.graph.throughput.title, (pen, width, ratio) => {
    const frame: Frame = {
      left: 78 * ratio,
      top: 10 * ratio,
      width: (width - 92) * ratio,
      height: 140 * ratio,
      start: 0,
      end,
      low: 0,
      high,
      ratio,
      palette,
    };
    axes(pen, frame, ticksOf(0, end, width - 92, 80, "us"), ticksOf(0, high, 140, 36, "bps"));
    clipped(pen, frame, () => layer.draw(pen, frame));
  });
}

/** The curves. */
export function curves(
  lab: LabData,
  words: Words,
  palette: Palette,
  select: (run: number) => void,
): HTMLElement | null {
  if (lab.curves.length === 0) return null;
  return h(
    "section",
    { class: "card", "aria-labelledby": "curves" },
    h("h2", { id: "curves" }, words.ui.curve),
    h(
      "div",
      { class: "curves" },
      lab.curves.map((curve) => curveBox(curve, words, palette, select)),
    ),
  );
}

function curveBox(
  curve: Curve,
  words: Words,
  palette: Palette,
  select: (run: number) => void,
): HTMLElement {
  const { ui } = words;
  let spots: ReturnType<typeof paintCurve> = [];
  const label = `${curve.title}: ${words.say.perConnection(curve.key)}`;
  const plot = painted(260, label, (pen, width, ratio) => {
    spots = paintCurve(pen, curve, { width, height: 260 }, ratio, palette);
  });
  plot.addEventListener("click", (event) => {
    const spot = spots.find(
      ({ left, top }) => Math.hypot(left - event.offsetX, top - event.offsetY) < 12,
    );
    if (spot) select(spot.run);
  });
  const mark = (colour: string, shape: string): HTMLElement => {
    const one = h("i", { class: `swatch ${shape}`, "aria-hidden": "true" });
    one.style.color = colour;
    return one;
  };
  const rows = [...curve.points].sort((a, b) => a.x - b.x);
  return h(
    "div",
    { class: "curve" },
    h("h3", {}, curve.title),
    h("p", { class: "question" }, words.say.perConnection(curve.key)),
    plot,
    h(
      "ul",
      { class: "keys" },
      h("li", {}, mark(palette.blue, "round"), ui.measured),
      curve.law.length
        ? h("li", {}, mark(palette.amber, "dashed"), `${ui.law}: ${curve.law_name}`)
        : null,
    ),
    h(
      "details",
      {},
      h("summary", {}, ui.numbers),
      h(
        "table",
        {},
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            h("th", { scope: "col", class: "number" }, curve.key),
            h("th", { scope: "col", class: "number" }, ui.measured),
          ),
        ),
        h(
          "tbody",
          {},
          rows.map((one) =>
            h(
              "tr",
              {},
              h("th", { scope: "row", class: "number" }, ticks([one.x], curve.unit)[0]),
              h("td", { class: "number" }, rate(one.goodput_bps)),
            ),
          ),
        ),
      ),
    ),
  );
}

/** The table of runs. */
export function runs(
  lab: LabData,
  selected: number | undefined,
  words: Words,
  select: (run: number) => void,
): HTMLElement {
  const { ui } = words;
  const number = (value: unknown): number | undefined =>
    typeof value === "number" ? value : undefined;
  const cell = (value: number | undefined, say: (value: number) => string): HTMLElement =>
    h("td", { class: "number" }, value === undefined ? "–" : say(value));
  const heads: [string, boolean][] = [
    [ui.run, false],
    [ui.rtt, true],
    [ui.goodput, true],
    [ui.law, true],
    [ui.ratio, true],
    [ui.limit, false],
    [ui.retransmissions, true],
  ];
  const row = (run: Record<string, unknown>, i: number): HTMLElement => {
    const measured = number(run.goodput_bps),
      law = number(run.law_bps);
    const limit =
      typeof run.limited_by === "string"
        ? words.limit[
            limitName({
              limit: run.limited_by,
              cause: typeof run.limit_cause === "string" ? run.limit_cause : null,
            })
          ].name
        : "–";
    const error = typeof run.error === "string" ? h("p", { class: "quiet" }, run.error) : null;
    const name = h(
      "button",
      {
        type: "button",
        "aria-current": i === selected ? "true" : null,
        onclick: (event: Event) => {
          event.stopPropagation();
          select(i);
        },
      },
      String(run.name ?? i + 1),
    );
    return h(
      "tr",
      { class: i === selected ? "selected" : null, onclick: () => select(i) },
      h("th", { scope: "row" }, name, error),
      cell(number(run.rtt_p50_us) ?? number(run.rtt_nominal_us), time),
      cell(measured, rate),
      cell(law, rate),
      cell(measured !== undefined && law ? measured / law : undefined, percent),
      h("td", {}, limit),
      cell(number(run.retransmission), String),
    );
  };
  return h(
    "section",
    { class: "card", "aria-labelledby": "runs" },
    h("h2", { id: "runs" }, ui.runs),
    h(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-label": ui.runs },
      h(
        "table",
        { class: "runs" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            heads.map(([name, isNumber]) =>
              h("th", { scope: "col", class: isNumber ? "number" : null }, name),
            ),
          ),
        ),
        h("tbody", {}, lab.runs.map(row)),
      ),
    ),
  );
}
