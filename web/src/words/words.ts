/** What a language must have. Names in code style are the schema's; they are never translated. */
import type { Direction, Finding, Remedied, SubCause } from "../data.ts";
import type { LimitName } from "../limits.ts";

/** A line or a mark of a graph: its name, and what it means in a sentence. */
export interface Entry {
  readonly name: string;
  readonly means: string;
}

/** Every line that a graph may have. */
export type LineName =
  | "segments"
  | "acks"
  | "window_edge"
  | "goodput"
  | "wire"
  | "mean"
  | "rtt"
  | "socket_rtt"
  | "path_rtt"
  | "window"
  | "in_flight"
  | "connection_left"
  | "stream_left"
  | "cwnd"
  | "ssthresh"
  | "send_queue"
  | "notsent"
  | "receive_queue"
  | "receive_buffer"
  | "drain"
  | "link_queue";

/** Graphs. */
export type GraphName = "sequence" | "throughput" | "rtt" | "window" | "queues";

/** A language. */
/** Microseconds that data waited before a link; undefined where that may be chance. */
export function queueBefore(rtt_us?: number | null, path_us?: number | null): number | undefined {
  if (!rtt_us || !path_us) return undefined;
  const queue = rtt_us - path_us;
  return queue >= Math.max(300, 0.03 * path_us) ? queue : undefined;
}

export interface Words {
  readonly code: string;
  /** The page. */
  readonly ui: Record<UiName, string>;
  readonly direction: Record<Direction, string>;
  /** Where the time went, by the names of `account`. */
  readonly account: {
    readonly title: string;
    readonly cause: Record<string, string>;
    readonly owner: Record<string, string>;
    /** "4 s of 4.01 s: the server did not answer yet." */
    sentence(part: string, all: string, cause: string): string;
  };
  readonly limit: Record<LimitName, Entry>;
  /** "The receive window limited it for 93 % of the time." */
  verdict(limit: LimitName, share: string, evidence?: Finding["evidence"]): string;
  /** The same of a verdict that is wrong as often as right. */
  guess(limit: LimitName, or: LimitName): string;
  /** The same in a few words, for a table. */
  either(limit: LimitName, or: LimitName): string;
  /** No limit is known: nothing was transferred, or nobody answered. */
  readonly noVerdict: string;
  /** The arithmetic behind a finding, in sentences. */
  because(limit: LimitName, finding: Finding): string[];
  /** How sure it is. */
  confidence(confidence: number): string;
  doubt(finding: Finding, rival: string | undefined): string | undefined;
  remedy(of: Remedied): string;
  subCause(cause: SubCause): { claim: string; remedy: string };
  warning(name: string): string;
  readonly graph: Record<GraphName, { title: string; question: string }>;
  readonly line: Record<LineName, Entry>;
  /** Marks of the time-sequence graph by their label. */
  readonly mark: Record<string, Entry>;
  readonly stall: Record<string, Entry>;
  /** Sentences with numbers. */
  readonly say: {
    packet(number: number): string;
    segment(length: string, end: string): string;
    /** What a stream of HTTP/2 may still send. */
    stream(number: number): string;
    /** What the moving mean is. */
    mean(time: string): string;
    bucket(length: string): string;
    range(low: string, high: string): string;
    held(limit: string, confidence: number | null): string;
    full(inFlight: string, window: string): string;
    room(inFlight: string, window: string): string;
    stall(length: string, cause: string): string;
    marksLeftOut(shown: string, all: string, name: string): string;
    all(count: string): string;
    connections(shown: string, all: string): string;
    connection(number: string): string;
    worst(all: string): string;
    spans(count: number): string;
    problem(source: string, what: string): string;
    dropped(packets: string): string;
    backwards(packets: string, order: "sorted" | "partly" | "as_taken", unsorted: string): string;
    on(end: "sender" | "receiver"): string;
    faster(times: string): string;
    slower(times: string): string;
    socket(name: string, end: "client" | "server"): string;
    zoomed(start: string, end: string): string;
    perConnection(key: string): string;
  };
}

/** Short texts. */
export type UiName =
  | "title"
  | "capture"
  | "lab"
  | "samples"
  | "language"
  | "theme"
  | "light"
  | "dark"
  | "verdict"
  | "confidence"
  | "whatToDo"
  | "showMe"
  | "showAll"
  | "copy"
  | "copied"
  | "shares"
  | "behind"
  | "warnings"
  | "connections"
  | "client"
  | "server"
  | "bytes"
  | "goodput"
  | "rtt"
  | "limit"
  | "lost"
  | "retransmissions"
  | "duration"
  | "graphs"
  | "direction"
  | "zoomIn"
  | "zoomOut"
  | "left"
  | "right"
  | "reset"
  | "overTime"
  | "overSequence"
  | "noSequence"
  | "copyPng"
  | "savePng"
  | "saveSvg"
  | "failed"
  | "legend"
  | "limitsBand"
  | "limitsBandMeans"
  | "noTrace"
  | "stalls"
  | "noStalls"
  | "time"
  | "length"
  | "cause"
  | "cost"
  | "go"
  | "runs"
  | "run"
  | "law"
  | "curve"
  | "before"
  | "after"
  | "compare"
  | "measured"
  | "keys"
  | "sources"
  | "packets"
  | "program"
  | "sortBy"
  | "place"
  | "share"
  | "select"
  | "numbers"
  | "noData"
  | "otherLimits"
  | "empty"
  | "ratio"
  | "sum"
  | "broken"
  | "close";
