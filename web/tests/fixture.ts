/** Reports for tests: what `fullpipe report` writes, made from small simulations. */
import type {
  Candidate,
  ConnectionData,
  Curve,
  DirectionFacts,
  Finding,
  PageData,
  Points,
} from "../src/data.ts";
import { differences, type Plan, type Run, simulate } from "./simulate.ts";

const START = 1_767_225_600_000_000_000;
const MBIT = 1e6;
/** A command as `Change::command` of crates/model makes it. */
export const RAISE = `sysctl -w net.ipv4.tcp_rmem="$(sysctl -n net.ipv4.tcp_rmem | awk '{ if ($3 < 33554432) $3 = 33554432; print }')"`;

/** What a hostile capture may contain. */
export const HOSTILE = `<img src=x onerror="document.title='owned'"></script><script>document.title='owned'</script>`;

function nothing(): DirectionFacts {
  return {
    packets: 120,
    wire_bytes: 8000,
    payload_bytes: 90,
    unique_payload_bytes: 90,
    goodput_bps: 1000,
    rtt: { count: 1, min_us: 20, p50_us: 20, p99_us: 20 },
    labels: {},
  };
}

/** The names of these. */
const REMEDY_NAMES: Record<string, string> = {
  receive_window: "grow_receive_buffer",
  receiver_application: "read_faster",
  send_buffer: "grow_send_buffer",
  sender_application: "write_faster",
  slow_start: "keep_connections",
  loss: "remove_loss_or_try_bbr",
  link: "none_at_the_hosts",
  unknown: "capture_the_start",
};
const REMEDIES: Record<string, string> = {
  receive_window:
    "let the receiver's buffer grow: raise the third value of net.ipv4.tcp_rmem on the receiver, and remove or raise SO_RCVBUF in its application",
  loss: "remove the loss, or use a congestion control that does not take each loss for congestion (bbr)",
  slow_start:
    "keep connections open between transfers, or raise the route's initcwnd; longer transfers suffer less",
  link: "nothing at the hosts: this is what the path carries",
  sender_application: "make the sending application produce data faster, or in larger writes",
  unknown: "capture at the sender, from the connection's start, and sample its socket",
};

function limitsOf(run: Run): Candidate[] {
  const sums = new Map<string, number>();
  let all = 0;
  for (const {
    candidates: [{ limit, cause }],
    length_us,
  } of run.intervals) {
    const key = `${limit}/${cause ?? ""}`;
    sums.set(key, (sums.get(key) ?? 0) + length_us);
    all += length_us;
  }
  return [...sums]
    .sort((a, b) => b[1] - a[1])
    .map(([key, time]) => {
      const [limit, cause] = key.split("/");
      return { limit, ...(cause ? { cause } : {}), share: time / all };
    });
}

function finding(
  run: Run,
  plan: Plan,
  of: Candidate,
  isFirst: boolean,
  confidence: number,
): Finding {
  const name = of.cause ?? of.limit;
  const held = run.intervals.filter(
    ({ candidates: [first] }) => first.limit === of.limit && first.cause === of.cause,
  );
  const goodput = held.reduce((sum, one) => sum + one.goodput_bps, 0) / held.length;
  const inFlight = name === "receive_window" ? plan.window : (goodput * plan.rtt_us) / 8e6;
  const changes =
    name === "receive_window"
      ? [
          {
            host: "receiver",
            setting: "net.ipv4.tcp_rmem",
            from: "4096 131072 6291456",
            to: "4096 131072 33554432",
            command: RAISE,
            reason: "the window must hold what is on the way in a round trip",
          },
        ]
      : [];
  return {
    direction: "server_to_client",
    ...of,
    ...(isFirst ? { confidence } : {}),
    claim: `${name}: ${Math.round(of.share * 100)} % of the time`,
    ...(isFirst && confidence < 0.5
      ? {
          doubt:
            "a guess: 41 % of such verdicts are right; it may be the send buffer; capture at the sender",
          either: [
            { limit: of.limit, cause: of.cause, share: confidence },
            { limit: "send_buffer", share: 0.3 },
          ],
        }
      : {}),
    evidence: {
      goodput_bps: Math.round(goodput),
      in_flight_bytes: Math.round(inFlight),
      retransmissions: name === "loss" ? run.retransmissions : 0,
      rtt_us: run.rtt.p50_us,
      rtt_path_us: plan.rtt_us,
      time_us: Math.round(of.share * run.duration_us),
      window_bytes: plan.window,
      ...(name === "receive_window" || name === "loss"
        ? { allowed_bps: Math.round((inFlight * 8e6) / run.rtt.p50_us) }
        : {}),
      ...(name === "receive_window" ? { elsewhere_bps: Math.round(plan.rate_bps * 0.94) } : {}),
    },
    remedy: REMEDIES[name],
    remedy_name: REMEDY_NAMES[name],
    changes,
    rivals: confidence < 0.5 ? [{ limit: "send_buffer", share: 0.6 }] : [],
  };
}

const runs = new Map<string, Run>();

/** A run of a plan; each is simulated once, and the caller may change what it gets. */
function simulated(plan: Plan): Run {
  const key = JSON.stringify(plan),
    run = runs.get(key) ?? simulate(plan, START);
  runs.set(key, run);
  return structuredClone(run);
}

/** A connection that downloads by a plan. */
export function connection(
  id: number,
  plan: Plan,
  more: { confidence?: number; hasSockets?: boolean; server?: string } = {},
): ConnectionData {
  const run = simulated(plan);
  const limits = limitsOf(run);
  const direction = "server_to_client" as const;
  return {
    source: 0,
    facts: {
      id,
      client: `10.77.0.2:${40000 + id}`,
      server: more.server ?? "10.77.0.1:8080",
      start_ns: START,
      duration_us: run.duration_us,
      handshake_rtt_us: plan.rtt_us,
      close: "finished",
      limits: limits.map((one) => ({ ...one, direction })),
      findings: limits
        .filter((one) => one.share >= 0.01)
        .map((one, i) => finding(run, plan, one, i === 0, more.confidence ?? 0.97)),
      sub_causes: run.trace.stalls.some((one) => one.cause === "retransmission_timeout")
        ? [
            {
              direction,
              sub_cause: "timeouts",
              claim:
                "retransmission timeouts: 2 times the sender waited for its timer, 610 ms in all (7 % of the time)",
              remedy:
                "remove the loss; where SACK is off at one end, switch it on (net.ipv4.tcp_sack)",
              remedy_name: "notice_loss_sooner",
              count: 2,
              time_us: 610_000,
            },
          ]
        : [],
      intervals: run.intervals,
      warnings: [],
      client_to_server: nothing(),
      server_to_client: {
        packets: run.packets,
        wire_bytes: plan.bytes * 1.05,
        payload_bytes: plan.bytes,
        unique_payload_bytes: plan.bytes,
        goodput_bps: Math.round((plan.bytes * 8e6) / run.duration_us),
        rtt: run.rtt,
        labels: Object.fromEntries(
          Object.entries(run.trace.marks).map(([label, { count }]) => [label, count]),
        ),
      },
    },
    trace: { server_to_client: run.trace },
    ...(more.hasSockets ? { sockets: [run.socket], link_queue: run.link_queue } : {}),
  };
}

const PLANS = {
  window: { bytes: 12e6, rate_bps: 200 * MBIT, rtt_us: 50_000, window: 262_144, queue: 200 },
  loss: {
    bytes: 9e6,
    rate_bps: 50 * MBIT,
    rtt_us: 40_000,
    window: 4e6,
    queue: 120,
    loss: 0.0015,
    seed: 4,
    pauses: [[1_200_000, 420_000]],
  },
  link: { bytes: 10e6, rate_bps: 40 * MBIT, rtt_us: 25_000, window: 320_000, queue: 150, seed: 2 },
  short: { bytes: 3e5, rate_bps: 100 * MBIT, rtt_us: 80_000, window: 3e6, queue: 150 },
} satisfies Record<string, Plan>;

function page(kind: PageData["kind"], title: string, connections: ConnectionData[]): PageData {
  return {
    schema: 2,
    program: "fullpipe 0.1.0",
    title,
    kind,
    connections_total: connections.length,
    connections,
    sources: [{ name: title, packets: 48_211, bytes: 51_200_345 }],
  };
}

/** A capture of some connections: window, loss, link, a short one, one without data. */
export function capture(): PageData {
  const unanswered = connection(4, PLANS.short);
  unanswered.trace = undefined;
  Object.assign(unanswered.facts, {
    limits: [],
    findings: [],
    intervals: [],
    warnings: ["one_sided", "handshake_missing"],
    server_to_client: {
      ...nothing(),
      unique_payload_bytes: 0,
      payload_bytes: 0,
      goodput_bps: null,
    },
  });
  const guess = connection(3, PLANS.short, {
    confidence: 0.41,
    server: "[2001:db8:85a3::8a2e:370:7334]:443",
  });
  return page("capture", "download.pcap.gz", [
    connection(0, PLANS.window, { hasSockets: true }),
    connection(1, PLANS.loss, { confidence: 0.86, hasSockets: true }),
    connection(2, PLANS.link, { confidence: 0.9 }),
    guess,
    unanswered,
  ]);
}

/** A window-limited download alone. */
export const windowLimited = (): PageData =>
  page("capture", "download.pcap.gz", [connection(0, PLANS.window, { hasSockets: true })]);

/** Names that try to become HTML. */
export function hostile(): PageData {
  const data = capture();
  data.title = HOSTILE;
  data.sources[0] = { name: HOSTILE, problem: HOSTILE };
  data.connections[0].facts.client = HOSTILE;
  data.connections[0].facts.warnings = [HOSTILE];
  data.connections[0].facts.sub_causes = [
    { direction: "server_to_client", sub_cause: HOSTILE, claim: HOSTILE, remedy: HOSTILE },
  ];
  data.connections[0].facts.findings[0].remedy = HOSTILE;
  return data;
}

/** A long transfer of a million packets, whose points are stretches. */
export function long(buckets = 2000): PageData {
  const data = windowLimited();
  const [of] = data.connections;
  const duration = 120e6,
    bucket = duration / buckets,
    perBucket = (1e6 / buckets) * 1448;
  const time = Array.from({ length: buckets }, (_, i) => i * bucket);
  const wave = (i: number): number => 1 + 0.3 * Math.sin(i / 60) + 0.1 * Math.sin(i / 7);
  let sum = 0;
  const sent = time.map((_, i) => (sum += perBucket * wave(i)));
  const points = (value: (i: number) => number, spread: number): Points => ({
    bucket_us: bucket,
    time_us: differences(time),
    first: differences(time.map((_, i) => value(i) * (1 - spread / 2))),
    min: differences(time.map((_, i) => value(i) * (1 - spread))),
    max: differences(time.map((_, i) => value(i) * (1 + spread))),
    last: differences(time.map((_, i) => value(i))),
    count: differences(time.map(() => 500)),
  });
  const rising = (offset: number): Points => ({
    bucket_us: bucket,
    time_us: differences(time),
    first: differences(sent.map((_, i) => (i ? sent[i - 1] : 0) + offset)),
    min: differences(sent.map((_, i) => (i ? sent[i - 1] : 0) + offset)),
    max: differences(sent.map((end) => end + offset)),
    last: differences(sent.map((end) => end + offset)),
    count: differences(time.map(() => 500)),
  });
  of.sockets = undefined;
  of.link_queue = undefined;
  const intervals = time
    .filter((_, i) => i % 4 === 0)
    .map((start, i) => ({
      direction: "server_to_client" as const,
      start_ns: START + start * 1000,
      length_us: bucket * 4,
      candidates: [{ limit: i % 50 < 35 ? "receive_window" : "link", share: 1 }],
      goodput_bps: 9e7,
    }));
  Object.assign(of.facts, { duration_us: duration, intervals });
  Object.assign(of.facts.server_to_client, {
    packets: 1e6,
    unique_payload_bytes: sum,
    payload_bytes: sum,
    goodput_bps: (sum * 8e6) / duration,
  });
  of.trace = {
    server_to_client: {
      segments: rising(500_000),
      acks: rising(0),
      window_edge: rising(750_000),
      window: points(() => 750_000, 0.02),
      in_flight: points((i) => 480_000 * wave(i) ** 0.5, 0.15),
      rtt: points((i) => 50_000 * wave(i), 0.2),
      rate: {
        width_us: bucket,
        payload_bytes: time.map((_, i) => Math.round(perBucket * wave(i))),
        wire_bytes: time.map((_, i) => Math.round(perBucket * wave(i) * 1.046)),
      },
      marks: {
        duplicate_ack: {
          count: 120_000,
          time_us: differences(time),
          sequence: differences(sent),
          length: time.map(() => 0),
          packet: differences(time.map((_, i) => i * 500)),
        },
      },
      stalls: [
        {
          start_us: 40e6,
          length_us: 1.2e6,
          cause: "receiver_application",
          cost_bytes: 14e6,
          sequence: 5e8,
        },
      ],
    },
  };
  return data;
}

/** A lab: a sweep over the round trip, and one change before and after. */
export function lab(): PageData {
  const rtts = [5, 10, 20, 40, 80, 160];
  const window = 262_144;
  const swept = rtts.map((ms, i) => ({
    ...connection(i, { bytes: 6e6, rate_bps: 200 * MBIT, rtt_us: ms * 1000, window, queue: 200 }),
    run: i,
  }));
  const before = { ...connection(6, PLANS.window), run: 6, part: "before" as const };
  const after = {
    ...connection(7, { ...PLANS.window, window: 1.4e6 }),
    run: 7,
    part: "after" as const,
  };
  const law = (us: number): number => Math.min((window * 8e6) / us, 190 * MBIT);
  const curve: Curve = {
    title: "rtt",
    key: "link.rtt",
    unit: "us",
    law_name: "window / RTT",
    points: swept.map((of, run) => ({
      x: rtts[run] * 1000,
      goodput_bps: of.facts.server_to_client.goodput_bps ?? 0,
      run,
    })),
    law: Array.from({ length: 60 }, (_, i) => 4000 * 50 ** (i / 59)).map((us) => ({
      x: us,
      bps: law(us),
    })),
  };
  const all = [...swept, before, after];
  const data = page("lab", "window-sweep", [before, after, ...swept]);
  data.lab = {
    curves: [curve],
    runs: all.map((of, i) => {
      const [first] = of.facts.limits,
        rtt = of.facts.handshake_rtt_us ?? 1;
      return {
        name: i < rtts.length ? `rtt=${rtts[i]}ms` : i === 6 ? "before" : "after",
        rtt_nominal_us: rtt,
        rtt_p50_us: of.facts.server_to_client.rtt.p50_us,
        goodput_bps: of.facts.server_to_client.goodput_bps,
        law_bps: Math.round(law(rtt)),
        limited_by: first.limit,
        limit_cause: first.cause,
        limit_share: first.share,
        retransmission: of.facts.server_to_client.labels.retransmission ?? 0,
      };
    }),
  };
  return data;
}
