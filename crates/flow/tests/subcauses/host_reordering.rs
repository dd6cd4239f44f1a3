//! Segments in the wrong order: where they were captured says whose doing that is.

use super::sub_causes;
use fullpipe_flow::diagnosis::{HostReordering, PacketCause};
use std::fmt::Write;

/// A client that sends 40 segments, two at a time, those of each pair in the wrong order for the
/// first `swapped` pairs. `near` is the time from the capture point to the client and back, of 50 ms
/// in all.
fn trace(near: f64, swapped: usize) -> String {
    let mut text = format!(
        "0.000 > S 0:0 win 65535 <mss 1460,wscale 7,sackOK>
         {:.5} < S. 0:0 ack 1 win 65535 <mss 1460,wscale 7,sackOK>
         0.050 > . 1:1 ack 1 win 2000\n",
        0.05 - near
    );
    for pair in 0..20 {
        let at = 0.06 + pair as f64 * 0.06;
        let first = 1 + pair as u32 * 2000;
        let mut both = [first, first + 1000];
        if pair < swapped {
            both.reverse();
        }
        for (after, begin) in [(0.0, both[0]), (0.0001, both[1])] {
            let end = begin + 1000;
            writeln!(text, "{:.5} > . {begin}:{end} ack 1 win 2000", at + after).unwrap();
        }
        let acked = first + 2000;
        writeln!(text, "{:.5} < . 1:1 ack {acked} win 2000", at + 0.05 - near).unwrap();
    }
    text
}

fn found(near: f64, swapped: usize) -> Option<HostReordering> {
    sub_causes(&trace(near, swapped)).into_iter().find_map(|one| match one {
        PacketCause::HostReordering(found) => Some(found),
        _ => None,
    })
}

#[test]
fn what_is_out_of_order_at_the_senders_own_capture_is_its_hosts_doing() {
    assert_eq!(found(0.0001, 12).map(|found| found.count), Some(12));
}

#[test]
fn near_miss_behind_a_path_or_once_or_twice_it_is_not() {
    assert_eq!(found(0.0499, 12), None, "captured at the receiver");
    assert_eq!(found(0.025, 12), None, "captured between the ends");
    assert_eq!(found(0.0001, 2), None, "twice");
}
