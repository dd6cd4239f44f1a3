//! Prints the points of the graphs of a capture's worst connections as JSON, as a report has them:
//! `trace_file FILE [CONNECTIONS]`, 20 by default.
#![allow(clippy::print_stderr, reason = "a program for people")]

use fullpipe_flow::diagnosis::{DiagnosedConnection, worst_first};
use fullpipe_flow::trace::TraceBounds;
use fullpipe_flow::{Analyzer, Config, capture};
use std::io::Write;

/// Packets between two looks at what is finished.
const ROUND: u32 = 1 << 16;

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let Some(name) = arguments.next() else {
        eprintln!("usage: trace_file FILE [CONNECTIONS]");
        std::process::exit(2);
    };
    let most = arguments.next().and_then(|most| most.parse().ok()).unwrap_or(20);
    let trace = Some(TraceBounds::default());
    let mut analyzer = Analyzer::new(Config { trace, ..Config::default() });
    let mut worst = Vec::new();
    let (file, mut packets) = (std::fs::File::open(&name)?, 0_u32);
    let end = capture::read(file, |packet| {
        analyzer.push_packet(&packet);
        packets = packets.wrapping_add(1);
        if packets.is_multiple_of(ROUND) {
            keep_worst(&mut worst, analyzer.drain(), most);
        }
    });
    if let Err(error) = end {
        eprintln!("{name}: {error}");
    }
    keep_worst(&mut worst, analyzer.finish().connections, most);
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let traces: Vec<_> = worst.iter().map(DiagnosedConnection::trace).collect();
    serde_json::to_writer(&mut out, &traces)?;
    out.flush()
}

fn keep_worst(worst: &mut Vec<DiagnosedConnection>, more: Vec<DiagnosedConnection>, most: usize) {
    worst.extend(more);
    worst_first(worst);
    worst.truncate(most);
}
