//! What a connection waited for while other connections of the same two programs moved data.

use super::{AT_CLIENT, parts, text};
use fullpipe_flow::capture::LinkType;
use fullpipe_flow::diagnosis::{DiagnosedConnection, note_others};
use fullpipe_flow::{Analyzer, Config};
use fullpipe_model::units::Duration;
use std::fmt::Write;

/// Both connections, the first one's packets in `control`, the other's in `data`.
fn both(control: &str, data: &str) -> Vec<DiagnosedConnection> {
    let mut packets = Vec::new();
    for (port, trace) in [(0, control), (1, data)] {
        packets.extend(text::parse(trace).into_iter().map(|line| {
            let mut packet = line.packet();
            // The last byte of the client's port, whoever sends.
            let at = if packet[12..16] < packet[16..20] { 21 } else { 23 };
            packet[at] ^= port;
            (line.at, packet)
        }));
    }
    packets.sort_by_key(|(at, _)| *at);
    let mut analyzer = Analyzer::new(Config::default());
    for (at, packet) in &packets {
        analyzer.push(*at, LinkType::RAW, packet, packet.len());
    }
    let mut connections = analyzer.finish().connections;
    note_others(&mut connections);
    connections
}

/// Three questions, each answered at once, `silence` milliseconds apart.
fn asks(silence: u32) -> String {
    let mut trace = AT_CLIENT.to_owned();
    let (mut ms, mut own, mut others) = (100, 1, 1);
    for _ in 0..3 {
        let mut line = |ms: u32, text: String| {
            writeln!(trace, "{}.{:03} {text}", ms / 1000, ms % 1000).unwrap();
        };
        line(ms, format!("> P. {own}:{} ack {others} win 512", own + 100));
        own += 100;
        line(ms + 40, format!("< P. {others}:{} ack {own} win 512", others + 200));
        others += 200;
        line(ms + 40, format!("> . {own}:{own} ack {others} win 512"));
        ms += 40 + silence;
    }
    trace
}

/// A transfer to the server that fills its window of 14480 bytes for `time` milliseconds.
fn sends(time: u32) -> String {
    let mut trace = AT_CLIENT.to_owned();
    for turn in 0..time / 40 {
        let ms = 50 + turn * 40;
        let from = 1 + turn * 14_480;
        for segment in 0..10 {
            let (left, right) = (from + segment * 1448, from + (segment + 1) * 1448);
            let at = format!("{}.{:03}{segment:03}", ms / 1000, ms % 1000);
            writeln!(trace, "{at} > . {left}:{right} ack 1 win 512").unwrap();
        }
        let (ms, right) = (ms + 40, from + 14_480);
        writeln!(trace, "{}.{:03} < . 1:1 ack {right} win 113", ms / 1000, ms % 1000).unwrap();
    }
    trace
}

#[test]
fn a_connection_that_is_silent_while_another_moves_data_keeps_nobody_waiting() {
    let found = both(&asks(2000), &sends(4200));
    let control = found[0].account().unwrap();
    let expected = ["nobody idle 4060 0", "path connect 40 0", "path turns 120 80"];
    assert_eq!(parts(&control), expected);
    assert!(found[1].rank() < found[0].rank(), "the one that moves data is told first");
}

#[test]
fn near_misses_keep_somebody_waiting() {
    let thinks = |found: &[DiagnosedConnection]| {
        let told = parts(&found[0].account().unwrap());
        told.iter().any(|one| one.starts_with("client_application client_thinks 4"))
    };
    assert!(thinks(&both(&asks(2000), &sends(1500))), "the other one ends early");
    assert!(thinks(&both(&asks(2000), &asks(2000))), "the other one moves no more");
    let mut pauses = sends(400);
    pauses += "4.100 > . 144801:146249 ack 1 win 512\n4.140 < . 1:1 ack 146249 win 113\n";
    assert!(thinks(&both(&asks(2000), &pauses)), "the other one pauses, too");
    let alone = both(&asks(2000), AT_CLIENT);
    assert!(thinks(&alone), "the other one moves nothing");
    // The first one stops in the middle, and its client waits until the capture ends.
    let stops = format!(
        "{AT_CLIENT}
        0.100 < .  1:1001    ack 1 win 512
        0.100 > .  1:1       ack 1001 win 512
        0.120 < .  1001:2001 ack 1 win 512
        0.120 > .  1:1       ack 2001 win 512"
    );
    let ends = format!(
        "{AT_CLIENT}
        9.000 > P. 1:101     ack 1 win 512
        9.040 < .  1:1       ack 101 win 512"
    );
    let waits = both(&stops, &ends);
    let lost = waits[0].account().unwrap().lost;
    assert!(lost > Duration::from_secs(8), "nothing moves meanwhile: {lost}");
}

#[test]
fn a_question_that_is_not_answered_is_waited_for_whatever_moves_beside_it() {
    let asks = format!(
        "{AT_CLIENT}
        0.100 > P. 1:101     ack 1 win 512
        0.140 < .  1:1       ack 101 win 512
        4.140 < P. 1:501     ack 101 win 512
        4.140 > .  101:101   ack 501 win 512"
    );
    let found = both(&asks, &sends(4200));
    let told = parts(&found[0].account().unwrap());
    assert!(told.contains(&"server_application server_thinks 4000 4000".into()), "{told:?}");
}
