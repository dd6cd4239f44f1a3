//! ACKs that wait on their way back, and data that waits on its own.

use super::{analysed, sub_causes};
use fullpipe_flow::diagnosis::{AckPath, PacketCause};
use fullpipe_flow::finding::{PacketRemedy, Remedy};
use fullpipe_flow::limit::Limit;
use std::fmt::Write;

const SEGMENT: u32 = 1000;

/// Where the round trips of a download become longer.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Queue {
    OfAcks,
    OfData,
    Nowhere,
}

/// Flights of 20 segments, acknowledged two by two after 50 ms and what a queue adds: 10 ms more
/// from flight to flight, up to 200 ms. Timestamps tick each millisecond.
fn trace(queue: Queue, has_timestamps: bool) -> String {
    let stamps = |value: f64| {
        let value = (value * 1000.0) as u32 + 5000;
        if has_timestamps { format!("<ts {value}-1>") } else { String::new() }
    };
    let mut text = format!(
        "0.000 > S 0:0 win 65535 <mss 1460,wscale 7,sackOK>
         0.050 < S. 0:0 ack 1 win 65535 <mss 1460,wscale 7,sackOK>
         0.0501 > . 1:1 ack 1 win 2000 {}\n",
        stamps(0.05)
    );
    let (mut at, mut next) = (0.1, 1);
    for flight in 0..60 {
        let added = if queue == Queue::Nowhere { 0.0 } else { (f64::from(flight) * 0.01).min(0.2) };
        let mut lines = Vec::new();
        for pair in 0..10 {
            let sent = at + f64::from(pair) * 0.0005;
            for _ in 0..2 {
                lines.push((sent, format!("> . {next}:{} ack 1 win 2000", next + SEGMENT)));
                next += SEGMENT;
            }
            let back = sent + 0.05 + added;
            let answered = if queue == Queue::OfData { sent + 0.025 + added } else { sent + 0.025 };
            lines.push((back, format!("< . 1:1 ack {next} win 2000 {}", stamps(answered))));
        }
        lines.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (when, line) in lines {
            writeln!(text, "{when:.5} {line}").unwrap();
        }
        at += 0.06 + added;
    }
    text
}

fn found(queue: Queue, has_timestamps: bool) -> Option<AckPath> {
    let causes = sub_causes(&trace(queue, has_timestamps));
    causes.into_iter().find_map(|one| match one {
        PacketCause::AckPath(found) => Some(found),
        _ => None,
    })
}

#[test]
fn acks_that_wait_on_their_way_back_are_named_with_their_wait() {
    let path = found(Queue::OfAcks, true).unwrap();
    assert!((0.15..0.2).contains(&path.wait.as_secs_f64()), "{path:?}");
    assert!((path.wait.as_secs_f64() / path.excess.as_secs_f64() - 1.0).abs() < 0.05, "{path:?}");
    assert!((0.049..0.051).contains(&path.shortest.as_secs_f64()), "{path:?}");
}

/// Nobody is told that the path is full one way and that there is nothing to do, and beside it what
/// to do about the other way.
#[test]
fn a_link_that_is_full_on_the_way_back_is_advised_on() {
    for (queue, asked) in [(Queue::OfAcks, true), (Queue::OfData, false)] {
        let findings = analysed(&trace(queue, true));
        let of_link =
            findings.findings().iter().filter(|one| one.what.limit == Limit::Link).count();
        let advised = Remedy::Packets(PacketRemedy::MakeRoomForAcks);
        let theirs = findings.findings().iter().filter(|one| one.what.remedy == advised).count();
        assert!(of_link > 0, "{queue:?}: {:?}", findings.findings());
        assert_eq!(theirs, if asked { of_link } else { 0 }, "{queue:?}");
    }
}

#[test]
fn near_miss_a_queue_on_the_datas_way_is_not_the_acks() {
    assert_eq!(found(Queue::OfData, true), None);
    assert_eq!(found(Queue::Nowhere, true), None);
}

#[test]
fn near_miss_without_timestamps_nobody_knows_where_the_queue_is() {
    assert_eq!(found(Queue::OfAcks, false), None);
}
