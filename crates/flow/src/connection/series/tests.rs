use super::*;

fn data(seq: u32, echo: u32) -> Data {
    Data {
        seq: SequenceNumber(seq),
        length: 1000,
        segments: 1,
        segment: 1000,
        is_repeated: false,
        follows_gap: false,
        carried: HostPairSum::default(),
        echo: Some(echo),
    }
}

/// Its hosts made the handshake slower than what came after it: no message is heard later than data
/// shows that echoes it, and with a queue the lag is what it is.
#[test]
fn a_message_is_heard_no_later_than_in_the_quickest_echo() {
    let micros = |micros: u64| Instant::ZERO + Duration::from_micros(micros);
    let handshake = Duration::from_micros(75_167);
    let mut series = Series::new(SeriesStart {
        at: micros(0),
        seq: SequenceNumber(1),
        una: SequenceNumber(1),
        edge: None,
        interval: Some(handshake),
        lag: Some(handshake),
    });
    series.sent(micros(0), data(1, 1));
    assert_eq!(series.lag_of_messages(), handshake);
    series.stamped(micros(1_000), 7);
    series.sent(micros(1_000 + 75_044), data(1001, 7));
    assert_eq!(series.lag(), handshake);
    assert_eq!(series.lag_of_messages(), Duration::from_micros(75_044));
    // Data comes without gaps, and late: there is a queue.
    series.stamped(micros(10_000), 8);
    series.sent(micros(100_000), data(2001, 7));
    series.sent(micros(100_100), data(3001, 8));
    assert_eq!(series.lag(), Duration::from_micros(90_100));
    assert_eq!(series.lag_of_messages(), series.lag());
}

/// A receiver has room for 1,000 segments, and its application does not read: it acknowledges
/// flights of ten 40 ms after they arrived. What it could have sent at once is late, at the sender
/// and at the receiver; with a reader the same ACKs are not, nor is one of a single segment.
#[test]
fn an_ack_is_late_that_waits_for_the_reader() {
    let millis = |millis: u64| Instant::ZERO + Duration::from_millis(millis);
    let rtt = Duration::from_millis(10);
    let late = |lag: Duration, flight: u32, is_read: bool| {
        let mut series = Series::new(SeriesStart {
            at: millis(0),
            seq: SequenceNumber(1),
            una: SequenceNumber(1),
            edge: Some(SequenceNumber(1_000_001)),
            interval: Some(rtt),
            lag: Some(lag),
        });
        series.measured(rtt.saturating_sub(lag));
        let flights = 20;
        for at in 0..flights {
            let begin = u64::from(at) * 50;
            for one in 0..flight {
                series.sent(millis(begin), data(1 + (at * flight + one) * 1000, 0));
            }
            let end = 1 + (at + 1) * flight * 1000;
            let room = if is_read { 1_000_000 } else { 1_000_001 - end };
            // At the sender, the ACK passes a round trip later than the data, and 40 ms.
            let passes = begin + 40 + rtt.saturating_sub(lag).as_micros() / 1000;
            let ack = SequenceNumber(end);
            series.acknowledged(millis(passes), ack, AckWindow::Bytes(room), 0);
        }
        let late: u64 = series.finish().iter().map(|f| u64::from(f.late_acks)).sum();
        // The first flights pass before trains are timed.
        (late as f64 / f64::from(flights - 8), late)
    };
    for lag in [Duration::ZERO, rtt] {
        let (of_each, _) = late(lag, 10, false);
        assert!((35.0..=70.0).contains(&of_each), "{of_each} ms of each flight, lag {lag}");
        assert_eq!(late(lag, 10, true).1, 0, "a reader, lag {lag}");
        assert_eq!(late(lag, 1, false).1, 0, "one segment, lag {lag}");
    }
}

/// Connections take turns, so a long silence is the others'; a sender that waits for its timer gave
/// nobody its turn, and the others take what it leaves.
#[test]
fn while_a_sender_waits_for_its_timer_others_pass_beside_it() {
    let at = |millis: u64| Instant::ZERO + Duration::from_millis(millis);
    let beside = |ends: fn(&mut Data)| {
        let rtt = Some(Duration::from_millis(10));
        let start = SequenceNumber(1);
        let mut series = Series::new(SeriesStart {
            at: at(0),
            seq: start,
            una: start,
            edge: None,
            interval: rtt,
            lag: Some(Duration::ZERO),
        });
        series.sent(at(0), Data { carried: HostPairSum { bytes: 1_000, gaps: 0 }, ..data(1, 1) });
        let mut last = Data { carried: HostPairSum { bytes: 500_000, gaps: 0 }, ..data(1001, 1) };
        ends(&mut last);
        series.carried_beside(at(300), last).bytes
    };
    assert_eq!(beside(|_| ()), 0);
    assert_eq!(beside(|last| last.is_repeated = true), 498_000);
    assert_eq!(beside(|last| last.follows_gap = true), 498_000);
}
