//! Captures made to keep an analysis busy: four times the input may take eight times as long, where
//! quadratic work takes sixteen. Times are those of this thread on a CPU, and the least of several:
//! others use this machine too.
#![allow(clippy::print_stdout, reason = "the times measured are shown")]

mod path;

use fullpipe_flow::capture::LinkType;
use fullpipe_flow::{Analysis, Analyzer, Config};
use fullpipe_model::units::{Duration, Instant};
use path::Seen;

const EPOCH: u64 = 1_700_000_000_000_000_000;
const SECOND: u64 = 1_000_000_000;
/// More than the caches hold: from a few thousand connections to four times as many it is the
/// memory that gets slower.
const SMALL: u32 = 32_000;
const TIMES: u32 = 4;
const MOST: f64 = 8.0;

/// A packet: of which client, and what.
type Line = (u32, Seen);

fn line(at: u64, from_client: bool, flags: u8, seq: u32, ack: u32, length: u32) -> Seen {
    Seen {
        at: EPOCH + at,
        from_client,
        flags,
        seq,
        ack,
        length,
        window: 65_535,
        options: Vec::new(),
        ip_id: 0,
        transmission: None,
    }
}

/// A handshake with a window scale of 14, the largest, and SACK.
fn handshake(client: u32) -> Vec<Line> {
    let options = vec![3, 3, 14, 1, 4, 2, 1, 1];
    let mut lines = vec![
        line(0, true, 0x02, 0, 0, 0),
        line(1_000_000, false, 0x12, 0, 1, 0),
        line(2_000_000, true, 0x10, 1, 1, 0),
    ];
    lines[0].options.clone_from(&options);
    lines[1].options = options;
    lines.into_iter().map(|seen| (client, seen)).collect()
}

struct Packet {
    at: Instant,
    bytes: Vec<u8>,
    wire: usize,
}

fn packets(lines: &[Line]) -> Vec<Packet> {
    let packet = |(client, seen): &Line| {
        let [a, b, c, d] = client.to_be_bytes();
        let bytes = path::headers(seen, ([10 + a, b, c, d], 40_000), ([192, 0, 2, 1], 443));
        Packet { at: Instant::from_nanos(seen.at), wire: bytes.len() + seen.length as usize, bytes }
    };
    lines.iter().map(packet).collect()
}

fn analyse(packets: &[Packet], config: &Config) -> Analysis {
    let mut analyzer = Analyzer::new(config.clone());
    for packet in packets {
        analyzer.push(packet.at, LinkType::RAW, &packet.bytes, packet.wire);
    }
    analyzer.finish()
}

/// The same, connections taken as they finish: what is kept of them would have the memory's speed
/// measured, not the analysis.
fn streamed(packets: &[Packet], config: &Config) -> u64 {
    let mut analyzer = Analyzer::new(config.clone());
    for some in packets.chunks(1024) {
        for packet in some {
            analyzer.push(packet.at, LinkType::RAW, &packet.bytes, packet.wire);
        }
        drop(analyzer.drain());
    }
    analyzer.finish().counts.packets
}

/// Seconds that this thread was on a CPU: the first number of its schedstat (proc(5)) is in
/// nanoseconds.
fn on_cpu() -> f64 {
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat")
        .expect("Linux counts a thread's time");
    let nanos: u64 =
        schedstat.split_whitespace().next().and_then(|first| first.parse().ok()).expect("a number");
    nanos as f64 / 1e9
}

/// Fails where `TIMES` as many lines take more than `MOST` as long.
fn is_linear(name: &str, config: &Config, lines: impl Fn(u32) -> Vec<Line>) -> Analysis {
    let (few, many) = (packets(&lines(SMALL)), packets(&lines(SMALL * TIMES)));
    let run = |packets: &[Packet]| {
        let start = on_cpu();
        assert_eq!(streamed(packets, config), packets.len() as u64);
        on_cpu() - start
    };
    // Below a few milliseconds it is the machine that is measured.
    let (mut short, mut long) = (f64::MAX, f64::MAX);
    // Neighbours on a busy machine take caches and memory away, now from one, now from the other.
    for round in 0..20 {
        short = short.min(run(&few)).max(0.004);
        long = long.min(run(&many));
        if round >= 4 && long <= MOST * short {
            break;
        }
    }
    println!("{name}: {short:.4} s, {TIMES} times as much {long:.4} s");
    assert!(
        long <= MOST * short,
        "{name}: {TIMES} times the input takes {} times as long",
        long / short
    );
    analyse(&few, config)
}

#[test]
fn many_tiny_connections() {
    let analysis = is_linear("connections of one packet", &Config::default(), |count| {
        (0..count).map(|client| (client, line(u64::from(client), true, 0x02, 0, 0, 0))).collect()
    });
    assert_eq!(analysis.connections.len(), SMALL as usize);
}

#[test]
fn many_tiny_connections_with_room_for_few() {
    let config = Config { max_open: 1000, ..Config::default() };
    let analysis = is_linear("connections beyond the limit", &config, |count| {
        (0..count).map(|client| (client, line(0, true, 0x02, 0, 0, 0))).collect()
    });
    assert!(analysis.counts.forced_out >= u64::from(SMALL) - 1000);
}

#[test]
fn the_same_ports_again_and_again_in_no_time() {
    let analysis = is_linear("reused ports", &Config::default(), |count| {
        let again = |n: u32| {
            [line(0, true, 0x02, n << 12, 0, 0), line(0, false, 0x14, 0, (n << 12) + 1, 0)]
        };
        (0..count).flat_map(again).map(|seen| (1, seen)).collect()
    });
    assert!(analysis.connections.len() >= SMALL as usize / 2);
}

#[test]
fn a_huge_window_full_of_segments_that_nothing_acknowledges() {
    is_linear("a gigabyte in flight", &Config::default(), |count| {
        let data =
            |n: u32| (1, line(3_000_000 + u64::from(n) * 1000, true, 0x10, 1 + n * 1000, 1, 1000));
        handshake(1).into_iter().chain((0..count).map(data)).collect()
    });
}

#[test]
fn a_huge_window_of_holes_with_sack() {
    is_linear("holes", &Config::default(), |count| {
        let mut lines = handshake(1);
        for n in 0..count {
            let at = 3_000_000 + u64::from(n) * 2000;
            let start = 1 + n * 2000;
            lines.push((1, line(at, true, 0x10, start, 1, 1000)));
            // Every second segment is missing; each that came is reported apart.
            let mut report = line(at + 1000, false, 0x10, 1, 1, 0);
            report.options = vec![1, 1, 5, 10];
            report.options.extend(start.to_be_bytes());
            report.options.extend((start + 1000).to_be_bytes());
            lines.push((1, report));
        }
        lines
    });
}

#[test]
fn segments_that_overlap_everything() {
    is_linear("overlapping segments", &Config::default(), |count| {
        let data = |n: u32| {
            // Backwards and forwards over one window, at odd offsets, long and short.
            let seq = 1 + n.wrapping_mul(2_654_435_761) % 1_000_000;
            (1, line(3_000_000 + u64::from(n) * 1000, true, 0x10, seq, 1, 1 + n % 60_000))
        };
        handshake(1).into_iter().chain((0..count).map(data)).collect()
    });
}

#[test]
fn a_gap_a_billion_times_a_packets_distance_with_the_smallest_intervals() {
    for interval in [None, Some(Duration::from_nanos(1)), Some(Duration::from_micros(1))] {
        // No connection ends in the gap: it is the intervals within one that are counted.
        let config =
            Config { interval, idle_timeout: Duration::from_secs(1 << 32), ..Config::default() };
        let name = format!("gaps of a billion packets, intervals {interval:?}");
        let analysis = is_linear(&name, &config, |count| {
            let data = |n: u32| {
                let gap = u64::from(n / 1000) * 1000 * SECOND;
                let at = 3_000_000 + gap + u64::from(n) * 1000;
                [
                    line(at, true, 0x10, 1 + n * 1000, 1, 1000),
                    line(at + 500, false, 0x10, 1, 1001 + n * 1000, 0),
                ]
            };
            handshake(1)
                .into_iter()
                .chain((0..count).flat_map(data).map(|seen| (1, seen)))
                .collect()
        });
        let [connection] = &analysis.connections[..] else { panic!("one connection") };
        let verdict = &connection.bulk().expect("data has a verdict").verdict;
        let sum: f64 = verdict.shares.iter().map(|candidate| candidate.share).sum();
        assert!((sum - 1.0).abs() < 1e-6, "shares add up to {sum}");
    }
}

#[test]
fn clocks_that_step_back_and_forth() {
    is_linear("a clock that jumps", &Config::default(), |count| {
        let data = |n: u32| {
            let at = u64::from(n.wrapping_mul(2_654_435_761)) * SECOND;
            (n % 100, line(at, true, 0x10, 1 + n * 10, 1, 10))
        };
        (0..count).map(data).collect()
    });
}

/// What the fuzz target `segment` found once, as packets of one connection.
#[test]
fn what_fuzzing_found_stays_mended() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/segment");
    let inputs: Vec<_> = std::fs::read_dir(corpus).unwrap().map(|entry| entry.unwrap()).collect();
    assert!(!inputs.is_empty());
    for input in inputs {
        let bytes = std::fs::read(input.path()).unwrap();
        println!("{}", input.path().display());
        let mut analyzer = Analyzer::new(Config::default());
        let (mut at, mut packets, mut rest) = (Instant::ZERO, 0, &bytes[..]);
        while let [length, step, tail @ ..] = rest {
            let (packet, tail) = tail.split_at(usize::from(*length).min(tail.len()));
            at = at + Duration::from_nanos(1000 << (step % 48));
            analyzer.push(at, LinkType::RAW, packet, packet.len());
            (rest, packets) = (tail, packets + 1);
        }
        assert_eq!(analyzer.finish().counts.packets, packets);
    }
}
