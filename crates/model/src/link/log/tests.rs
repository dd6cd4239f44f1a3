//! What is written is read; what nobody wrote is refused.

use super::*;
use crate::link::rule::Protocol;
use proptest::prelude::*;
use std::net::IpAddr;

fn any_address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![any::<[u8; 4]>().prop_map(IpAddr::from), any::<[u8; 16]>().prop_map(IpAddr::from)]
}

prop_compose! {
    fn any_flow()(
        source in any_address(), destination in any_address(), protocol: u8,
        ports in prop::option::of(any::<(u16, u16)>()),
    ) -> PacketKey {
        PacketKey { source, destination, protocol: Protocol(protocol), ports }
    }
}

prop_compose! {
    fn any_tcp()(seq: u32, ack: u32, payload: u64, flags: u8) -> Tcp {
        Tcp { seq, ack, payload: Bytes::new(payload), flags }
    }
}

fn any_fate() -> impl Strategy<Value = Fate> {
    let bit = prop::option::of((any::<u32>(), 0u8..8).prop_map(|(byte, bit)| Bit { byte, bit }));
    let cause =
        prop_oneof![Just(DropCause::Loss), Just(DropCause::QueueFull), Just(DropCause::Discipline)];
    prop_oneof![
        (any::<u64>(), any::<bool>(), bit).prop_map(|(at, mark, corrupt)| Fate::Departed {
            at: Instant::from_nanos(at),
            mark,
            corrupt
        }),
        (any::<u64>(), cause)
            .prop_map(|(at, cause)| Fate::Dropped { at: Instant::from_nanos(at), cause }),
    ]
}

prop_compose! {
    fn any_record()(
        (number, to_server, copy) in any::<(u64, bool, bool)>(),
        (arrival, size, backlog, queued) in any::<(u64, u64, u64, u64)>(),
        fate in any_fate(), flow in prop::option::of(any_flow()), tcp in prop::option::of(any_tcp()),
    ) -> Record {
        Record {
            number,
            direction: if to_server { Direction::ToServer } else { Direction::ToClient },
            copy,
            arrival: Instant::from_nanos(arrival),
            size: Bytes::new(size),
            backlog: Bytes::new(backlog),
            queued: Duration::from_nanos(queued),
            fate,
            flow,
            tcp,
        }
    }
}

fn encoded(records: &[Record]) -> Vec<u8> {
    let (mut encoder, header) = Encoder::new(Duration::from_secs(7));
    let mut bytes = header.to_vec();
    for record in records {
        encoder.encode(record, &mut bytes);
    }
    bytes
}

/// Reads `bytes` in pieces of `piece`.
fn decoded(bytes: &[u8], piece: usize) -> Result<Vec<Record>, LogError> {
    let (mut decoder, mut records) = (Decoder::new(), Vec::new());
    for piece in bytes.chunks(piece.max(1)) {
        decoder.push(piece);
        while let Some(record) = decoder.poll()? {
            records.push(record);
        }
    }
    decoder.finish()?;
    Ok(records)
}

proptest! {
    #[test]
    fn what_is_written_is_read_however_it_is_cut(
        mut records in prop::collection::vec(any_record(), 0..40),
        again in any::<bool>(),
        piece in 1usize..100,
    ) {
        if again {
            // The second time flows are named by their index.
            records.extend_from_within(..);
        }
        prop_assert_eq!(decoded(&encoded(&records), piece), Ok(records));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>, whole_header: bool) {
        let mut log = if whole_header { encoded(&[]) } else { Vec::new() };
        log.extend(bytes);
        let _ = decoded(&log, 7);
    }

    #[test]
    fn a_damaged_log_is_read_or_refused(
        records in prop::collection::vec(any_record(), 1..10), at: prop::sample::Index, flip in 1u8..,
    ) {
        let mut bytes = encoded(&records);
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        let _ = decoded(&bytes, 64);
    }

    #[test]
    fn a_log_that_ends_early_says_where(records in prop::collection::vec(any_record(), 1..10), cut in 1usize..20) {
        let mut bytes = encoded(&records);
        bytes.truncate(bytes.len() - cut.min(bytes.len()));
        match decoded(&bytes, 64) {
            Ok(read) => prop_assert_eq!(&read[..], &records[..read.len()]),
            Err(LogError::Truncated { record }) => prop_assert!(record as usize <= records.len()),
            Err(other) => prop_assert!(false, "{other}"),
        }
    }
}

#[test]
fn a_tcp_segment_takes_some_30_bytes() {
    let flow = PacketKey {
        source: [10, 0, 0, 1].into(),
        destination: [10, 0, 0, 2].into(),
        protocol: Protocol::TCP,
        ports: Some((443, 50_000)),
    };
    let record = |number: u64| Record {
        number,
        direction: Direction::ToClient,
        copy: false,
        arrival: Instant::from_nanos(1_000_000_000 + number * 12_000),
        size: Bytes::new(1500),
        backlog: Bytes::new(60_000),
        queued: Duration::from_micros(480),
        fate: Fate::Departed {
            at: Instant::from_nanos(1_025_492_000 + number * 12_000),
            mark: false,
            corrupt: None,
        },
        flow: Some(flow),
        tcp: Some(Tcp {
            seq: number as u32 * 1448,
            ack: 1,
            payload: Bytes::new(1448),
            flags: 0x10,
        }),
    };
    let records: Vec<Record> = (0..1000).map(record).collect();
    let bytes = encoded(&records).len();
    assert!(bytes / 1000 <= 32, "{bytes} bytes for 1000 records");
}

#[test]
fn other_files_are_refused_by_name() {
    assert_eq!(decoded(b"\xd4\xc3\xb2\xa1 a capture", 4), Err(LogError::Magic));
    let mut newer = encoded(&[]);
    newer[7] = VERSION + 1;
    assert_eq!(decoded(&newer, 100), Err(LogError::Version(VERSION + 1)));
    assert_eq!(decoded(b"FPLINK", 100), Err(LogError::Truncated { record: 0 }));
}
