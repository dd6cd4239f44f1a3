/** Which graphs a direction has, and of which layers each is made. */
import type { Levels } from "../levels.ts";
import type { Colour } from "../theme.ts";
import { time, type Unit } from "../units.ts";
import type { GraphName, LineName, Words } from "../words/words.ts";
import {
  bars,
  constant,
  dots,
  type Layer,
  line,
  marks,
  type Shape,
  stairs,
  strokes,
} from "./layers.ts";
import type { Tracks } from "./tracks.ts";

/** A graph. */
export interface Graph {
  readonly name: GraphName;
  readonly unit: Unit;
  readonly layers: readonly Layer[];
  /** Whether the y axis begins at 0. */
  readonly isFromZero: boolean;
  /** The x axis: time, which all graphs share, or a sequence number. */
  readonly over: "time" | "sequence";
  /** The whole x axis. */
  readonly span: readonly [number, number];
}

/** How marks look; those that are not listed are not drawn. The later ones lie on top. */
const MARKS: readonly (readonly [label: string, colour: Colour, shape: Shape, isShown: boolean])[] =
  [
    ["push", "slate", "up", false],
    ["keep_alive", "slate", "ring", true],
    ["window_update", "sky", "up", false],
    ["window_full", "blue", "up", true],
    ["duplicate_ack", "amber", "dot", true],
    ["sack", "violet", "stroke", true],
    ["duplicate_packet", "slate", "diamond", true],
    ["out_of_order", "pink", "diamond", true],
    ["lost_segment", "ink", "cross", true],
    ["ack_lost_segment", "ink", "ring", true],
    ["spurious_retransmission", "pink", "ring", true],
    ["retransmission", "red", "square", true],
    ["fast_retransmission", "red", "diamond", true],
    ["rto", "red", "cross", true],
    ["zero_window_probe", "sky", "diamond", true],
    ["zero_window_probe_ack", "sky", "ring", true],
    ["zero_window", "blue", "down", true],
  ];

/** The graphs of a direction, in the order in which they are read. */
export function graphsOf(
  tracks: Tracks,
  words: Words,
  pathRtt: number | undefined,
  isOverSequence: boolean,
): Graph[] {
  const style = (key: LineName, colour: Colour) => ({ key, entry: words.line[key], colour });
  const some = (of: Levels | undefined, make: (of: Levels) => Layer): Layer[] =>
    of ? [make(of)] : [];
  const overTime = { over: "time", span: tracks.span } as const;
  const rttOver = isOverSequence ? tracks.rttOverSequence : undefined;
  const graphs: Graph[] = [
    {
      name: "sequence",
      unit: "bytes",
      isFromZero: false,
      ...overTime,
      layers: sequence(tracks, words),
    },
    {
      name: "throughput",
      unit: "bps",
      isFromZero: true,
      ...overTime,
      layers: [
        bars(style("wire", "slate"), tracks.wire, false),
        bars(style("goodput", "blue"), tracks.goodput, true),
        line(
          {
            ...style("mean", "amber"),
            entry: { ...words.line.mean, means: words.say.mean(time(tracks.meanTime)) },
          },
          tracks.mean,
          2.25,
        ),
        ...some(tracks.drain, (of) => stairs(style("drain", "sky"), of, [4, 3])),
      ],
    },
    {
      name: "rtt",
      unit: "us",
      isFromZero: true,
      ...(rttOver ? { over: "sequence" as const, span: ends(rttOver) } : overTime),
      layers: [
        dots(style("rtt", "violet"), rttOver ?? tracks.rtt),
        ...(rttOver
          ? []
          : some(tracks.socketRtt, (of) => stairs(style("socket_rtt", "amber"), of, [], 1.5))),
        ...(pathRtt ? [constant(style("path_rtt", "green"), pathRtt)] : []),
      ],
    },
    {
      name: "window",
      unit: "bytes",
      isFromZero: true,
      ...overTime,
      layers: [
        ...some(tracks.window, (of) =>
          stairs({ ...style("window", "green"), farFrom: 6 }, of, [], 2),
        ),
        stairs(style("in_flight", "blue"), tracks.inFlight),
        ...some(tracks.connectionLeft, (of) =>
          stairs({ ...style("connection_left", "sky"), farFrom: 6 }, of, [4, 3]),
        ),
        ...some(tracks.streamLeft, (of) =>
          stairs(
            {
              ...style("stream_left", "violet"),
              entry: { ...words.line.stream_left, name: words.say.stream(tracks.stream ?? 0) },
            },
            of,
          ),
        ),
        ...some(tracks.cwnd, (of) => stairs(style("cwnd", "amber"), of)),
        ...some(tracks.ssthresh, (of) =>
          stairs({ ...style("ssthresh", "slate"), isShown: false, farFrom: 6 }, of, [4, 3]),
        ),
      ],
    },
  ];
  const queues = [
    ...some(tracks.sendQueue, (of) => stairs(style("send_queue", "violet"), of)),
    ...some(tracks.notsent, (of) => stairs(style("notsent", "pink"), of, [4, 3])),
    ...some(tracks.linkQueue, (of) => stairs(style("link_queue", "green"), of)),
    ...some(tracks.receiveQueue, (of) => stairs(style("receive_queue", "sky"), of)),
    ...some(tracks.receiveBuffer, (of) =>
      stairs({ ...style("receive_buffer", "slate"), farFrom: 6 }, of, [4, 3]),
    ),
  ];
  if (queues.length)
    graphs.push({ name: "queues", unit: "bytes", isFromZero: true, ...overTime, layers: queues });
  return graphs;
}

function ends({ levels: [finest] }: Levels): [number, number] {
  const { at } = finest;
  return at.length > 1 && at[at.length - 1] > at[0] ? [at[0], at[at.length - 1]] : [0, 1];
}

function sequence(tracks: Tracks, words: Words): Layer[] {
  const style = (key: LineName, colour: Colour) => ({ key, entry: words.line[key], colour });
  const layers: Layer[] = [];
  if (tracks.windowEdge)
    layers.push(
      stairs({ ...style("window_edge", "green"), farFrom: 3 }, tracks.windowEdge, [], 1.75),
    );
  layers.push(stairs(style("acks", "amber"), tracks.acks, [], 1.75));
  layers.push(strokes(style("segments", "blue"), tracks.segments));
  for (const [label, colour, shape, isShown] of MARKS) {
    const places = tracks.marks.get(label);
    if (places?.at.length) {
      layers.push(
        marks(
          { key: label, entry: words.mark[label] ?? { name: label, means: "" }, colour, isShown },
          places,
          shape,
        ),
      );
    }
  }
  return layers;
}
