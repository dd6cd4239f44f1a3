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
