//! A packet with its labels.

use super::{Cell, Column, Kind, Record, SCHEMA_VERSION};
use crate::PacketFacts;
use crate::capture::segment::{Flags, Segment};
use crate::connection::Label;
use fullpipe_model::units::Instant;

/// Rows of packets.
pub enum Packets {}

/// What a packet's row is made of.
#[derive(Debug, Clone, Copy)]
pub struct PacketRow<'r> {
    /// The capture's name.
    pub file: &'r str,
    /// Its number in the capture, from 1.
    pub number: u64,
    /// When it was captured.
    pub at: Instant,
    /// Its connection, its direction and its labels.
    pub facts: &'r PacketFacts,
    /// The segment.
    pub segment: &'r Segment,
    /// Its sequence number, counted from the direction's first.
    pub sequence: u32,
    /// What it acknowledges, counted from the other direction's first.
    pub ack: Option<u32>,
}

impl PacketRow<'_> {
    /// The letters that tcpdump uses for its flags.
    pub fn flags(&self) -> String {
        let letters = [
            (Flags::SYN, 'S'),
            (Flags::FIN, 'F'),
            (Flags::RST, 'R'),
            (Flags::PSH, 'P'),
            (Flags::URG, 'U'),
            (Flags::ECE, 'E'),
            (Flags::CWR, 'W'),
            (Flags::ACK, '.'),
        ];
        letters
            .into_iter()
            .filter(|(flag, _)| self.segment.flags.any(*flag))
            .map(|(_, letter)| letter)
            .collect()
    }

    /// Why Wireshark's labels are others, where they are.
    pub fn why(&self) -> Option<&'static str> {
        let difference =
            self.facts.difference.filter(|_| self.facts.labels != self.facts.wireshark);
        difference.map(|difference| difference.words())
    }
}

impl Record for Packets {
    type Row<'r> = PacketRow<'r>;
}

type C = Column<Packets>;

/// A packet of a TCP connection.
pub static PACKETS: &[C] = &[
    C::new("schema", Kind::Number, "", "version of this table", |_| Cell::number(SCHEMA_VERSION)),
    C::new("file", Kind::Text, "", "the capture's name, as given", |row| Cell::text(row.file)),
    C::new("number", Kind::Number, "", "its number in the capture, from 1", |row| {
        Cell::number(row.number)
    }),
    C::new("time_ns", Kind::Number, "", "when it was captured, since 1970", |row| {
        Cell::number(row.at.as_nanos())
    }),
    C::new("connection", Kind::Number, "", "number of its connection, from 0", |row| {
        Cell::number(row.facts.connection)
    }),
    C::new("direction", Kind::Text, "", "`client_to_server` or `server_to_client`", |row| {
        Cell::text(row.facts.direction.name())
    }),
    C::new("source", Kind::Text, "", "address and port of the sender", |row| {
        Cell::text(row.segment.source.to_string())
    }),
    C::new("destination", Kind::Text, "", "address and port of the receiver", |row| {
        Cell::text(row.segment.destination.to_string())
    }),
    C::new("flags", Kind::Text, "", "TCP's flags in the letters of tcpdump", |row| {
        Cell::text(row.flags())
    }),
    C::new(
        "sequence",
        Kind::Number,
        "",
        "sequence number, from the first of its direction",
        |row| Cell::number(row.sequence),
    ),
    C::new(
        "ack",
        Kind::Number,
        "without ACK",
        "acknowledged number, from the first of the other direction",
        |row| Cell::Number(row.ack.map(u64::from)),
    ),
    C::new("window", Kind::Number, "", "the header's window, not scaled", |row| {
        Cell::number(row.segment.window)
    }),
    C::new("payload_bytes", Kind::Number, "", "its payload", |row| {
        Cell::bytes(row.segment.payload)
    }),
    C::new("labels", Kind::Words, "", "its labels, by the definitions of --labels", |row| {
        Cell::Words(row.facts.labels.iter().map(Label::name).collect())
    }),
    C::new("labels_wireshark", Kind::Words, "", "the labels that Wireshark gives it", |row| {
        Cell::Words(row.facts.wireshark.iter().map(Label::name).collect())
    }),
    C::new(
        "why",
        Kind::Text,
        "both are the same",
        "why the labels differ from Wireshark's",
        |row| Cell::word(row.why()),
    ),
];
