//! One direction of a captured connection.

use super::{Cell, Column, Kind, Place, Record, SCHEMA_VERSION};
use crate::account::{AccountPart, Cause, spent_on};
use crate::capture::segment::ApplicationProtocol;
use crate::connection::{
    Connection, Counted, Direction, DirectionFacts, Greeting, Label, Token, Warning,
};
use crate::diagnosis::{DiagnosedConnection, Diagnosis};
use crate::frames::{FlowControl, FlowWindow};
use fullpipe_model::units::{Bytes, Duration};

/// Rows of a connection's directions.
pub enum Connections {}

/// What the row of a direction is made of.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionRow<'r> {
    /// The capture's name.
    pub file: &'r str,
    /// The connection.
    pub diagnosed: &'r DiagnosedConnection,
    /// Which of its directions.
    pub direction: Direction,
}

/// The rows of a connection: one for each direction that has packets.
pub fn connection_rows<'r>(
    file: &'r str,
    diagnosed: &'r DiagnosedConnection,
) -> impl Iterator<Item = ConnectionRow<'r>> {
    let both = [Direction::ClientToServer, Direction::ServerToClient];
    let seen = both.into_iter().filter(|direction| is_seen(&diagnosed.connection, *direction));
    seen.map(move |direction| ConnectionRow { file, diagnosed, direction })
}

/// Whether a direction has a row: its packets were captured, or the other end's ACKs tell of its
/// data.
fn is_seen(connection: &Connection, direction: Direction) -> bool {
    let facts = connection.facts(direction);
    facts.packets > 0 || facts.unique_payload > Bytes::ZERO
}

/// The direction whose row tells what is told once of a connection: the one that carried more, if
/// it has a row.
fn telling(connection: &Connection) -> Direction {
    match connection.bulk() {
        Direction::ServerToClient if !is_seen(connection, Direction::ServerToClient) => {
            Direction::ClientToServer
        }
        bulk => bulk,
    }
}

impl<'r> ConnectionRow<'r> {
    fn connection(self) -> &'r Connection {
        &self.diagnosed.connection
    }

    fn facts(self) -> &'r DirectionFacts {
        self.connection().facts(self.direction)
    }

    fn http2(self) -> Option<&'r FlowControl> {
        self.facts().http2.as_deref()
    }

    /// The stream that waited longest for its own window.
    fn worst_stream(self) -> Option<&'r FlowWindow> {
        self.http2()?.worst.first()
    }

    fn diagnosis(self) -> Option<&'r Diagnosis> {
        self.diagnosed.diagnosis(self.direction)
    }

    /// What was counted of the connection's time, in the row that tells it.
    fn counted(self) -> Option<&'r Counted> {
        let tells = self.direction == telling(self.connection()) && !self.diagnosed.is_sampled();
        tells.then_some(&self.connection().counted)
    }

    fn first_part(self) -> Option<AccountPart> {
        self.counted()?;
        self.diagnosed.account()?.first()
    }

    fn lost(self) -> Duration {
        if self.direction == telling(self.connection()) {
            self.diagnosed.lost()
        } else {
            Duration::ZERO
        }
    }
}

impl Record for Connections {
    type Row<'r> = ConnectionRow<'r>;
}

type C = Column<Connections>;

/// A column of a number of the direction's facts.
const fn fact(
    name: &'static str,
    null: &'static str,
    meaning: &'static str,
    at: &'static str,
    get: for<'r> fn(&'r ConnectionRow<'r>) -> Cell<'r>,
) -> C {
    C::new(name, Kind::Number, null, meaning, get).at(Place::InDirection(at))
}

/// The column of a label: its name, unless that of a count of facts is too near to it.
macro_rules! label {
    ($label:ident, $name:literal, $at:literal) => {
        fact($name, "", "packets with this label", $at, |row| {
            Cell::number(row.facts().labels.of(Label::$label))
        })
    };
}

/// A column of what a connection's ends say of themselves.
macro_rules! said {
    ($name:literal, $meaning:literal, $get:expr) => {
        C::new($name, Kind::Text, "nobody says it in clear text", $meaning, |row| {
            let get: for<'r> fn(&'r Greeting) -> Option<&'r str> = $get;
            Cell::word(row.connection().greeting.as_deref().and_then(get))
        })
    };
}

/// What is told of a connection stands in the row of the direction that carried more.
const OTHER: &str = "told in the other direction, or of samples";

/// A column of a time of the connection.
macro_rules! time {
    ($name:literal, $meaning:literal, $get:expr) => {
        C::new($name, Kind::Number, OTHER, $meaning, |row| {
            let get: fn(&Counted) -> Duration = $get;
            Cell::micros(row.counted().map(get))
        })
        .at(Place::Rows)
    };
}

/// A column of a number of the connection.
macro_rules! count {
    ($name:literal, $meaning:literal, $get:expr) => {
        C::new($name, Kind::Number, OTHER, $meaning, |row| {
            let get: fn(&Counted) -> u64 = $get;
            Cell::Number(row.counted().map(get))
        })
        .at(Place::Rows)
    };
}

const NO_SAMPLE: &str = "nothing was acknowledged";
const NO_DATA: &str = "no data";
const NO_WINDOW: &str = "only SYN and RST";

/// A direction of a connection: facts, and what held its data.
pub static CONNECTIONS: &[C] = &[
    C::new("schema", Kind::Number, "", "version of this table", |_| Cell::number(SCHEMA_VERSION))
        .at(Place::Rows),
    C::new("file", Kind::Text, "", "the capture's name, as given", |row| Cell::text(row.file))
        .at(Place::Rows),
    C::new("id", Kind::Number, "", "number of the connection in the capture, from 0", |row| {
        Cell::number(row.connection().id)
    }),
    C::new(
        "client",
        Kind::Text,
        "",
        "address and port of who opened it, or of who sent its first packet",
        |row| Cell::text(row.connection().client.to_string()),
    ),
    C::new("server", Kind::Text, "", "address and port of the other end", |row| {
        Cell::text(row.connection().server.to_string())
    }),
    C::new(
        "direction",
        Kind::Text,
        "",
        "whose data: `client_to_server` or `server_to_client`",
        |row| Cell::text(row.direction.name()),
    )
    .at(Place::Rows),
    C::new("start_ns", Kind::Number, "", "time of the first packet, since 1970", |row| {
        Cell::number(row.connection().start.as_nanos())
    }),
    C::new("duration_us", Kind::Number, "", "from the first packet to the last", |row| {
        Cell::micros(row.connection().duration)
    }),
    C::new(
        "handshake_rtt_us",
        Kind::Number,
        "handshake not captured",
        "SYN to final ACK: the path's round trip",
        |row| Cell::micros(row.connection().handshake_rtt),
    ),
    C::new(
        "close",
        Kind::Text,
        "",
        "how it ended: `open`, `half_closed`, `finished`, `reset_by_..`",
        |row| Cell::text(row.connection().close.name()),
    ),
    C::new("completeness", Kind::Number, "", "what of it was seen: Wireshark's bits", |row| {
        Cell::number(row.connection().completeness)
    }),
    C::new(
        "captured_at",
        Kind::Text,
        "",
        "`client`, `server`, `between` or `unknown`, by times",
        |row| Cell::text(row.connection().vantage.place.name()),
    )
    .at(Place::At("vantage.place")),
    C::new("captured_at_confidence", Kind::Fraction, "", "how sure that is, 0 to 1", |row| {
        Cell::fraction(row.connection().vantage.confidence)
    })
    .at(Place::At("vantage.confidence")),
    fact("packets", "", "packets", "packets", |row| Cell::number(row.facts().packets)),
    fact("wire_bytes", "", "bytes on the wire, link headers included", "wire_bytes", |row| {
        Cell::bytes(row.facts().wire)
    }),
    fact("payload_bytes", "", "payload, each time that it was sent", "payload_bytes", |row| {
        Cell::bytes(row.facts().payload)
    }),
    fact(
        "unique_payload_bytes",
        "",
        "payload, once: what was acknowledged, captured or not",
        "unique_payload_bytes",
        |row| Cell::bytes(row.facts().unique_payload),
    ),
    fact(
        "goodput_bps",
        NO_DATA,
        "unique payload from the first data to the last ACK",
        "goodput_bps",
        |row| Cell::rate(row.facts().goodput),
    ),
    fact(
        "goodput_peak_bps",
        NO_DATA,
        "the most that an interval carried",
        "goodput_peak_bps",
        |row| Cell::rate(row.facts().goodput_peak),
    ),
    fact("rtt_count", "", "round trips of data that were measured", "rtt.count", |row| {
        Cell::number(row.facts().rtt.count)
    }),
    fact("rtt_min_us", NO_SAMPLE, "the least of them", "rtt.min_us", |row| {
        Cell::micros(row.facts().rtt.min)
    }),
    fact("rtt_p50_us", NO_SAMPLE, "the median", "rtt.p50_us", |row| {
        Cell::micros(row.facts().rtt.p50)
    }),
    fact("rtt_p95_us", NO_SAMPLE, "95 % are at most this", "rtt.p95_us", |row| {
        Cell::micros(row.facts().rtt.p95)
    }),
    fact("rtt_p99_us", NO_SAMPLE, "99 % are at most this", "rtt.p99_us", |row| {
        Cell::micros(row.facts().rtt.p99)
    }),
    fact("rtt_max_us", NO_SAMPLE, "the greatest", "rtt.max_us", |row| {
        Cell::micros(row.facts().rtt.max)
    }),
    fact(
        "window_scale",
        "handshake not captured",
        "shift of the windows that it advertises",
        "window.scale",
        |row| Cell::Number(row.facts().window.scale.map(u64::from)),
    ),
    fact(
        "window_min_bytes",
        NO_WINDOW,
        "least window that it advertises",
        "window_min_bytes",
        |row| Cell::window(row.facts().window.min),
    ),
    fact("window_p50_bytes", NO_WINDOW, "the median", "window.p50_bytes", |row| {
        Cell::window(row.facts().window.p50)
    }),
    fact("window_max_bytes", NO_WINDOW, "the greatest", "window_max_bytes", |row| {
        Cell::window(row.facts().window.max)
    }),
    fact(
        "in_flight_max_bytes",
        "",
        "most payload in flight, at the capture point",
        "in_flight_max_bytes",
        |row| Cell::bytes(row.facts().in_flight_max),
    ),
    label!(Retransmission, "retransmission", "labels.retransmission"),
    label!(FastRetransmission, "fast_retransmission", "labels.fast_retransmission"),
    label!(
        SpuriousRetransmission,
        "label_spurious_retransmission",
        "labels.spurious_retransmission"
    ),
    label!(Rto, "rto", "labels.rto"),
    label!(OutOfOrder, "out_of_order", "labels.out_of_order"),
    label!(DuplicateAck, "duplicate_ack", "labels.duplicate_ack"),
    label!(ZeroWindow, "zero_window", "labels.zero_window"),
    label!(ZeroWindowProbe, "zero_window_probe", "labels.zero_window_probe"),
    label!(ZeroWindowProbeAck, "zero_window_probe_ack", "labels.zero_window_probe_ack"),
    label!(WindowFull, "window_full", "labels.window_full"),
    label!(WindowUpdate, "window_update", "labels.window_update"),
    label!(KeepAlive, "keep_alive", "labels.keep_alive"),
    label!(KeepAliveAck, "keep_alive_ack", "labels.keep_alive_ack"),
    label!(LostSegment, "label_lost_segment", "labels.lost_segment"),
    label!(AckLostSegment, "ack_lost_segment", "labels.ack_lost_segment"),
    label!(ReusedPorts, "reused_ports", "labels.reused_ports"),
    label!(TfoSyn, "tfo_syn", "labels.tfo_syn"),
    label!(TfoAck, "tfo_ack", "labels.tfo_ack"),
    label!(TfoIgnored, "tfo_ignored", "labels.tfo_ignored"),
    label!(DuplicatePacket, "duplicate_packet", "labels.duplicate_packet"),
    fact(
        "lost_segments",
        "",
        "segments that were lost and retransmitted",
        "loss.lost_segments",
        |row| Cell::number(row.facts().loss.lost_segments),
    ),
    fact(
        "spurious_retransmissions",
        "",
        "retransmissions that were not needed",
        "loss.spurious_retransmissions",
        |row| Cell::number(row.facts().loss.spurious_retransmissions),
    ),
    fact(
        "reordered_segments",
        "",
        "segments that were overtaken",
        "loss.reordered_segments",
        |row| Cell::number(row.facts().loss.reordered_segments),
    ),
    fact(
        "congestion_experienced",
        "",
        "packets that a router marked (ECN)",
        "loss.congestion_experienced",
        |row| Cell::number(row.facts().loss.congestion_experienced),
    ),
    fact("ecn_echo", "", "packets that report such marks (ECE)", "manner.ecn_echo", |row| {
        Cell::number(row.facts().manner.ecn_echo)
    }),
    fact(
        "congestion_window_reduced",
        "",
        "packets with CWR",
        "manner.congestion_window_reduced",
        |row| Cell::number(row.facts().manner.congestion_window_reduced),
    ),
    fact("advancing_acks", "", "ACKs of new data", "manner.advancing_acks", |row| {
        Cell::number(row.facts().manner.advancing_acks)
    }),
    fact(
        "stretch_acks",
        "",
        "of them, of more than two full segments",
        "manner.stretch_acks",
        |row| Cell::number(row.facts().manner.stretch_acks),
    ),
    fact(
        "delayed_acks",
        "",
        "of them, 10 ms or more later than the quickest",
        "manner.delayed_acks",
        |row| Cell::number(row.facts().manner.delayed_acks),
    ),
    fact(
        "burst_max_packets",
        "",
        "most packets of data at a stretch",
        "manner.burst_max_packets",
        |row| Cell::number(row.facts().manner.burst_max_packets),
    ),
    fact(
        "silence_max_us",
        "",
        "longest time between two packets of data",
        "manner.silence_max_us",
        |row| Cell::micros(row.facts().manner.silence_max),
    ),
    C::new(
        "warnings",
        Kind::Words,
        "",
        "what the capture's place and manner put into doubt",
        |row| {
            Cell::Words(
                row.connection().warnings.iter().map(|warning| Warning::name(*warning)).collect(),
            )
        },
    ),
    C::new(
        "limited_by",
        Kind::Text,
        NO_DATA,
        "what limited the data for the largest share of its time",
        |row| Cell::word(row.diagnosis().map(|diagnosis| diagnosis.limited_by().limit.name())),
    )
    .at(Place::Rows),
    C::new(
        "limit_cause",
        Kind::Text,
        "the limit is no congestion window",
        "`slow_start` or `loss`, of a congestion window",
        |row| {
            Cell::word(row.diagnosis().and_then(|diagnosis| diagnosis.limited_by().limit.cause()))
        },
    )
    .at(Place::Rows),
    C::new("limit_share", Kind::Fraction, NO_DATA, "that share", |row| {
        Cell::fraction(row.diagnosis().map(|diagnosis| diagnosis.limited_by().share))
    })
    .at(Place::Rows),
    C::new(
        "lost_us",
        Kind::Number,
        "",
        "what remedies would give back of the connection's time; 0 in the other direction",
        |row| Cell::micros(row.lost()),
    )
    .at(Place::Rows),
    C::new(
        "limit_confidence",
        Kind::Fraction,
        NO_DATA,
        "how often verdicts like this one were right on generated scenarios",
        |row| Cell::fraction(row.diagnosis().map(|diagnosis| diagnosis.verdict.confidence)),
    )
    .at(Place::Rows),
    fact(
        "timeout_wait_us",
        "",
        "silences until the retransmission timer",
        "stalls.timeout_wait_us",
        |row| Cell::micros(row.facts().stalls.timeout_wait),
    ),
    C::new(
        "sub_causes",
        Kind::Words,
        "",
        "what lies behind the limit, as far as it shows",
        |row| Cell::Words(row.diagnosed.sub_cause_names(row.direction)),
    )
    .at(Place::Rows),
    C::new(
        "waited_for",
        Kind::Text,
        OTHER,
        "what lost most time, or took most where no tenth was lost: `server_thinks`, `link`, ..",
        |row| Cell::word(row.first_part().map(|part| part.cause.name())),
    )
    .at(Place::Rows),
    C::new("owner", Kind::Text, OTHER, "whose that time was", |row| {
        Cell::word(row.first_part().map(|part| part.owner.name()))
    })
    .at(Place::Rows),
    C::new("connect_us", Kind::Number, OTHER, "the handshake, with SYNs sent again", |row| {
        let all = [Cause::Connect, Cause::SynRepeated, Cause::SynMetOldConnection];
        Cell::micros(row.counted().map(|counted| {
            all.map(|cause| spent_on(counted, cause))
                .into_iter()
                .fold(Duration::ZERO, Duration::saturating_add)
        }))
    })
    .at(Place::Rows),
    count!("syn_retransmissions", "SYNs and SYN-ACKs sent again", |counted| {
        counted.syn_retransmissions.into()
    }),
    count!("requests", "how often the client asked", |counted| counted.requests.into()),
    time!("server_wait_us", "the server had a request and did not answer yet", |counted| {
        spent_on(counted, Cause::ServerThinks)
    }),
    time!("client_wait_us", "the client had its answer and did not ask yet", |counted| {
        spent_on(counted, Cause::ClientThinks)
    }),
    count!("turns", "round trips paid one after another for questions", |counted| {
        counted.turns.into()
    }),
    time!("turns_us", "what they took", |counted| spent_on(counted, Cause::Turns)),
    time!("peer_gone_us", "an end did not answer any more", |counted| {
        spent_on(counted, Cause::PeerGone).saturating_add(spent_on(counted, Cause::SynUnanswered))
    }),
    C::new(
        "last_wait_us",
        Kind::Number,
        "nobody waited, or the other direction",
        "how long somebody had waited when the capture ended",
        |row| Cell::micros(row.counted().and_then(|counted| counted.waiting)),
    )
    .at(Place::Rows),
    time!("tls_us", "round trips of the handshake of TLS", |counted| {
        spent_on(counted, Cause::Tls)
    }),
    C::new(
        "protocol",
        Kind::Text,
        "neither end says it",
        "what the applications speak, by their first data in clear text, else by the server's \
         port: `grpc`, `http1`, `http2`, `iscsi`, `kafka`, `mqtt`, `mysql`, `nfs`, `postgresql`, \
         `redis`, `rsync`, `smb`, `ssh` or `tls`",
        |row| Cell::word(row.connection().protocol.map(ApplicationProtocol::name)),
    ),
    said!("protocol_version", "its version, where that is not TLS", |said| {
        said.protocol_version.as_ref().map(Token::as_str)
    }),
    said!("tls_version", "the version of TLS that the server chose", |said| {
        said.tls_version.as_ref().map(Token::as_str)
    }),
    said!("tls_offered", "the highest version of TLS that the client offers", |said| {
        said.tls_offered.as_ref().map(Token::as_str)
    }),
    said!(
        "server_name",
        "whom the client asks for: TLS's server name, HTTP's host, or iSCSI's target",
        |said| said.server_name.as_deref()
    ),
    said!("alpn_offered", "the protocols that a client of TLS offers in it, with commas", |said| {
        said.alpn_offered.as_ref().map(Token::as_str)
    }),
    said!(
        "alpn_chosen",
        "the one that the server chose, where TLS does not encrypt that (up to 1.2)",
        |said| said.alpn_chosen.as_ref().map(Token::as_str)
    ),
    said!("client_program", "the client's program, as it says itself", |said| {
        said.client_program.as_ref().map(Token::as_str)
    }),
    said!("server_program", "the server's program, as it says itself", |said| {
        said.server_program.as_ref().map(Token::as_str)
    }),
    fact(
        "http2_data_bytes",
        NO_FRAMES,
        "data in frames of HTTP/2, with their padding: what counts against its windows",
        "http2.data_bytes",
        |row| Cell::bytes(row.http2().map(|http2| http2.data)),
    ),
    fact("http2_streams", NO_FRAMES, "how many streams had some", "http2.streams", |row| {
        Cell::Number(row.http2().map(|http2| http2.streams))
    }),
    fact(
        "http2_held_us",
        NO_FRAMES,
        "how long none of it was sent until a window of HTTP/2 was opened again",
        "http2.held_us",
        |row| Cell::micros(row.http2().map(|http2| http2.held)),
    ),
    fact(
        "http2_connection_window_bytes",
        NO_FRAMES,
        "the window that all streams share",
        "http2.connection.window_bytes",
        |row| Cell::bytes(row.http2().map(|http2| http2.connection.window)),
    ),
    fact(
        "http2_connection_waited_us",
        NO_FRAMES,
        "how long data waited for it",
        "http2.connection.waited_us",
        |row| Cell::micros(row.http2().map(|http2| http2.connection.waited)),
    ),
    C::new(
        "http2_waiting_stream",
        Kind::Number,
        NO_FRAMES,
        "the stream that waited longest for its own window: the first of `http2.worst`",
        |row| Cell::Number(row.worst_stream().map(|worst| worst.stream.into())),
    )
    .at(Place::Rows),
    C::new("http2_stream_window_bytes", Kind::Number, NO_FRAMES, "its window", |row| {
        Cell::bytes(row.worst_stream().map(|worst| worst.window))
    })
    .at(Place::Rows),
    C::new("http2_stream_waited_us", Kind::Number, NO_FRAMES, "how long it waited", |row| {
        Cell::micros(row.worst_stream().map(|worst| worst.waited))
    })
    .at(Place::Rows),
    C::new(
        "http2_stream_time_us",
        Kind::Number,
        NO_FRAMES,
        "from its first data to its last",
        |row| Cell::micros(row.worst_stream().map(|worst| worst.time)),
    )
    .at(Place::Rows),
];

/// Of which connections HTTP/2's windows are not known.
const NO_FRAMES: &str = "no frames of HTTP/2 could be read";
