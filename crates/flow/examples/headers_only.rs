//! `headers_only IN.. OUT.gz`: captures of raw IP as one, in the order of time, without the
//! payload's bytes, packed: what the repository's own captures (`tests/lab/captures`) are made
//! with.
#![allow(clippy::print_stderr, reason = "a program for people")]

use flate2::{Compression, write::GzEncoder};
use fullpipe_flow::capture::{Opened, Opener, Unpack, read, write};
use std::io::Write;

/// The longest headers there are: IPv4's and TCP's, 60 bytes each.
const SNAPLEN: u32 = 120;

fn main() -> std::io::Result<()> {
    let mut files: Vec<_> = std::env::args_os().skip(1).collect();
    let Some(to) = files.pop().filter(|_| !files.is_empty()) else {
        eprintln!("usage: headers_only IN.. OUT.gz");
        std::process::exit(2);
    };
    let mut records = Vec::new();
    for from in files {
        let mut opener = Opener::default();
        let end = read(Unpack::new(std::fs::File::open(from)?)?, |packet| {
            let Opened::Ip(ip) = opener.open(packet.link_type, packet.data) else { return };
            let header = usize::from(ip[0] & 15) * 4;
            let tcp = ip.get(header + 12).map_or(0, |offset| usize::from(offset >> 4) * 4);
            let kept = &ip[..(header + tcp).min(ip.len())];
            let record =
                write::record_header(packet.at, kept.len() as u32, packet.original_length as u32);
            records.push((packet.at, [&record[..], kept].concat()));
        });
        end.map_err(std::io::Error::other)?;
    }
    records.sort_by_key(|(at, _)| *at);
    let mut out = GzEncoder::new(std::fs::File::create(to)?, Compression::best());
    out.write_all(&write::file_header(SNAPLEN))?;
    for (_, record) in records {
        out.write_all(&record)?;
    }
    out.finish()?.flush()
}
