//! What the lab's captures say, against what is known of the run: its limit from the scenario's
//! name, and what became of each packet from [`Fates`].
#![allow(dead_code, reason = "each user takes a part of it")]

#[path = "../tally/mod.rs"]
mod tally;

use super::fates::{Arrival, Fates};
use fullpipe_flow::capture::segment::{Flags, Parsed, Segment};
use fullpipe_flow::capture::{self, Opened, Opener, Unpack};
use fullpipe_flow::connection::{Connection, Direction, Label, Labels};
use fullpipe_flow::limit::{Cause, Limit, Verdict};
use fullpipe_flow::{Analyzer, Config, PacketFacts, length_behind_link};
use std::path::{Path, PathBuf};
pub use tally::Score;

/// A segment at one edge.
#[derive(Debug, Clone, Copy)]
pub struct Data {
    /// Its place in the capture.
    pub number: usize,
    pub segment: Segment,
    pub facts: PacketFacts,
}

/// One edge's capture, analysed.
pub struct Edge {
    /// The server's data.
    pub data: Vec<Data>,
    /// What answers it.
    pub answers: Vec<Data>,
    pub connection: Connection,
    /// What held the server's data.
    pub verdict: Option<Verdict>,
}

/// Analyses a capture (packed or not) as `fullpipe analyze` does, the capture's place to be
/// guessed.
pub fn edge(file: &Path) -> Edge {
    let mut analyzer = Analyzer::new(Config { labels: Labels::Sack, ..Config::default() });
    let mut opener = Opener::default();
    let (mut data, mut answers) = (Vec::new(), Vec::new());
    let mut number = 0;
    let opened =
        std::fs::File::open(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let end = capture::read(Unpack::new(opened).unwrap(), |packet| {
        number += 1;
        let Some(facts) = analyzer.push_packet(&packet) else { return };
        let Opened::Ip(ip) = opener.open(packet.link_type, packet.data) else { return };
        let length = length_behind_link(packet.data, ip, packet.original_length);
        let Parsed::Tcp(segment) = Segment::from_ip(ip, length) else { return };
        if segment.source.port() > segment.destination.port() && segment.flags.any(Flags::ACK) {
            answers.push(Data { number, segment, facts });
        } else if segment.source.port() < segment.destination.port() && segment.payload_len() > 0 {
            data.push(Data { number, segment, facts });
        }
    });
    end.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let connections = analyzer.finish().connections;
    let diagnosed =
        connections.into_iter().max_by_key(|one| one.connection.server_to_client.payload).unwrap();
    data.retain(|data| data.facts.connection == diagnosed.connection.id);
    answers.retain(|answer| answer.facts.connection == diagnosed.connection.id);
    let verdict = diagnosed.diagnosis(Direction::ServerToClient).map(|found| found.verdict.clone());
    Edge { data, answers, connection: diagnosed.connection, verdict }
}

/// The capture of one edge in a run's folder, packed or not.
pub fn capture_in(folder: &Path, edge: &str) -> PathBuf {
    let plain = folder.join(format!("{edge}.pcap"));
    if plain.exists() { plain } else { folder.join(format!("{edge}.pcap.gz")) }
}

/// The limit that a scenario's name promises: `limits/CAUSE/..`.
pub fn expected(name: &str) -> Option<Limit> {
    let cause = name.split('/').nth(1)?;
    // Random loss is no congestion to BBR: it fills the link.
    let is_bbr = name.ends_with("congestion_control=bbr");
    Some(match cause {
        "receive_window" => Limit::ReceiveWindow,
        "receiver_application" => Limit::ReceiverApplication,
        "send_buffer" => Limit::SendBuffer,
        "sender_application" => Limit::SenderApplication,
        "link" => Limit::Link,
        "congestion_window_loss" if is_bbr => Limit::Link,
        "congestion_window_loss" => Limit::CongestionWindow(Cause::Loss),
        "congestion_window_slow_start" => Limit::CongestionWindow(Cause::SlowStart),
        _ => return None,
    })
}

/// The share of the steady time that a capture gives to `limit`, and what it gives most to.
pub fn steady_share(edge: &Edge, limit: Limit) -> (f64, Limit) {
    let verdict = edge.verdict.as_ref();
    let steady = verdict.map(|verdict| verdict.steady.clone()).unwrap_or_default();
    let share = steady
        .iter()
        .find(|candidate| candidate.limit == limit)
        .map_or(0.0, |candidate| candidate.share);
    (share, steady.first().map_or(Limit::Unknown, |candidate| candidate.limit))
}

/// What each kind of event was scored at.
#[derive(Debug, Default, Clone, Copy)]
pub struct Scores {
    pub sender_retransmission: Score,
    pub sender_loss: Score,
    pub sender_reordering: Score,
    /// Of what is true, that which anyone could know there: see [`Fates::told`].
    pub sender_reordering_told: Score,
    pub receiver_retransmission: Score,
    pub receiver_reordering: Score,
    pub receiver_duplicate: Score,
}

impl Scores {
    /// With what it is called, and the least that is promised of it.
    pub fn named(&self) -> [(&'static str, Score, f64); 7] {
        [
            ("sender: sent again", self.sender_retransmission, 0.99),
            ("sender: lost", self.sender_loss, 0.99),
            ("sender: reordered", self.sender_reordering, 0.99),
            ("sender: reordered, of those that ACKs tell of", self.sender_reordering_told, 0.99),
            ("receiver: sent again", self.receiver_retransmission, 0.97),
            ("receiver: reordered", self.receiver_reordering, 0.97),
            ("receiver: duplicate", self.receiver_duplicate, 0.97),
        ]
    }

    /// Adds a run, of which the captures at both edges are complete.
    pub fn add(&mut self, sender: &Edge, receiver: &Edge, fates: &Fates) {
        for (data, again) in sender.data.iter().zip(&fates.again) {
            self.sender_retransmission
                .note(data.facts.labels.contains(Label::Retransmission), *again);
        }
        let late = fates.overtaken();
        let many = |of: &[bool]| of.iter().filter(|is| **is).count() as u64;
        let loss = sender.connection.server_to_client.loss;
        self.sender_loss.count(loss.lost_segments, many(&fates.lost));
        self.sender_reordering.count(loss.reordered_segments, many(&late));
        self.sender_reordering_told.count(loss.reordered_segments, many(&fates.told(sender)));
        for ((data, arrival), late) in receiver.data.iter().zip(&fates.arrivals).zip(&late) {
            let Some(Arrival { which, copy }) = *arrival else { continue };
            let has = |label| data.facts.labels.contains(label);
            self.receiver_retransmission
                .note(has(Label::Retransmission), fates.again[which] && !copy);
            self.receiver_reordering.note(has(Label::OutOfOrder), *late);
            self.receiver_duplicate.note(has(Label::DuplicatePacket), copy);
        }
    }
}
