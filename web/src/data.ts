/**
 * What the page shows, as `crates/report` (`page::data`) writes it into the HTML, and as the
 * WebAssembly analysis gives it. Names, units and words are those of the schema
 * (docs/src/schema.md): the unit is the end of the name.
 *
 * Long lists are columns of integers. In a column whose type is `Differences`, each number is the
 * difference from the number before it; the first is the difference from 0.
 */

/** Integers, each stored as the difference from the one before. */
export type Differences = number[];

/** Everything in one report. */
export interface PageData {
  /** Version of the schema. */
  schema: number;
  /** The program that wrote it, as `fullpipe 0.1.0`. */
  program: string;
  /** What was read, as the reader named it: file names, or the scenario. */
  title: string;
  /** What was read. */
  kind: "capture" | "lab" | "samples";
  /** The inputs. */
  sources: Source[];
  /** Connections in all inputs. */
  connections_total: number;
  /** Those that are shown, the one that lost most time first. */
  connections: ConnectionData[];
  /** Of a lab: its runs, in order. */
  lab?: LabData;
}

/** An input. */
export interface Source {
  name: string;
  packets?: number;
  bytes?: number;
  /** What could not be read, in words. */
  problem?: string;
  /** Packets that were dropped while it was captured, by its own counters. */
  dropped?: number;
  /** Packets whose times go back. */
  backwards?: number;
  /** Those of them that could not be put into order. */
  unsorted?: number;
}

/** A connection. */
export interface ConnectionData {
  /** Which of `sources` it is from. */
  source: number;
  /** Of a lab: which of `lab.runs` it is from. */
  run?: number;
  /** Of a lab's "before and after": which part this is. */
  part?: "before" | "after";
  /** The object of `fullpipe analyze --json --intervals`: see the guide's page of the schema. */
  facts: Facts;
  /** The points of the graphs; absent where the report was asked for the table alone. */
  trace?: Trace;
  /** What all the time went for, in order; there with the graphs. */
  spans?: AccountSpan[];
  /** What HTTP/2's windows left to be sent, where its frames were read. */
  granted?: GrantedLines[];
  /** What the kernel said of the sender's and the receiver's socket meanwhile. */
  sockets?: SocketSeries[];
  /** The link's queue towards the receiver, where the link's log is there. */
  link_queue?: { time_us: Differences; bytes: Differences };
}

/** One of the two directions of a connection. */
export type Direction = "client_to_server" | "server_to_client";

/** The parts of `analyze --json` that the page reads. There are more. */
export interface Facts {
  id: number;
  client: string;
  server: string;
  start_ns: number;
  duration_us: number;
  handshake_rtt_us?: number | null;
  close: string;
  /** Absent of samples. */
  account?: Account;
  /** Shares of every limit, largest first. */
  limits: (Candidate & { direction: Direction })[];
  findings: Finding[];
  sub_causes: SubCause[];
  intervals?: Interval[];
  warnings: string[];
  client_to_server: DirectionFacts;
  server_to_client: DirectionFacts;
  [more: string]: unknown;
}

/** Where all the time of a connection went. */
export interface Account {
  time_us: number;
  lost_us: number;
  /** How long somebody had waited when the capture ended. */
  last_wait_us?: number | null;
  requests: number;
  turns: number;
  tls_turns?: number;
  /** The time, divided; the longest first. */
  parts: AccountPart[];
  [more: string]: unknown;
}

/** Who had some time, and for what. */
export interface Accounted {
  owner: string;
  cause: string;
  direction?: Direction;
}

/** A stretch of the time, since the connection's first packet. */
export interface AccountSpan extends Accounted {
  start_us: number;
  length_us: number;
}

/** A part of it: all that one had for one cause. */
export interface AccountPart extends Accounted {
  time_us: number;
  lost_us: number;
}

/** What one direction carried. */
export interface DirectionFacts {
  packets: number;
  wire_bytes: number;
  payload_bytes: number;
  unique_payload_bytes: number;
  goodput_bps?: number | null;
  rtt: { count: number; min_us?: number | null; p50_us?: number | null; p99_us?: number | null };
  labels: Record<string, number>;
  [more: string]: unknown;
}

/** A limit with its share of the time. */
export interface Candidate {
  /** `receive_window`, `receiver_application`, `send_buffer`, `sender_application`,
   * `congestion_window`, `link` or `unknown`. */
  limit: string;
  /** Of a congestion window: `slow_start` or `loss`. */
  cause?: string | null;
  share: number;
}

/** What would change something: a sentence, and its name, which does not change. */
export interface Remedied {
  remedy?: string | null;
  remedy_name?: string;
}

/** What held a direction's data, in a sentence, with its numbers and what would change it. */
export interface Finding extends Candidate, Remedied {
  direction: Direction;
  confidence?: number | null;
  /** The two limits of an answer that is no more than a guess, the likelier first. */
  either?: Candidate[];
  doubt?: string | null;
  claim: string;
  evidence: Record<string, number>;
  changes?: unknown[];
  rivals?: Candidate[];
  [more: string]: unknown;
}

/** What lies behind a limit. */
export interface SubCause extends Remedied {
  direction: Direction;
  sub_cause: string;
  claim: string;
  remedy: string;
  [more: string]: unknown;
}

/** Who held the data in one interval: the band on the time axis. */
export interface Interval {
  direction: Direction;
  start_ns: number;
  length_us: number;
  candidates: Candidate[];
  goodput_bps: number;
  [more: string]: unknown;
}

/** The points of a connection's graphs, by whose data they are about. */
export interface Trace {
  client_to_server?: DirectionTrace | null;
  server_to_client?: DirectionTrace | null;
}

/**
 * Points over time. Times count from the connection's first packet (`facts.start_ns`).
 *
 * `bucket_us` 0: every event is a point, and has `value`. Otherwise the events of each stretch of
 * that length are one point with `first`, `min`, `max`, `last` and `count`, at the time of the first
 * of them; a stretch without events has no point.
 *
 * Of `acks`, `window_edge`, `window` and `in_flight` only changes are events: a value holds until
 * the next.
 */
export interface Points {
  bucket_us: number;
  time_us: Differences;
  value?: Differences;
  first?: Differences;
  min?: Differences;
  max?: Differences;
  last?: Differences;
  count?: Differences;
}

/** The graphs of one direction's data. Sequence numbers count from its first byte, unwrapped. */
export interface DirectionTrace {
  /** Segments with data. `value` is the sequence number after the segment. `length` and `packet`
   * (the packet's number in the capture, from 1) are there where `bucket_us` is 0; in buckets `min`
   * is the lowest first byte and `max` the highest end. */
  segments: Points & { length?: number[]; packet?: Differences };
  /** The acknowledgement line: the lower stair. */
  acks: Points;
  /** The end of the advertised window, as a sequence number: the upper stair. Absent where the
   * window's scale is not known. */
  window_edge?: Points | null;
  /** The advertised window in bytes. */
  window?: Points | null;
  /** Payload in flight at the capture point, in bytes. */
  in_flight: Points;
  /** Round trips of data in µs. `sequence` is there where `bucket_us` is 0. */
  rtt: Points & { sequence?: Differences };
  /** Bytes by time: bins of `width_us` from the connection's first packet. */
  rate: { width_us: number; payload_bytes: number[]; wire_bytes: number[] };
  /** Packets that mean something for this direction's data (an ACK's label is in the trace of the
   * data that it acknowledges), by their label (the schema's words: `retransmission`,
   * `fast_retransmission`, `rto`, `spurious_retransmission`, `out_of_order`, `lost_segment`,
   * `duplicate_ack`, `zero_window`, `zero_window_probe`, `window_full`, `keep_alive`, ..), and
   * `sack` (a reported block) and `push`. */
  marks: Record<string, Marks>;
  /** Silences longer than max(2 least RTT, 100 ms) in order of time; the longest if they are too many. */
  stalls: Stall[];
}

/** What the sender of a direction's data may still send by HTTP/2's windows, in bytes. It falls with
 * each frame of data, and rises with what the other end grants; below 0 after settings took some back. */
export interface GrantedLines {
  direction: Direction;
  /** In all streams together. */
  connection: Points;
  /** The stream that waited longest for its own window, if one did, and that window. */
  stream?: number;
  stream_window?: Points;
}

/** Places in the time-sequence graph. */
export interface Marks {
  /** How many there are in all. If they are too many, every second (fourth, eighth, ..) is listed,
   * so that those listed are evenly spread. */
  count: number;
  time_us: Differences;
  /** First byte, or the acknowledged number of an ACK. */
  sequence: Differences;
  /** Bytes; 0 of an ACK without data. */
  length: number[];
  packet: Differences;
}

/** A silence in which data could have moved. */
export interface Stall {
  start_us: number;
  length_us: number;
  /** `retransmission_timeout`, `tail_loss`, `zero_window`, `sender_application`,
   * `receiver_application`, `delayed_ack`, `idle_restart`, `packet_delay` or `unknown`.
   * `idle_restart`: the sender's application had nothing to send, and afterwards the sender began
   * again with a small window. */
  cause: string;
  /** What the direction's mean goodput would have carried meanwhile. */
  cost_bytes: number;
  /** Where in the data. */
  sequence: number;
}

/** Samples of one socket, for the graphs. `null` where the kernel did not say. */
export interface SocketSeries {
  /** Whose socket. */
  end: "client" | "server";
  congestion_control?: string | null;
  time_us: Differences;
  columns: {
    cwnd_bytes?: (number | null)[];
    ssthresh_bytes?: (number | null)[];
    rtt_us?: (number | null)[];
    send_queue_bytes?: (number | null)[];
    notsent_bytes?: (number | null)[];
    receive_queue_bytes?: (number | null)[];
    /** Memory, with the kernel's overhead. */
    receive_buffer_bytes?: (number | null)[];
    /** What the application has read so far. */
    read_bytes?: (number | null)[];
  };
}

/** A lab's results. */
export interface LabData {
  /** The rows of `lab run --json`. */
  runs: Record<string, unknown>[];
  /** Goodput against what was varied, beside the law. */
  curves: Curve[];
  /** What was set between before and after, where that is known: changes as a finding has them. */
  plan?: unknown[];
}

/** Goodput over one varied quantity. */
export interface Curve {
  title: string;
  /** The scenario's key, as `link.rtt` or `link.loss`. */
  key: string;
  unit: "us" | "bytes" | "bps" | "share" | "count";
  /** Measured: the value of the key, goodput, and which of `runs`. */
  points: { x: number; goodput_bps: number; run: number }[];
  /** The law over the same range. */
  law: { x: number; bps: number }[];
  /** What the law is, in words: `window / RTT`, `Mathis`. */
  law_name: string;
}
