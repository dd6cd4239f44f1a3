//! Cutting against an independent oracle: each segment is parsed and its checksums recomputed by
//! etherparse's own header types.

use super::*;
use etherparse::{Ipv4Header, Ipv6Header, PacketBuilder, TcpHeader};
use proptest::prelude::*;

/// A super-packet as the kernel would hand it over: pseudo-header's sum in the checksum field.
pub fn super_packet(v6: bool, l2_len: usize, payload: &[u8], segment: u16, fin: bool) -> Vec<u8> {
    let builder = if v6 {
        PacketBuilder::ipv6([1; 16], [2; 16], 64)
    } else {
        PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
    };
    let mut tcp = TcpHeader::new(80, 4000, u32::MAX - 1000, 60_000);
    (tcp.acknowledgment_number, tcp.ack, tcp.psh, tcp.fin, tcp.cwr) = (77, true, true, fin, true);
    tcp.set_options_raw(&[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]).unwrap();
    let mut ip = Vec::new();
    builder.tcp_header(tcp).write(&mut ip, payload).unwrap();
    let transport = if v6 { 40 } else { 20 };
    let mut frame = vec![0; VNET_LEN + l2_len];
    frame[0] = NEEDS_CSUM;
    frame[1] = GSO_ECN | if v6 { GSO_TCPV6 } else { GSO_TCPV4 };
    frame[4..6].copy_from_slice(&segment.to_ne_bytes());
    frame[6..8].copy_from_slice(&((l2_len + transport) as u16).to_ne_bytes());
    frame[8..10].copy_from_slice(&16u16.to_ne_bytes());
    frame.extend(ip);
    frame
}

/// (sequence number, flags byte, payload) of a wire packet whose checksums must be right.
pub fn check(packet: &[u8]) -> (u32, u8, Vec<u8>) {
    let v4 = packet[0] >> 4 == 4;
    let (tcp, payload, right) = if v4 {
        let (ip, rest) = Ipv4Header::from_slice(packet).unwrap();
        assert_eq!(usize::from(ip.total_len), packet.len());
        assert_eq!(ip.header_checksum, ip.calc_header_checksum());
        let (tcp, payload) = TcpHeader::from_slice(rest).unwrap();
        let right = tcp.calc_checksum_ipv4(&ip, payload).unwrap();
        (tcp, payload, right)
    } else {
        let (ip, rest) = Ipv6Header::from_slice(packet).unwrap();
        assert_eq!(usize::from(ip.payload_length), packet.len() - 40);
        let (tcp, payload) = TcpHeader::from_slice(rest).unwrap();
        let right = tcp.calc_checksum_ipv6(&ip, payload).unwrap();
        (tcp, payload, right)
    };
    assert_eq!(tcp.checksum, right);
    let transport = if v4 { 20 } else { 40 };
    (tcp.sequence_number, packet[transport + 13], payload.to_vec())
}

fn wire(frame: &[u8], layout: &Layout, index: u16) -> Vec<u8> {
    let mut out = [0; HEADER_MAX];
    let (head, payload) = layout.on_wire(frame, index, &mut out);
    [&out[head], &frame[payload]].concat()
}

proptest! {
    #[test]
    fn segments_are_what_the_wire_would_carry(
        v6: bool, fin: bool, l2 in prop_oneof![Just(0usize), Just(14)],
        payload in prop::collection::vec(any::<u8>(), 1..20_000), segment in 500u16..1500,
    ) {
        let frame = super_packet(v6, l2, &payload, segment, fin);
        let layout = Layout::parse(&frame, l2).unwrap();
        prop_assert_eq!(usize::from(layout.count()), payload.len().div_ceil(segment.into()));
        let mut rebuilt = Vec::new();
        for index in 0..layout.count() {
            let packet = wire(&frame, &layout, index);
            prop_assert_eq!(packet.len(), layout.ip_len(index));
            let (seq, flags, part) = check(&packet);
            prop_assert_eq!(seq, (u32::MAX - 1000).wrapping_add(rebuilt.len() as u32));
            let last = index + 1 == layout.count();
            prop_assert_eq!(flags & 0x09, if last { 0x08 | u8::from(fin) } else { 0 });
            prop_assert_eq!(flags & 0x80 != 0, index == 0);
            rebuilt.extend(part);
        }
        prop_assert_eq!(rebuilt, payload);
    }

    /// Cutting a run out of a super-packet and then cutting that run gives the same segments as
    /// cutting at once.
    #[test]
    fn a_run_of_segments_is_a_super_packet_again(
        v6: bool, l2 in prop_oneof![Just(0usize), Just(14)],
        payload in prop::collection::vec(any::<u8>(), 1_000..20_000), segment in 500u16..1500, pick: (u16, u16),
    ) {
        let frame = super_packet(v6, l2, &payload, segment, true);
        let layout = Layout::parse(&frame, l2).unwrap();
        let index = pick.0 % layout.count();
        let count = 1 + pick.1 % (layout.count() - index);
        let mut head = [0; HEADER_MAX];
        let head_len = layout.header(&frame, index, count, &mut head);
        let (start, end) = layout.payload_range(index, count);
        let run = [&head[..head_len], &frame[start..end]].concat();
        let again = Layout::parse(&run, l2).unwrap();
        if again.count() > 1 {
            prop_assert_eq!(again.count(), count);
        }
        for part in 0..again.count() {
            prop_assert_eq!(wire(&run, &again, part), wire(&frame, &layout, index + part));
        }
    }

    #[test]
    fn any_bytes_are_cut_or_passed_whole(frame in prop::collection::vec(any::<u8>(), 0..400), l2 in prop_oneof![Just(0usize), Just(14)]) {
        if let Some(layout) = Layout::parse(&frame, l2) {
            let mut total = 0;
            for index in 0..layout.count() {
                let _ = wire(&frame, &layout, index);
                let (start, end) = layout.payload_range(index, 1);
                total += end - start;
            }
            prop_assert_eq!(total, frame.len() - layout.payload);
        }
    }
}

/// What contradicts itself is no super-packet: it passes whole.
#[test]
fn a_lying_header_is_not_cut() {
    let good = super_packet(false, 0, &[7; 4344], 1448, false);
    assert_eq!(Layout::parse(&good, 0).unwrap().count(), 3);
    let lies: [(&str, usize, u8); 8] = [
        ("GSO type of the other version", 1, GSO_TCPV6),
        ("GSO type of UDP", 1, GSO_UDP_L4),
        ("no segment size", 4, 0),
        ("checksum elsewhere", 6, 24),
        ("checksum field elsewhere", 8, 6),
        ("total length", VNET_LEN + 2, 1),
        ("a fragment", VNET_LEN + 6, 0x20),
        ("data offset", VNET_LEN + 20 + 12, 0x40),
    ];
    for (lie, at, value) in lies {
        let mut frame = good.clone();
        frame[at] = value;
        if lie == "no segment size" {
            frame[5] = 0;
        }
        let layout = Layout::parse(&frame, 0).unwrap();
        assert_eq!((layout.count(), layout.is_cuttable()), (1, false), "{lie}");
    }
}

#[test]
fn an_uncut_packet_gets_its_checksum_completed() {
    let mut frame = super_packet(false, 0, b"hello", 0, false);
    frame[1] = GSO_NONE;
    // The kernel leaves the folded, not complemented, sum of the pseudo-header.
    let pseudo = Sum16BitWords::new()
        .add_slice(&frame[22..30])
        .add_2bytes([0, 6])
        .add_2bytes(37u16.to_be_bytes());
    let sum = !pseudo.ones_complement().to_be();
    frame[VNET_LEN + 36..VNET_LEN + 38].copy_from_slice(&sum.to_be_bytes());
    let layout = Layout::parse(&frame, 0).unwrap();
    assert_eq!(layout.count(), 1);
    assert_eq!(check(&wire(&frame, &layout, 0)).2, b"hello");
}
