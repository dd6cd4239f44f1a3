use super::*;
use proptest::prelude::*;

/// 192.0.2.1:80 -> 192.0.2.2:4000, SYN and ACK, MSS 1460, 3 bytes of payload.
const PACKET: [u8; 47] = [
    0x45, 0, 0, 47, 0, 0, 0x40, 0, 64, 6, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2, //
    0, 80, 0x0f, 0xa0, 0, 0, 0, 5, 0, 0, 0, 9, 0x60, 0x12, 0x20, 0, 0, 0, 0, 0, 2, 4, 5,
    0xb4, //
    1, 2, 3,
];

fn segment(ip: &[u8]) -> Segment {
    match Segment::from_ip(ip, ip.len()) {
        Parsed::Tcp(segment) => segment,
        other => panic!("not TCP: {other:?}"),
    }
}

#[test]
fn every_field_of_the_header() {
    let segment = segment(&PACKET);
    assert_eq!(segment.source, "192.0.2.1:80".parse().unwrap());
    assert_eq!(segment.destination, "192.0.2.2:4000".parse().unwrap());
    assert_eq!((segment.seq, segment.ack), (SequenceNumber(5), SequenceNumber(9)));
    assert_eq!(segment.flags, Flags::SYN | Flags::ACK);
    assert_eq!((segment.window, segment.payload), (0x2000, Bytes::new(3)));
    assert_eq!(segment.options.mss, Some(Bytes::new(1460)));
    assert_eq!(segment.end(), SequenceNumber(9));
}

#[test]
fn a_snap_length_changes_no_number_of_the_fixed_header() {
    let whole = segment(&PACKET);
    for end in 36..PACKET.len() {
        let Parsed::Tcp(cut) = Segment::from_ip(&PACKET[..end], PACKET.len()) else {
            panic!("cut at {end}")
        };
        let same = Segment { options: whole.options, is_header_cut: false, ..cut };
        assert_eq!(same, whole, "cut at {end}");
        assert_eq!(cut.is_header_cut, end < PACKET.len() - 3, "3 bytes of payload: cut at {end}");
    }
    for end in 0..36 {
        assert!(
            !matches!(Segment::from_ip(&PACKET[..end], PACKET.len()), Parsed::Tcp(_)),
            "cut at {end}"
        );
    }
}

#[test]
fn padding_of_the_link_is_not_payload_and_offload_has_a_length_of_zero() {
    let padded = [&PACKET[..], &[0; 13]].concat();
    assert_eq!(segment(&padded).payload, Bytes::new(3));
    let mut offload = PACKET;
    offload[2..4].copy_from_slice(&[0, 0]);
    let Parsed::Tcp(big) = Segment::from_ip(&offload, 80_044) else { panic!() };
    assert_eq!(big.payload, Bytes::new(80_000));
}

#[test]
fn a_packet_that_ends_inside_its_header_is_broken_and_more_than_there_was_is_no_payload() {
    let with = |length: usize| match Segment::from_ip(&PACKET, length) {
        Parsed::Tcp(segment) => segment,
        other => panic!("not TCP: {other:?}"),
    };
    assert!(!with(47).is_broken);
    assert_eq!((with(45).is_broken, with(45).payload), (false, Bytes::new(1)));
    assert!(with(43).is_broken, "24 bytes of header do not fit");
    let mut short = PACKET;
    short[32] = 0x40;
    assert!(segment(&short).is_broken, "a header of 16 bytes");
}

#[test]
fn fragments_and_other_protocols_are_told_apart() {
    let mut fragment = PACKET;
    fragment[6] = 0x20;
    assert_eq!(Segment::from_ip(&fragment, 47), Parsed::Fragment);
    let mut udp = PACKET;
    udp[9] = 17;
    assert_eq!(Segment::from_ip(&udp, 47), Parsed::Other);
}

proptest! {
    /// The short way for plain IPv4 and the general one agree, whatever the bytes: an option of no
    /// operations sends the same segment the long way.
    #[test]
    fn both_ways_of_reading_agree(tcp in prop::collection::vec(any::<u8>(), 0..80), tos: u8, id: u16, total in 0_u16..200) {
        let header = |ihl: u8, total: u16| {
            let mut header = PACKET[..20].to_vec();
            header[0] = 0x40 | ihl;
            header[1] = tos;
            header[2..4].copy_from_slice(&total.to_be_bytes());
            header[4..6].copy_from_slice(&id.to_be_bytes());
            header
        };
        let total = total + 20;
        let plain = [header(5, total), tcp.clone()].concat();
        let long = [header(6, total + 4), vec![1; 4], tcp].concat();
        let length = usize::from(total);
        prop_assert_eq!(Segment::from_ip(&plain, length), Segment::from_ip(&long, length + 4));
    }

    #[test]
    fn any_bytes_are_read_or_refused(at in 0..PACKET.len(), junk: Vec<u8>, length: usize) {
        let mut packet = PACKET.to_vec();
        packet.splice(at..(at + junk.len()).min(PACKET.len()), junk.clone());
        let _ = Segment::from_ip(&packet, length);
        let _ = Segment::from_ip(&junk, length);
    }
}
