//! Faults of devices between the ends, which the packets show by the shape of what is lost.

use super::{analysed, sub_causes};
use fullpipe_flow::account::Cause;
use fullpipe_flow::connection::Direction;
use fullpipe_flow::diagnosis::{PacketCause, PathMtu, ScaleSign, WindowScale};
use fullpipe_flow::finding::words;
use fullpipe_flow::limit::Limit;
use fullpipe_model::units::{Bytes, Duration};
use std::fmt::Write;

/// Captured at the server, the client 20 ms away; the question has arrived.
const AT_SERVER: &str = "
    0.000 > S  0:0         win 64240 <mss 1460,wscale 7,sackOK>
    0.000 < S. 0:0   ack 1 win 65160 <mss 1460,wscale 7,sackOK>
    0.020 > .  1:1   ack 1 win 502
    0.021 > P. 1:301 ack 1 win 502
    0.021 < .  1:1 ack 301 win 502
";

fn mtu(text: &str) -> Option<PathMtu> {
    sub_causes(text).into_iter().find_map(|cause| match cause {
        PacketCause::PathMtu(one) => Some(one),
        _ => None,
    })
}

fn scale(text: &str) -> Option<WindowScale> {
    sub_causes(text).into_iter().find_map(|cause| match cause {
        PacketCause::WindowScale(one) => Some(one),
        _ => None,
    })
}

/// A certificate: two full segments and a rest, of which only the rest arrives.
const CERTIFICATE: &str = "
    0.030 < .  1:1461    ack 301 win 502
    0.030 < .  1461:2921 ack 301 win 502
    0.030 < P. 2921:3221 ack 301 win 502
    0.050 > .  301:301   ack 1 win 502 <sack 2921-3221>
";

#[test]
fn full_segments_that_never_arrive_where_smaller_ones_do() {
    let text = format!(
        "{AT_SERVER}{CERTIFICATE}
        0.270 < .  1:1461 ack 301 win 502
        0.710 < .  1:1461 ack 301 win 502
        1.590 < .  1:1461 ack 301 win 502
        3.350 < .  1:1461 ack 301 win 502"
    );
    let found = mtu(&text).expect("found");
    let (lost, passed) = (Bytes::new(1460), Bytes::new(300));
    assert_eq!((found.lost, found.passed, found.count, found.is_missing), (lost, passed, 6, false));
    let connection = analysed(&text);
    let account = connection.account().unwrap();
    let first = account.first().unwrap();
    assert_eq!((first.owner.name(), first.cause), ("path", Cause::PathMtu));
    assert!(first.time > Duration::from_secs(3), "{account:?}");
    let advised =
        connection.findings().iter().any(|one| words::remedy(one.what.remedy).contains("bbr"));
    assert!(!advised, "another congestion control changes nothing");
}

#[test]
fn a_sender_that_finds_the_size_by_itself() {
    // tcp_mtu_probing: after some timeouts it sends smaller segments, which arrive.
    let text = format!(
        "{AT_SERVER}{CERTIFICATE}
        0.270 < .  1:1461 ack 301 win 502
        0.710 < .  1:1461 ack 301 win 502
        1.590 < .  1:1025 ack 301 win 502
        1.610 > .  301:301 ack 1025 win 502 <sack 2921-3221>
        1.611 < .  1025:2049 ack 301 win 502
        1.611 < .  2049:2921 ack 301 win 502
        1.631 > .  301:301 ack 3221 win 502
        1.632 < .  3221:4245 ack 301 win 502
        1.652 > .  301:301 ack 4245 win 502"
    );
    let found = mtu(&text).expect("found");
    assert_eq!((found.passed, found.lost), (Bytes::new(1024), Bytes::new(1460)));
    assert!(analysed(&text).account().unwrap().spent_on(Cause::PathMtu) > Duration::from_secs(1));
}

#[test]
fn full_segments_are_missing_at_the_receiver() {
    let at_client = "
        0.000 > S  0:0         win 64240 <mss 1460,wscale 7,sackOK>
        0.020 < S. 0:0   ack 1 win 65160 <mss 1460,wscale 7,sackOK>
        0.020 > .  1:1   ack 1 win 502
        0.021 > P. 1:301 ack 1 win 502
        0.041 < .  1:1 ack 301 win 502
        0.050 < P. 2921:3221 ack 301 win 502
        0.050 > .  301:301   ack 1 win 502 <sack 2921-3221>";
    let found = mtu(at_client).expect("found");
    assert_eq!((found.count, found.is_missing, found.lost), (2, true, Bytes::new(1460)));
    let filled = format!("{at_client}\n 0.070 < . 1:1461 ack 301 win 502");
    assert_eq!(mtu(&filled), None, "one of them arrived");
    assert_eq!(mtu(&at_client.replace("2921", "2901")), None, "not whole segments");
    assert_eq!(mtu(&at_client.replace("2921", "1461")), None, "only one");
}

#[test]
fn near_miss_losses_that_have_nothing_to_do_with_size() {
    let gone = format!(
        "{AT_SERVER}
        0.030 < .  1:1461    ack 301 win 502
        0.030 < .  1461:2921 ack 301 win 502
        0.030 < P. 2921:3221 ack 301 win 502
        0.270 < .  1:1461 ack 301 win 502
        0.710 < .  1:1461 ack 301 win 502
        1.590 < .  1:1461 ack 301 win 502"
    );
    assert_eq!(mtu(&gone), None, "nothing arrives any more, of any size");
    let repaired = format!(
        "{AT_SERVER}{CERTIFICATE}
        0.270 < .  1:1461 ack 301 win 502
        0.710 < .  1:1461 ack 301 win 502
        0.730 > .  301:301 ack 1461 win 502 <sack 2921-3221>"
    );
    assert_eq!(mtu(&repaired), None, "one full segment arrived in the end");
    let told = format!(
        "{AT_SERVER}{CERTIFICATE}
        0.051 < .  1:1025 ack 301 win 502
        0.051 < .  1025:2049 ack 301 win 502
        0.051 < .  2049:2921 ack 301 win 502
        0.071 > .  301:301 ack 3221 win 502"
    );
    assert_eq!(mtu(&told), None, "ICMP said what fits, and nobody waited for a timer");
}

/// A transfer that stops at `bound` bytes in flight, captured at the server: each round trip that
/// much in segments of 1000 bytes and a rest.
fn stop_and_go(opening: &str, field: u32, bound: u32) -> String {
    let mut text = String::from(opening);
    let mut at = 0.022;
    for round in 0..20 {
        let mut from = 1 + round * bound;
        let to = from + bound;
        while from < to {
            let end = (from + 1000).min(to);
            writeln!(text, "{at:.6} < . {from}:{end} ack 301 win 502").unwrap();
            from = end;
        }
        at += 0.020;
        writeln!(text, "{at:.6} > . 301:301 ack {to} win {field}").unwrap();
        at += 0.000_1;
    }
    text
}

#[test]
fn a_syn_whose_scale_was_changed_on_the_way() {
    let opening = AT_SERVER.replacen("wscale 7", "wscale 0", 1);
    let text = stop_and_go(&opening, 502, 502);
    let found = scale(&text).expect("found");
    assert_eq!(found.sign, ScaleSign::Rewritten);
    assert_eq!((found.taken, found.meant), (Bytes::new(502), Bytes::new(502 << 7)));
    let connection = analysed(&text);
    assert_eq!(connection.bulk().unwrap().limited_by().limit, Limit::ReceiveWindow);
    let findings = connection.findings();
    let windows = findings.iter().filter(|one| one.what.limit == Limit::ReceiveWindow);
    for one in windows {
        assert!(
            one.what.changes.is_empty() && !words::remedy(one.what.remedy).contains("tcp_rmem")
        );
    }
    let first = connection.account().unwrap().first().unwrap();
    assert_eq!(first.owner.name(), "path", "{first:?}");
}

#[test]
fn a_sender_that_stops_at_the_number_in_the_window_field() {
    let text = stop_and_go(AT_SERVER, 502, 502);
    let found = scale(&text).expect("found");
    assert_eq!((found.sign, found.taken), (ScaleSign::StopsAtField, Bytes::new(502)));
    assert_eq!(analysed(&text).bulk().unwrap().limited_by().limit, Limit::ReceiveWindow);
    assert_eq!(scale(&stop_and_go(AT_SERVER, 502, 500)), None, "another bound, just below");
    assert_eq!(scale(&stop_and_go(AT_SERVER, 502, 5000)), None, "it uses the scale");
}

#[test]
fn what_is_sent_beyond_the_number_in_the_window_field_never_arrives() {
    // Three segments at a time into a window of 2500 << 7; the third is beyond 2500.
    let mut text = String::from(AT_SERVER).replace("win 502", "win 2500");
    let mut at = 0.022;
    for round in 0..20 {
        let [from, second, third, to] = [0, 1, 2, 3].map(|of| 1 + round * 3000 + of * 1000);
        let mut line = |at: f64, text_of: String| writeln!(text, "{at:.6} {text_of}").unwrap();
        line(at, format!("< . {from}:{second} ack 301 win 502"));
        line(at, format!("< . {second}:{third} ack 301 win 502"));
        line(at, format!("< . {third}:{to} ack 301 win 502"));
        line(at + 0.02, format!("> . 301:301 ack {third} win 2500"));
        line(at + 0.25, format!("< . {third}:{to} ack 301 win 502"));
        line(at + 0.27, format!("> . 301:301 ack {to} win 2500"));
        at += 0.271;
    }
    let found = scale(&text).expect("found");
    assert_eq!((found.sign, found.taken), (ScaleSign::Dropped, Bytes::new(2500)));
    // Once something beyond it arrives at once, it is common loss.
    let passes = text.replacen("ack 2001 win 2500", "ack 3001 win 2500", 1);
    assert_eq!(scale(&passes), None);
    let direction = analysed(&text).connection.bulk();
    assert_eq!(direction, Direction::ServerToClient);
}
