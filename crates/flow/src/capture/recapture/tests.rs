use super::*;
use crate::capture::segment::{Parsed, Segment};
use fullpipe_model::units::Duration;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::net::IpAddr;

const SERVER: [u8; 4] = [10, 77, 0, 1];
const CLIENT: [u8; 4] = [10, 77, 0, 2];
const HEADERS: usize = 52;
const MSS: u32 = 1448;

/// A packet with timestamps, of whose payload nothing was kept.
fn packet(
    at_us: u64,
    from_server: bool,
    seq: u32,
    ack: u32,
    payload: u32,
    flags: u8,
) -> CapturedRecord {
    let mut data = vec![0; HEADERS];
    let length = (HEADERS as u32 + payload) as u16;
    let (from, to) = if from_server { (SERVER, CLIENT) } else { (CLIENT, SERVER) };
    data[0] = 0x45;
    data[2..4].copy_from_slice(&length.to_be_bytes());
    data[8] = 64;
    data[9] = 6;
    data[12..16].copy_from_slice(&from);
    data[16..20].copy_from_slice(&to);
    let ports: [u16; 2] = if from_server { [80, 5000] } else { [5000, 80] };
    data[20..22].copy_from_slice(&ports[0].to_be_bytes());
    data[22..24].copy_from_slice(&ports[1].to_be_bytes());
    data[24..28].copy_from_slice(&seq.to_be_bytes());
    data[28..32].copy_from_slice(&ack.to_be_bytes());
    data[32] = 8 << 4;
    data[33] = flags;
    data[34..36].copy_from_slice(&500_u16.to_be_bytes());
    data[40..44].copy_from_slice(&[1, 1, 8, 10]);
    CapturedRecord {
        at: Instant::from_nanos(1_000_000 + at_us * 1000),
        link_type: LinkType::RAW,
        data,
        original_length: usize::from(length),
    }
}

fn segment(record: &CapturedRecord) -> Segment {
    match Segment::from_ip(&record.data, record.original_length) {
        Parsed::Tcp(segment) => segment,
        other => panic!("{other:?}"),
    }
}

fn apply(records: &[CapturedRecord], words: &[&str], host: [u8; 4]) -> Vec<CapturedRecord> {
    let host = Some(IpAddr::from(host));
    let changes: Vec<CaptureChange> =
        words.iter().map(|word| CaptureChange::parse(word, host).unwrap()).collect();
    let (mut recapture, mut out) = (Recapture::new(&changes), Vec::new());
    for record in records {
        recapture.push(record.clone(), &mut out);
    }
    recapture.finish(&mut out);
    out
}

/// `count` full segments from the server, so many microseconds apart; the last of them pushes.
fn burst(count: u32, apart_us: u64) -> Vec<CapturedRecord> {
    let flags = |index| if index + 1 == count { 0x18 } else { 0x10 };
    (0..count)
        .map(|index| packet(u64::from(index) * apart_us, true, index * MSS, 1, MSS, flags(index)))
        .collect()
}

fn checksum_holds(record: &CapturedRecord) -> bool {
    let sum = etherparse::checksum::Sum16BitWords::new().add_slice(&record.data[..20]);
    sum.ones_complement() == 0
}

#[test]
fn a_sender_sees_its_super_packet_at_the_time_of_the_first_segment() {
    let seen = apply(&burst(10, 12), &["tso"], SERVER);
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].at, burst(1, 0)[0].at);
    assert_eq!(segment(&seen[0]).payload_len(), 10 * MSS);
    assert_eq!(segment(&seen[0]).flags.0, 0x18);
    assert!(checksum_holds(&seen[0]));
}

#[test]
fn a_super_packet_holds_what_an_ip_packet_can() {
    let seen = apply(&burst(100, 0), &["tso"], SERVER);
    let payloads: Vec<u32> = seen.iter().map(|record| segment(record).payload_len()).collect();
    // 65535 less headers of 52 bytes holds 45 segments.
    assert_eq!(payloads, [45 * MSS, 45 * MSS, 10 * MSS]);
}

#[test]
fn segments_that_were_handed_over_apart_stay_apart() {
    assert_eq!(apply(&burst(10, 100), &["tso"], SERVER).len(), 10);
    assert_eq!(apply(&burst(10, 100), &["tso=200us"], SERVER).len(), 1);
    // What the other end captures is not the sender's.
    assert_eq!(apply(&burst(10, 0), &["tso"], CLIENT).len(), 10);
}

#[test]
fn a_receiver_sees_segments_at_its_interrupt_and_acknowledges_them_once() {
    let mut records = burst(10, 20);
    for (index, after) in [2, 4, 6, 8, 10].into_iter().enumerate() {
        let at = after * 20 - 19;
        records.insert(after as usize + index, packet(at, false, 1, after as u32 * MSS, 0, 0x10));
    }
    let seen = apply(&records, &["gro=250us"], CLIENT);
    let shown: Vec<_> =
        seen.iter().map(|r| (r.at, segment(r).payload_len(), segment(r).ack.0)).collect();
    let due = burst(1, 0)[0].at + Duration::from_micros(250);
    assert_eq!(shown, [(due, 10 * MSS, 1), (due, 0, 10 * MSS)]);
}

#[test]
fn a_hole_is_not_merged_over() {
    let mut records = burst(6, 1);
    records.remove(3);
    for words in [["tso"], ["gro"]] {
        let host = if words == ["tso"] { SERVER } else { CLIENT };
        let seen = apply(&records, &words, host);
        let shown: Vec<u32> =
            seen.iter().map(|record| segment(record).payload_len() / MSS).collect();
        assert_eq!(shown, [3, 2], "{words:?}");
    }
}

#[test]
fn plain_changes_do_what_they_say() {
    let records = burst(20, 1000);
    assert_eq!(apply(&records, &["start=15"], SERVER), records[15..]);
    assert!(apply(&records, &["snap=40"], SERVER).iter().all(|record| record.data.len() == 40));
    assert_eq!(apply(&records, &["sent"], CLIENT), []);
    assert_eq!(apply(&records, &["drop=100%"], SERVER), []);
    let twice = apply(&records, &["twice"], SERVER);
    assert_eq!(twice.len(), 40);
    assert_eq!((twice[0].data[8], twice[1].data[8]), (64, 63));
    assert!(checksum_holds(&twice[1]));
    let stepped = apply(&records, &["clock=10ms-5ms"], SERVER);
    assert_eq!((stepped[9].at, stepped[10].at), (records[9].at, records[5].at));
}

#[test]
fn a_wrong_word_is_an_error_that_lists_the_right_ones() {
    for word in ["", "ts", "gro=x", "start", "start=-1", "snap", "drop=2", "clock=1s", "sent=1"] {
        let error = CaptureChange::parse(word, Some(IpAddr::from(SERVER))).unwrap_err().to_string();
        assert!(error.contains("start=PACKETS"), "{error}");
    }
    assert_eq!(CaptureChange::parse("tso", None), Err(ChangeError::NoHost("tso".into())));
}

/// Every sequence number of payload that a direction carried.
fn carried(records: &[CapturedRecord], from_server: bool) -> BTreeSet<u32> {
    let from = IpAddr::from(if from_server { SERVER } else { CLIENT });
    let sent = records.iter().map(segment).filter(|segment| segment.source.ip() == from);
    sent.flat_map(|segment| segment.seq.0..segment.seq.0 + segment.payload_len()).collect()
}

prop_compose! {
    /// Both directions send, with repeats and holes.
    fn traffic()(steps in prop::collection::vec((0_u64..300, any::<bool>(), 0_u32..40, 0_u32..3, 0_u8..4), 1..80))
        -> Vec<CapturedRecord>
    {
        let (mut at, mut next) = (0, [0_u32, 0]);
        steps.into_iter().map(|(wait, from_server, jump, full, flags)| {
            at += if wait < 150 { 0 } else { wait };
            let payload = [0, 100, 100][full as usize];
            let side = usize::from(from_server);
            let seq = if jump == 0 { next[side] / 2 } else { next[side] };
            next[side] = seq + payload;
            let flags = if flags == 0 { 0x18 } else { 0x10 };
            packet(at, from_server, seq, next[1 - side], payload, flags)
        }).collect()
    }
}

proptest! {
    #[test]
    fn merging_keeps_every_byte_and_the_order_of_time(records in traffic(), at_server: bool) {
        let host = if at_server { SERVER } else { CLIENT };
        let seen = apply(&records, &["tso", "gro"], host);
        for from_server in [false, true] {
            prop_assert_eq!(carried(&records, from_server), carried(&seen, from_server));
        }
        prop_assert!(seen.is_sorted_by_key(|record| record.at));
        prop_assert!(seen.len() <= records.len());
    }

    #[test]
    fn any_bytes_pass(
        packets in prop::collection::vec((any::<u32>(), prop::collection::vec(any::<u8>(), 0..90), 0_u16..300), 0..20),
        valid in traffic(),
        cut in 0_usize..60,
    ) {
        let mut records: Vec<CapturedRecord> = packets.into_iter().map(|(at, data, link)| CapturedRecord {
            at: Instant::from_nanos(at.into()), link_type: LinkType(link), original_length: data.len(), data,
        }).collect();
        records.extend(valid.into_iter().map(|mut record| { record.data.truncate(cut); record }));
        let count = records.len();
        let seen = apply(&records, &["tso", "gro", "twice", "clock=1us-1s", "snap=64"], SERVER);
        prop_assert!(seen.len() <= 2 * count);
    }
}
