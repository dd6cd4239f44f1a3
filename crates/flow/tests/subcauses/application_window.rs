//! A protocol's own window, and what must not be taken for it.

use super::{HANDSHAKE, sub_causes, trace};
use fullpipe_flow::capture::LinkType;
use fullpipe_flow::connection::Direction;
use fullpipe_flow::diagnosis::{ApplicationWindow, PacketCause};
use fullpipe_flow::{Analyzer, Config};
use std::fmt::Write;

const SEGMENT: u32 = 1000;

/// An upload over 50 ms in rounds: what lets the sender go on, and when.
#[derive(Clone, Copy)]
struct Rounds {
    /// Segments in a round, and by how many more each round has.
    segments: u32,
    more: u32,
    /// The peer's application answers with this many bytes; without an answer the ACK lets it go
    /// on.
    answer: u32,
    /// The sender goes on so much later than what lets it.
    later: f64,
    /// Pacing spreads a round over 10 ms, so that ACKs arrive between its segments.
    is_paced: bool,
    /// The last segment of a round is this much smaller.
    cut: u32,
    /// The receive window in its header, shifted by 7.
    window: u16,
}

const FIXED: Rounds = Rounds {
    segments: 60,
    more: 0,
    answer: 20,
    later: 0.0002,
    is_paced: false,
    cut: 0,
    window: 2000,
};

fn text(rounds: Rounds) -> String {
    let Rounds { segments, more, answer, later, is_paced, cut, window } = rounds;
    let spacing = if is_paced { 0.01 / f64::from(segments) } else { 0.00002 };
    let mut text = HANDSHAKE.to_owned();
    let (mut at, mut next, mut reply) = (0.1, 1, 1);
    for round in 0..40 {
        let first = next;
        let start = at;
        let mut lines = Vec::new();
        let all = segments + round * more;
        for number in 1..=all {
            let end = next + SEGMENT - if number == all { cut } else { 0 };
            lines.push((at, format!("> . {next}:{end} ack {reply} win 2000")));
            // The ACKs of the round before, two segments each.
            if is_paced && number % 2 == 0 && number < all {
                lines.push((at + 0.00003, format!("< . {reply}:{reply} ack {first} win {window}")));
            }
            (at, next) = (at + spacing, end);
        }
        for (when, line) in lines {
            writeln!(text, "{when:.5} {line}").unwrap();
        }
        // Bare ACKs for all but the last segments come first, and release nothing.
        let mut back = start + 0.05;
        for acked in (first + 2 * SEGMENT..next).step_by(2 * SEGMENT as usize) {
            writeln!(text, "{back:.5} < . {reply}:{reply} ack {acked} win {window}").unwrap();
            back += 0.00004;
        }
        let end = reply + answer;
        writeln!(text, "{back:.5} < P. {reply}:{end} ack {next} win {window}").unwrap();
        (at, reply) = (back + later, end);
    }
    text
}

fn found(rounds: Rounds) -> Option<ApplicationWindow> {
    sub_causes(&text(rounds)).into_iter().find_map(window)
}

fn window(cause: PacketCause) -> Option<ApplicationWindow> {
    match cause {
        PacketCause::ApplicationWindow(found) => Some(found),
        _ => None,
    }
}

/// The same of a client whose first data begins so.
fn found_of(rounds: Rounds, begins: &[u8]) -> Option<ApplicationWindow> {
    let mut analyzer = Analyzer::new(Config::default());
    let mut begins = Some(begins);
    for line in trace::parse(&text(rounds)) {
        let mut packet = line.packet();
        let payload = packet.len().checked_sub(SEGMENT as usize);
        if let Some((begins, payload)) = payload.and_then(|at| Some((begins.take()?, at))) {
            packet[payload..payload + begins.len()].copy_from_slice(begins);
        }
        analyzer.push(line.at, LinkType::RAW, &packet, packet.len()).unwrap();
    }
    let connection = analyzer.finish().connections.remove(0);
    connection.sub_causes(Direction::ClientToServer).find_map(window)
}

#[test]
fn a_fixed_amount_after_each_answer_is_named_with_its_size() {
    let window = found(FIXED).unwrap();
    assert_eq!(window.bound.get(), 60_000);
    assert_eq!(window.window.get(), 256_000);
    assert!((38..=39).contains(&window.count), "{window:?}");
    assert!((0.9..=1.0).contains(&window.part), "{window:?}");
}

#[test]
fn pacing_does_not_hide_a_window_that_ends_with_a_segment_that_is_not_full() {
    let window = found(Rounds { is_paced: true, cut: 300, ..FIXED }).unwrap();
    assert_eq!(window.bound.get(), 59_700);
    // With full segments only, the kernel may have released them as ACKs came.
    assert_eq!(found(Rounds { is_paced: true, ..FIXED }), None);
}

#[test]
fn near_miss_what_an_ack_releases_waits_for_no_answer() {
    // The last packet of a round is a bare ACK: a send buffer looks like that.
    assert_eq!(found(Rounds { answer: 0, ..FIXED }), None);
}

#[test]
fn near_miss_an_application_that_thinks_is_no_window() {
    assert_eq!(found(Rounds { later: 0.02, ..FIXED }), None);
}

#[test]
fn near_miss_an_amount_that_varies_is_no_bound() {
    assert_eq!(found(Rounds { segments: 20, more: 3, ..FIXED }), None);
}

#[test]
fn near_miss_a_receive_window_that_is_nearly_full_may_be_the_bound() {
    assert_eq!(found(Rounds { window: 480, ..FIXED }), None);
}

#[test]
fn near_miss_a_message_and_its_answer_need_no_window() {
    assert_eq!(found(Rounds { segments: 5, ..FIXED }), None);
}

#[test]
fn near_miss_one_request_of_http1_after_another_is_no_window() {
    // Each round is another request, and its answer: that has no window to enlarge.
    assert_eq!(found_of(FIXED, b"PUT /a HTTP/1.1\r\nHost: example.net\r\n\r\n"), None);
    let other = found_of(FIXED, b"\x01\x02 no protocol that is known \x00");
    assert_eq!(other.map(|one| one.bound.get()), Some(60_000));
}
