//! Whatever carries TCP: the analysis reads the same of what may be shared, and no byte of the
//! payload is in it.

use super::*;
use crate::capture::Opener;
use crate::capture::segment::{Parsed, Segment};
use crate::capture::{Layer, Opened};
use crate::length_behind_link;
use fullpipe_model::units::Instant;
use proptest::prelude::*;
use std::net::SocketAddr;

const OPTIONS: AnonymizeOptions =
    AnonymizeOptions { ports: false, shift_time: false, zeroes: false };

fn anonymizer(key: u8, zeroes: bool) -> Anonymizer {
    Anonymizer::new(&Key([key; 32]), AnonymizeOptions { zeroes, ..OPTIONS })
}

/// What is unlike anything that a header has.
const SECRET: [u8; 16] = *b"s\xe9cr\xe9t~of\xa0ours\xff\xfe";

fn tcp(options: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut tcp = vec![0x9c, 0x40, 0x1f, 0x90, 1, 2, 3, 4, 5, 6, 7, 8];
    tcp.extend([(5 + (options.len() / 4) as u8) << 4, 0x18, 2, 1, 0, 0, 0, 0]);
    tcp.extend(options);
    tcp.extend(payload);
    tcp
}

/// A right IPv4 packet.
fn ipv4(protocol: u8, options: &[u8], payload: &[u8]) -> Vec<u8> {
    let headers = 20 + options.len();
    let total = ((headers + payload.len()) as u16).to_be_bytes();
    let mut ip = vec![0x40 | (headers / 4) as u8, 0x28, total[0], total[1], 9, 9, 0x40, 0, 61];
    ip.extend([protocol, 0, 0, 198, 51, 100, 7, 203, 0, 113, 80]);
    ip.extend(options);
    ip.extend(payload);
    fill_sums(&mut ip);
    ip
}

fn ipv6(extensions: &[u8], first: u8, payload: &[u8]) -> Vec<u8> {
    let length = ((extensions.len() + payload.len()) as u16).to_be_bytes();
    let mut ip = vec![0x6b, 0xab, 0xcd, 0xef, length[0], length[1], first, 61];
    for host in [0x51, 0x52] {
        ip.extend([0x20, 1, 0xd, 0xb8, 7, 7, 7, host, 1, 2, 3, 4, 5, 6, 7, host]);
    }
    ip.extend(extensions);
    ip.extend(payload);
    ip
}

fn udp(port: u16, payload: &[u8]) -> Vec<u8> {
    let length = ((8 + payload.len()) as u16).to_be_bytes();
    [&[0xab, 0xcd][..], &port.to_be_bytes(), &length, &[0, 0], payload].concat()
}

/// Fills in the checksums of a plain packet.
fn fill_sums(ip: &mut [u8]) {
    let headers = usize::from(ip[0] & 15) * 4;
    let length = ip.len();
    if ip[9] == 6 {
        let pseudo = sums::Pseudo { addresses: 12..20, protocol: 6, length: length - headers };
        let sum = Sum::read(ip, headers + 16, headers..length, Some(pseudo), false);
        sum.unwrap().write(ip);
    }
    Sum::read(ip, 10, 0..headers, None, false).unwrap().write(ip);
}

fn ethernet(ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let macs = [0, 0x16, 0x3e, 1, 2, 3, 2, 0x16, 0x3e, 4, 5, 6];
    [&macs[..], &ethertype.to_be_bytes(), payload].concat()
}

/// What the analysis reads of a packet, and whether it reads it.
fn read(link_type: LinkType, data: &[u8], original_length: usize) -> Parsed {
    let mut opener = Opener::new(Layer::Inner);
    match opener.open(link_type, data) {
        Opened::Ip(ip) => Segment::from_ip(ip, length_behind_link(data, ip, original_length)),
        Opened::Fragment => Parsed::Fragment,
        Opened::Other => Parsed::Other,
    }
}

/// The packet, as it may be shared, is read as before but for its addresses, which are replaced.
fn check(link_type: LinkType, data: &[u8], original_length: usize, zeroes: bool) {
    let mut anonymizer = anonymizer(5, zeroes);
    let packet = Packet { at: Instant::ZERO, link_type, data, original_length };
    let shared = anonymizer.packet(&packet);
    let (bytes, length) = (shared.data.to_vec(), shared.original_length);
    let dropped = shared.dropped;
    let before = read(link_type, data, original_length);
    let mut after = read(link_type, &bytes, length);
    if let (Parsed::Tcp(before), Parsed::Tcp(after)) = (&before, &mut after) {
        for (before, after) in
            [(before.source, &mut after.source), (before.destination, &mut after.destination)]
        {
            let expected = SocketAddr::new(anonymizer.addresses().ip(before.ip()), before.port());
            assert_eq!(*after, expected);
            *after = before;
        }
    }
    let is_read = !matches!(before, Parsed::Other);
    assert!(!is_read || dropped.is_none(), "{link_type:?} {dropped:?} {data:02x?}");
    if is_read {
        assert_eq!(after, before, "{link_type:?} {data:02x?} {bytes:02x?}");
        assert_eq!(length, original_length);
    }
    assert!(!bytes.windows(4).any(|part| SECRET.windows(4).any(|secret| secret == part)));
}

/// TCP in an IP packet of either version.
fn ip_packets() -> Vec<Vec<u8>> {
    let options = [2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 1, 3, 3, 7];
    let plain = tcp(&[], &SECRET);
    let greeting = [&b"SSH-2.0-OpenSSH_9"[..], &SECRET].concat();
    let with_options = tcp(&options, &greeting);
    let md5 = tcp(&[&[19, 18][..], &SECRET, &[1, 1]].concat(), &[]);
    let route = [&[7, 12, 4][..], &SECRET[..9]].concat();
    let hop_by_hop = [&[6, 1, 5][..], &SECRET[..13]].concat();
    let fragment = [6, 0x99, 0, 0, 1, 2, 3, 4];
    vec![
        ipv4(6, &[], &plain),
        ipv4(6, &[], &with_options),
        ipv4(6, &route, &md5),
        ipv6(&[], 6, &with_options),
        ipv6(&hop_by_hop, 0, &plain),
        ipv6(&[60, 0, 1, 4, 0, 0, 0, 0, 6, 0, 1, 4, 9, 9, 9, 9], 0, &plain),
        ipv6(&fragment, 44, &plain),
    ]
}

/// The packet in each tunnel.
fn tunnelled(ip: &[u8]) -> Vec<Vec<u8>> {
    let is_v4 = ip[0] >> 4 == 4;
    let ethertype: u16 = if is_v4 { 0x0800 } else { 0x86dd };
    let kind = ethertype.to_be_bytes();
    let frame = ethernet(ethertype, ip);
    let number = &SECRET[..3];
    let gre = |flags: u16, protocol: u16, header: &[u8], inner: &[u8]| {
        ipv4(47, &[], &[&flags.to_be_bytes()[..], &protocol.to_be_bytes(), header, inner].concat())
    };
    let mut packets = vec![
        ipv4(if is_v4 { 4 } else { 41 }, &[], ip),
        ipv6(&[], if is_v4 { 4 } else { 41 }, ip),
        gre(0, ethertype, &[], ip),
        gre(0xb000, 0x6558, &[&[1, 2, 0, 0][..], &SECRET[..4], &[0, 0, 0, 9]].concat(), &frame),
        gre(0x1000, 0x88be, &[&[0, 0, 0, 9, 0x10][..], &SECRET[..7]].concat(), &frame),
        gre(0x1000, 0x22eb, &[&[0, 0, 0, 9, 0x20][..], &SECRET[..10], &[0]].concat(), &frame),
        ipv4(17, &[], &udp(8472, &[&[8, 0, 0, 0][..], number, &[0], &frame].concat())),
        ipv4(17, &[], &udp(4790, &[&[12, 0, 0, 3][..], number, &[0], &frame].concat())),
        ipv4(17, &[], &udp(2152, &[&[0x30, 255, 0, 9][..], &SECRET[..4], ip].concat())),
        ipv4(
            17,
            &[],
            &udp(
                2152,
                &[&[0x34, 255, 0, 9][..], &SECRET[..4], &[0, 0, 0, 0x85, 1, 0, 9, 0], ip].concat(),
            ),
        ),
        ipv4(17, &[], &udp(6635, &[&[0x12, 0x34, 0x51, 64][..], ip].concat())),
        ipv4(143, &[], &frame),
    ];
    let geneve = [&[1, 0][..], &kind, number, &[0, 1, 2, 3, 0], ip].concat();
    packets.push(ipv4(17, &[], &udp(6081, &geneve)));
    packets
}

/// The IP packet behind each link's header.
fn framed(ip: &[u8]) -> Vec<(LinkType, Vec<u8>)> {
    let ethertype: u16 = if ip[0] >> 4 == 4 { 0x0800 } else { 0x86dd };
    let kind = ethertype.to_be_bytes();
    let card = &SECRET[..6];
    let llc = [&[0xaa, 0xaa, 3, 0, 0, 0][..], &kind, ip].concat();
    let tag = |tag: &[u8]| [&[2; 12][..], tag, &kind, ip].concat();
    vec![
        (LinkType::RAW, ip.to_vec()),
        (LinkType::ETHERNET, ethernet(ethertype, ip)),
        (LinkType::ETHERNET, tag(&[0x81, 0, 0x20, 7, 0x88, 0xa8, 0, 9])),
        (LinkType::ETHERNET, tag(&[&[0x89, 0x26][..], &SECRET[..4]].concat())),
        (LinkType::ETHERNET, [&[2; 12][..], &[0x88, 0x47, 0x12, 0x34, 0x51, 64], ip].concat()),
        (
            LinkType::ETHERNET,
            [&[2; 12][..], &[0x88, 0x64, 0x11, 0], &SECRET[..2], &[0, 9, 0], &[0x21], ip].concat(),
        ),
        (LinkType::LINUX_SLL, [&[0, 0, 0, 1, 0, 6][..], card, &[0, 0], &kind, ip].concat()),
        (
            LinkType::LINUX_SLL2,
            [&kind[..], &[0, 0], &SECRET[..4], &[0, 1, 0, 6], card, &[0, 0], ip].concat(),
        ),
        (LinkType::NULL, [&[2, 0, 0, 0][..], ip].concat()),
        (LinkType::PPP, [&[0xff, 3, 0, 0x21][..], ip].concat()),
        (LinkType::C_HDLC, [&[0x0f, 0][..], &kind, ip].concat()),
        (LinkType::FDDI, [&[0x50][..], card, card, &llc].concat()),
        (
            LinkType::IEEE802_11,
            [&[0x88, 1, 0, 0][..], card, card, card, &[0x10, 0, 0, 0], &llc].concat(),
        ),
        (
            LinkType::IEEE802_11_RADIOTAP,
            [&[0, 0, 12, 0][..], &SECRET[..8], &[8, 3, 0, 0], card, card, card, &[0; 8], &llc]
                .concat(),
        ),
        (LinkType::IPOIB, [&[0; 24][..], &SECRET, &kind, &[0, 0], ip].concat()),
        (
            LinkType::JUNIPER_ETHER,
            [&b"MGC\x80\0\x04"[..], &SECRET[..4], &ethernet(ethertype, ip)].concat(),
        ),
        (
            LinkType::NFLOG,
            [
                &[2, 0, 0, 7][..],
                &[12, 0, 10, 0],
                &SECRET[..8],
                &[(ip.len() + 4) as u8, 0, 9, 0],
                ip,
            ]
            .concat(),
        ),
        (
            LinkType::PKTAP,
            [&[20, 0, 0, 0, 1, 0, 0, 0, 101, 0, 0, 0][..], &SECRET[..8], ip].concat(),
        ),
        (LinkType::ETHERNET_MPACKET, [&SECRET[..8], &ethernet(ethertype, ip)].concat()),
    ]
}

#[test]
fn behind_each_link_and_in_each_tunnel_the_same_is_read() {
    let mut read_as_tcp = 0;
    for ip in ip_packets() {
        let all = [vec![ip.clone()], tunnelled(&ip)].concat();
        for (link, data) in all.iter().flat_map(|packet| framed(packet)) {
            read_as_tcp += usize::from(matches!(read(link, &data, data.len()), Parsed::Tcp(_)));
            for zeroes in [false, true] {
                check(link, &data, data.len(), zeroes);
                for cut in (0..data.len()).step_by(7) {
                    check(link, &data[..cut], data.len(), zeroes);
                }
            }
        }
    }
    assert!(read_as_tcp > 1_500, "{read_as_tcp}");
}

#[test]
fn what_carries_no_tcp_is_dropped_and_counted() {
    let mut anonymizer = anonymizer(1, false);
    let names = udp(53, &SECRET);
    for (data, why) in [
        (ethernet(0x0806, &SECRET), Dropped::Arp),
        (ethernet(0x0800, &ipv4(17, &[], &names)), Dropped::Udp),
        (ethernet(0x0800, &ipv4(1, &[], &SECRET)), Dropped::Icmp),
        (ethernet(0x86dd, &ipv6(&[], 58, &SECRET)), Dropped::Icmp),
        (ethernet(0x0800, &ipv4(132, &[], &SECRET)), Dropped::OtherProtocol),
        (ethernet(0x88cc, &SECRET), Dropped::NotIp),
        (ethernet(0x0800, &SECRET[..8]), Dropped::NotIp),
        (ethernet(0x0800, &[0x45; 12]), Dropped::Unreadable),
    ] {
        let packet = Packet {
            at: Instant::from_nanos(7),
            link_type: LinkType::ETHERNET,
            data: &data,
            original_length: data.len(),
        };
        let before = anonymizer.counts().dropped(why);
        let shared = anonymizer.packet(&packet);
        let expected = SharedPacket {
            at: Instant::from_nanos(7),
            data: &[],
            original_length: 0,
            dropped: Some(why),
            payload: shared.payload,
        };
        assert_eq!(shared, expected);
        assert_eq!(anonymizer.counts().dropped(why), before + 1);
    }
    assert_eq!((anonymizer.counts().packets, anonymizer.counts().all_dropped()), (8, 8));
}

/// The value of a checksum, and whether it is right.
fn sum_of(ip: &[u8]) -> (u16, bool) {
    let headers = usize::from(ip[0] & 15) * 4;
    let mut right = ip.to_vec();
    right.resize(usize::from(u16::from_be_bytes([ip[2], ip[3]])), 0);
    let field = headers + 16;
    let value = u16::from_be_bytes([right[field], right[field + 1]]);
    right[field..field + 2].fill(0);
    fill_sums(&mut right);
    (value, value == u16::from_be_bytes([right[field], right[field + 1]]))
}

#[test]
fn checksums_stay_right_wrong_or_open() {
    for zeroes in [false, true] {
        let packet = ipv4(6, &[], &tcp(&[], &SECRET));
        for (change, is_right) in [(0, true), (1, false), (0xff, false)] {
            let mut data = packet.clone();
            data[37] ^= change;
            let mut anonymizer = anonymizer(9, zeroes);
            let packet = Packet {
                at: Instant::ZERO,
                link_type: LinkType::RAW,
                data: &data,
                original_length: data.len(),
            };
            let shared = anonymizer.packet(&packet);
            assert_eq!(sum_of(shared.data).1, is_right, "{change}");
            assert_eq!(shared.data.len(), if zeroes { data.len() } else { 40 });
        }
        let mut open = packet.clone();
        open[36..38].fill(0);
        let mut anonymizer = anonymizer(9, zeroes);
        let packet = Packet {
            at: Instant::ZERO,
            link_type: LinkType::RAW,
            data: &open,
            original_length: open.len(),
        };
        assert_eq!(sum_of(anonymizer.packet(&packet).data), (0, false));
    }
}

#[test]
fn the_shift_is_the_same_for_all_captures_under_a_key() {
    let options = AnonymizeOptions { shift_time: true, ..OPTIONS };
    let shifted = |key: u8, nanos: u64| {
        let at = Instant::from_nanos(nanos);
        let packet = Packet { at, link_type: LinkType::RAW, data: &[], original_length: 0 };
        Anonymizer::new(&Key([key; 32]), options).packet(&packet).at.as_nanos() - nanos
    };
    assert_eq!(shifted(1, 5), shifted(1, 1_700_000_000_123_456_789));
    assert_ne!(shifted(1, 5), shifted(2, 5));
    assert_eq!(shifted(1, 5) % 1_000_000_000, 0);
}

proptest! {
    #[test]
    fn any_bytes_are_written_anew_or_dropped(link: u16, known in 0..18_usize, data: Vec<u8>, more in 0..2000_usize, zeroes: bool) {
        let ip = ipv4(6, &[], &tcp(&[], &[]));
        let known = framed(&ip)[known].0;
        for link_type in [LinkType(link), known] {
            let mut anonymizer = Anonymizer::new(&Key([1; 32]), AnonymizeOptions { ports: true, shift_time: true, zeroes });
            let packet = Packet { at: Instant::ZERO, link_type, data: &data, original_length: data.len() + more };
            let shared = anonymizer.packet(&packet);
            prop_assert!(shared.data.len() <= data.len());
        }
    }

    /// Damaged packets are read as before, too.
    #[test]
    fn what_was_changed_is_read_as_before(
        which: prop::sample::Index,
        tunnel: prop::sample::Index,
        link: prop::sample::Index,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut: prop::sample::Index,
        zeroes: bool,
    ) {
        let packets = ip_packets();
        let ip = which.get(&packets);
        let all = [vec![ip.clone()], tunnelled(ip)].concat();
        let framed = framed(tunnel.get::<Vec<u8>>(&all));
        let (link, mut data) = link.get(&framed).clone();
        for (at, value) in changes {
            let at = at.index(data.len());
            data[at] = value;
        }
        let original = data.len();
        data.truncate(original - cut.index(original) / 8);
        let mut anonymizer = anonymizer(5, zeroes);
        let packet = Packet { at: Instant::ZERO, link_type: link, data: &data, original_length: original };
        let shared = anonymizer.packet(&packet);
        prop_assert!(shared.data.len() <= data.len());
        if let (Parsed::Tcp(before), Parsed::Tcp(after)) =
            (read(link, &data, original), read(link, shared.data, shared.original_length))
        {
            prop_assert_eq!((before.seq, before.ack, before.window), (after.seq, after.ack, after.window));
        }
    }
}
