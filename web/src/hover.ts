/** What happened at a place of a graph, in words. Pure. */
import { accountName } from "./account.ts";
import { lowerBound, nearest, type Places } from "./decode.ts";
import type { Graph } from "./graphs/catalogue.ts";
import type { Layer } from "./graphs/layers.ts";
import { type Frame, x, y } from "./graphs/pen.ts";
import type { Tracks } from "./graphs/tracks.ts";
import type { Colour } from "./theme.ts";
import { bothRates, bytes, count, time } from "./units.ts";
import type { Words } from "./words/words.ts";

/** A line of the hover's text. */
export interface Said {
  readonly colour?: Colour;
  readonly name: string;
  readonly value?: string;
  /** What it means. */
  readonly means?: string;
}

/** What is told of a place. */
export interface Story {
  readonly title: string;
  readonly said: readonly Said[];
  /** Sentences about the moment. */
  readonly notes: readonly string[];
}

/** Pixels within which a mark is meant. */
const NEAR = 9;
/** Marks that are looked at for each label; a hover must stay quick where thousands lie together. */
const LOOK_AT_MOST = 400;

/** The story of a place of the x axis, at a height in pixels of the frame. */
export function story(
  graph: Graph,
  shown: readonly Layer[],
  tracks: Tracks,
  frame: Frame,
  at: number,
  top: number,
  words: Words,
): Story {
  const isTime = graph.over === "time";
  const said: Said[] = [];
  if (graph.name === "sequence")
    said.push(...marksNear(shown, frame, at, top, words), ...segment(tracks, at, words));
  for (const layer of shown) {
    const value = layer.key === "segments" ? undefined : layer.value?.(at, frame);
    if (value)
      said.push({
        colour: layer.colour,
        name: layer.entry.name,
        value: valueWords(graph, value, words),
      });
  }
  const notes = isTime ? moment(tracks, at, words) : [];
  if (graph.name === "throughput") {
    const width = tracks.goodput.bars(frame.start, frame.end, frame.width / frame.ratio).bucket;
    notes.unshift(words.say.bucket(time(width)));
  }
  return { title: isTime ? timeAt(at) : bytes(at), said, notes };
}

/** A time with enough digits to tell packets apart. */
export function timeAt(us: number): string {
  if (Math.abs(us) >= 1e6) return `${(us / 1e6).toFixed(4)} s`;
  if (Math.abs(us) >= 1e3) return `${(us / 1e3).toFixed(2)} ms`;
  return time(us);
}

function valueWords(
  graph: Graph,
  [low, high, line]: [number, number, number],
  words: Words,
): string {
  const word = (value: number): string =>
    graph.unit === "bps"
      ? bothRates(value)
      : graph.unit === "us"
        ? time(value)
        : graph.name === "sequence"
          ? count(value)
          : bytes(value);
  return low === high || graph.name === "sequence"
    ? word(line)
    : `${word(line)} (${words.say.range(word(low), word(high))})`;
}

interface Near {
  readonly distance: number;
  readonly said: Said;
}

function marksNear(
  shown: readonly Layer[],
  frame: Frame,
  at: number,
  top: number,
  words: Words,
): Said[] {
  const span = (NEAR / frame.width) * (frame.end - frame.start);
  const found: Near[] = [];
  for (const { places, entry, colour } of shown) {
    if (!places) continue;
    const best = nearestMark(places, frame, at, span, top);
    if (!best) continue;
    const packet = words.say.packet(places.packet[best.index]);
    const length = places.length[best.index] ?? 0;
    const value = length ? `${packet} · ${bytes(length)}` : packet;
    found.push({
      distance: best.distance,
      said: { colour, name: entry.name, value, means: entry.means },
    });
  }
  return found
    .sort((a, b) => a.distance - b.distance)
    .slice(0, 2)
    .map((one) => one.said);
}

function nearestMark(places: Places, frame: Frame, at: number, span: number, top: number) {
  const from = lowerBound(places.at, at - span),
    to = lowerBound(places.at, at + span);
  const step = Math.max(1, Math.ceil((to - from) / LOOK_AT_MOST));
  let best: { index: number; distance: number } | undefined;
  for (let index = from; index < to; index += step) {
    const first = y(frame, places.sequence[index]);
    const last = y(frame, places.sequence[index] + (places.length[index] ?? 0));
    const above = Math.max(0, last - top, top - first);
    const distance = Math.hypot(x(frame, places.at[index]) - x(frame, at), above);
    if (distance <= NEAR && (!best || distance < best.distance)) best = { index, distance };
  }
  return best;
}

function segment(tracks: Tracks, at: number, words: Words): Said[] {
  const [finest] = tracks.segments.levels;
  const index = nearest(finest.at, at);
  if (index < 0) return [];
  const name = words.line.segments.name;
  if (finest.bucket) {
    return [
      {
        colour: "blue",
        name,
        value: words.say.range(count(finest.low[index]), count(finest.high[index])),
      },
    ];
  }
  const packet = tracks.packets ? `${words.say.packet(tracks.packets[index])} · ` : "";
  const length = tracks.lengths?.[index] ?? 0;
  return [
    {
      colour: "blue",
      name,
      value: packet + words.say.segment(bytes(length), count(finest.high[index])),
    },
  ];
}

function last(of: Tracks["window"], at: number): number | undefined {
  if (!of) return undefined;
  const [finest] = of.levels;
  const index = lowerBound(finest.at, at + 1e-9) - 1;
  return index < 0 ? undefined : finest.line[index];
}

/** Sentences about a moment: whether the window was full, what limited, whether it is a stall. */
function moment(tracks: Tracks, at: number, words: Words): string[] {
  const notes: string[] = [];
  const flight = last(tracks.inFlight, at),
    window = last(tracks.window, at);
  if (flight !== undefined && window !== undefined && window > 0 && flight > 0) {
    const say = flight >= 0.95 * window ? words.say.full : words.say.room;
    notes.push(say(bytes(flight), bytes(window)));
  }
  const stall = tracks.stalls.find(
    (one) => one.start_us <= at && at <= one.start_us + one.length_us,
  );
  if (stall) {
    const cause = words.stall[stall.cause] ?? words.stall.unknown;
    notes.push(words.say.stall(time(stall.length_us), cause.name), cause.means);
  }
  const spent = tracks.account.find(
    (one) => one.start_us <= at && at < one.start_us + one.length_us,
  );
  if (spent && !spent.direction)
    notes.push(`${accountName(words, spent)}: ${time(spent.length_us)}`);
  const held = tracks.held.find(({ span }) => span[0] <= at && at < span[1]);
  if (held) notes.push(words.say.held(words.limit[held.name].name, held.confidence));
  return notes;
}
