//! What held a transfer, case by case: transfers whose limit is built in (see [`sim`]), seen from
//! both ends.
//!
//! Each case is a limit and, beside it, the near miss that must not be called so.

mod any_rate;
mod as_captured;
mod explained;
mod sim;
#[path = "../trace/mod.rs"]
mod trace;

use fullpipe_flow::capture::LinkType;
use fullpipe_flow::connection::Direction;
use fullpipe_flow::diagnosis::DiagnosedConnection;
use fullpipe_flow::limit::{CapturePoint, Cause, Interval, Limit, PathHint, Verdict};
use fullpipe_flow::{Analyzer, Config};
use fullpipe_model::units::Rate;
use sim::{Point, Transfer, millis};

fn analyse(transfer: &Transfer, point: Point, config: Config) -> DiagnosedConnection {
    let capture_point = match point {
        Point::Sender => CapturePoint::SenderEdge,
        Point::Receiver => CapturePoint::ReceiverEdge,
    };
    let mut analyzer = Analyzer::new(Config { capture_point, ..config });
    for line in sim::run(transfer, point) {
        let packet = line.packet();
        analyzer.push(line.at, LinkType::RAW, &packet, packet.len()).unwrap();
    }
    let mut connections = analyzer.finish().connections;
    assert_eq!(connections.len(), 1);
    let connection = connections.remove(0);
    assert_eq!(
        connection.connection.server_to_client.unique_payload.get(),
        transfer.bytes,
        "every byte is counted once"
    );
    connection
}

fn verdict(transfer: &Transfer, point: Point) -> Verdict {
    of_server(&analyse(transfer, point, Config::default()))
}

#[track_caller]
fn assert_steadily(transfer: &Transfer, limit: Limit, least: f64) {
    for point in [Point::Sender, Point::Receiver] {
        let verdict = verdict(transfer, point);
        let steady = verdict.steadily_limited_by();
        assert!(
            steady.limit == limit && steady.share >= least,
            "{point:?}: {:?}\n{}",
            verdict.steady,
            shown(&verdict)
        );
    }
}

/// One line an interval, for a test that fails.
fn of_server(connection: &DiagnosedConnection) -> Verdict {
    connection.diagnosis(Direction::ServerToClient).unwrap().verdict.clone()
}

fn shown(verdict: &Verdict) -> String {
    let line = |i: &Interval| {
        let e = &i.evidence;
        let rtt = e.rtt.map(|rtt| rtt.to_string()).unwrap_or_default();
        format!(
            "{:>30} {:>10} {} in flight {} rtt {rtt} full {:.2} idle {:.2} repeated {}\n",
            i.limit(),
            i.length,
            e.goodput,
            e.in_flight,
            e.window_full,
            e.idle,
            e.retransmissions
        )
    };
    verdict.intervals.iter().map(line).take(100).collect()
}

const SLOW_START: Limit = Limit::CongestionWindow(Cause::SlowStart);
const LOSS: Limit = Limit::CongestionWindow(Cause::Loss);

#[test]
fn receive_window_smaller_than_the_path() {
    // 100 Mbit/s at 50 ms hold 625 kB.
    let transfer = Transfer { receive_buffer: 200_000, ..Transfer::default() };
    assert_steadily(&transfer, Limit::ReceiveWindow, 0.95);
}

#[test]
fn two_segments_of_window_at_every_round_trip() {
    for rtt in [2, 10, 40, 100] {
        let transfer = Transfer {
            receive_buffer: 2 * MSS_PLUS,
            rtt: millis(rtt),
            bytes: 600_000,
            ..Transfer::default()
        };
        assert_steadily(&transfer, Limit::ReceiveWindow, 0.95);
    }
}
const MSS_PLUS: u64 = 1500;

#[test]
fn near_miss_a_window_that_is_touched_but_larger_than_the_path_is_the_link() {
    // 900 kB of window where 625 kB fill the path: the rest stands in the queue.
    let transfer = Transfer { receive_buffer: 900_000, ..Transfer::default() };
    assert_steadily(&transfer, Limit::Link, 0.95);
}

#[test]
fn receiver_that_reads_slowly() {
    let transfer = Transfer {
        read_rate: 1_000_000,
        receive_buffer: 200_000,
        bytes: 3_000_000,
        ..Transfer::default()
    };
    assert_steadily(&transfer, Limit::ReceiverApplication, 0.9);
}

#[test]
fn near_miss_a_receiver_that_reads_just_faster_than_the_window_allows() {
    // 200 kB each 50 ms are 4 MB/s.
    let transfer =
        Transfer { read_rate: 6_000_000, receive_buffer: 200_000, ..Transfer::default() };
    assert_steadily(&transfer, Limit::ReceiveWindow, 0.9);
}

#[test]
fn send_buffer_smaller_than_the_path() {
    let transfer = Transfer { send_buffer: 250_000, ..Transfer::default() };
    assert_steadily(&transfer, Limit::SendBuffer, 0.95);
}

#[test]
fn send_buffer_of_bursts_that_queue_for_a_moment() {
    // A third of the buffer at once into 200 Mbit/s: 4 ms of queue at 20 ms, gone before the next.
    let transfer = Transfer {
        rate: 25_000_000,
        rtt: millis(20),
        send_buffer: 290_000,
        receive_buffer: 1_000_000,
        ..Transfer::default()
    };
    assert_steadily(&transfer, Limit::SendBuffer, 0.9);
}

#[test]
fn send_buffer_at_a_gigabit() {
    let transfer = Transfer {
        rate: 125_000_000,
        queue: 6_250_000,
        send_buffer: 2_900_000,
        receive_buffer: 6_000_000,
        bytes: 100_000_000,
        ..Transfer::default()
    };
    assert_steadily(&transfer, Limit::SendBuffer, 0.95);
}

#[test]
fn near_miss_a_send_buffer_larger_than_the_path_is_the_link() {
    let transfer = Transfer { send_buffer: 1_100_000, ..Transfer::default() };
    assert_steadily(&transfer, Limit::Link, 0.95);
}

#[test]
fn sender_application_that_pauses() {
    let transfer = Transfer { write: (40_000, millis(300)), bytes: 600_000, ..Transfer::default() };
    assert_steadily(&transfer, Limit::SenderApplication, 0.9);
}

#[test]
fn sender_application_that_streams_at_its_own_rate() {
    // 16 kB each 7 ms: always something in flight, never pushed by ACKs.
    let transfer = Transfer {
        write: (16_000, millis(7)),
        bytes: 8_000_000,
        rtt: millis(52),
        ..Transfer::default()
    };
    assert_steadily(&transfer, Limit::SenderApplication, 0.9);
}

/// The rate at which the verdict says that the sender lets data go, in bytes a second.
fn paced(transfer: &Transfer, point: Point) -> Option<f64> {
    let connection = analyse(transfer, point, Config::default());
    let findings = connection.findings();
    let held = findings.iter().find(|one| one.what.limit == Limit::SenderApplication)?;
    held.what.evidence.paced.map(|rate| rate.as_f64() / 8.0)
}

#[test]
fn sender_that_spaces_its_data() {
    for (pace, rtt) in [(1_250_000, 40_000_000), (2_500_000, 20_000_000)] {
        let transfer = Transfer { pace, rtt, ..Transfer::default() };
        assert_steadily(&transfer, Limit::SenderApplication, 0.9);
        for point in [Point::Sender, Point::Receiver] {
            let rate = paced(&transfer, point).unwrap();
            assert!((rate / pace as f64 - 1.0).abs() < 0.02, "{rate} of {pace} at {point:?}");
        }
    }
}

#[test]
fn near_miss_a_link_of_the_rate_at_which_the_sender_spaces_its_data() {
    // It spaces them a little faster than the link does, so that they queue.
    let transfer = Transfer { pace: 2_700_000, rate: 2_500_000, ..Transfer::default() };
    assert_steadily(&transfer, Limit::Link, 0.9);
    assert_eq!(paced(&transfer, Point::Sender), None);
}

#[test]
fn slow_start_of_a_short_transfer() {
    let transfer = Transfer {
        bytes: 400_000,
        rtt: millis(100),
        rate: 125_000_000,
        queue: 12_000_000,
        ..Transfer::default()
    };
    let verdict = verdict(&transfer, Point::Sender);
    assert!(verdict.share(SLOW_START) >= 0.75, "{:?}", verdict.shares);
}

#[test]
fn near_miss_slow_start_of_a_long_transfer_is_a_small_share() {
    let transfer = Transfer { bytes: 60_000_000, ..Transfer::default() };
    let verdict = verdict(&transfer, Point::Sender);
    assert!(verdict.share(SLOW_START) < 0.15, "{:?}", verdict.shares);
    assert_eq!(verdict.limited_by().limit, Limit::Link, "{}", shown(&verdict));
}

#[test]
fn random_loss_far_below_the_path() {
    for seed in 1..4 {
        let transfer = Transfer {
            lose_one_in: 300,
            bytes: 6_000_000,
            rate: 125_000_000,
            queue: 6_250_000,
            seed,
            ..Transfer::default()
        };
        assert_steadily(&transfer, LOSS, 0.75);
    }
}

#[test]
fn loss_that_stops_a_window_of_two_segments_is_not_the_window() {
    // Each loss waits for the timer, since nothing comes behind it that could tell: the window was
    // full all the time.
    let transfer = Transfer {
        receive_buffer: 2 * MSS_PLUS,
        rtt: millis(4),
        bytes: 300_000,
        lose_one_in: 8,
        ..Transfer::default()
    };
    let verdict = verdict(&transfer, Point::Sender);
    assert_eq!(verdict.limited_by().limit, LOSS, "{}", shown(&verdict));
}

#[test]
fn near_miss_loss_at_a_full_queue_is_the_link() {
    // A queue of one bandwidth-delay product: halving the window leaves the link busy.
    assert_steadily(&Transfer { bytes: 80_000_000, ..Transfer::default() }, Limit::Link, 0.9);
}

#[test]
fn a_hint_of_the_rate_tells_the_link_without_a_queue() {
    let transfer = Transfer { receive_buffer: 625_000, ..Transfer::default() };
    let hint = PathHint { rate: Some(Rate::from_bits_per_sec(100_000_000)), rtt: None };
    let connection = analyse(&transfer, Point::Sender, Config { hint, ..Config::default() });
    let verdict = of_server(&connection);
    assert_eq!(verdict.steadily_limited_by().limit, Limit::Link, "{:?}", verdict.steady);
}

/// The part of the time for which `limit` is named behind another.
fn rival_part(verdict: &Verdict, limit: Limit) -> f64 {
    let is_named =
        |i: &&Interval| i.candidates.iter().skip(1).any(|candidate| candidate.limit == limit);
    let named: f64 =
        verdict.intervals.iter().filter(is_named).map(|i| i.length.as_secs_f64()).sum();
    named / verdict.time.as_secs_f64()
}

#[test]
fn what_has_no_evidence_of_its_own_is_no_rival() {
    let pauses = Transfer { write: (40_000, millis(300)), bytes: 600_000, ..Transfer::default() };
    let streams = Transfer {
        write: (16_000, millis(7)),
        bytes: 8_000_000,
        rtt: millis(52),
        ..Transfer::default()
    };
    let window = Transfer { receive_buffer: 200_000, ..Transfer::default() };
    let reads = Transfer {
        read_rate: 1_000_000,
        receive_buffer: 200_000,
        bytes: 3_000_000,
        ..Transfer::default()
    };
    let short = Transfer {
        bytes: 400_000,
        rtt: millis(100),
        rate: 125_000_000,
        queue: 12_000_000,
        ..Transfer::default()
    };
    let loss = Transfer {
        lose_one_in: 300,
        bytes: 6_000_000,
        rate: 125_000_000,
        queue: 6_250_000,
        seed: 1,
        ..Transfer::default()
    };
    for (name, transfer) in [
        ("pauses", pauses),
        ("streams", streams),
        ("window", window),
        ("reads", reads),
        ("short", short),
        ("loss", loss),
    ] {
        for point in [Point::Sender, Point::Receiver] {
            let verdict = verdict(&transfer, point);
            let part = rival_part(&verdict, Limit::SendBuffer);
            assert!(
                part < 0.05,
                "{name}, {point:?}: the send buffer for {part}\n{}",
                shown(&verdict)
            );
            let alone = |i: &&Interval| {
                i.evidence.idle > 0.5
                    || i.evidence.window_full > 0.5 && i.evidence.retransmissions == 0
            };
            for i in verdict.intervals.iter().filter(alone) {
                assert!(
                    i.candidates.len() == 1 || i.evidence.idle <= 0.5,
                    "{name}: nothing is in flight: {i:?}"
                );
                let own = [Limit::SenderApplication, SLOW_START, Limit::SendBuffer];
                assert!(
                    i.candidates[1..].iter().all(|c| !own.contains(&c.limit)),
                    "{name}: no room: {i:?}"
                );
            }
        }
    }
}

#[test]
fn a_buffer_that_bounds_the_queue_is_named_beside_the_link() {
    // 100 Mbit/s at 50 ms hold 625 kB: the rest of the buffer stands in the queue, which never
    // overflows.
    let transfer = Transfer { send_buffer: 1_100_000, ..Transfer::default() };
    let verdict = verdict(&transfer, Point::Sender);
    assert_eq!(verdict.steadily_limited_by().limit, Limit::Link, "{:?}", verdict.steady);
    let part = rival_part(&verdict, Limit::SendBuffer);
    assert!(part > 0.5, "the send buffer for {part} only\n{}", shown(&verdict));
}

#[test]
fn shares_and_time_add_up() {
    let connection = analyse(&Transfer::default(), Point::Sender, Config::default());
    let verdict = of_server(&connection);
    let sum: f64 = verdict.shares.iter().map(|candidate| candidate.share).sum();
    assert!((sum - 1.0).abs() < 1e-9);
    assert!(verdict.time <= connection.connection.duration);
    let carried: u64 =
        verdict.intervals.iter().map(|i| i.evidence.goodput.over(i.length).get()).sum();
    let all = connection.connection.server_to_client.unique_payload.get();
    assert!(carried.abs_diff(all) < all / 1000, "{carried} of {all}");
    for pair in verdict.intervals.windows(2) {
        assert_eq!(pair[0].start + pair[0].length, pair[1].start, "intervals leave no gap");
    }
}
