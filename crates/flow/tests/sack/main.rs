//! Loss and reordering found by SACK, timestamps and IP identifications, against what the path
//! wrote down.
//!
//! Transmissions are compared one by one where a packet carries the answer (retransmissions at both
//! ends, reordering at the receiver), and by their number in a connection where only later ACKs do
//! (loss and reordering behind the sender).
#![allow(clippy::print_stdout, reason = "the precision is the test's result, and is shown")]

#[path = "../figures/mod.rs"]
mod figures;
#[path = "../path/mod.rs"]
mod path;
#[path = "../tally/mod.rs"]
mod tally;

use fullpipe_flow::capture::LinkType;
use fullpipe_flow::connection::{Connection, Difference, Direction, Label, Labels, Place, Warning};
use fullpipe_flow::diagnosis::DiagnosedConnection;
use fullpipe_flow::limit::{Cause, Limit};
use fullpipe_flow::{Analyzer, Config, PacketFacts};
use fullpipe_model::units::Instant;
use path::{Outcome, Path, Seen};
use std::collections::BTreeMap;
use tally::Score;

const MILLI: u64 = 1_000_000;
const CLIENT: ([u8; 4], u16) = ([10, 0, 0, 1], 40_000);
const SERVER: ([u8; 4], u16) = ([192, 0, 2, 1], 443);

fn analyse(seen: &[Seen], labels: Labels) -> (Vec<PacketFacts>, Connection) {
    let (facts, diagnosed) = diagnose(seen, labels);
    (facts, diagnosed.connection)
}

fn diagnose(seen: &[Seen], labels: Labels) -> (Vec<PacketFacts>, DiagnosedConnection) {
    let mut analyzer = Analyzer::new(Config { labels, ..Config::default() });
    let mut push = |seen: &Seen| {
        let packet = path::headers(seen, CLIENT, SERVER);
        let wire = packet.len() + seen.length as usize;
        analyzer.push(Instant::from_nanos(seen.at), LinkType::RAW, &packet, wire).unwrap()
    };
    let facts = seen.iter().map(&mut push).collect();
    let mut connections = analyzer.finish().connections;
    assert_eq!(connections.len(), 1);
    (facts, connections.remove(0))
}

/// Originals that something sent later arrived before (RFC 4737).
fn overtaken(outcome: &Outcome) -> Vec<bool> {
    let originals = outcome.transmissions.iter().enumerate().filter(|(_, t)| !t.again && !t.lost);
    let mut by_arrival: Vec<(u64, usize)> =
        originals.map(|(index, t)| (t.arrivals[0], index)).collect();
    by_arrival.sort_unstable();
    let mut late = vec![false; outcome.transmissions.len()];
    let mut highest = 0;
    for (_, index) in by_arrival {
        late[index] = index < highest;
        highest = highest.max(index);
    }
    late
}

fn grid() -> Vec<Path> {
    let mut paths = Vec::new();
    for (number, loss) in [0.0, 0.001, 0.01, 0.03].into_iter().enumerate() {
        for reorder in [0.0, 0.005, 0.02] {
            for duplicate in [0.0, 0.002] {
                for rtt in [5, 30, 100] {
                    let seed = paths.len() as u64 + 1;
                    let displacement = rtt * MILLI / 5;
                    let rtt = rtt * MILLI;
                    let ack_loss = if number % 2 == 0 { 0.0 } else { 0.005 };
                    let path = Path {
                        rtt,
                        loss,
                        ack_loss,
                        reorder,
                        duplicate,
                        displacement,
                        seed,
                        ..Path::default()
                    };
                    paths.push(path);
                }
            }
        }
    }
    paths
}

#[test]
fn losses_and_reorderings_are_those_of_the_path() {
    let mut scores = BTreeMap::<&str, Score>::new();
    let mut wireshark = BTreeMap::<&str, Score>::new();
    for path in grid() {
        let outcome = path::run(&path);
        let late = overtaken(&outcome);
        let (sender, connection) = analyse(&outcome.at_sender, Labels::Sack);
        for (facts, seen) in sender.iter().zip(&outcome.at_sender) {
            let Some(index) = seen.transmission else { continue };
            let again = outcome.transmissions[index].again;
            let of = |labels: fullpipe_flow::connection::LabelSet| {
                labels.contains(Label::Retransmission)
            };
            scores.entry("sender: retransmission").or_default().note(of(facts.labels), again);
            wireshark.entry("sender: retransmission").or_default().note(of(facts.wireshark), again);
        }
        let loss = connection.server_to_client.loss;
        let lost = outcome.transmissions.iter().filter(|t| t.lost).count() as u64;
        scores.entry("sender: loss").or_default().count(loss.lost_segments, lost);
        let reordered = late.iter().filter(|late| **late).count() as u64;
        scores.entry("sender: reordering").or_default().count(loss.reordered_segments, reordered);

        let (receiver, _) = analyse(&outcome.at_receiver, Labels::Sack);
        let mut seen_before = vec![false; outcome.transmissions.len()];
        for (facts, seen) in receiver.iter().zip(&outcome.at_receiver) {
            let Some(index) = seen.transmission else { continue };
            let again = outcome.transmissions[index].again;
            let repeated = std::mem::replace(&mut seen_before[index], true);
            for (scores, labels) in [(&mut scores, facts.labels), (&mut wireshark, facts.wireshark)]
            {
                let mut note = |what, label, truth| {
                    scores.entry(what).or_default().note(labels.contains(label), truth);
                };
                note("receiver: loss", Label::Retransmission, again && !repeated);
                note("receiver: reordering", Label::OutOfOrder, late[index] && !repeated);
                note("receiver: duplicate", Label::DuplicatePacket, repeated);
            }
        }
    }
    let mut table = String::from("| event | true | precision | recall |\n|---|--:|--:|--:|\n");
    for (what, score) in &scores {
        let plain = wireshark.get(what);
        let shown = |of: fn(&Score) -> f64| {
            let percent = |score: &Score| format!("{:.2} %", of(score) * 100.0);
            let plain = plain.map(|score| format!(" ({})", percent(score))).unwrap_or_default();
            format!("{}{plain}", percent(score))
        };
        table += &format!(
            "| {what} | {} | {} | {} |\n",
            score.truth,
            shown(Score::precision),
            shown(Score::recall)
        );
    }
    println!("{table}");
    figures::hold("path", &table);
    for (what, score) in &scores {
        let floor = if what.starts_with("sender") { 0.99 } else { 0.97 };
        assert!(score.precision() >= floor && score.recall() >= floor, "{what}: {score:?}");
    }
}

#[test]
fn every_difference_from_wireshark_has_a_reason() {
    let mut reasons = BTreeMap::<Difference, u64>::new();
    for path in grid() {
        let outcome = path::run(&path);
        for seen in [&outcome.at_sender, &outcome.at_receiver] {
            let (facts, _) = analyse(seen, Labels::Sack);
            let (plain, _) = analyse(seen, Labels::Wireshark);
            for (facts, plain) in facts.iter().zip(&plain) {
                assert_eq!(facts.wireshark, plain.labels);
                assert_eq!(
                    facts.labels != facts.wireshark,
                    facts.difference.is_some(),
                    "{facts:?}"
                );
                facts.difference.iter().for_each(|why| *reasons.entry(*why).or_default() += 1);
            }
        }
    }
    println!("{reasons:?}");
    assert!(reasons.len() >= 5, "{reasons:?}");
}

#[test]
fn the_capture_point_is_the_end_where_it_was_taken() {
    for path in grid() {
        let outcome = path::run(&path);
        // The server sends.
        for (seen, place) in
            [(&outcome.at_sender, Place::Server), (&outcome.at_receiver, Place::Client)]
        {
            let (_, connection) = analyse(seen, Labels::Sack);
            assert_eq!(connection.vantage.place, place, "{path:?}");
            assert!(connection.vantage.confidence > 0.9);
            assert_eq!(connection.warnings, []);
            // Without the handshake the data must do.
            let (_, connection) = analyse(&seen[3..], Labels::Sack);
            assert!(
                connection.vantage.place == place || connection.vantage.place == Place::Unknown,
                "{path:?}"
            );
            assert_eq!(connection.warnings, [Warning::HandshakeMissing]);
        }
    }
}

/// The handshake says which number is the first: what comes above it first leaves a gap.
#[test]
fn the_first_segment_of_all_can_be_overtaken_too() {
    let mut seen = path::run(&Path { bytes: 20_000, ..Path::default() }).at_receiver;
    let data: Vec<usize> =
        (0..seen.len()).filter(|at| seen[*at].length > 0 && !seen[*at].from_client).collect();
    let (first, second) = (seen[data[0]].at, seen[data[1]].at);
    (seen[data[0]].at, seen[data[1]].at) = (second, first);
    seen.swap(data[0], data[1]);
    let (facts, connection) = analyse(&seen, Labels::Sack);
    assert!(
        facts[data[1]].labels.contains(Label::OutOfOrder)
            && !facts[data[1]].labels.contains(Label::Retransmission)
    );
    let server = &connection.server_to_client;
    assert_eq!((server.loss.reordered_segments, server.loss.lost_segments), (1, 0));
    assert_eq!(server.unique_payload, server.payload);
}

/// What the sender's timer repairs leaves nothing in flight at the receiver's edge, and looks there
/// as if there had been nothing to send.
#[test]
fn loss_that_only_the_timer_repairs_is_loss_at_both_edges() {
    for seed in 1..6 {
        let path = Path { bytes: 200_000, loss: 0.35, rtt: 30 * MILLI, seed, ..Path::default() };
        let outcome = path::run(&path);
        for seen in [&outcome.at_sender, &outcome.at_receiver] {
            let (_, diagnosed) = diagnose(seen, Labels::Sack);
            let verdict = &diagnosed.diagnosis(Direction::ServerToClient).unwrap().verdict;
            let loss = verdict.share(Limit::CongestionWindow(Cause::Loss));
            assert!(loss >= 0.9, "{:?}", verdict.shares);
        }
    }
}

#[test]
fn what_the_capture_lacks_is_said() {
    let path = Path { bytes: 300_000, ..Path::default() };
    let seen = path::run(&path).at_receiver;
    let warnings = |seen: &[Seen]| analyse(seen, Labels::Sack).1.warnings;
    assert_eq!(warnings(&seen), []);
    // The sniffer dropped one packet of data in ten.
    let data = |seen: &Seen| seen.transmission.is_some_and(|index| index % 10 == 5);
    let dropped: Vec<Seen> = seen.iter().filter(|seen| !data(seen)).cloned().collect();
    assert_eq!(warnings(&dropped), [Warning::CaptureDropped]);
    let one_sided: Vec<Seen> = seen.iter().filter(|seen| seen.from_client).cloned().collect();
    assert_eq!(warnings(&one_sided), [Warning::OneSided]);
    let mut offload = seen.clone();
    offload.iter_mut().filter(|seen| seen.length > 0).for_each(|seen| seen.length *= 20);
    assert!(warnings(&offload).contains(&Warning::OffloadSuperPackets));
    let mut refused = seen;
    // The answer's window scale becomes no operations.
    let at = refused[1].options.len() - 4;
    refused[1].options[at..].copy_from_slice(&[1; 4]);
    assert_eq!(warnings(&refused), [Warning::WindowScaleRefused]);
}

/// Linux acknowledges every second segment, and what it acknowledges after a gap closed is a
/// stretch.
#[test]
fn how_the_ends_send_and_acknowledge() {
    let path = Path { bytes: 1_000_000, ..Path::default() };
    let (_, connection) = analyse(&path::run(&path).at_receiver, Labels::Sack);
    let (client, server) = (connection.client_to_server.manner, connection.server_to_client.manner);
    assert_eq!((client.mss, client.sack_permitted, client.timestamps), (Some(1460), true, true));
    assert_eq!(client.stretch_acks, 0, "two segments at a time is no stretch");
    assert_eq!(client.acked_max, 2 * path::MSS);
    let segments = 1_000_000_u32.div_ceil(path::MSS);
    assert!(client.advancing_acks >= segments / 2 && client.advancing_acks <= segments);
    assert!(server.burst_max_packets >= 10, "the first flight is a burst");
    assert_eq!(server.resets, 0);
}
