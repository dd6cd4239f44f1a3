/**
 * A small TCP transfer in numbers, for fixtures: one sender that captures its own packets, a FIFO
 * link, a receiver with a fixed window. It is no model of a kernel; it makes graphs look real.
 */
import type { DirectionTrace, Interval, Marks, Points, SocketSeries, Stall } from "../src/data.ts";
import type { LimitName } from "../src/limits.ts";

/** What is simulated. */
export interface Plan {
  readonly bytes: number;
  readonly rate_bps: number;
  readonly rtt_us: number;
  readonly window: number;
  /** Packets before the link; more are dropped. */
  readonly queue: number;
  readonly loss?: number;
  readonly seed?: number;
  /** The application writes nothing in these stretches, in µs. */
  readonly pauses?: readonly (readonly [number, number])[];
}

/** What came of it. */
export interface Run {
  readonly trace: DirectionTrace;
  readonly socket: SocketSeries;
  readonly link_queue: { time_us: number[]; bytes: number[] };
  readonly intervals: Interval[];
  readonly duration_us: number;
  readonly packets: number;
  readonly retransmissions: number;
  readonly rtt: { count: number; min_us: number; p50_us: number; p99_us: number };
}

const MSS = 1448,
  HEADERS = 66;

/** Differences between neighbours, as the report writes columns. */
export function differences(values: readonly number[]): number[] {
  return values.map((value, i) => Math.round(value) - (i ? Math.round(values[i - 1]) : 0));
}

function random(seed: number): () => number {
  let state = seed * 2654435761 + 1;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

class Column {
  readonly time: number[] = [];
  readonly value: number[] = [];
  push(time: number, value: number): void {
    this.time.push(time);
    this.value.push(value);
  }
  get points(): Points {
    return { bucket_us: 0, time_us: differences(this.time), value: differences(this.value) };
  }
}

interface Ack {
  time: number;
  ack: number;
  block?: [number, number];
}

class Sender {
  now = 0;
  una = 0;
  next = 0;
  cwnd = 10 * MSS;
  ssthresh = Infinity;
  recover = -1;
  duplicates = 0;
  packet = 3;
  linkFree = 0;
  received = 0;
  readonly outOfOrder = new Map<number, number>();
  readonly sacked = new Set<number>();
  readonly sent = new Map<number, { time: number; again: boolean }>();
  readonly acks: Ack[] = [];
  readonly segments = new Column();
  readonly lengths: number[] = [];
  readonly numbers: number[] = [];
  readonly ackLine = new Column();
  readonly edge = new Column();
  readonly window = new Column();
  readonly flight = new Column();
  readonly rtt = new Column();
  readonly rttSequence: number[] = [];
  readonly cwnds = new Column();
  readonly queue = new Column();
  readonly marks = new Map<
    string,
    { time: number[]; sequence: number[]; length: number[]; packet: number[] }
  >();
  readonly waits: [number, LimitName][] = [];
  readonly random: () => number;

  constructor(readonly plan: Plan) {
    this.random = random(plan.seed ?? 1);
    this.now = plan.rtt_us * 1.5;
    for (const [column, value] of [
      [this.ackLine, 0],
      [this.edge, plan.window],
      [this.window, plan.window],
    ] as const) {
      column.push(plan.rtt_us, value);
    }
  }

  /** Segments that count as lost and were not sent again yet. */
  readonly lost = new Set<number>();
  /** Holes below this were looked at. */
  looked = 0;

  get inFlight(): number {
    return this.next - this.una - (this.sacked.size + this.lost.size) * MSS;
  }

  mark(label: string, sequence: number, length: number): void {
    const of = this.marks.get(label) ?? { time: [], sequence: [], length: [], packet: [] };
    this.marks.set(label, of);
    of.time.push(this.now);
    of.sequence.push(sequence);
    of.length.push(length);
    of.packet.push(this.packet);
  }

  /** Sends one segment into the link, where it may be lost, and plans its ACK. */
  send(sequence: number, again: boolean): void {
    const { plan } = this;
    this.packet += 1;
    const length = Math.min(MSS, plan.bytes - sequence);
    this.segments.push(this.now, sequence + length);
    this.lengths.push(length);
    this.numbers.push(this.packet);
    this.sent.set(sequence, { time: this.now, again });
    const wait = Math.max(0, this.linkFree - this.now);
    const queued = (wait * plan.rate_bps) / 8e6;
    this.queue.push(this.now, queued);
    if (queued > plan.queue * (MSS + HEADERS) || this.random() < (plan.loss ?? 0)) return;
    this.linkFree = Math.max(this.linkFree, this.now) + ((length + HEADERS) * 8e6) / plan.rate_bps;
    this.receive(sequence, length, this.linkFree + plan.rtt_us);
  }

  receive(sequence: number, length: number, time: number): void {
    if (sequence === this.received) {
      this.received += length;
      for (
        let next = this.outOfOrder.get(this.received);
        next !== undefined;
        next = this.outOfOrder.get(this.received)
      ) {
        this.outOfOrder.delete(this.received);
        this.received += next;
      }
      this.acks.push({ time, ack: this.received });
    } else if (sequence > this.received) {
      this.outOfOrder.set(sequence, length);
      this.acks.push({ time, ack: this.received, block: [sequence, sequence + length] });
    }
  }

  resend(label: string, sequence: number): void {
    const length = Math.min(MSS, this.plan.bytes - sequence);
    this.mark("retransmission", sequence, length);
    this.mark(label, sequence, length);
    this.lost.delete(sequence);
    this.send(sequence, true);
  }

  /** What lies three segments below the highest that is reported is lost (RFC 6675). */
  findHoles(highest: number): void {
    const to = highest - 3 * MSS;
    for (let at = Math.max(this.looked, this.una); at <= to; at += MSS) {
      if (!this.sacked.has(at)) this.lost.add(at);
      this.looked = at + MSS;
    }
  }

  paused(): number | undefined {
    return this.plan.pauses
      ?.find(([start, length]) => this.now >= start && this.now < start + length)
      ?.reduce((a, b) => a + b);
  }

  acked({ time, ack, block }: Ack): void {
    this.now = time;
    this.packet += 1;
    this.ackLine.push(time, ack);
    this.edge.push(time, ack + this.plan.window);
    if (ack > this.una) {
      const sent =
        this.sent.get(Math.max(this.una, ack - MSS - ((ack - this.una) % MSS ? MSS : 0))) ??
        this.sent.get(this.una);
      const last = this.sent.get(ack - MSS) ?? sent;
      if (last && !last.again) {
        this.rtt.push(time, time - last.time);
        this.rttSequence.push(ack);
      }
      for (let at = this.una; at < ack; at += MSS) {
        this.sacked.delete(at);
        this.lost.delete(at);
      }
      const gained = ack - this.una;
      this.una = ack;
      this.duplicates = 0;
      if (ack >= this.recover) {
        this.recover = -1;
        const isUsed = this.inFlight + gained + 2 * MSS >= this.cwnd;
        if (isUsed)
          this.cwnd += this.cwnd < this.ssthresh ? gained : (2 * MSS * gained) / this.cwnd;
      }
    } else if (block) {
      this.duplicates += 1;
      this.sacked.add(block[0]);
      this.mark("duplicate_ack", ack, 0);
      this.mark("sack", block[0], block[1] - block[0]);
      this.findHoles(block[0]);
      if (this.lost.size > 0 && this.recover < 0) {
        this.recover = this.next;
        this.ssthresh = Math.max(2 * MSS, this.cwnd * 0.7);
        this.cwnd = this.ssthresh;
        this.resend("fast_retransmission", this.una);
      }
    }
  }

  run(): void {
    const { plan } = this;
    while (this.una < plan.bytes) {
      const resume = this.paused();
      const room = Math.min(this.cwnd, plan.window);
      let limit: LimitName = "link";
      while (this.lost.size > 0 && this.inFlight + MSS <= room)
        this.resend("fast_retransmission", Math.min(...this.lost));
      while (this.next < plan.bytes && resume === undefined && this.inFlight + MSS <= room) {
        this.send(this.next, false);
        this.next = Math.min(plan.bytes, this.next + MSS);
        this.now += 1.2;
        if (this.next % (MSS * 40) === 0) this.mark("push", this.next, 0);
      }
      if (resume !== undefined) limit = "sender_application";
      else if (this.linkFree - this.now > plan.rtt_us * 0.5) limit = "link";
      else if (plan.window - this.inFlight < MSS) limit = "receive_window";
      else if (this.recover >= 0 || this.ssthresh < Infinity)
        limit = this.linkFree - this.now > plan.rtt_us * 0.1 ? "link" : "loss";
      else if (this.linkFree - this.now < plan.rtt_us * 0.1) limit = "slow_start";
      this.waits.push([this.now, limit]);
      this.flight.push(this.now, this.inFlight);
      this.cwnds.push(this.now, this.cwnd);
      const ack = this.acks.shift();
      if (ack && (resume === undefined || ack.time < resume)) this.acked(ack);
      else if (ack) {
        this.acks.unshift(ack);
        this.now = resume ?? this.now;
      } else if (resume !== undefined && this.inFlight <= 0) this.now = resume;
      else {
        this.now += Math.max(200_000, plan.rtt_us * 1.3);
        this.ssthresh = Math.max(2 * MSS, this.inFlight / 2);
        this.cwnd = MSS;
        this.recover = -1;
        this.sacked.clear();
        this.lost.clear();
        this.resend("rto", this.una);
        this.looked = this.una;
      }
    }
  }
}

/** Runs a plan. */
export function simulate(plan: Plan, startNs: number): Run {
  const sender = new Sender(plan);
  sender.run();
  const duration = sender.now;
  const width = Math.max(10_000, Math.round(duration / 400 / 1000) * 1000);
  const bins = Math.ceil((duration + 1) / width);
  const payload = new Array<number>(bins).fill(0),
    wire = new Array<number>(bins).fill(0);
  let highest = 0;
  sender.segments.time.forEach((time, i) => {
    const bin = Math.floor(time / width),
      end = sender.segments.value[i];
    wire[bin] += sender.lengths[i] + HEADERS;
    if (end > highest) {
      payload[bin] += sender.lengths[i];
      highest = end;
    }
  });
  const rtts = [...sender.rtt.value].sort((a, b) => a - b);
  const at = (part: number): number =>
    Math.round(rtts[Math.floor(part * (rtts.length - 1))] ?? plan.rtt_us);
  const marks: Record<string, Marks> = {};
  for (const [label, of] of sender.marks) {
    marks[label] = {
      count: of.time.length,
      time_us: differences(of.time),
      sequence: differences(of.sequence),
      length: of.length,
      packet: differences(of.packet),
    };
  }
  return {
    trace: {
      segments: {
        ...sender.segments.points,
        length: sender.lengths,
        packet: differences(sender.numbers),
      },
      acks: sender.ackLine.points,
      window_edge: sender.edge.points,
      window: sender.window.points,
      in_flight: sender.flight.points,
      rtt: { ...sender.rtt.points, sequence: differences(sender.rttSequence) },
      rate: { width_us: width, payload_bytes: payload, wire_bytes: wire },
      marks,
      stalls: stalls(sender, plan, highest / duration),
    },
    socket: socket(sender),
    link_queue: { time_us: differences(sender.queue.time), bytes: differences(sender.queue.value) },
    intervals: intervals(sender, plan, startNs, payload, width),
    duration_us: Math.round(duration),
    packets: sender.packet,
    retransmissions: sender.marks.get("retransmission")?.time.length ?? 0,
    rtt: { count: rtts.length, min_us: at(0), p50_us: at(0.5), p99_us: at(0.99) },
  };
}

function stalls(sender: Sender, plan: Plan, bytesPerUs: number): Stall[] {
  const out: Stall[] = [];
  const { time, value } = sender.segments;
  for (let i = 1; i < time.length; i++) {
    const length = time[i] - time[i - 1];
    if (length < Math.max(2 * plan.rtt_us, 100_000)) continue;
    const isPause = plan.pauses?.some(
      ([start]) => start >= time[i - 1] - plan.rtt_us && start < time[i],
    );
    out.push({
      start_us: Math.round(time[i - 1]),
      length_us: Math.round(length),
      cause: isPause ? "sender_application" : "retransmission_timeout",
      cost_bytes: Math.round(length * bytesPerUs),
      sequence: value[i - 1],
    });
  }
  return out;
}

function socket(sender: Sender): SocketSeries {
  const time: number[] = [],
    cwnd: number[] = [],
    threshold: (number | null)[] = [],
    queue: number[] = [],
    notsent: number[] = [],
    rtt: (number | null)[] = [];
  let i = 0,
    j = -1;
  for (let now = sender.plan.rtt_us; now < sender.now; now += 10_000) {
    while (i + 1 < sender.cwnds.time.length && sender.cwnds.time[i + 1] <= now) i++;
    while (j + 1 < sender.rtt.time.length && sender.rtt.time[j + 1] <= now) j++;
    time.push(now);
    cwnd.push(Math.round(sender.cwnds.value[i]));
    threshold.push(sender.ssthresh === Infinity ? null : Math.round(sender.ssthresh));
    queue.push(Math.round(sender.flight.value[i] + 64_000));
    notsent.push(64_000);
    rtt.push(j < 0 ? null : Math.round(sender.rtt.value[j]));
  }
  return {
    end: "server",
    congestion_control: "cubic",
    time_us: differences(time),
    columns: {
      cwnd_bytes: cwnd,
      ssthresh_bytes: threshold,
      send_queue_bytes: queue,
      notsent_bytes: notsent,
      rtt_us: rtt,
    },
  };
}

function intervals(
  sender: Sender,
  plan: Plan,
  startNs: number,
  payload: number[],
  width: number,
): Interval[] {
  const length = Math.max(10_000, plan.rtt_us);
  const out: Interval[] = [];
  let i = 0;
  for (let start = plan.rtt_us * 1.5; start < sender.now; start += length) {
    const counts = new Map<LimitName, number>();
    for (; i < sender.waits.length && sender.waits[i][0] < start + length; i++) {
      counts.set(sender.waits[i][1], (counts.get(sender.waits[i][1]) ?? 0) + 1);
    }
    const [name = plan.pauses?.length ? "sender_application" : "loss"] = [...counts]
      .sort((a, b) => b[1] - a[1])
      .map(([name]) => name as LimitName);
    const isCwnd = name === "slow_start" || name === "loss";
    out.push({
      direction: "server_to_client",
      start_ns: startNs + start * 1000,
      length_us: Math.min(length, sender.now - start),
      candidates: [
        isCwnd ? { limit: "congestion_window", cause: name, share: 1 } : { limit: name, share: 1 },
      ],
      goodput_bps: ((payload[Math.floor(start / width)] ?? 0) * 8e6) / width,
    });
  }
  return out;
}
