use super::*;
use crate::capture::LinkType;
use proptest::prelude::*;

/// Bytes of Ethernet or raw IP that are TCP over IPv4, or miss it by little: each field that
/// decides is drawn.
fn packets() -> impl Strategy<Value = (bool, Vec<u8>, usize)> {
    let lengths = (
        prop_oneof![Just(0_u16), 18..90_u16, Just(1500), any::<u16>()],
        0..100_usize,
        0..1600_usize,
    );
    let fields = (
        prop_oneof![9 => Just(0x45_u8), 1 => any::<u8>()],
        prop_oneof![9 => Just(6_u8), 1 => any::<u8>()],
    );
    let fragment = prop_oneof![9 => Just(0x4000_u16), 1 => any::<u16>()];
    let ether_type = prop_oneof![9 => Just([8_u8, 0]), 1 => any::<[u8; 2]>()];
    let rest = prop::collection::vec(any::<u8>(), 80);
    (any::<bool>(), lengths, fields, fragment, ether_type, rest).prop_map(
        |(ethernet, (total, kept, wire), (version, protocol), fragment, ether_type, mut ip)| {
            ip[0] = version;
            ip[9] = protocol;
            ip[2..4].copy_from_slice(&total.to_be_bytes());
            ip[6..8].copy_from_slice(&fragment.to_be_bytes());
            let before = if ethernet { [&[0; 12][..], &ether_type].concat() } else { Vec::new() };
            let mut data = [before, ip].concat();
            data.truncate(kept);
            (ethernet, data, wire)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]
    #[test]
    fn sorted_and_then_read_is_opened((ethernet, data, wire) in packets(), at: u64) {
        let link_type = if ethernet { LinkType::ETHERNET } else { LinkType::RAW };
        // A reader never gives less for the wire than was captured.
        let original_length = wire.max(data.len());
        let packet = Packet { at: Instant::from_nanos(at), link_type, data: &data, original_length };
        let (mut one, mut other) = (Intake::new(&Config::default()), Intake::new(&Config::default()));
        let opened = one.open(&packet);
        let sorted = other.sort(&packet);
        let shards = sorted.map(|sorted| sorted.shard(7));
        let read = sorted.map(|sorted| match sorted {
            Sorted::Headers(headers, bytes, _) => {
                assert_eq!(bytes.len(), headers.bytes());
                // Not `None`: whoever reads it has nobody to tell.
                headers.read(bytes).expect("what is sorted as plain can be read")
            }
            Sorted::Segment(arrival, words) => (arrival, words),
        });
        prop_assert_eq!(read, opened);
        prop_assert_eq!(shards, opened.map(|(arrival, _)| arrival.shard(7)));
        prop_assert_eq!(one.finish(), other.finish());
    }
}

#[test]
fn headers_are_handed_over_in_few_bytes() {
    assert!(size_of::<Headers>() <= 40, "{} bytes", size_of::<Headers>());
}
