/** English. */
import { bothRates, bytes, count, percent, time } from "../units.ts";
import { type Words, queueBefore } from "./words.ts";

/** English. */
export const en: Words = {
  code: "en",
  ui: {
    title: "Transfer report",
    capture: "Capture",
    lab: "Lab",
    samples: "Socket samples",
    language: "Language",
    theme: "Theme",
    light: "Light",
    dark: "Dark",
    verdict: "What limited it",
    confidence: "How sure",
    whatToDo: "What to change",
    showMe: "Show me",
    showAll: "Show all of it",
    copy: "Copy",
    copied: "Copied",
    shares: "Share of the time by limit",
    behind: "What lies behind it",
    warnings: "What to know about this capture",
    connections: "Connections",
    client: "Client",
    server: "Server",
    bytes: "Data",
    goodput: "Goodput",
    rtt: "RTT",
    limit: "First limit",
    lost: "Time lost",
    retransmissions: "Sent again",
    duration: "Duration",
    graphs: "Graphs",
    direction: "Direction",
    zoomIn: "Zoom in",
    zoomOut: "Zoom out",
    left: "Earlier",
    right: "Later",
    reset: "Whole transfer",
    overTime: "over time",
    overSequence: "over sequence",
    noSequence: "This report has round trips in stretches only, without their sequence numbers.",
    copyPng: "Copy as PNG",
    savePng: "Save as PNG",
    saveSvg: "Save as SVG",
    failed: "The browser refused",
    legend: "What the lines mean",
    limitsBand: "What limited it, moment by moment",
    limitsBandMeans: "The higher the bar, the surer the verdict.",
    noTrace: "This report has no graph data for this connection.",
    stalls: "Stalls",
    noStalls: "No silence was longer than two round trips and 100 ms.",
    time: "At",
    length: "Length",
    cause: "Cause",
    cost: "Cost",
    go: "Show this stall in the graphs",
    runs: "Runs",
    run: "Run",
    law: "Law",
    curve: "Measured against the law",
    before: "Before",
    after: "After",
    compare: "Before and after",
    measured: "Measured",
    keys: "Drag to zoom. Double-click, Escape or 0 shows the whole transfer. + and − zoom, arrow keys move, with Shift they step from packet to packet. Two fingers zoom, one moves along, two taps show the whole.",
    sources: "Read from",
    packets: "packets",
    program: "Written by",
    sortBy: "Sort by",
    place: "No.",
    share: "Share",
    select: "Show this connection",
    numbers: "Numbers",
    noData: "No data was transferred in this direction.",
    otherLimits: "Other limits",
    empty: "There is no TCP connection in this report.",
    ratio: "Measured / law",
    sum: "In all",
    broken: "This page has no report in it, or one that it cannot read.",
    close: "How it ended",
  },
  direction: {
    client_to_server: "client to server (upload)",
    server_to_client: "server to client (download)",
  },
  account: {
    title: "Where the time went",
    cause: {
      connect: "the handshake's round trip",
      syn_repeated: "SYN or its answer lost and sent again",
      syn_unanswered: "SYN not answered",
      refused: "SYN refused",
      syn_met_old_connection: "SYN met an older connection",
      tls: "round trips of the handshake of TLS",
      client_thinks: "the client did not ask yet",
      server_thinks: "the server did not answer yet",
      turns: "round trips of questions and answers",
      delayed_ack: "ACK delayed while small data waited for it",
      timeouts: "retransmission timers",
      recovery: "until lost data was sent again",
      path_mtu: "segments too large for the path",
      peer_gone: "one end did not answer any more",
      window_shut: "window shut: its program did not read",
      paused: "pause in the middle of what was sent",
      idle: "nothing to do",
      closing: "last ACK, FIN, RST",
      not_captured: "not captured",
    },
    owner: {
      client_application: "the client's program",
      client_host: "the client's system",
      path: "the path",
      server_host: "the server's system",
      server_application: "the server's program",
      peer_gone: "an end that is gone",
      not_captured: "not captured",
      nobody: "nobody",
    },
    sentence: (part, all, cause) => `${part} of ${all}: ${cause}.`,
  },
  limit: {
    receive_window: {
      name: "receive window",
      means: "The receiver's window was full: the sender waited for room.",
    },
    receiver_application: {
      name: "receiver application",
      means: "The receiving application did not read, and its window closed.",
    },
    send_buffer: {
      name: "send buffer",
      means: "The sender's kernel could hold no more unacknowledged data.",
    },
    sender_application: {
      name: "sender application",
      means: "The sending application gave the kernel nothing to send.",
    },
    slow_start: {
      name: "congestion window (slow start)",
      means: "The sender was still feeling its way up to the path's rate.",
    },
    loss: {
      name: "congestion window (loss)",
      means: "Packets were lost, and congestion control kept the sender slow.",
    },
    link: { name: "link", means: "The path was full: it carried what it can." },
    application_window: {
      name: "window of the application",
      means: "The peer's application granted no more, above TCP.",
    },
    unknown: { name: "unknown", means: "The evidence does not decide." },
  },
  verdict(limit, share, evidence) {
    switch (limit) {
      case "receive_window":
        return `The receive window limited it for ${share} of the time.`;
      case "receiver_application":
        return `The receiving application limited it for ${share} of the time: it did not read fast enough.`;
      case "send_buffer":
        return `The send buffer limited it for ${share} of the time.`;
      case "sender_application":
        return `The sending application limited it for ${share} of the time: it wrote no more.`;
      case "slow_start":
        return `Slow start limited it for ${share} of the time.`;
      case "loss":
        return `Packet loss limited it for ${share} of the time.`;
      case "link":
        return `The link limited it for ${share} of the time.`;
      case "application_window":
        return `A window of the application's own protocol limited it for ${share} of the time.`;
      case "unknown":
        return evidence?.flights
          ? `Nothing held it for ${share} of the time.`
          : `For ${share} of the time, the evidence does not say what limited it.`;
    }
  },
  guess: (limit, or) =>
    `It was probably the ${en.limit[limit].name} or the ${en.limit[or].name}: the evidence is thin.`,
  either: (limit, or) => `probably ${en.limit[limit].name} or ${en.limit[or].name}`,
  noVerdict: "No data was transferred, so nothing limited it.",
  because(limit, { evidence: e }) {
    const out: string[] = [];
    const flight = e.in_flight_bytes ?? 0;
    if (limit === "receive_window" && e.window_bytes && e.rtt_us) {
      out.push(
        `The receiver let at most ${bytes(e.window_bytes)} be on the way at a time. With a round trip of ${time(e.rtt_us)}, that allows ${bothRates(e.allowed_bps ?? 0)} and no more.`,
      );
    } else if (limit === "receiver_application") {
      out.push(
        `The application read ${bothRates(e.goodput_bps)}, so its window closed and the sender had to wait.`,
      );
    } else if (limit === "send_buffer") {
      out.push(
        `The sender's buffer was full of data that waited for its acknowledgement: at most ${bytes(flight)} were on the way, and ${bothRates(e.goodput_bps)} came through.`,
      );
    } else if (limit === "sender_application") {
      out.push("The connection was ready to carry more, but the application wrote nothing.");
    } else if (limit === "application_window" && e.rtt_us) {
      out.push(
        `The peer's application granted no more than ${bytes(flight)} on the way, while TCP's own windows had room. With a round trip of ${time(e.rtt_us)}, that allows ${bothRates(e.allowed_bps ?? 0)} and no more.`,
      );
    } else if (limit === "slow_start" && e.rtt_us) {
      out.push(
        `A new or idle connection starts with little data and doubles it every round trip, and a round trip took ${time(e.rtt_us)}.`,
      );
    } else if (limit === "loss") {
      out.push(
        `${e.goodput_bps ? "The sender took the loss for congestion and slowed down." : "Nothing that was sent arrived, and the sender waited to send it again."} ${count(e.retransmissions)} ${e.retransmissions === 1 ? "segment was" : "segments were"} sent again.`,
      );
      if (e.allowed_bps && e.rtt_us)
        out.push(
          `It kept ${bytes(flight)} on the way. At ${time(e.rtt_us)} a round trip, that is ${bothRates(e.allowed_bps)}.`,
        );
    } else if (e.flights) {
      out.push(
        `It is short: it left in ${count(e.flights)} ${e.flights === 1 ? "flight" : "flights"}, and no setting would make it a tenth faster.`,
      );
    } else if (limit === "link") {
      const queue = queueBefore(e.rtt_us, e.rtt_path_us);
      out.push(`It carried ${bothRates(e.goodput_bps)}.`);
      if (queue) out.push(`Data waited ${time(queue)} in the queue before it.`);
      if (e.burst_bps)
        out.push(
          `It dropped from bursts, which passed at up to ${bothRates(e.burst_bps)}, and had no queue: what is sent evenly may pass faster.`,
        );
    }
    if (e.elsewhere_bps)
      out.push(`At other times the same path carried up to ${bothRates(e.elsewhere_bps)}.`);
    return out;
  },
  confidence(of) {
    const right = `${of > 0.99 ? "more than 99\u00a0%" : percent(of)} of such verdicts are right`;
    if (of >= 0.95) return `Practically certain: ${right}.`;
    if (of >= 0.8) return `Very likely: ${right}.`;
    if (of >= 0.65) return `Likely: ${right}.`;
    if (of >= 0.5) return `More likely than not: ${right}.`;
    return `A guess: ${right}.`;
  },
  doubt: ({ doubt }) => (doubt ? `${doubt[0].toUpperCase()}${doubt.slice(1)}.` : undefined),
  remedy: ({ remedy }) => sentence(remedy ?? ""),
  subCause: ({ claim, remedy }) => ({ claim: sentence(claim), remedy: sentence(remedy ?? "") }),
  warning: (name) => WARNINGS[name] ?? name,
  graph: {
    sequence: {
      title: "Data over time",
      question: "Does the data rise in a straight line? Where it lies flat, nothing moved.",
    },
    throughput: { title: "Throughput", question: "How fast was it, second by second?" },
    rtt: {
      title: "Round trips",
      question: "How long did an answer take? Rising round trips mean a queue.",
    },
    window: {
      title: "Window and data on the way",
      question: "Where data on the way meets the window, the receiver limits.",
    },
    queues: {
      title: "Queues",
      question: "Where did data wait: at the sender, on the link, or unread at the receiver?",
    },
  },
  line: {
    segments: {
      name: "sent",
      means: "Each stroke is a packet with data, from its first byte to its last.",
    },
    acks: {
      name: "acknowledged",
      means: "The lower stair: up to here, the receiver has everything.",
    },
    window_edge: {
      name: "end of the receive window",
      means:
        "The upper stair is the receiver's window: where the sender touches it, the receiver limits.",
    },
    goodput: {
      name: "goodput",
      means: "New data per time, as an application gets it. Data sent again does not count.",
    },
    wire: {
      name: "wire rate",
      means:
        "Everything on the wire: headers and repeats, too. What lies above goodput is overhead.",
    },
    mean: { name: "moving mean", means: "Goodput smoothed." },
    rtt: {
      name: "round trip",
      means: "From a packet to its acknowledgement, as the capture saw it.",
    },
    socket_rtt: {
      name: "kernel's smoothed RTT",
      means: "What the sender's kernel believes, on which its timer rests.",
    },
    path_rtt: {
      name: "path's own",
      means: "The round trip of the handshake, without a queue. What lies above is waiting.",
    },
    window: { name: "receive window", means: "What the receiver allows to be on the way." },
    in_flight: {
      name: "in flight",
      means: "Sent and not yet acknowledged, as the capture saw it.",
    },
    connection_left: {
      name: "HTTP/2 leaves, all streams",
      means:
        "What HTTP/2's window of the whole connection still allows to be sent. At 0 the sender waits for a WINDOW_UPDATE.",
    },
    stream_left: {
      name: "HTTP/2 leaves, one stream",
      means:
        "The same of the stream that waited longest for its own window: what the other program granted it and is not used up.",
    },
    cwnd: { name: "congestion window", means: "What congestion control allows to be on the way." },
    ssthresh: {
      name: "slow start threshold",
      means: "Below it the congestion window doubles each round trip, above it grows slowly.",
    },
    send_queue: {
      name: "send queue",
      means: "Written by the application and not yet acknowledged.",
    },
    notsent: {
      name: "not sent yet",
      means: "The part of the send queue that has never been sent.",
    },
    receive_queue: {
      name: "receive queue",
      means: "Arrived, but not yet read by the application.",
    },
    receive_buffer: {
      name: "receive buffer",
      means: "The memory that the receive queue may take, with the kernel's overhead.",
    },
    drain: {
      name: "read by the application",
      means: "How fast the receiver's application reads. What arrives faster waits.",
    },
    link_queue: { name: "link's queue", means: "Waiting before the link's narrowest place." },
  },
  mark: {
    retransmission: { name: "retransmission", means: "Data that was sent before is sent again." },
    fast_retransmission: {
      name: "fast retransmission",
      means: "Sent again because duplicate ACKs told of a gap, without waiting for a timer.",
    },
    rto: {
      name: "timeout retransmission",
      means: "No answer came until the retransmission timer ran out, so it was sent again.",
    },
    spurious_retransmission: {
      name: "spurious retransmission",
      means: "Sent again although the receiver had it already.",
    },
    out_of_order: { name: "out of order", means: "It arrived after data that was sent later." },
    lost_segment: {
      name: "gap in the capture",
      means: "Data before this packet is missing: it was lost before the capture, or not captured.",
    },
    duplicate_ack: {
      name: "duplicate ACK",
      means: "The receiver acknowledges the same byte again: something behind a gap arrived.",
    },
    zero_window: {
      name: "zero window",
      means: "The receiver's buffer is full, and it says: send nothing.",
    },
    zero_window_probe: {
      name: "window probe",
      means: "The sender asks whether the closed window has opened.",
    },
    zero_window_probe_ack: {
      name: "answer to a probe",
      means: "The receiver answers a probe: the window is still closed.",
    },
    window_full: {
      name: "window full",
      means: "This packet fills the receiver's window to its edge; the sender must wait now.",
    },
    window_update: { name: "window update", means: "The receiver has read, and opens its window." },
    keep_alive: {
      name: "keep-alive",
      means: "The sender asks whether the other end is still there.",
    },
    keep_alive_ack: { name: "answer to a keep-alive", means: "The other end is still there." },
    ack_lost_segment: {
      name: "ACK of uncaptured data",
      means: "Data is acknowledged that the capture has not seen.",
    },
    reused_ports: { name: "reused ports", means: "A new connection between the same ports." },
    duplicate_packet: {
      name: "duplicate packet",
      means: "The network, or the sniffer, brought the same packet twice.",
    },
    sack: {
      name: "SACK",
      means: "The receiver has this block, although data before it is missing.",
    },
    push: { name: "push", means: "The end of what the application wrote at once." },
  },
  stall: {
    retransmission_timeout: {
      name: "retransmission timer",
      means: "A packet was lost, and the sender waited for its timer before it sent it again.",
    },
    tail_loss: {
      name: "loss at the end of a flight",
      means: "The last packets were lost: nothing came after them that could have told of the gap.",
    },
    zero_window: {
      name: "closed window",
      means: "The receiver's buffer was full, and the sender had to wait.",
    },
    sender_application: {
      name: "nothing to send",
      means: "The sending application wrote nothing.",
    },
    receiver_application: {
      name: "nothing read",
      means: "The receiving application did not read.",
    },
    delayed_ack: {
      name: "delayed ACK",
      means: "The receiver held back an acknowledgement that the sender waited for.",
    },
    idle_restart: {
      name: "restart after a pause",
      means: "After a pause the sender starts slowly again.",
    },
    packet_delay: {
      name: "delay in the network",
      means: "Packets were on the way for much longer than before.",
    },
    unknown: { name: "unknown", means: "The evidence does not say why." },
  },
  say: {
    packet: (number) => `Packet ${count(number)}`,
    segment: (length, end) => `${length} of data, up to byte ${end}`,
    stream: (number) => `HTTP/2 leaves, stream ${number}`,
    mean: (time) => `Goodput smoothed: the mean of the last ${time}.`,
    bucket: (length) => `Each point stands for ${length}`,
    range: (low, high) => `${low} to ${high}`,
    held: (limit, sure) =>
      `Limited here by: ${limit}${sure === null ? "" : ` (${percent(sure)} sure)`}`,
    full: (inFlight, window) => `${inFlight} on the way fill the window of ${window}.`,
    room: (inFlight, window) => `${inFlight} on the way, of a window of ${window}.`,
    stall: (length, cause) => `Stall of ${length}: ${cause}`,
    marksLeftOut: (shown, all, name) => `${shown} of ${all} are shown (${name}).`,
    all: (count) => `Show all ${count}`,
    connections: (shown, all) => `${shown} of ${all} are shown: those that lost most time.`,
    connection: (number) => `Connection ${number}`,
    worst: (all) => `The worst of ${all} connections`,
    spans: (n) => (n === 1 ? "1 span" : `${n} spans`),
    problem: (source, what) => `${source}: ${what}`,
    dropped: (packets) =>
      `${packets} packets were dropped while this was captured, by its own counters: some of what looks lost may have been missed. Raise the sniffer's buffer (dumpcap -B, tcpdump -B) or cut packets (-s 128).`,
    backwards: (packets, order, unsorted) =>
      `The times of ${packets} packets go back, as they do where several interfaces or clocks write one file: ${
        {
          sorted: "they were sorted by time.",
          partly: `they were sorted by time, but for ${unsorted}, which came too late for it.`,
          as_taken: "they were taken as they came.",
        }[order]
      }`,
    on: (end) => (end === "sender" ? "On the sender" : "On the receiver"),
    faster: (times) => `${times} times as fast as before.`,
    slower: (times) => `Not faster than before (${times} times).`,
    socket: (name, end) => `${name} (${end})`,
    zoomed: (start, end) => `Showing ${start} to ${end}`,
    perConnection: (key) => `Goodput over ${key}`,
  },
};

const WARNINGS: Record<string, string> = {
  offload_super_packets:
    "Packets are larger than the segments on the wire (TSO, GSO or GRO): turn offloads off with ethtool -K, or capture elsewhere, to see single segments.",
  capture_dropped:
    "Data is acknowledged that was not captured: raise the sniffer's buffer (tcpdump -B) or cut packets (-s 128).",
  captured_twice:
    "Packets were captured twice, on several interfaces (tcpdump -i any) or by a mirror port: the copies are left out of everything but the counts of packets and bytes on the wire.",
  one_sided: "Only one direction was captured: round trips, windows and limits cannot be told.",
  handshake_missing: "The handshake was not captured: windows may be too small by their scale.",
  window_scale_refused:
    "Window scaling was offered and not answered: no window is above 64 KiB; a middlebox may have taken it out.",
  no_packets:
    "These are samples of a socket, not packets: a point of the sequence graph is a sample, bytes on the wire are estimated, and labels, losses and stalls are not known; a capture has them.",
  socket_log:
    "A log of ss has looks that are far apart, and neither what the application asked of its socket nor its host's settings: shares follow from the kernel's counters, what they leave open from several looks together, and causes are not told; fullpipe why has them.",
  one_look:
    "There is one look at this socket: shares are of all the time that it was busy since it was opened, and pauses of its application are not known; log several looks with a line of date before each.",
  no_counters:
    "The log has no busy, rwnd_limited and sndbuf_limited (Linux 4.10 and its ss print them): for how long the receive window or the send buffer held the sender is not known.",
  receiver_log:
    "This is the receiver's socket, which does not count what holds the sender: log ss -tinm at the sender, or take the sender's own result (iperf3 --json at the sender, or --get-server-output).",
  no_socket_memory:
    "The log has no skmem: a full send buffer and an application that pauses look alike, unless the kernel counted the buffer; log ss -tinm.",
  ndt7_result:
    "A result of ndt7 has some four looks a second at the server's socket, without its memory and without the client's: shares follow from the kernel's counters, what they leave open from several looks together, and causes are not told.",
  iperf3_result:
    "iperf3 prints the mean of each interval and not for how long the receive window or the send buffer held the sender, nor what waited to be sent: the answer is a guess; log ss -tinm at the sender beside it, or run fullpipe why there.",
  headers_cut:
    "Packets were cut within their TCP headers: SACK blocks and timestamps are missing, so lost and repeated segments are miscounted; keep more of each packet (tcpdump -s 128).",
  frames_gap:
    "HTTP/2's windows are known up to a gap only: the capture misses data there; raise the sniffer's buffer (tcpdump -B).",
  frames_cut:
    "HTTP/2's windows are not known: packets were captured in part; capture them whole (tcpdump -s 0).",
  frames_too_many:
    "HTTP/2's windows are not known: more than 128 connections were read at a time; select this one (--filter).",
  frames_cipher:
    "HTTP/2's windows are not known: the cipher suite of TLS is not read, only AES-GCM and ChaCha20-Poly1305 of TLS 1.2 and 1.3 are.",
  frames_undecrypted:
    "HTTP/2's windows are not known, or not to the end: a record of TLS does not open with the keys of this connection, which are not complete, or the client sent data before the handshake (0-RTT).",
  frames_malformed:
    "HTTP/2's windows are known up to a frame only that contradicts the rules of HTTP/2.",
};

/** With a capital letter and a full stop. */
function sentence(text: string): string {
  if (!text) return "";
  return `${text[0].toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
}
