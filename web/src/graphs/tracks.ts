/** A direction's data, decoded once: series with their levels of detail, marks and stalls. */
import type { AccountSpan, ConnectionData, Direction, DirectionTrace, Stall } from "../data.ts";
import {
  empty,
  overSequence,
  type Places,
  places,
  samples,
  segments,
  type Series,
  series,
  slope,
  sums,
} from "../decode.ts";
import { type Levels, levelsOf, meansOf } from "../levels.ts";
import { Rates } from "../rates.ts";
import { type Held, heldBy, type Span } from "../verdict.ts";

/** The moving mean is over so many round trips and at least this part of the whole, in µs. */
const MEAN_ROUND_TRIPS = 4;
const MEAN_PART = 1 / 60;
/** Kinds of retransmissions. */
const KINDS = ["fast_retransmission", "rto", "spurious_retransmission"];

/** What the graphs of one direction draw. */
export interface Tracks {
  readonly segments: Levels;
  readonly acks: Levels;
  readonly windowEdge?: Levels;
  readonly window?: Levels;
  readonly inFlight: Levels;
  /** What HTTP/2 leaves to be sent: in all streams, and in the one that waited longest. */
  readonly connectionLeft?: Levels;
  readonly streamLeft?: Levels;
  readonly stream?: number;
  readonly rtt: Levels;
  readonly rttOverSequence?: Levels;
  readonly goodput: Rates;
  readonly mean: Levels;
  readonly wire: Rates;
  /** What the moving mean is over, in µs. */
  readonly meanTime: number;
  readonly socketRtt?: Levels;
  readonly cwnd?: Levels;
  readonly ssthresh?: Levels;
  readonly sendQueue?: Levels;
  readonly notsent?: Levels;
  readonly receiveQueue?: Levels;
  readonly receiveBuffer?: Levels;
  /** How fast the application reads. */
  readonly drain?: Levels;
  readonly linkQueue?: Levels;
  readonly marks: ReadonlyMap<string, Places>;
  readonly stalls: readonly Stall[];
  readonly held: readonly Held[];
  /** What all the time of the connection went for, in order. */
  readonly account: readonly AccountSpan[];
  /** Packet and length of each segment, where points are segments. */
  readonly packets?: Float64Array;
  readonly lengths?: readonly number[];
  /** The whole time. */
  readonly span: Span;
}

const known = (of: Series): Levels | undefined => (of.at.length ? levelsOf(of) : undefined);
const cache = new WeakMap<ConnectionData, Partial<Record<Direction, Tracks | null>>>();

/** The tracks of a direction; undefined where the report has none of it. */
export function tracksOf(connection: ConnectionData, direction: Direction): Tracks | undefined {
  const cached = cache.get(connection) ?? {};
  cache.set(connection, cached);
  if (cached[direction] === undefined) cached[direction] = decode(connection, direction) ?? null;
  return cached[direction] ?? undefined;
}

function decode(connection: ConnectionData, direction: Direction): Tracks | undefined {
  const trace = connection.trace?.[direction];
  if (!trace) return undefined;
  const data = segments(trace);
  const { width_us: width, payload_bytes, wire_bytes } = trace.rate;
  const {
    duration_us,
    [direction]: { rtt },
  } = connection.facts;
  const roundTrip = rtt.p50_us ?? connection.facts.handshake_rtt_us ?? 0;
  const meanTime = Math.max(
    10 * width,
    duration_us * MEAN_PART,
    Math.min(MEAN_ROUND_TRIPS * roundTrip, duration_us / 4),
  );
  const over = overSequence(trace.rtt);
  const held = heldBy(connection.facts, direction);
  const { packet, length } = trace.segments;
  const isSingle = data.bucket === 0;
  return {
    segments: levelsOf(data),
    acks: levelsOf(series(trace.acks)),
    windowEdge: known(series(trace.window_edge)),
    window: known(series(trace.window)),
    inFlight: levelsOf(series(trace.in_flight)),
    ...granted(connection, direction),
    rtt: meansOf(series(trace.rtt)),
    rttOverSequence: over && meansOf(over),
    goodput: new Rates(payload_bytes, width, roundTrip),
    mean: meansOf(new Rates(payload_bytes, width, roundTrip).mean(meanTime)),
    wire: new Rates(wire_bytes, width, roundTrip),
    meanTime,
    ...sockets(connection, direction, meanTime),
    marks: marksOf(trace),
    stalls: trace.stalls ?? [],
    held,
    account: connection.spans ?? [],
    packets: isSingle && packet ? sums(packet) : undefined,
    lengths: isSingle ? length : undefined,
    span: [0, Math.max(duration_us, held.at(-1)?.span[1] ?? 0, data.at.at(-1) ?? 0, 1)],
  };
}

/** Marks by label. A repeated packet whose kind is known is not shown as a mere repeat as well. */
function marksOf(trace: DirectionTrace): Map<string, Places> {
  const marks = new Map(Object.entries(trace.marks).map(([label, one]) => [label, places(one)]));
  const repeats = marks.get("retransmission");
  if (!repeats) return marks;
  const known = new Set(KINDS.flatMap((label) => [...(marks.get(label)?.packet ?? [])]));
  const kept = Array.from(repeats.packet.keys()).filter((i) => !known.has(repeats.packet[i]));
  const pick = (of: Float64Array): Float64Array => Float64Array.from(kept, (i) => of[i]);
  marks.set("retransmission", {
    count: repeats.count - (repeats.packet.length - kept.length),
    at: pick(repeats.at),
    sequence: pick(repeats.sequence),
    length: kept.map((i) => repeats.length[i]),
    packet: pick(repeats.packet),
  });
  return marks;
}

function granted(connection: ConnectionData, direction: Direction) {
  const lines = connection.granted?.find((one) => one.direction === direction);
  return {
    connectionLeft: known(series(lines?.connection)),
    streamLeft: known(series(lines?.stream_window)),
    stream: lines?.stream,
  };
}

function sockets(connection: ConnectionData, direction: Direction, meanTime: number) {
  const isUpload = direction === "client_to_server";
  const at = (end: "client" | "server") => connection.sockets?.find((socket) => socket.end === end);
  const sender = at(isUpload ? "client" : "server"),
    receiver = at(isUpload ? "server" : "client");
  const queue = connection.link_queue;
  const bytes = queue && sums(queue.bytes);
  const linkQueue: Series =
    queue && bytes
      ? { at: sums(queue.time_us), low: bytes, high: bytes, line: bytes, bucket: 0 }
      : empty;
  return {
    socketRtt: sender && known(samples(sender, "rtt_us")),
    cwnd: sender && known(samples(sender, "cwnd_bytes")),
    ssthresh: sender && known(samples(sender, "ssthresh_bytes")),
    sendQueue: sender && known(samples(sender, "send_queue_bytes")),
    notsent: sender && known(samples(sender, "notsent_bytes")),
    receiveQueue: receiver && known(samples(receiver, "receive_queue_bytes")),
    receiveBuffer: receiver && known(samples(receiver, "receive_buffer_bytes")),
    drain: receiver && known(slope(samples(receiver, "read_bytes"), meanTime)),
    linkQueue: known(linkQueue),
  };
}
