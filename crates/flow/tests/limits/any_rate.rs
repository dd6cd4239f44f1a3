//! The verdict does not depend on how fast or far a transfer is: the same shapes on links of
//! 10 Mbit/s to 1 Gbit/s.

use super::sim::{Point, Transfer};
use super::{shown, verdict};
use fullpipe_flow::limit::Limit;

/// A transfer of some seconds over a path that holds `bdp` bytes, with a queue of as much.
fn over(mbit: u64, ms: u64) -> (Transfer, u64) {
    let rate = mbit * 125_000;
    let bdp = rate * ms / 1000;
    let seconds = if mbit >= 1000 { 1 } else { 3 };
    let transfer = Transfer {
        rate,
        rtt: ms * 1_000_000,
        queue: bdp.max(96_000),
        bytes: seconds * rate + 4 * bdp,
        receive_buffer: 16 * bdp + 4_000_000,
        send_buffer: 16 * bdp + 8_000_000,
        ..Transfer::default()
    };
    (transfer, bdp)
}

const PATHS: [(u64, u64); 5] = [(10, 50), (100, 10), (300, 20), (500, 40), (1000, 10)];

#[track_caller]
fn assert_first(transfer: &Transfer, limit: Limit, what: &str) {
    for point in [Point::Sender, Point::Receiver] {
        let verdict = verdict(transfer, point);
        let found = verdict.limited_by().limit;
        assert!(found == limit, "{what} at {point:?}: {found}\n{}", shown(&verdict));
    }
}

/// The window of a good plan holds a little more than path and queue, or a part of the queue. It is
/// full all of the time, and the link is, too.
#[test]
fn a_full_link_is_the_link_whatever_else_is_full() {
    for (mbit, ms) in PATHS {
        let (plain, bdp) = over(mbit, ms);
        let within = |part: f64| bdp + (plain.queue as f64 * part) as u64;
        for part in [0.4, 0.9] {
            let window = Transfer { receive_buffer: within(part), ..plain.clone() };
            let what = format!("window, {mbit} Mbit/s, {ms} ms, {part} of the queue");
            assert_first(&window, Limit::Link, &what);
        }
    }
}

/// The near miss: what holds four fifths of the path leaves no queue.
#[test]
fn near_miss_a_bound_below_the_path_is_no_full_link() {
    for (mbit, ms) in PATHS {
        let (plain, bdp) = over(mbit, ms);
        let window = Transfer { receive_buffer: bdp * 8 / 10, ..plain.clone() };
        assert_first(&window, Limit::ReceiveWindow, &format!("window, {mbit} Mbit/s, {ms} ms"));
    }
}
