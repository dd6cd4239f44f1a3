//! What an open connection costs on the heap, by an allocator that counts: what the kernel says
//! that this process has differs by machine (huge pages, what was freed before). Alone in its
//! process, so that nothing else counts.
#![allow(clippy::print_stdout, reason = "the memory measured is shown")]

mod path;
mod short;

use fullpipe_flow::capture::LinkType;
use fullpipe_flow::{Analyzer, Config};
use fullpipe_model::units::Instant;
use peak_alloc::PeakAlloc;
use short::short;

/// What is promised, where its time went included.
const MOST: usize = 2048;
const CONNECTIONS: u32 = 100_000;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

#[test]
fn an_open_connection_with_a_request_and_its_answer_costs_at_most_2_kb() {
    let before = HEAP.current_usage();
    let mut analyzer = Analyzer::new(Config::default());
    for index in 0..CONNECTIONS {
        // Without the reset it stays open.
        let start = 1_700_000_000_000_000_000 + u64::from(index) * 10_000;
        for packet in &short(index, start, 1_000)[..6] {
            analyzer
                .push(Instant::from_nanos(packet.at), LinkType::RAW, &packet.bytes, packet.wire)
                .unwrap();
        }
    }
    assert_eq!(analyzer.open_connections(), CONNECTIONS as usize);
    let each = (HEAP.current_usage() - before) / CONNECTIONS as usize;
    println!("{each} bytes an open connection");
    assert!(each <= MOST, "{each} bytes an open connection");
}
