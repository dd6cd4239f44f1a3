/** Tests of what needs no browser. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { lowerBound, nearest, overSequence, segments, series, slope, sums } from "../src/decode.ts";
import { graphsOf } from "../src/graphs/catalogue.ts";
import type { Layer } from "../src/graphs/layers.ts";
import { paintGraph } from "../src/graphs/paint.ts";
import type { Frame } from "../src/graphs/pen.ts";
import { yRange } from "../src/graphs/scale.ts";
import { SvgPen } from "../src/graphs/svg.ts";
import { tracksOf } from "../src/graphs/tracks.ts";
import { story } from "../src/hover.ts";
import { extent, levelsOf, POINTS_A_PIXEL, slice } from "../src/levels.ts";
import { LIMITS } from "../src/limits.ts";
import { numberOf } from "../src/table.ts";
import { palettes } from "../src/theme.ts";
import { movingMean, Rates } from "../src/rates.ts";
import {
  bothRates,
  bytes,
  count,
  niceTicks,
  percent,
  rate as rateWords,
  ticks,
  time,
} from "../src/units.ts";
import { pinched } from "../src/graphs/touch.ts";
import {
  bulk,
  changes,
  either,
  heldBy,
  lost,
  shares,
  shellLines,
  spansOf,
} from "../src/verdict.ts";
import { fromFragment, toFragment, type ViewState } from "../src/view-state.ts";
import { en } from "../src/words/en.ts";
import { zh } from "../src/words/zh.ts";
import { capture, HOSTILE, hostile, lab, RAISE } from "./fixture.ts";
import { differences } from "./simulate.ts";

describe("numbers of connections", () => {
  it("are those of analyze, and places among the runs of a lab", () => {
    const data = capture();
    data.connections.reverse();
    const ids = data.connections.map((one) => one.facts.id);
    expect(new Set(ids).size).toBeGreaterThan(1);
    expect(ids.map((_, place) => numberOf(data, place))).toEqual(ids);
    expect(numberOf(lab(), 0)).toBe(1);
  });
});

describe("decoding", () => {
  it("undoes differences", () => {
    const values = [0, 5, 3, 3, 1e15, -7];
    expect([...sums(differences(values))]).toEqual(values);
  });
  it("gives single events one value and stretches three", () => {
    const single = series({ bucket_us: 0, time_us: [1, 1], value: [10, 5] });
    expect([...single.line]).toEqual([10, 15]);
    expect(single.low).toBe(single.high);
    const stretch = series({
      bucket_us: 10,
      time_us: [0, 10],
      first: [1, 0],
      min: [1, 1],
      max: [9, 1],
      last: [4, 4],
      count: [3, 0],
    });
    expect([[...stretch.low], [...stretch.high], [...stretch.line]]).toEqual([
      [1, 2],
      [9, 10],
      [4, 8],
    ]);
  });
  it("sees how fast a count rises", () => {
    // 1000 bytes in each of 2 ms, 8 Mbit/s, then nothing; a count that falls back is no rate.
    const at = Float64Array.from([0, 1000, 2000, 3000, 4000]);
    const line = Float64Array.from([5, 1005, 2005, 2005, 1900]);
    const count = { at, low: line, high: line, line, bucket: 0 };
    expect([...slope(count, 2000).at]).toEqual([2000, 3000, 4000]);
    expect([...slope(count, 2000).line]).toEqual([8e6, 4e6, 0]);
    expect(slope(count, 5000).at.length).toBe(0);
    expect(slope(series(undefined), 1).at.length).toBe(0);
  });
  it("lets a segment reach from its first byte to its last", () => {
    const trace = capture().connections[0].trace?.server_to_client;
    if (!trace) throw new Error("the fixture has a trace");
    const all = segments(trace);
    expect([all.low[0], all.high[0]]).toEqual([0, 1448]);
    const over = overSequence(trace.rtt);
    expect(over?.at.length).toBe(trace.rtt.time_us.length);
    expect([...(over?.at ?? [])].every((at, i, all) => i === 0 || all[i - 1] <= at)).toBe(true);
  });
  it("finds places in ascending numbers", () => {
    const values = Float64Array.of(1, 3, 3, 8);
    expect([0, 1, 3, 4, 9].map((value) => lowerBound(values, value))).toEqual([0, 0, 1, 3, 4]);
    expect([0, 2.1, 5, 6, 99].map((value) => nearest(values, value))).toEqual([0, 1, 2, 3, 3]);
    expect(nearest(new Float64Array(), 1)).toBe(-1);
  });
});

describe("levels of detail", () => {
  const count = 100_000;
  const line = Float64Array.from({ length: count }, (_, i) => Math.sin(i / 900) * 100);
  line[77_777] = 5000;
  const of = levelsOf({
    at: Float64Array.from(line, (_, i) => i * 10),
    low: line,
    high: line,
    line,
    bucket: 0,
  });
  it("draw few points whatever the zoom, and every point where they fit", () => {
    for (const [start, end] of [
      [0, 1e6],
      [3e5, 4e5],
      [770_000, 780_000],
      [777_000, 778_000],
    ]) {
      const { from, to, isFinest } = slice(of, start, end, 1000);
      expect(to - from).toBeLessThanOrEqual(1000 * POINTS_A_PIXEL + 2);
      expect(isFinest).toBe(end - start <= 20_000);
    }
  });
  it("lose no extreme and cover the time that was asked for", () => {
    expect(extent(of, 0, 1e6, 400)?.[1]).toBe(5000);
    expect(extent(of, 777_000, 778_000, 400)?.[1]).toBe(5000);
    const { series, from, to } = slice(of, 400_000, 500_000, 100);
    expect(series.at[from]).toBeLessThanOrEqual(400_000);
    expect(series.at[to - 1]).toBeGreaterThanOrEqual(490_000);
  });
  it("may be of nothing", () => {
    const none = levelsOf({ at: new Float64Array(), low: line, high: line, line, bucket: 0 });
    expect(extent(none, 0, 10, 400)).toBeUndefined();
    expect(slice(none, 0, 10, 100)).toMatchObject({ from: 0, to: 0 });
  });
});

describe("rates", () => {
  const bursts: number[] = Array.from({ length: 4096 }, (_, i) => (i % 50 ? 0 : 50_000));
  it("are means over bars that fit the width and two round trips", () => {
    const bars = new Rates(bursts, 1000, 50_000).bars(0, 4_096_000, 600);
    expect(bars.bucket).toBe(100_000);
    expect([...bars.line.slice(0, 40)].every((value) => Math.abs(value - 8e6) < 1)).toBe(true);
    expect(bars.line.reduce((sum, value) => sum + value, 0) * 0.1).toBeCloseTo(
      bursts.reduce((sum, of) => sum + 8 * of, 0),
    );
  });
  it("show single bins to those who zoom in, and stay in place as they move", () => {
    const rates = new Rates(bursts, 1000, 50_000);
    expect(rates.bars(1_000_000, 1_010_000, 600).bucket).toBe(1000);
    const [a, b] = [rates.bars(1_000_000, 2_000_000, 100), rates.bars(1_050_000, 2_050_000, 100)];
    expect([...b.at].every((at) => at % a.bucket === 0)).toBe(true);
    expect(rates.bars(9e9, 9.1e9, 100).at.length).toBe(0);
  });
  it("have a mean that does not jump with bursts", () => {
    expect([...movingMean(Float64Array.of(8, 0, 16), 2)]).toEqual([4, 4, 8]);
    const { line } = new Rates(bursts, 1000, 50_000).mean(230_000);
    const steady = [...line.slice(500)];
    expect(Math.max(...steady) / Math.min(...steady)).toBeLessThan(1.6);
  });
});

describe("units", () => {
  it("name what they are", () => {
    const plain = (all: string[]): string[] => all.map((text) => text.replaceAll("\u00a0", " "));
    expect(plain([rateWords(158_904_109), rateWords(999_700_000), rateWords(0)])).toEqual([
      "159 Mbit/s",
      "1 Gbit/s",
      "0 bit/s",
    ]);
    expect(bothRates(8e6)).toBe("8\u00a0Mbit/s (1\u00a0MB/s)");
    expect(plain([bytes(2_900_000), bytes(1448), bytes(7)])).toEqual(["2.9 MB", "1.45 kB", "7 B"]);
    expect(plain([time(146_000), time(1_500_000), time(20)])).toEqual(["146 ms", "1.5 s", "20 µs"]);
    expect(plain([percent(0.934), percent(0.001), percent(0), percent(1)])).toEqual([
      "93 %",
      "< 1 %",
      "0 %",
      "100 %",
    ]);
    expect(count(1_234_567)).toBe("1\u202f234\u202f567");
  });
  it("label an axis in one unit, with the digits that its steps need", () => {
    expect(ticks([0, 250_000, 500_000], "us")).toEqual(["0", "250 ms", "500 ms"]);
    expect(ticks([1_000_000, 1_002_500], "us")).toEqual(["1.0000 s", "1.0025 s"]);
    expect(ticks([0, 50e6, 100e6], "bps")).toEqual(["0", "50 Mbit/s", "100 Mbit/s"]);
    expect(niceTicks(0, 10, 5)).toEqual([0, 2, 4, 6, 8, 10]);
    expect(niceTicks(3, 3, 5)).toEqual([3]);
  });
});

describe("the view in the fragment", () => {
  it("comes back", () => {
    const state: ViewState = {
      connection: 3,
      direction: "client_to_server",
      zoom: [1000, 250_000],
      overSequence: true,
      language: "zh",
      theme: "dark",
    };
    expect(fromFragment(`#${toFragment(state)}`)).toEqual(state);
    expect(toFragment({})).toBe("");
  });
  it("ignores what cannot be", () => {
    expect(fromFragment("#c=-1&d=up&t=9-3&lang=fr&theme=pink&x=1")).toEqual({});
    expect(fromFragment("#%E0%A4%A")).toEqual({});
  });
});

describe("the verdict", () => {
  const [window, loss, , , unanswered] = capture().connections;
  it("is about the direction that carried more", () => {
    expect(bulk(window.facts)).toBe("server_to_client");
    expect(shares(window.facts, "server_to_client")[0][0]).toBe("receive_window");
    expect(
      shares(loss.facts, "server_to_client").reduce((sum, [, share]) => sum + share, 0),
    ).toBeCloseTo(1);
  });
  it("counts time that the path and the application did not take", () => {
    expect(lost(window.facts)).toBeGreaterThan(0.8 * window.facts.duration_us);
    expect(lost(unanswered.facts)).toBe(0);
    const silent = {
      ...unanswered.facts,
      sub_causes: [
        { direction: "client_to_server" as const, sub_cause: "no_answer", claim: "", remedy: "" },
      ],
    };
    expect(lost(silent)).toBe(silent.duration_us);
  });
  it("knows the spans of a limit", () => {
    const held = heldBy(window.facts, "server_to_client");
    const [longest] = spansOf(held, "receive_window");
    expect((longest[1] - longest[0]) / window.facts.duration_us).toBeGreaterThan(0.7);
    expect(spansOf(held, "send_buffer")).toEqual([]);
  });
  it("says of each stretch how sure its finding is", () => {
    const held = heldBy(window.facts, "server_to_client");
    const [finding] = window.facts.findings;
    expect(finding.confidence).toBeGreaterThan(0);
    const main = held.filter(({ name }) => name === "receive_window");
    expect(main.length).toBeGreaterThan(0);
    expect(main.every(({ confidence }) => confidence === finding.confidence)).toBe(true);
    const bare = { ...window.facts, findings: [] };
    expect(heldBy(bare, "server_to_client").every((one) => one.confidence === null)).toBe(true);
  });
  it("names two limits of a guess, in its sentence and in the table", () => {
    const [finding] = window.facts.findings;
    expect(either(finding)).toBeUndefined();
    const two = [
      { limit: "link", share: 0.4 },
      { limit: "congestion_window", cause: "loss", share: 0.3 },
    ];
    expect(either({ ...finding, either: two })).toEqual(["link", "loss"]);
  });
  it("gives changes as lines for a shell, as they came: none that could lower a setting", () => {
    const [finding] = window.facts.findings;
    expect(shellLines(changes(finding.changes))).toBe(RAISE);
    expect(changes([{ host: "sender", to: "1" }])).toEqual([]);
    expect(changes([null, 7, { host: "x" }, "text"])).toEqual([]);
  });
});

describe("fingers", () => {
  /** The place of a pixel. */
  const under = ([start, end]: readonly [number, number], pixel: number): number =>
    start + (pixel / 500) * (end - start);
  it("keep the places that two of them hold", () => {
    const shown = [1000, 9000] as const;
    const after = pinched(shown, [100, 200], [50, 350], 500);
    expect(under(after, 50)).toBeCloseTo(under(shown, 100));
    expect(under(after, 350)).toBeCloseTo(under(shown, 200));
    expect(after[1] - after[0]).toBeCloseTo(8000 / 3);
  });
  it("move it along where there is one", () => {
    expect(pinched([0, 1000], [300], [50], 500)).toEqual([500, 1500]);
  });
  it("do not tear at a pixel", () => {
    const [start, end] = pinched([0, 1000], [100, 101], [100, 400], 500);
    expect(end - start).toBeGreaterThan(50);
  });
});

describe("words", () => {
  it("has a sentence for every limit in both languages", () => {
    const {
      findings: [finding],
    } = capture().connections[0].facts;
    for (const words of [en, zh]) {
      for (const name of LIMITS) {
        const all = [
          words.verdict(name, "93 %"),
          ...words.because(name, finding),
          words.limit[name].means,
          words.remedy(finding),
        ];
        expect(
          all.every(
            (text) => text.length > 0 && !text.includes("undefined") && !text.includes("NaN"),
          ),
        ).toBe(true);
      }
      expect([0.97, 0.85, 0.7, 0.55, 0.3].map((of) => words.confidence(of))).toHaveLength(5);
    }
  });
  it("is not half English in Chinese", () => {
    expect(Object.keys(zh.mark)).toEqual(Object.keys(en.mark));
    expect(Object.keys(zh.stall)).toEqual(Object.keys(en.stall));
    for (const name of LIMITS) expect(zh.verdict(name, "93 %")).toMatch(/[\u4e00-\u9fff]{4}/);
    for (const [key, text] of Object.entries(zh.ui))
      expect(text, key).toMatch(/[\u4e00-\u9fff]|PNG|SVG|RTT/);
  });
});

describe("the words of the Rust crates", () => {
  const source = (path: string): string =>
    readFileSync(resolve(import.meta.dirname, "../../crates/flow/src", path), "utf8");
  /** The names in the first stretch between two texts. */
  const names = (text: string, from: string, to: string): string[] => {
    const start = text.indexOf(from);
    const part = text.slice(start, text.indexOf(to, start));
    return [...part.matchAll(/"([a-z_]+)"/g)].map(([, name]) => name);
  };
  const isChinese = (text: string): boolean => /[\u4e00-\u9fff]{3}/.test(text);
  it("are known in both languages: sub-causes", () => {
    const all = [
      ...names(source("diagnosis/subcause/mod.rs"), "NAMES: [", "];"),
      ...names(source("diagnosis/subcause/socket.rs"), "pub const fn name", "}\n    }"),
    ];
    expect(all.length).toBeGreaterThanOrEqual(27);
    for (const sub_cause of all) {
      const cause = {
        direction: "server_to_client" as const,
        sub_cause,
        claim: "claim",
        remedy: "remedy",
      };
      expect(isChinese(zh.subCause(cause).claim), sub_cause).toBe(true);
      expect(en.subCause(cause).claim).toBe("Claim.");
    }
  });
  it("are known in both languages: stalls, warnings and labels", () => {
    const stalls = names(source("trace/stall.rs"), "pub const fn name", "}\n    }");
    const warnings = names(
      source("connection/vantage.rs"),
      "impl Warning",
      "/// The warning in words",
    );
    const labels = names(source("connection/labels.rs"), "Label::Retransmission =>", "}\n    }");
    expect([stalls.length, warnings.length, labels.length].every((count) => count >= 6)).toBe(true);
    for (const words of [en, zh]) {
      for (const name of stalls) expect(words.stall[name]?.means, name).toBeTruthy();
      for (const name of warnings) expect(words.warning(name), name).not.toBe(name);
      for (const name of labels) {
        if (!name.startsWith("tfo_")) expect(words.mark[name]?.means, name).toBeTruthy();
      }
    }
  });
  it("are known in both languages: what would change it", () => {
    const text = source("finding/remedy.rs");
    const snake = (name: string): string =>
      name.replace(/(?<!^)[A-Z]/g, (letter) => `_${letter}`).toLowerCase();
    const variants = (name: string): string[] => {
      const body = text.split(`pub enum ${name} {`)[1].split("\n}")[0];
      const named = [...body.matchAll(/#\[strum\(serialize = "(\w+)"\)\]/g)].map(([, one]) => one);
      if (named.length) return named;
      return [...body.matchAll(/^ {4}([A-Z]\w+),$/gm)].map(([, one]) => snake(one));
    };
    const kinds = ["Remedy", "OnLoss", "PacketRemedy", "SocketRemedy"];
    const all = kinds.flatMap(variants);
    expect(all.length).toBeGreaterThanOrEqual(46);
    const told = all.map((name) => zh.remedy({ remedy: "English.", remedy_name: name }));
    expect(told.every(isChinese), all[told.findIndex((one) => !isChinese(one))]).toBe(true);
    expect(new Set(told).size).toBe(all.length);
  });
});

describe("pictures", () => {
  it("keep foreign text as text", () => {
    const pen = new SvgPen();
    pen.font = `600 12px "a&b", sans-serif`;
    pen.fillText(`${HOSTILE}\u0000`, 1, 2);
    const text = pen.text(10, 10);
    expect(text).not.toMatch(/<img|<script|\u0000/);
    expect(text).toContain('font-weight="600"');
  });
  it("close what they clip", () => {
    const pen = new SvgPen();
    pen.save();
    pen.rect(0, 0, 5, 5);
    pen.clip();
    pen.fillRect(1, 1, 2, 2);
    pen.restore();
    const text = pen.text(10, 10);
    expect(text.match(/<g /g)).toHaveLength(1);
    expect(text.match(/<\/g>/g)).toHaveLength(1);
  });
});

describe("graphs", () => {
  const [, , , short] = capture().connections;
  const tracks = tracksOf(short, "server_to_client");
  if (!tracks) throw new Error("the fixture has a trace");
  const graphs = graphsOf(tracks, en, 80_000, false);
  const draw = (name: string, keys: string[], view = tracks.span): string => {
    const graph = graphs.find((one) => one.name === name);
    if (!graph) throw new Error(`no graph ${name}`);
    const pen = new SvgPen();
    const shown = graph.layers.filter((layer) => keys.includes(layer.key));
    paintGraph(pen, graph, shown, view, { width: 4098, height: 600 }, 1, {
      title: "",
      subtitle: "",
      palette: palettes.light,
      shades: [],
    });
    return pen.text(4098, 600);
  };
  /** The corners of the only line in that colour. */
  const corners = (picture: string, colour: string): [number, number][] => {
    const path =
      new RegExp(`<path d="([^"]*)" fill="none" stroke="${colour}" stroke-width="1.[0-9]+"`).exec(
        picture,
      )?.[1] ?? "";
    return [...path.matchAll(/[ML]([\d.-]+) ([\d.-]+)/g)].map(([, x, y]) => [Number(x), Number(y)]);
  };
  it("draw every value of the series where it belongs", () => {
    const [acks] = tracks.acks.levels;
    const found = corners(draw("sequence", ["acks"]), palettes.light.amber);
    const [start, end] = tracks.span,
      least = acks.low[0],
      most = acks.high[acks.high.length - 1];
    const room = (most - least) * 0.06,
      low = Math.max(0, least - room),
      high = most + room;
    const [bottom, top] = [
      Math.max(...found.map(([, y]) => y)),
      Math.min(...found.map(([, y]) => y)),
    ];
    const scale = (bottom - top) / (most - least);
    expect(acks.at.length).toBeGreaterThan(150);
    expect(high - low).toBeGreaterThan(most - least);
    acks.at.forEach((at, i) => {
      const x = 78 + ((at - start) / (end - start)) * 4000,
        y = bottom - (acks.line[i] - least) * scale;
      expect(
        found.some(([here, there]) => Math.abs(here - x) < 0.02 && Math.abs(there - y) < 0.05),
        `point ${i}`,
      ).toBe(true);
    });
  });
  it("draw every segment once, from its first byte to its last", () => {
    const rectangles =
      draw("sequence", ["segments"]).match(
        new RegExp(`<rect[^>]*fill="${palettes.light.blue}"`, "g"),
      ) ?? [];
    // One more is the legend's.
    expect(rectangles.length).toBe(tracks.segments.levels[0].at.length + 1);
  });
  it("tell of a place what the series has there", () => {
    const graph = graphs[0];
    const frame: Frame = {
      left: 0,
      top: 0,
      width: 1000,
      height: 400,
      start: tracks.span[0],
      end: tracks.span[1],
      low: 0,
      high: 4e6,
      ratio: 1,
      palette: palettes.light,
    };
    const at = tracks.segments.levels[0].at[40];
    const { said, notes } = story(graph, graph.layers, tracks, frame, at, -1, en);
    expect(said[0].value).toMatch(
      new RegExp(`^Packet ${tracks.packets?.[40]} · 1\\.45\\skB of data, up to byte [\\d\u202f]+$`),
    );
    expect(said.map(({ name }) => name)).toEqual([
      "sent",
      "end of the receive window",
      "acknowledged",
    ]);
    expect(notes.at(-1)).toContain("slow start");
    // What was waited for is told where it was, and nowhere else.
    const thinks = { owner: "server_application", cause: "server_thinks" };
    const account = [{ start_us: at - 5, length_us: 10, ...thinks }];
    const told = (when: number) =>
      story(graph, graph.layers, { ...tracks, account }, frame, when, -1, en).notes.join(" ");
    expect(told(at)).toMatch(/the server did not answer yet: 10\sµs/);
    expect(told(at + 5)).not.toContain("did not answer");
  });
  it("leave a far window out of the picture, and a near one in it", () => {
    const graph = graphs[0];
    const [start, end] = tracks.span;
    const top = yRange(graph, graph.layers, start, end, 1000)[1];
    expect(top).toBeLessThan(1e6);
    const window = tracksOf(capture().connections[0], "server_to_client");
    if (!window) throw new Error("the fixture has a trace");
    const [near] = graphsOf(window, en, undefined, false);
    const edge = window.windowEdge?.levels[0].high.at(-1) ?? Infinity;
    expect(yRange(near, near.layers, ...window.span, 1000)[1]).toBeGreaterThan(edge);
  });
  it("draw what HTTP/2's windows leave, in the direction of the data alone", () => {
    const shown = capture().connections[3];
    const line = (...bytes: number[]) => ({
      bucket_us: 0,
      time_us: bytes.map((_, i) => (i ? 1000 : 0)),
      value: bytes.map((value, i) => value - (bytes[i - 1] ?? 0)),
    });
    shown.granted = [
      {
        direction: "server_to_client",
        connection: line(65_535, 49_151, 114_686),
        stream: 5,
        stream_window: line(16_384, 0, 16_384),
      },
    ];
    const tracks = tracksOf(shown, "server_to_client");
    const window =
      tracks && graphsOf(tracks, en, undefined, false).find((one) => one.name === "window");
    const layer = (key: string) => window?.layers.find((one) => one.key === key);
    const frame = { start: 0, end: 5000, width: 1000, ratio: 1 };
    expect(layer("stream_left")?.entry.name).toBe("HTTP/2 leaves, stream 5");
    const at = (key: string, time: number) =>
      layer(key)?.value?.(time, frame as Parameters<NonNullable<Layer["value"]>>[1])?.[2];
    expect([at("stream_left", 500), at("stream_left", 1500), at("stream_left", 2500)]).toEqual([
      16_384, 0, 16_384,
    ]);
    expect(at("connection_left", 2500)).toBe(114_686);
    const back = tracksOf(shown, "client_to_server");
    expect(back?.streamLeft ?? back?.connectionLeft).toBeUndefined();
  });
  it("do without what a report has not", () => {
    const bare = capture().connections[3];
    const trace = bare.trace?.server_to_client;
    if (!trace) throw new Error("the fixture has a trace");
    Object.assign(trace, {
      window: null,
      window_edge: null,
      marks: {},
      stalls: undefined,
      rtt: { bucket_us: 0, time_us: [], value: [] },
    });
    const tracks = tracksOf(bare, "server_to_client");
    if (!tracks) throw new Error("the fixture has a trace");
    expect(graphsOf(tracks, zh, undefined, true).map(({ name }) => name)).toEqual([
      "sequence",
      "throughput",
      "rtt",
      "window",
    ]);
    expect(tracks.stalls).toEqual([]);
  });
});

describe("fixtures", () => {
  it("have what they promise", () => {
    const { connections } = capture();
    expect(connections[1].facts.findings[0]).toMatchObject({
      limit: "congestion_window",
      cause: "loss",
    });
    expect(connections[2].facts.limits[0].limit).toBe("link");
    const {
      connections: [before, after],
    } = lab();
    expect(after.facts.server_to_client.goodput_bps).toBeGreaterThan(
      2 * (before.facts.server_to_client.goodput_bps ?? 0),
    );
    expect(JSON.stringify(hostile())).toContain("onerror");
  });
});
