//! Writes a capture for benchmarks: `mixed_capture FILE [PACKETS [whole|one] [far]]`. Connections with
//! loss, SACK, reordering and duplicates over different paths, interleaved, Ethernet, cut behind the
//! headers or `whole` (the payload is zeroes), or `one` connection alone; at their senders, or at
//! the `far` end of their paths, by a clock that is 5 s ahead; the same bytes every time.
#![allow(clippy::print_stderr, reason = "a program for people")]

#[path = "../tests/path/mod.rs"]
mod path;

use fullpipe_flow::capture::write::record_header;
use fullpipe_model::units::Instant;
use path::{Path, Seen};
use std::io::Write;

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(name), packets) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: mixed_capture FILE [PACKETS [whole|one] [far]]");
        std::process::exit(2);
    };
    let words: Vec<String> = arguments.collect();
    let [is_whole, is_one, is_far] =
        ["whole", "one", "far"].map(|word| words.iter().any(|one| one == word));
    let wanted: usize = packets.and_then(|packets| packets.parse().ok()).unwrap_or(1_000_000);
    let mut all: Vec<(u64, u64, Seen)> = Vec::new();
    let mut connection = 0_u64;
    while all.len() < wanted {
        let milli = 1_000_000;
        let mut path = Path {
            // Most connections are short; most packets are of long ones.
            bytes: [20_000, 60_000, 300_000, 4_000_000][connection as usize % 4],
            rtt: [2, 10, 40, 90][(connection / 4) as usize % 4] * milli,
            rate: [1_250_000, 12_500_000, 60_000_000][connection as usize % 3],
            loss: [0.0, 0.002, 0.02][(connection / 3) as usize % 3],
            ack_loss: 0.002,
            reorder: [0.0, 0.01][(connection / 5) as usize % 2],
            displacement: 3 * milli,
            duplicate: 0.0005,
            seed: connection + 1,
            start: 1_700_000_000_000_000_000 + connection * 7 * milli,
        };
        if is_one {
            (path.bytes, path.rtt, path.rate) = (wanted as u64 * 1000, 40 * milli, 60_000_000);
            path.loss = 0.0005;
        }
        let run = path::run(&path);
        let seen = if is_far { run.at_receiver } else { run.at_sender };
        all.extend(seen.into_iter().map(|seen| (seen.at, connection, seen)));
        connection += 1;
    }
    all.sort_by_key(|(at, connection, _)| (*at, *connection));
    all.truncate(wanted);
    let mut file = std::io::BufWriter::new(std::fs::File::create(&name)?);
    // The writer's header is for raw IP; the link type is its last word, little-endian: 1 is
    // Ethernet.
    let header = fullpipe_flow::capture::write::file_header(if is_whole { 65_535 } else { 128 });
    file.write_all(&header[..20])?;
    file.write_all(&[1, 0, 0, 0])?;
    for (at, connection, seen) in &all {
        let client = (
            [10, 1, (connection >> 8) as u8, *connection as u8],
            40_000 + (connection % 20_000) as u16,
        );
        let ip = path::headers(seen, client, ([192, 0, 2, 1], 443));
        let mut ethernet = [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0][..], &ip].concat();
        let wire = (ethernet.len() + seen.length as usize) as u32;
        if is_whole {
            ethernet.resize(wire as usize, 0);
        }
        let shown = Instant::from_nanos(*at + if is_far { 5_000_000_000 } else { 0 });
        file.write_all(&record_header(shown, ethernet.len() as u32, wire))?;
        file.write_all(&ethernet)?;
    }
    eprintln!("{}: {} packets of {connection} connections", name, all.len());
    file.flush()
}
