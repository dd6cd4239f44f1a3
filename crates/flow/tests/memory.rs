//! What an open connection costs, by what the kernel says that this process has. Alone in its
//! process, so that nothing else counts.
#![allow(clippy::print_stdout, reason = "the memory measured is shown")]

mod path;
mod short;
mod skip;

use fullpipe_flow::capture::LinkType;
use fullpipe_flow::{Analyzer, Config};
use fullpipe_model::units::Instant;
use short::short;
use skip::skip;

/// What is promised: at most 2 KB an open connection, and 64 bytes for where its time went.
const MOST: u64 = 2048 + 64;
const CONNECTIONS: u32 = 100_000;

/// Bytes in memory; proc_pid_statm(5) counts pages, which are 4 KiB where this is tested.
fn resident() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(statm.split_whitespace().nth(1)?.parse::<u64>().ok()? * 4096)
}

#[test]
fn an_open_connection_with_a_request_and_its_answer_costs_at_most_2_kb() {
    let Some(before) = resident() else {
        return skip("an_open_connection_costs_at_most_2_kb", "no /proc/self/statm");
    };
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
    let each = resident().unwrap().saturating_sub(before) / u64::from(CONNECTIONS);
    println!("{each} bytes an open connection");
    assert!(each <= MOST, "{each} bytes an open connection");
}
