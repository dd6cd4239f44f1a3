//! What two ends of a connection say, read with keys: a key log, and segments, each of them a
//! direction and a length in two bytes, and the payload. Where the capture's own key log is read,
//! the result is the same.
#![no_main]

use fullpipe_flow::capture::{FileItem, LinkType, Packet, Reader};
use fullpipe_flow::connection::Direction;
use fullpipe_flow::{Analyzer, Config, KeyLog};
use fullpipe_model::units::Instant;

/// The random number of the client in every ClientHello, and secrets of it.
const LOG: &[u8] = b"\
CLIENT_TRAFFIC_SECRET_0 0101010101010101010101010101010101010101010101010101010101010101 0202020202020202020202020202020202020202020202020202020202020202
SERVER_TRAFFIC_SECRET_0 0101010101010101010101010101010101010101010101010101010101010101 0202020202020202020202020202020202020202020202020202020202020202
CLIENT_RANDOM 0101010101010101010101010101010101010101010101010101010101010101 030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303
";

/// A segment of a connection between two documentation addresses.
fn packet(from_client: bool, seq: u32, payload: &[u8]) -> Vec<u8> {
    let ends = [([192, 0, 2, 1], 40_000_u16), ([198, 51, 100, 2], 443)];
    let [from, to] = if from_client { ends } else { [ends[1], ends[0]] };
    let mut ip = vec![0x45, 0];
    ip.extend((40 + payload.len() as u16).to_be_bytes());
    ip.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
    ip.extend(from.0);
    ip.extend(to.0);
    ip.extend(from.1.to_be_bytes());
    ip.extend(to.1.to_be_bytes());
    ip.extend(seq.to_be_bytes());
    ip.extend([0, 0, 0, 1, 0x50, 0x18, 2, 0, 0, 0, 0, 0]);
    ip.extend(payload);
    ip
}

/// A pcapng whose first block after the section's head is this key log.
fn with_secrets(log: &[u8]) -> Vec<u8> {
    let mut file = vec![0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0];
    file.extend([0xff; 8]);
    file.extend(28_u32.to_le_bytes());
    let padded = log.len().next_multiple_of(4);
    let block = (20 + padded) as u32;
    file.extend(10_u32.to_le_bytes());
    file.extend(block.to_le_bytes());
    file.extend(0x544c_534b_u32.to_le_bytes());
    file.extend((log.len() as u32).to_le_bytes());
    file.extend(log);
    file.resize(28 + 16 + padded, 0);
    file.extend(block.to_le_bytes());
    file
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let (log, bytes) = match bytes {
        [0, rest @ ..] => (LOG, rest),
        [length, rest @ ..] => rest.split_at(usize::from(*length).min(rest.len())),
        [] => return,
    };
    let keys = KeyLog::parse(log).unwrap_or_default();
    let mut one = Analyzer::new(Config { keys, ..Config::default() });
    let mut other = Analyzer::new(Config::default());
    let mut reader = Reader::new();
    reader.feed(&with_secrets(log));
    while let Ok(Some(found)) = reader.next_found() {
        match found {
            FileItem::Secrets(log) => other.learn(log),
            FileItem::Packet(_) => {}
        }
    }
    let (mut rest, mut sent, mut number) = (bytes, [1_u32; 2], 0);
    while let [high, low, tail @ ..] = rest {
        let length = usize::from(u16::from_be_bytes([high & 0x1f, *low]));
        let (payload, tail) = tail.split_at(length.min(tail.len()));
        let from_client = high & 0x80 == 0;
        let seq = &mut sent[usize::from(from_client)];
        // Some come too early.
        let early = 7 * u32::from(high >> 5 & 3);
        let data = packet(from_client, seq.wrapping_add(early), payload);
        let at = Instant::from_nanos(number * 1_000_000);
        number += 1;
        let packet = Packet { at, link_type: LinkType::RAW, data: &data, original_length: data.len() };
        one.push_packet(&packet);
        other.push_packet(&packet);
        *seq = seq.wrapping_add(payload.len() as u32);
        rest = tail;
    }
    let [one, other] = [one, other].map(|analyzer| analyzer.finish().connections);
    assert_eq!(one.len(), other.len());
    for (one, other) in one.iter().zip(&other) {
        for direction in [Direction::ClientToServer, Direction::ServerToClient] {
            let [one, other] =
                [one, other].map(|found| found.connection.facts(direction).http2.as_deref());
            assert_eq!(one, other);
            if let Some(one) = one {
                assert!(one.held <= one.time && one.connection.waited <= one.connection.time);
                assert!(one.worst.iter().all(|stream| stream.waited <= stream.time));
            }
        }
    }
});
