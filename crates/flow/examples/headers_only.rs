//! `headers_only IN OUT.gz`: a capture of raw IP without its payload's bytes, packed: what the repository's own captures
//! (`tests/lab/captures`) are made with.
#![allow(clippy::print_stderr, reason = "a program for people")]

use flate2::{Compression, write::GzEncoder};
use fullpipe_flow::capture::{Opened, Opener, read, write};
use std::io::Write;

/// The longest headers there are: IPv4's and TCP's, 60 bytes each.
const SNAPLEN: u32 = 120;

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(from), Some(to)) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: headers_only IN OUT.gz");
        std::process::exit(2);
    };
    let mut out = GzEncoder::new(std::fs::File::create(to)?, Compression::best());
    out.write_all(&write::file_header(SNAPLEN))?;
    let mut opener = Opener::default();
    let mut written = Ok(());
    let end = read(std::fs::File::open(from)?, |packet| {
        let Opened::Ip(ip) = opener.open(packet.link_type, packet.data) else { return };
        let header = usize::from(ip[0] & 15) * 4;
        let tcp = ip.get(header + 12).map_or(0, |offset| usize::from(offset >> 4) * 4);
        let kept = &ip[..(header + tcp).min(ip.len())];
        let record = write::record_header(packet.at, kept.len() as u32, packet.original_length as u32);
        if written.is_ok() {
            written = out.write_all(&record).and_then(|()| out.write_all(kept));
        }
    });
    end.map_err(std::io::Error::other)?;
    written?;
    out.finish()?.flush()
}
