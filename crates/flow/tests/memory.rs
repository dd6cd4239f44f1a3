//! What an open connection costs, by what the kernel says that this process has. Alone in its process, so that nothing
//! else counts.
#![allow(clippy::print_stdout, reason = "the memory measured is shown")]

mod path;
mod skip;

use fullpipe_flow::capture::LinkType;
use fullpipe_flow::{Analyzer, Config};
use fullpipe_model::units::Instant;
use path::Seen;
use skip::skip;

/// Issue 5: at most 2 KB an open connection.
const MOST: u64 = 2048;
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
        let bytes = index.to_be_bytes();
        let client = ([10, bytes[1], bytes[2], bytes[3]], 50_000);
        let lines = [
            (true, (0x02, 0, 0, 0)),
            (false, (0x12, 0, 1, 0)),
            (true, (0x10, 1, 1, 0)),
            (true, (0x18, 1, 1, 300)),
            (false, (0x18, 1, 301, 1200)),
            (true, (0x10, 301, 1201, 0)),
        ];
        for (step, (from_client, numbers)) in (0_u64..).zip(lines) {
            let at = 1_700_000_000_000_000_000 + u64::from(index) * 10_000 + step * 1_000;
            let seen = Seen::plain(at, from_client, numbers);
            let packet = path::headers(&seen, client, ([192, 0, 2, 1], 443));
            let wire = packet.len() + seen.length as usize;
            analyzer.push(Instant::from_nanos(at), LinkType::RAW, &packet, wire).unwrap();
        }
    }
    assert_eq!(analyzer.open_connections(), CONNECTIONS as usize);
    let each = resident().unwrap().saturating_sub(before) / u64::from(CONNECTIONS);
    println!("{each} bytes an open connection");
    assert!(each <= MOST, "{each} bytes an open connection");
}
