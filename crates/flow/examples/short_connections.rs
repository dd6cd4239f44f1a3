//! A capture of any number of short connections on standard output:
//! `short_connections [CONNECTIONS]`, ten million unless told. Each has a handshake, a request, its
//! answer and a close by both ends; a thousand start in each second.
//!
//! `short_connections | fullpipe analyze --csv - >/dev/null` shows that memory follows the
//! connections that are open.

#[path = "../tests/path/mod.rs"]
mod path;

use fullpipe_flow::capture::write::{file_header, record_header};
use fullpipe_model::units::Instant;
use path::Seen;
use std::io::Write;

fn main() -> std::io::Result<()> {
    let count: u64 =
        std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(10_000_000);
    let mut out = std::io::BufWriter::with_capacity(1 << 18, std::io::stdout().lock());
    out.write_all(&file_header(128))?;
    for index in 0..count {
        connection(index, &mut out)?;
    }
    out.flush()
}

fn connection(index: u64, out: &mut impl Write) -> std::io::Result<()> {
    const FROM: bool = true;
    let lines = [
        (FROM, (0x02, 0, 0, 0)),
        (!FROM, (0x12, 0, 1, 0)),
        (FROM, (0x10, 1, 1, 0)),
        (FROM, (0x18, 1, 1, 300)),
        (!FROM, (0x18, 1, 301, 1200)),
        (FROM, (0x11, 301, 1201, 0)),
        (!FROM, (0x11, 1201, 302, 0)),
        (FROM, (0x10, 302, 1202, 0)),
    ];
    let [.., a, b, c] = index.to_be_bytes();
    let client = ([10, a, b, c], 20_000 + (index >> 24) as u16);
    for (step, (from_client, numbers)) in (0_u64..).zip(lines) {
        let at = 1_700_000_000_000_000_000 + index * 1_000_000 + step * 100_000;
        let seen = Seen::plain(at, from_client, numbers);
        let ip = path::headers(&seen, client, ([192, 0, 2, 1], 443));
        let kept = ip.len() as u32;
        out.write_all(&record_header(Instant::from_nanos(at), kept, kept + seen.length))?;
        out.write_all(&ip)?;
    }
    Ok(())
}
