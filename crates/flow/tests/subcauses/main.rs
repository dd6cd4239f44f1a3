//! What lies behind a limit, by traces in which it is built in; beside each the near miss that must
//! not be called so.

#[path = "../trace/mod.rs"]
mod trace;

mod ack_path;
mod application_window;
mod host_reordering;
mod path;

use fullpipe_flow::capture::LinkType;
use fullpipe_flow::diagnosis::{DiagnosedConnection, PacketCause, worst_first};
use fullpipe_flow::finding::words;
use fullpipe_flow::limit::Limit;
use fullpipe_flow::{Analyzer, Config};
use fullpipe_model::units::Duration;
use std::fmt::Write;

const HANDSHAKE: &str = "
    0.000 > S  0:0          win 65535 <mss 1460,wscale 7,sackOK>
    0.050 < S. 0:0   ack 1  win 65535 <mss 1460,wscale 7,sackOK>
    0.0501 > . 1:1   ack 1  win 2000
";

fn analysed(text: &str) -> DiagnosedConnection {
    let mut analyzer = Analyzer::new(Config::default());
    for line in trace::parse(text) {
        let packet = line.packet();
        analyzer.push(line.at, LinkType::RAW, &packet, packet.len()).unwrap();
    }
    let mut connections = analyzer.finish().connections;
    assert_eq!(connections.len(), 1);
    connections.remove(0)
}

fn sub_causes(text: &str) -> Vec<PacketCause> {
    use fullpipe_flow::connection::Direction::{ClientToServer, ServerToClient};
    let connection = analysed(text);
    [ClientToServer, ServerToClient]
        .into_iter()
        .flat_map(|one| connection.sub_causes(one))
        .collect()
}

#[test]
fn a_syn_that_nobody_answers_ranks_first() {
    let text = "0.0 > S 0:0 win 65535\n 1.0 > S 0:0 win 65535\n 3.0 > S 0:0 win 65535";
    let [PacketCause::NoAnswer(found)] = sub_causes(text)[..] else {
        panic!("{:?}", sub_causes(text))
    };
    assert_eq!((found.attempts, found.time), (3, Duration::from_secs(3)));
    let mut both =
        [analysed(&format!("{HANDSHAKE} 0.06 > . 1:1001 ack 1 win 2000")), analysed(text)];
    worst_first(&mut both);
    assert!(both[0].is_unanswered() && both[0].lost() == Duration::from_secs(3));
}

#[test]
fn an_answer_that_does_not_come_back_is_half_open() {
    let text =
        "0.0 > S 0:0 win 65535\n 0.001 < S. 0:0 ack 1 win 65535\n 1.001 < S. 0:0 ack 1 win 65535";
    let [PacketCause::NoAnswer(found)] = sub_causes(text)[..] else {
        panic!("{:?}", sub_causes(text))
    };
    assert!(found.is_half_open && found.attempts == 2, "{found:?}");
}

#[test]
fn near_miss_a_reset_is_an_answer_and_one_syn_may_be_answered_later() {
    assert_eq!(sub_causes("0.0 > S 0:0 win 65535"), []);
    assert_eq!(
        sub_causes(
            "0.0 > S 0:0 win 65535\n 0.1 < R. 0:0 ack 1 win 0\n 0.6 > S 0:0 win 65535\n 0.7 < R. 0:0 ack 1 win 0"
        ),
        []
    );
    assert_eq!(sub_causes("0.0 > S 0:0 win 65535\n 0.001 > S 0:0 win 65535"), [], "captured twice");
    assert_eq!(sub_causes(&format!("{HANDSHAKE} 0.06 > . 1:1001 ack 1 win 2000")), []);
}

/// A window of 60,000 bytes, full in each round trip of 50 ms; the server offers a scale or not.
fn with_small_window(offer: &str) -> DiagnosedConnection {
    let mut text = format!(
        "
        0.000 > S  0:0          win 60000 <mss 1460,wscale 0,sackOK>
        0.050 < S. 0:0   ack 1  win 60000 <mss 1460,{offer}sackOK>
        0.0501 > . 1:1   ack 1  win 60000
        "
    );
    let (mut at, mut next) = (0.1, 1);
    for _ in 0..100 {
        for _ in 0..60 {
            writeln!(text, "{at:.5} > . {next}:{} ack 1 win 60000", next + 1000).unwrap();
            (at, next) = (at + 0.00001, next + 1000);
        }
        at += 0.05;
        writeln!(text, "{at:.5} < . 1:1 ack {next} win 60000").unwrap();
        at += 0.00001;
    }
    analysed(&text)
}

#[test]
fn a_window_that_has_no_scale_is_named_as_such_and_no_buffer_is_advised() {
    let without = with_small_window("").bulk().unwrap().findings().remove(0);
    assert_eq!(without.limit, Limit::ReceiveWindow, "{}", words::claim(&without));
    assert!(
        words::remedy(without.remedy).contains("tcp_window_scaling"),
        "{}",
        words::remedy(without.remedy)
    );
    assert_eq!(without.changes, []);
    let with = with_small_window("wscale 0,").bulk().unwrap().findings().remove(0);
    assert!(words::remedy(with.remedy).contains("tcp_rmem"), "{}", words::remedy(with.remedy));
}

/// 20 segments a round trip of 50 ms; after some a loss that only the timer tells of, in this time.
fn with_timeouts(every: u32, silence: f64) -> String {
    let mut text = HANDSHAKE.to_owned();
    let (mut at, mut next) = (0.1, 1);
    for round in 1..=20 {
        for _ in 0..20 {
            writeln!(text, "{at:.4} > . {next}:{} ack 1 win 2000", next + 1000).unwrap();
            (at, next) = (at + 0.0005, next + 1000);
        }
        if round % every == 0 {
            // The last segment was lost, and nothing came behind it.
            let ack = next - 1000;
            writeln!(text, "{:.4} < . 1:1 ack {ack} win 2000", at + 0.05).unwrap();
            at += 0.05 + silence;
            writeln!(text, "{at:.4} > . {ack}:{next} ack 1 win 2000").unwrap();
        }
        at += 0.05;
        writeln!(text, "{at:.4} < . 1:1 ack {next} win 2000").unwrap();
        at += 0.0005;
    }
    text
}

#[test]
fn timeouts_are_counted_with_the_time_that_they_took() {
    let found = sub_causes(&with_timeouts(5, 0.25));
    let timeouts = found.iter().find_map(|one| match one {
        PacketCause::Timeouts(timeouts) => Some(*timeouts),
        _ => None,
    });
    let timeouts = timeouts.unwrap_or_else(|| panic!("{found:?}"));
    assert_eq!(timeouts.count, 4);
    // From the last data on: the round trip that its neighbours' ACK took, and the rest.
    assert!((timeouts.time.as_secs_f64() - 4.0 * 0.3).abs() < 0.02, "{timeouts:?}");
}

#[test]
fn near_miss_a_repair_after_a_round_trip_is_no_timeout() {
    assert_eq!(sub_causes(&with_timeouts(5, 0.001)), []);
}

/// So many bursts of so many segments with a pause between them, over 50 ms. The first begins with a window
/// of `first` segments, each other one with `later`, and doubles.
fn with_pauses(bursts: u32, segments: u32, first: u32, later: u32) -> String {
    let mut text = HANDSHAKE.to_owned();
    let (mut at, mut next) = (0.1, 1);
    for burst in 0..bursts {
        let mut window = if burst == 0 { first } else { later };
        let mut left = segments;
        while left > 0 {
            for _ in 0..window.min(left) {
                writeln!(text, "{at:.5} > . {next}:{} ack 1 win 2000", next + 1000).unwrap();
                (at, next, left) = (at + 0.00002, next + 1000, left - 1);
            }
            at += 0.05;
            writeln!(text, "{at:.5} < . 1:1 ack {next} win 2000").unwrap();
            (at, window) = (at + 0.00002, window * 2);
        }
        at += 0.4;
    }
    text
}

#[test]
fn a_window_that_begins_anew_after_each_pause_is_an_idle_restart() {
    let found = sub_causes(&with_pauses(5, 300, 10, 10));
    let [PacketCause::IdleRestart(restart)] = found[..] else { panic!("{found:?}") };
    assert_eq!(restart.count, 4, "{restart:?}");
    assert!(restart.before.get() >= 100_000 && restart.after.get() <= 20_000, "{restart:?}");
}

#[test]
fn near_miss_a_window_that_is_kept_over_pauses_is_none() {
    assert_eq!(sub_causes(&with_pauses(5, 300, 10, 80)), []);
}

#[test]
fn near_miss_a_window_that_was_no_larger_than_it_begins_has_nothing_to_lose() {
    assert_eq!(sub_causes(&with_pauses(30, 15, 1, 1)), []);
}

/// Messages of two small writes, whose second waits for the ACK of the first; an ACK comes `late`
/// after a round trip of 10 ms, and the write `after` that.
fn in_two_writes(late: f64, after: f64, answered: bool) -> String {
    let mut text = HANDSHAKE.to_owned();
    let (mut at, mut next, mut reply) = (0.1, 1, 1);
    for message in 0..30 {
        // What the quickest ACK takes is seen at the first message.
        let late = if message == 0 { 0.0 } else { late };
        let after = if message == 0 { 0.1 } else { after };
        writeln!(text, "{at:.4} > P. {next}:{} ack {reply} win 2000", next + 100).unwrap();
        at += 0.01 + late;
        let answer = reply + u32::from(answered) * 200;
        writeln!(text, "{at:.4} < P. {reply}:{answer} ack {} win 2000", next + 100).unwrap();
        (at, next, reply) = (at + after, next + 100, answer);
        writeln!(text, "{at:.4} > P. {next}:{} ack {reply} win 2000", next + 300).unwrap();
        (at, next) = (at + 0.01, next + 300);
        writeln!(text, "{at:.4} < P. {reply}:{} ack {next} win 2000", reply + 500).unwrap();
        (at, reply) = (at + 0.02, reply + 500);
    }
    text
}

#[test]
fn a_small_write_that_waits_for_a_delayed_ack_is_named() {
    let found = sub_causes(&in_two_writes(0.04, 0.0002, false));
    let [PacketCause::DelayedAck(wait)] = found[..] else { panic!("{found:?}") };
    assert_eq!(wait.count, 29);
    assert!((wait.time.as_secs_f64() - 29.0 * 0.04).abs() < 0.01, "{wait:?}");
}

#[test]
fn near_miss_an_application_that_answers_or_writes_when_it_likes_waits_for_no_ack() {
    // The ACK comes with an answer, for which the application waited.
    assert_eq!(sub_causes(&in_two_writes(0.04, 0.0002, true)), []);
    // It writes some time after the delayed ACK.
    assert_eq!(sub_causes(&in_two_writes(0.04, 0.013, false)), []);
    // No ACK is delayed.
    assert_eq!(sub_causes(&in_two_writes(0.0, 0.0002, false)), []);
}
