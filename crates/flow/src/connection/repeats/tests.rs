use super::*;
use crate::capture::segment::Flags;
use fullpipe_model::units::Bytes;

const RTT: Option<Duration> = Some(Duration::from_millis(60));

fn at(micros: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(micros)
}

const fn seq(number: u32) -> SequenceNumber {
    SequenceNumber(number)
}

fn sent(from: u32, stamp: u32) -> Segment {
    let end = std::net::SocketAddr::from(([0; 4], 0));
    Segment {
        source: end,
        destination: end,
        ip_id: None,
        ce: false,
        ip: Default::default(),
        seq: seq(from),
        ack: seq(0),
        flags: Flags::ACK,
        window: 0,
        payload: Bytes::new(1000),
        options: crate::capture::segment::TcpOptions {
            timestamps: Some((stamp, 0)),
            ..Default::default()
        },
        payload_start: Default::default(),
        is_broken: false,
        is_header_cut: false,
    }
}

/// Repairs of 1000 bytes each, sent every 100 us from time 0 with the timestamp 100. Their first
/// transmissions are reported 10 ms later, above a hole at 0.
fn needless(count: u32) -> Repeats {
    let mut repeats = Repeats::default();
    for index in 1..=count {
        repeats.sent_again(at(u64::from(index) * 100), &sent(index * 1000, 100), true);
    }
    let outcome = repeats.answered(&ack(10_000, (0, 0), None), |_, _| true);
    assert_eq!(outcome, Corrections { spurious: 0, overtaken: count.into() });
    repeats
}

fn ack(micros: u64, (una, ack): (u32, u32), echo: Option<u32>) -> AckFacts {
    AckFacts {
        at: at(micros),
        una: seq(una),
        ack: seq(ack),
        echo,
        rtt: RTT,
        quickest: RTT,
        above_hole: true,
    }
}

/// Three repairs arrived. The receiver reported the first by DSACK, and `spacing` microseconds
/// later the third. Returns how many were found to be spurious.
fn dsack_of_first_and_third(spacing: u64) -> u64 {
    let mut repeats = needless(3);
    let mut spurious = 0;
    for (micros, index) in [(70_000, 1), (70_000 + spacing, 3)] {
        let answer = ack(micros, (0, 0), None);
        repeats.answered(&answer, |_, _| false);
        let twice = (seq(index * 1000), seq(index * 1000 + 1000));
        spurious += repeats.arrived_twice(twice.0, twice.1, &answer).spurious;
    }
    spurious
}

#[test]
fn an_ack_that_was_held_back_tells_of_what_came_before_it_too() {
    assert_eq!(dsack_of_first_and_third(1_200), 3);
    assert_eq!(dsack_of_first_and_third(600), 2, "nothing was held back: the second one was lost");
}

#[test]
fn a_copy_of_the_first_sending_says_nothing_of_the_second() {
    let mut repeats = needless(1);
    let early = ack(11_000, (0, 0), None);
    assert_eq!(repeats.arrived_twice(seq(1000), seq(2000), &early), Corrections::default());
    let later = ack(70_000, (0, 0), None);
    assert_eq!(
        repeats.arrived_twice(seq(1000), seq(2000), &later),
        Corrections { spurious: 1, overtaken: 0 }
    );
}

#[test]
fn what_could_not_be_answered_before_the_capture_ended_was_not_lost() {
    let mut repeats = needless(2);
    assert_eq!(repeats.ended(RTT).spurious, 2, "no round trip has passed");
    // Two round trips later, data sent before them is acknowledged: there is a queue.
    repeats.answered(&ack(120_000, (0, 500), Some(99)), |_, _| false);
    assert_eq!(repeats.ended(RTT).spurious, 2);
    repeats.answered(&ack(130_000, (500, 600), Some(101)), |_, _| false);
    assert_eq!(repeats.ended(RTT).spurious, 0, "DSACK would have come by now");
}

#[test]
fn a_receiver_that_has_no_hole_holds_nothing_back() {
    let mut repeats = needless(3);
    // Of three repairs only the last arrived, long after the ACK before it. That ACK came late
    // because there was nothing to report earlier, not because it was held back.
    let answer = AckFacts { above_hole: false, ..ack(75_000, (0, 0), None) };
    repeats.answered(&answer, |_, _| false);
    assert_eq!(
        repeats.arrived_twice(seq(3000), seq(4000), &answer),
        Corrections { spurious: 1, overtaken: 0 }
    );
}

/// Sent three times. The first transmission did not arrive, the second filled the hole, and the
/// third was the duplicate.
#[test]
fn what_came_twice_was_one_sending_too_many_and_not_two() {
    let mut repeats = Repeats::default();
    repeats.sent_again(at(0), &sent(1000, 100), true);
    repeats.sent_again(at(40_000), &sent(1000, 140), false);
    // A round trip after the second, reported above a hole: no echo shows which one arrived.
    assert_eq!(
        repeats.answered(&ack(61_000, (0, 0), None), |_, _| true),
        Corrections { spurious: 0, overtaken: 0 }
    );
    let twice = repeats.arrived_twice(seq(1000), seq(2000), &ack(101_000, (0, 0), None));
    assert_eq!(
        twice,
        Corrections { spurious: 1, overtaken: 0 },
        "the first sending was lost, not overtaken"
    );
}

#[test]
fn a_copy_of_the_repair_follows_it_at_once() {
    for (later, expected) in [(1_000, 0), (14_000, 0), (30_000, 1)] {
        let mut repeats = Repeats::default();
        repeats.sent_again(at(0), &sent(1000, 100), true);
        repeats.answered(&ack(61_000, (0, 0), None), |_, _| true);
        let outcome =
            repeats.arrived_twice(seq(1000), seq(2000), &ack(61_000 + later, (0, 0), None));
        assert_eq!(
            outcome,
            Corrections { spurious: expected, overtaken: expected },
            "{later} us after it was told of"
        );
    }
}
