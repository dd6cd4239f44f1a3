use super::*;
use proptest::prelude::*;

/// An IPv4 packet with a payload of `protocol`, without a checksum.
fn ipv4(protocol: u8, place: u16, payload: &[u8]) -> Vec<u8> {
    let total = (20 + payload.len() as u16).to_be_bytes();
    let place = place.to_be_bytes();
    let header = [0x45, 0, total[0], total[1], 0, 7, place[0], place[1], 64, protocol, 0, 0];
    [&header[..], &[192, 0, 2, 1], &[198, 51, 100, 2], payload].concat()
}

fn ipv6(next: u8, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u16).to_be_bytes();
    [&[0x60, 0, 0, 0, length[0], length[1], next, 64][..], &[0x20; 32], payload].concat()
}

fn udp(port: u16, payload: &[u8]) -> Vec<u8> {
    ipv4(17, 0, &[&[0x40, 0][..], &port.to_be_bytes(), &[0; 4], payload].concat())
}

fn ethernet(ethertype: u16, payload: &[u8]) -> Vec<u8> {
    [&[2; 12][..], &ethertype.to_be_bytes(), payload].concat()
}

fn tcp() -> Vec<u8> {
    ipv4(6, 0, &[0x55; 32])
}

fn opened(layer: Layer, link: LinkType, data: &[u8]) -> Option<Vec<u8>> {
    match Opener::new(layer).open(link, data) {
        Opened::Ip(ip) => Some(ip.to_vec()),
        _ => None,
    }
}

/// Every tunnel with the same TCP packet inside; the outer packet begins with IP.
fn tunnels() -> Vec<(&'static str, Vec<u8>)> {
    let frame = ethernet(0x0800, &tcp());
    vec![
        ("IP in IP", ipv4(4, 0, &tcp())),
        ("6in4 and 4in6", ipv4(41, 0, &ipv6(4, &tcp()))),
        (
            "behind extension headers",
            ipv6(0, &[&[60, 0, 0, 0, 0, 0, 0, 0][..], &[4, 0, 0, 0, 0, 0, 0, 0], &tcp()].concat()),
        ),
        ("GRE", ipv4(47, 0, &[&[0, 0, 8, 0][..], &tcp()].concat())),
        (
            "GRE with checksum, key and sequence",
            ipv4(47, 0, &[&[0xb0, 0, 8, 0][..], &[0; 12], &tcp()].concat()),
        ),
        ("GRE with Ethernet", ipv4(47, 0, &[&[0, 0, 0x65, 0x58][..], &frame].concat())),
        (
            "PPTP",
            ipv4(
                47,
                0,
                &[&[0x30, 0x81, 0x88, 0x0b][..], &[0; 12], &[0xff, 3, 0x21], &tcp()].concat(),
            ),
        ),
        ("ERSPAN I", ipv4(47, 0, &[&[0, 0, 0x88, 0xbe][..], &frame].concat())),
        ("ERSPAN II", ipv4(47, 0, &[&[0x10, 0, 0x88, 0xbe][..], &[0; 12], &frame].concat())),
        ("ERSPAN III", ipv4(47, 0, &[&[0x10, 0, 0x22, 0xeb][..], &[0; 16], &frame].concat())),
        ("VXLAN", udp(4789, &[&[8, 0, 0, 0, 0, 0, 7, 0][..], &frame].concat())),
        ("Geneve", udp(6081, &[&[1, 0, 0x65, 0x58, 0, 0, 7, 0][..], &[9; 4], &frame].concat())),
        ("Geneve with IP", udp(6081, &[&[0, 0, 8, 0, 0, 0, 7, 0][..], &tcp()].concat())),
        ("GTP-U", udp(2152, &[&[0x30, 255, 0, 52, 0, 0, 0, 1][..], &tcp()].concat())),
        (
            "GTP-U with an extension",
            udp(
                2152,
                &[&[0x34, 255, 0, 60, 0, 0, 0, 1, 0, 0, 0, 0x85][..], &[1, 0, 0, 0], &tcp()]
                    .concat(),
            ),
        ),
        ("VXLAN-GPE", udp(4790, &[&[12, 0, 0, 3, 0, 0, 7, 0][..], &frame].concat())),
        ("MPLS over UDP", udp(6635, &[&[0, 0, 1, 64][..], &tcp()].concat())),
        (
            "VXLAN in GRE",
            ipv4(
                47,
                0,
                &[&[0, 0, 8, 0][..], &udp(8472, &[&[8, 0, 0, 0, 0, 0, 7, 0][..], &frame].concat())]
                    .concat(),
            ),
        ),
    ]
}

#[test]
fn every_tunnel_is_entered_or_left_closed() {
    for (name, outer) in tunnels() {
        assert_eq!(opened(Layer::Inner, LinkType::RAW, &outer), Some(tcp()), "{name}");
        assert_eq!(
            opened(Layer::Outer, LinkType::RAW, &outer),
            Some(outer.clone()),
            "{name}, outer"
        );
    }
}

#[test]
fn what_is_no_tunnel_stays_as_it_is() {
    let quoted = ipv4(1, 0, &[&[3, 1, 0, 0, 0, 0, 0, 0][..], &tcp()].concat());
    assert_eq!(
        opened(Layer::Inner, LinkType::RAW, &quoted),
        Some(quoted.clone()),
        "an ICMP error is no tunnel"
    );
    let dns = udp(53, &tcp());
    assert_eq!(opened(Layer::Inner, LinkType::RAW, &dns), Some(dns.clone()));
    let response = udp(2152, &[0x32, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(
        opened(Layer::Inner, LinkType::RAW, &response),
        Some(response.clone()),
        "GTP-U's echo carries nothing"
    );
}

/// A packet of 32 bytes of payload as fragments of 16, 8 and 8 bytes.
fn fragments() -> [Vec<u8>; 3] {
    let whole: Vec<u8> = (0..32).collect();
    [ipv4(6, 0x2000, &whole[..16]), ipv4(6, 0x2002, &whole[16..24]), ipv4(6, 3, &whole[24..])]
}

#[test]
fn fragments_are_one_packet_in_every_order() {
    let whole = ipv4(6, 0, &(0..32).collect::<Vec<u8>>());
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let mut opener = Opener::new(Layer::Inner);
        let fragments = fragments();
        for (place, index) in order.into_iter().enumerate() {
            let opened = opener.open(LinkType::RAW, &fragments[index]);
            if place == 2 {
                assert_eq!(opened, Opened::Ip(&whole), "{order:?}");
            } else {
                assert_eq!(opened, Opened::Fragment, "{order:?}");
            }
            // The same again adds nothing.
            if place == 0 {
                assert_eq!(opener.open(LinkType::RAW, &fragments[index]), Opened::Fragment);
            }
        }
    }
}

#[test]
fn fragments_of_ipv6_and_of_tunnels_are_put_together() {
    let payload: Vec<u8> = (0..24).collect();
    let part =
        |place: u8, bytes: &[u8]| ipv6(44, &[&[6, 0, 0, place, 0, 0, 0, 9][..], bytes].concat());
    let mut opener = Opener::new(Layer::Inner);
    assert_eq!(opener.open(LinkType::RAW, &part(16, &payload[16..])), Opened::Fragment);
    assert_eq!(
        opener.open(LinkType::RAW, &part(1, &payload[..16])),
        Opened::Ip(&ipv6(6, &payload))
    );

    // A tunnel's outer packet in two fragments, and in it the last fragment of what was begun
    // before.
    let [first, second, third] = fragments();
    let tunnel = [&[0, 0, 8, 0][..], &third].concat();
    let mut opener = Opener::new(Layer::Inner);
    for packet in [&first, &second, &ipv4(47, 0x2000, &tunnel[..16])] {
        assert_eq!(opener.open(LinkType::RAW, packet), Opened::Fragment);
    }
    let whole = ipv4(6, 0, &(0..32).collect::<Vec<u8>>());
    assert_eq!(opener.open(LinkType::RAW, &ipv4(47, 2, &tunnel[16..])), Opened::Ip(&whole));
}

#[test]
fn a_flood_of_fragments_is_bounded() {
    let mut opener = Opener::new(Layer::Inner);
    for number in 0..100_000_u32 {
        let mut packet = ipv4(17, 0x2000 | 0x1000, &[0; 8]);
        packet[12..16].copy_from_slice(&number.to_be_bytes());
        assert_eq!(opener.open(LinkType::RAW, &packet), Opened::Fragment);
    }
    assert!(opener.fragments.bytes() <= 256 * 65_535 + 256 * 256);
}

proptest! {
    /// No header inside a tunnel, however damaged, does more than hide the packet.
    #[test]
    fn damaged_tunnels_are_read_or_refused(which in 0_usize..18, at: prop::sample::Index, byte: u8, cut: prop::sample::Index) {
        let (_, mut outer) = tunnels().swap_remove(which);
        let at = at.index(outer.len());
        outer[at] = byte;
        outer.truncate(cut.index(outer.len() + 1));
        for layer in [Layer::Inner, Layer::Outer] {
            if let Some(ip) = opened(layer, LinkType::RAW, &outer) {
                prop_assert!(ip.len() <= outer.len());
            }
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(link: u16, packets: Vec<Vec<u8>>) {
        let mut opener = Opener::new(Layer::Inner);
        for packet in &packets {
            for link in [LinkType(link), LinkType::ETHERNET, LinkType::PPP, LinkType::IEEE802_11, LinkType::RAW] {
                opener.open(link, packet);
            }
        }
    }
}
