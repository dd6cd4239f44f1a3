use super::*;
use fullpipe_flow::HostPairSum;
use fullpipe_model::units::Bytes;

fn syn_or_reset(client: u32, flags: Flags, seq: u32) -> Segment {
    let number = client.to_be_bytes();
    Segment {
        source: ([10, number[1], number[2], number[3]], 40_000).into(),
        destination: ([198, 51, 100, 2], 80).into(),
        ip_id: None,
        ce: false,
        ip: Default::default(),
        seq: SequenceNumber(seq),
        ack: SequenceNumber(0),
        flags,
        window: 256,
        payload: Bytes::ZERO,
        options: Default::default(),
        payload_start: Default::default(),
        is_broken: false,
        is_header_cut: false,
    }
}

/// One connection a second, opened and reset. Only those whose late packets may still come are
/// remembered, and more pass than an analysis may hold.
#[test]
fn any_number_of_connections_passes_through_bounded_memory() {
    let config = Config { max_connections: 1000, ..Config::default() };
    let most = config.linger.as_secs_f64() as usize + 10;
    let mut labelling = Labelling::new(&config);
    for client in 0..10_000_u32 {
        for (part, flags, seq) in [(0, Flags::SYN, 1000), (1, Flags::RST, 1001)] {
            let number = u64::from(client * 2 + part + 1);
            let at =
                Instant::from_nanos((u64::from(client) * 1000 + u64::from(part) * 10) * 1_000_000);
            let segment = syn_or_reset(client, flags, seq);
            assert!(labelling.take(CaptureEvent::Tick(at)).is_none());
            labelling.take(CaptureEvent::Segment(
                &Arrival { at, number, wire: 40, carried: HostPairSum::default(), segment },
                &[],
            ));
        }
        let round = labelling.take(CaptureEvent::Round).expect("a round ends");
        let told: Vec<_> =
            round.packets.iter().map(|packet| (packet.facts.connection, packet.sequence)).collect();
        assert_eq!(told, [(u64::from(client), 0), (u64::from(client), 1)]);
        let remembered = labelling.first.len();
        assert!(remembered <= most, "{remembered} connections are remembered after {client}");
    }
}
