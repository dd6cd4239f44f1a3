use super::*;
use fullpipe_flow::capture::LinkType;

/// A segment without payload between a client of this number and a server.
fn segment(client: u32, to_server: bool, flags: u8, seq: u32) -> Vec<u8> {
    let number = client.to_be_bytes();
    let ends = [([10, number[1], number[2], number[3]], 40_000_u16), ([198, 51, 100, 2], 80)];
    let (from, to) = if to_server { (ends[0], ends[1]) } else { (ends[1], ends[0]) };
    let ip = [&[0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0][..], &from.0, &to.0].concat();
    let ports = [from.1.to_be_bytes(), to.1.to_be_bytes()].concat();
    [&ip[..], &ports, &seq.to_be_bytes(), &[0; 4], &[0x50, flags, 1, 0], &[0; 4]].concat()
}

/// A connection a second, each opened and reset: those whose late packets may still come are remembered, and no others; and
/// more pass than an analysis may hold.
#[test]
fn any_number_of_connections_passes_through_bounded_memory() {
    let config = Config { max_connections: 1000, ..Config::default() };
    let most = config.linger.as_secs_f64() as usize + 10;
    let mut packets = Packets::new(config, None);
    for client in 0..10_000_u32 {
        for (millis, flags, seq) in [(0, 0x02, 1000), (10, 0x04, 1001)] {
            let data = segment(client, true, flags, seq);
            let at = Instant::from_nanos((u64::from(client) * 1000 + millis) * 1_000_000);
            let packet = Packet { at, link_type: LinkType::RAW, data: &data, original_length: data.len() };
            let line = packets.line(&packet).expect("a line for each packet");
            assert_eq!((line.connection, line.sequence), (u64::from(client), seq - 1000));
        }
        assert!(packets.first.len() <= most, "{} connections are remembered after {client}", packets.first.len());
    }
}
