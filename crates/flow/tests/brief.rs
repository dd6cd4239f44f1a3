//! Short transfers from packets made by hand, as captures at either end have them: what holds each,
//! and the neighbours that look like it.

#[path = "trace/mod.rs"]
mod text;

use fullpipe_flow::capture::LinkType;
use fullpipe_flow::connection::Direction;
use fullpipe_flow::{Analyzer, Config};

/// Microseconds between the two ends, there and back.
const RTT: u64 = 40_000;

/// A segment of an answer: when it left the server and reached the client, and its length.
type Sent = (u64, u64, u64);

/// The answer's headline at the server and at the client. Each segment is acknowledged as it comes.
fn headlines(sent: &[Sent]) -> [String; 2] {
    headlines_closed(sent, None)
}

/// The same of a connection that the client closes so long after its request.
fn headlines_closed(sent: &[Sent], closed: Option<u64>) -> [String; 2] {
    let half = RTT / 2;
    [true, false].map(|is_at_server| {
        let mut lines: Vec<(u64, String)> = Vec::new();
        let mut note = |at: u64, line: String| lines.push((at, line));
        // The client's clock begins with its SYN, the server's with the SYN's arrival.
        note(0, "> S 0:0 win 65535 <mss 1460,wscale 7>".into());
        let answered = if is_at_server { 1 } else { RTT };
        note(answered, "< S. 0:0 ack 1 win 65535 <mss 1460,wscale 7>".into());
        let begin = RTT + 1;
        note(begin, "> . 1:1 ack 1 win 512".into());
        note(begin, "> P. 1:101 ack 1 win 512".into());
        let mut seq = 1;
        for &(left, came, length) in sent {
            let end = seq + length;
            let at = begin + if is_at_server { left } else { half + came };
            note(at, format!("< . {seq}:{end} ack 101 win 512"));
            // The client acknowledges at once; the request, or the ACK, was under way for half.
            note(begin + half + came, format!("> . 101:101 ack {end} win 512"));
            seq = end;
        }
        if let Some(after) = closed {
            let heard = begin + after + if is_at_server { half } else { RTT };
            note(begin + after, format!("> F. 101:101 ack {seq} win 512"));
            note(heard, format!("< F. {seq}:{seq} ack 102 win 512"));
            let last = if is_at_server { heard + RTT } else { heard };
            note(last, format!("> . 102:102 ack {} win 512", seq + 1));
        }
        lines.sort_by_key(|line| line.0);
        let line = |(at, line): &(u64, String)| {
            format!("{}.{:06} {line}\n", at / 1_000_000, at % 1_000_000)
        };
        let mut analyzer = Analyzer::new(Config::default());
        for line in text::parse(&lines.iter().map(line).collect::<String>()) {
            let packet = line.packet();
            analyzer.push(line.at, LinkType::RAW, &packet, packet.len());
        }
        let connection = analyzer.finish().connections.remove(0);
        connection.diagnosis(Direction::ServerToClient).unwrap().headline().with_share()
    })
}

/// Segments that leave at once and reach the client `spacing` after each other.
fn flight(at: u64, count: u64, spacing: u64) -> Vec<Sent> {
    (0..count).map(|one| (at, at + RTT / 2 + one * spacing, 1460)).collect()
}

#[test]
fn flights_that_wait_for_each_other_are_slow_start() {
    let page = [flight(0, 3, 10), flight(RTT, 6, 10), flight(2 * RTT, 7, 10)].concat();
    assert_eq!(headlines(&page), ["congestion window (slow start) 100 %"; 2]);
}

#[test]
fn bytes_that_take_longer_than_the_round_trip_are_the_links() {
    assert_eq!(headlines(&flight(0, 14, 6_000)), ["link 100 %"; 2]);
}

#[test]
fn what_left_at_once_is_held_by_nothing() {
    assert_eq!(headlines(&flight(0, 8, 10)), ["nothing"; 2]);
    assert_eq!(headlines(&flight(0, 1, 0)), ["nothing"; 2]);
}

/// The last interval ends with the last ACK, or goes on without data.
fn without_share(headline: String) -> String {
    headline.trim_end_matches(|one: char| one.is_ascii_digit() || " %".contains(one)).into()
}

/// A client that keeps the connection open for a minute asks for nothing meanwhile.
#[test]
fn what_comes_before_the_end_of_the_connection_is_no_pause() {
    let page = [flight(0, 3, 10), flight(RTT, 6, 10), flight(2 * RTT, 7, 10)].concat();
    for sent in [page, flight(0, 14, 6_000), flight(0, 40, 6_000), flight(0, 300, 3_000)] {
        let [closed, open] = [headlines_closed(&sent, Some(60_000_000)), headlines(&sent)];
        assert_eq!(closed.map(without_share), open.map(without_share));
    }
}

/// An end that has nothing to say for minutes is not free of limits: its application is the limit.
#[test]
fn a_long_silence_between_two_answers_is_the_applications() {
    let answers = [flight(0, 1, 0), flight(90_000_000, 1, 0), flight(180_000_000, 1, 0)].concat();
    for headline in headlines(&answers) {
        assert!(headline.starts_with("sender application"), "{headline}");
    }
}

/// Messages that an application writes now and then are no full link, however evenly they come, nor
/// are segments that the sender itself spaced. Beyond the sender, nobody sees who spaced those.
#[test]
fn what_an_application_spaces_is_the_applications() {
    let every = |length, count: u64| -> Vec<Sent> {
        (0..count).map(|one| (one * 5_000, one * 5_000 + RTT / 2, length)).collect()
    };
    for headline in headlines(&every(36, 40)) {
        assert!(headline.starts_with("sender application"), "{headline}");
    }
    let [at_server, _] = headlines(&every(1460, 40));
    assert!(at_server.starts_with("sender application"), "{at_server}");
}
