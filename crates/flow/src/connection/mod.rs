//! The facts of one connection, gathered packet by packet in bounded memory. Each mechanism has a
//! file.
//!
//! [`crate::Analyzer`] drives this module. It passes each segment of the connection to
//! `Tracker::push` in the order of the capture, and `Tracker::finish` turns the result into a
//! [`Connection`].

mod ack_path;
mod advertised_window;
mod answers;
mod closing;
mod completeness;
mod cuts;
mod drops;
pub mod filter;
mod grants;
mod half;
mod handshake;
mod histogram;
mod labels;
mod ledger;
mod manner;
mod outstanding;
pub mod pair;
mod passage;
mod payload;
mod ranges;
mod recent;
mod relabel;
mod repeats;
mod scale_guess;
mod scoreboard;
mod segment_size;
mod series;
mod spacing;
mod stalls;
mod tracker;
mod trains;
mod unwrapped;
mod vantage;
mod warnings;

pub use ack_path::AckPathFacts;
pub use answers::AnswerFacts;
pub use grants::{GrantFacts, GrantSpread};
pub use labels::{Difference, Label, LabelCounts, LabelSet, Labels};
pub use ledger::Counted;
pub(crate) use ledger::Spent;
pub use manner::MannerFacts;
pub use passage::PassageFacts;
pub use scoreboard::LossFacts;
pub(crate) use scoreboard::is_taken_for_loss;
pub use stalls::StallFacts;
pub(crate) use tracker::{CapturedSegment, Finished, Opening, Seen, Tracker};
pub use vantage::{Place, Vantage, Warning};

pub use crate::capture::greeting::{Greeting, Token};
use crate::capture::segment::{ApplicationProtocol, PayloadStart};
use crate::frames::FlowControl;
use crate::windows::OwnWindows;
use fullpipe_model::units::{Bytes, Duration, Instant, Rate, Window, column};
use histogram::Histogram;
use std::net::SocketAddr;

/// The direction in which a segment went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the end that opened the connection.
    ClientToServer,
    /// From the end that accepted the connection.
    ServerToClient,
}

impl Direction {
    /// The stable name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Direction::ClientToServer => "client_to_server",
            Direction::ServerToClient => "server_to_client",
        }
    }

    /// The direction of the answers.
    pub const fn reversed(self) -> Self {
        match self {
            Direction::ClientToServer => Direction::ServerToClient,
            Direction::ServerToClient => Direction::ClientToServer,
        }
    }
}

/// What a capture shows of one connection.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Connection {
    /// Its number in the capture. Connections are numbered from 0 by their first packet.
    pub id: u64,
    /// The number of its first packet in the capture, from 1.
    pub first_packet: u64,
    /// The end that opened it. Where the handshake was not captured, the sender of the first
    /// packet.
    pub client: SocketAddr,
    /// The other end.
    pub server: SocketAddr,
    /// How it ended.
    pub close: Close,
    /// Which parts of it were captured, as the bits of Wireshark's `tcp.completeness`: 1 SYN, 2
    /// SYN-ACK, 4 ACK, 8 data, 16 FIN, 32 RST.
    pub completeness: u8,
    /// Time of the first packet.
    #[serde(rename = "start_ns", with = "column::instant")]
    pub start: Instant,
    /// From the first packet to the last.
    #[serde(rename = "duration_us", with = "column::micros")]
    pub duration: Duration,
    /// SYN to final ACK of the handshake: the path's round trip, wherever the capture was taken.
    #[serde(rename = "handshake_rtt_us", with = "column::micros_optional")]
    pub handshake_rtt: Option<Duration>,
    /// What the applications speak: as the first data of either says in clear text, else by the
    /// server's port.
    pub protocol: Option<ApplicationProtocol>,
    /// What its ends say of themselves; `None` where that is nothing.
    #[serde(flatten, serialize_with = "greeting_columns")]
    pub greeting: Option<Box<Greeting>>,
    /// What its user knows of windows above TCP.
    #[serde(skip)]
    pub windows: OwnWindows,
    /// Where the capture was taken, as far as times show it.
    pub vantage: Vantage,
    /// Reasons to doubt the facts, from where and how the capture was taken.
    pub warnings: Vec<Warning>,
    /// What the client sent.
    pub client_to_server: DirectionFacts,
    /// What the server sent.
    pub server_to_client: DirectionFacts,
    /// Its time, counted; [`crate::diagnosis::DiagnosedConnection::account`] divides it.
    #[serde(skip)]
    pub counted: Counted,
}

/// How a connection ended, as far as it was captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Close {
    /// Neither FIN nor RST was captured.
    Open,
    /// One end sent FIN, the other did not.
    HalfClosed,
    /// Both ends sent FIN.
    Finished,
    /// The client sent RST.
    ResetByClient,
    /// The server sent RST.
    ResetByServer,
}

impl Close {
    /// The stable name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Close::Open => "open",
            Close::HalfClosed => "half_closed",
            Close::Finished => "finished",
            Close::ResetByClient => "reset_by_client",
            Close::ResetByServer => "reset_by_server",
        }
    }

    /// The close, in words.
    pub const fn words(self) -> &'static str {
        match self {
            Close::Open => "still open when the capture ended",
            Close::HalfClosed => "closed by one end only",
            Close::Finished => "closed by both ends",
            Close::ResetByClient => "reset by the client",
            Close::ResetByServer => "reset by the server",
        }
    }
}

/// What the ends say, each of it `null` where they do not.
fn greeting_columns<S: serde::Serializer>(
    greeting: &Option<Box<Greeting>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let silent = Greeting::default();
    serde::Serialize::serialize(greeting.as_deref().unwrap_or(&silent), serializer)
}

impl Connection {
    /// Whether its data says which protocol it is, and not the server's port alone.
    pub fn says_protocol(&self) -> bool {
        [&self.client_to_server, &self.server_to_client]
            .iter()
            .any(|facts| facts.begins.protocol().is_some())
    }

    /// Whether frames of HTTP/2 were read, or are known to have been there.
    pub fn has_frames(&self) -> bool {
        let is_read = [&self.client_to_server, &self.server_to_client]
            .iter()
            .any(|facts| facts.http2.is_some());
        is_read || self.warnings.iter().any(|warning| warning.is_of_frames())
    }

    /// The facts of one direction.
    pub fn facts(&self, direction: Direction) -> &DirectionFacts {
        match direction {
            Direction::ClientToServer => &self.client_to_server,
            Direction::ServerToClient => &self.server_to_client,
        }
    }

    /// The names of the parts that were captured, from [`Connection::completeness`].
    pub fn parts_seen(&self) -> impl Iterator<Item = &'static str> {
        completeness::parts(self.completeness)
    }

    /// Forgets what the ends say of themselves beyond the protocol, as an anonymized capture has
    /// it: gRPC is HTTP/2 there, and nobody reads its frames.
    pub fn forget_names(&mut self) {
        self.greeting = None;
        self.client_to_server.http2 = None;
        self.server_to_client.http2 = None;
        self.warnings.retain(|warning| !warning.is_of_frames());
        if self.protocol == Some(ApplicationProtocol::Grpc) {
            self.protocol = Some(ApplicationProtocol::Http2);
        }
    }

    /// The direction that carried more new payload.
    pub fn bulk(&self) -> Direction {
        if self.client_to_server.unique_payload > self.server_to_client.unique_payload {
            Direction::ClientToServer
        } else {
            Direction::ServerToClient
        }
    }
}

/// What a capture shows of one direction of a connection.
#[derive(Debug, Clone, serde::Serialize)]
pub struct DirectionFacts {
    /// Number of packets.
    pub packets: u64,
    /// Bytes on the wire, link headers included.
    #[serde(rename = "wire_bytes", with = "column::bytes")]
    pub wire: Bytes,
    /// Payload bytes, retransmissions included.
    #[serde(rename = "payload_bytes", with = "column::bytes")]
    pub payload: Bytes,
    /// Payload bytes, each counted once, by sequence numbers: what was acknowledged counts,
    /// captured or not.
    #[serde(rename = "unique_payload_bytes", with = "column::bytes")]
    pub unique_payload: Bytes,
    /// Largest payload of one packet.
    #[serde(rename = "payload_max_bytes", with = "column::bytes")]
    pub payload_max: Bytes,
    /// Unique payload divided by the time from the first data to the acknowledgement of the last
    /// data (or to the last data).
    #[serde(rename = "goodput_bps", with = "column::rate_optional")]
    pub goodput: Option<Rate>,
    /// From its first data to its last, without the acknowledgement and the close that follow.
    #[serde(skip)]
    pub data_time: Option<Duration>,
    /// The highest goodput of one interval: see [`crate::limit::Verdict::peak_goodput`].
    #[serde(rename = "goodput_peak_bps", with = "column::rate_optional")]
    pub goodput_peak: Option<Rate>,
    /// Round-trip times of this direction's data, from the data to its acknowledgement. Both are
    /// timed at the capture point.
    pub rtt: RttFacts,
    /// The receive window that this direction's packets advertise. It is serialised as an object,
    /// with its minimum and maximum beside it as `window_min_bytes` and `window_max_bytes`.
    #[serde(flatten, serialize_with = "window_columns")]
    pub window: WindowFacts,
    /// Most payload in flight at the capture point: sent, not acknowledged and (with
    /// [`Labels::Sack`]) not reported by SACK.
    #[serde(rename = "in_flight_max_bytes", with = "column::bytes")]
    pub in_flight_max: Bytes,
    /// Number of packets with each label.
    pub labels: LabelCounts,
    /// Loss, reordering and repetition, as SACK, timestamps and IP identifications show them. They
    /// do not depend on the choice of labels.
    pub loss: LossFacts,
    /// What its sender waited for although it had data to send.
    pub stalls: StallFacts,
    /// Its pauses, and those that an answer of the peer's application ended. Zero unless captured
    /// at the sender.
    #[serde(skip)]
    pub answers: AnswerFacts,
    /// How far it was sent beyond what the other end's messages acknowledge.
    #[serde(skip)]
    pub grants: GrantFacts,
    /// The flow control of HTTP/2, where its frames could be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http2: Option<Box<FlowControl>>,
    /// How its data begins.
    #[serde(skip)]
    pub begins: PayloadStart,
    /// Which of its data the path let pass.
    #[serde(skip)]
    pub passage: PassageFacts,
    /// How long its ACKs waited on their way back.
    #[serde(skip)]
    pub ack_path: AckPathFacts,
    /// How this end sends and acknowledges.
    pub manner: MannerFacts,
}

fn window_columns<S: serde::Serializer>(window: &WindowFacts, s: S) -> Result<S::Ok, S::Error> {
    use serde::ser::SerializeMap;
    let mut map = s.serialize_map(Some(3))?;
    for (name, bound) in [("window_min_bytes", window.min), ("window_max_bytes", window.max)] {
        map.serialize_entry(name, &bound.map(|window| window.bytes().get()))?;
    }
    map.serialize_entry("window", window)?;
    map.end()
}

/// Round-trip times. Quantiles are within 0.1 %; minimum and maximum are exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct RttFacts {
    /// Number of samples: one for each ACK that advances, under Karn's rule.
    pub count: u64,
    /// Minimum.
    #[serde(rename = "min_us", with = "column::micros_optional")]
    pub min: Option<Duration>,
    /// Median.
    #[serde(rename = "p50_us", with = "column::micros_optional")]
    pub p50: Option<Duration>,
    /// 95 % are at most this.
    #[serde(rename = "p95_us", with = "column::micros_optional")]
    pub p95: Option<Duration>,
    /// 99 % are at most this.
    #[serde(rename = "p99_us", with = "column::micros_optional")]
    pub p99: Option<Duration>,
    /// Maximum.
    #[serde(rename = "max_us", with = "column::micros_optional")]
    pub max: Option<Duration>,
}

impl RttFacts {
    fn of(rtt: &Histogram) -> RttFacts {
        let [p50, p95, p99] =
            [0.5, 0.95, 0.99].map(|fraction| rtt.quantile(fraction).map(Duration::from_nanos));
        RttFacts {
            count: rtt.count(),
            min: rtt.min().map(Duration::from_nanos),
            p50,
            p95,
            p99,
            max: rtt.max().map(Duration::from_nanos),
        }
    }
}

/// The advertised receive window, from packets without SYN and RST. It is scaled where the
/// handshake was captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct WindowFacts {
    /// Shift count in use. It is absent where the handshake was not captured; the windows here are
    /// then not scaled and may be too small.
    pub scale: Option<u8>,
    /// Shift count inferred from data and ACKs where the handshake was not captured, or the shift
    /// that the end means where a device changed its SYN on the way. The windows here are not
    /// scaled by it; those of the verdict are, but for a changed one, which the sender does not
    /// know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_inferred: Option<u8>,
    /// Minimum.
    #[serde(rename = "min_bytes", with = "column::window_optional")]
    pub min: Option<Window>,
    /// Median over packets, within 0.1 %.
    #[serde(rename = "p50_bytes", with = "column::window_optional")]
    pub p50: Option<Window>,
    /// Maximum.
    #[serde(rename = "max_bytes", with = "column::window_optional")]
    pub max: Option<Window>,
    /// Last.
    #[serde(rename = "last_bytes", with = "column::window_optional")]
    pub last: Option<Window>,
}
