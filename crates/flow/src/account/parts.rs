//! Who had the time, and for what: the table of owners and causes.

use super::Behind;
use crate::connection::{Direction, Spent};
use crate::limit::Limit;
use fullpipe_model::limit::Cause as CongestionCause;
use fullpipe_model::units::{Duration, column};
use serde::{Serialize, Serializer};

/// Who had a part of the time, and so who can give it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Owner {
    /// The program that opened the connection.
    ClientApplication,
    /// Its kernel and settings.
    ClientHost,
    /// The network between the two.
    Path,
    /// The kernel and settings of the other end.
    ServerHost,
    /// The program there.
    ServerApplication,
    /// An end that does not answer any more, or the path to it.
    PeerGone,
    /// What was not captured.
    NotCaptured,
    /// Nobody: nothing was to be done.
    Nobody,
}

impl Owner {
    /// Every owner, in the order of the type.
    pub const ALL: [Owner; 8] = [
        Owner::ClientApplication,
        Owner::ClientHost,
        Owner::Path,
        Owner::ServerHost,
        Owner::ServerApplication,
        Owner::PeerGone,
        Owner::NotCaptured,
        Owner::Nobody,
    ];

    /// The stable name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Owner::ClientApplication => "client_application",
            Owner::ClientHost => "client_host",
            Owner::Path => "path",
            Owner::ServerHost => "server_host",
            Owner::ServerApplication => "server_application",
            Owner::PeerGone => "peer_gone",
            Owner::NotCaptured => "not_captured",
            Owner::Nobody => "nobody",
        }
    }

    const fn application(end: u8) -> Self {
        if end == 0 { Owner::ClientApplication } else { Owner::ServerApplication }
    }

    const fn host(end: u8) -> Self {
        if end == 0 { Owner::ClientHost } else { Owner::ServerHost }
    }
}

/// What a part of the time went for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The round trip of the handshake.
    Connect,
    /// A SYN or SYN-ACK was sent again, because nobody answered the one before.
    SynRepeated,
    /// No SYN was answered.
    SynUnanswered,
    /// The SYN was refused.
    Refused,
    /// The SYN met an older connection on the same ports.
    SynMetOldConnection,
    /// Round trips of the handshake of TLS.
    Tls,
    /// The client has its answer and does not ask yet.
    ClientThinks,
    /// The server has the request and does not answer yet.
    ServerThinks,
    /// Round trips of questions and answers.
    Turns,
    /// Small data was held back (Nagle) until an ACK that the other end delayed.
    DelayedAck,
    /// Data under this limit.
    Transfer(Limit),
    /// Retransmission timers.
    Timeouts,
    /// Data that was sent again without a timer.
    Recovery,
    /// Segments that the path is too narrow for, sent again and again.
    PathMtu,
    /// An end that was tried again and again, and did not answer.
    PeerGone,
    /// The receive window was shut.
    WindowShut,
    /// A pause in the middle of what was sent.
    Paused,
    /// Nobody wanted anything.
    Idle,
    /// The last acknowledgement, FIN and RST.
    Closing,
    /// Packets are missing.
    NotCaptured,
}

impl Cause {
    /// Every cause; the limits and the unknown are in the place of the transfer.
    pub const ALL: [Cause; 28] = [
        Cause::Connect,
        Cause::SynRepeated,
        Cause::SynUnanswered,
        Cause::Refused,
        Cause::SynMetOldConnection,
        Cause::Tls,
        Cause::ClientThinks,
        Cause::ServerThinks,
        Cause::Turns,
        Cause::DelayedAck,
        Cause::Transfer(Limit::ReceiveWindow),
        Cause::Transfer(Limit::ReceiverApplication),
        Cause::Transfer(Limit::SendBuffer),
        Cause::Transfer(Limit::SenderApplication),
        Cause::Transfer(Limit::CongestionWindow(CongestionCause::SlowStart)),
        Cause::Transfer(Limit::CongestionWindow(CongestionCause::Loss)),
        Cause::Transfer(Limit::Link),
        Cause::Transfer(Limit::ApplicationWindow),
        Cause::Transfer(Limit::Unknown),
        Cause::Timeouts,
        Cause::Recovery,
        Cause::PathMtu,
        Cause::PeerGone,
        Cause::WindowShut,
        Cause::Paused,
        Cause::Idle,
        Cause::Closing,
        Cause::NotCaptured,
    ];

    /// The stable name in results. A limit has its own name, and a congestion window that of its
    /// cause.
    pub const fn name(self) -> &'static str {
        match self {
            Cause::Connect => "connect",
            Cause::SynRepeated => "syn_repeated",
            Cause::SynUnanswered => "syn_unanswered",
            Cause::Refused => "refused",
            Cause::SynMetOldConnection => "syn_met_old_connection",
            Cause::Tls => "tls",
            Cause::ClientThinks => "client_thinks",
            Cause::ServerThinks => "server_thinks",
            Cause::Turns => "turns",
            Cause::DelayedAck => "delayed_ack",
            Cause::Transfer(Limit::CongestionWindow(cause)) => cause.name(),
            Cause::Transfer(Limit::Unknown) => "transfer",
            Cause::Transfer(limit) => limit.name(),
            Cause::Timeouts => "timeouts",
            Cause::Recovery => "recovery",
            Cause::PathMtu => "path_mtu",
            Cause::PeerGone => "peer_gone",
            Cause::WindowShut => "window_shut",
            Cause::Paused => "paused",
            Cause::Idle => "idle",
            Cause::Closing => "closing",
            Cause::NotCaptured => "not_captured",
        }
    }

    /// Who had the time that was counted for this, and for what; the direction of the data where
    /// the verdict has to say that.
    pub(super) fn of(what: Spent) -> Result<(Owner, Cause), Direction> {
        Ok(match what {
            Spent::Connect => (Owner::Path, Cause::Connect),
            Spent::SynRepeated => (Owner::Path, Cause::SynRepeated),
            Spent::SynUnanswered => (Owner::PeerGone, Cause::SynUnanswered),
            Spent::Refused => (Owner::ServerHost, Cause::Refused),
            Spent::SynMetOldConnection => (Owner::ServerHost, Cause::SynMetOldConnection),
            Spent::Thinks(0) => (Owner::ClientApplication, Cause::ClientThinks),
            Spent::Thinks(_) => (Owner::ServerApplication, Cause::ServerThinks),
            Spent::Turn(_) => (Owner::Path, Cause::Turns),
            Spent::Tls => (Owner::Path, Cause::Tls),
            Spent::DelayedAck(end) => (Owner::host(end), Cause::DelayedAck),
            Spent::Transfer(0) => return Err(Direction::ClientToServer),
            Spent::Transfer(_) => return Err(Direction::ServerToClient),
            Spent::Timeout => (Owner::Path, Cause::Timeouts),
            Spent::Recovery => (Owner::Path, Cause::Recovery),
            Spent::WindowShut(end) => (Owner::application(end), Cause::WindowShut),
            Spent::Paused(end) => (Owner::application(end), Cause::Paused),
            Spent::Idle => (Owner::Nobody, Cause::Idle),
            Spent::Closing => (Owner::Nobody, Cause::Closing),
            Spent::NotCaptured => (Owner::NotCaptured, Cause::NotCaptured),
            Spent::Gone(_) => (Owner::PeerGone, Cause::PeerGone),
        })
    }

    /// Who had the time, and for what, where the path loses segments above a size.
    pub(super) fn by_size(self, owner: Owner) -> (Owner, Self) {
        match self {
            Cause::Timeouts | Cause::Recovery | Cause::PeerGone => (Owner::Path, Cause::PathMtu),
            cause => (owner, cause),
        }
    }

    /// Who had the time, and for what, where the programs move data in other connections: what they
    /// do not say in this one keeps nobody waiting. A question that is not answered does.
    pub(super) fn beside_others(self, owner: Owner) -> (Owner, Self) {
        match self {
            Cause::ClientThinks | Cause::Paused => (Owner::Nobody, Cause::Idle),
            cause => (owner, cause),
        }
    }

    /// What a remedy gives back of this time. If it is of so many round trips, one has to be paid.
    pub(super) fn lost(self, time: Duration, turns: Option<u32>) -> Duration {
        match self {
            Cause::Connect | Cause::Refused | Cause::Idle | Cause::Closing | Cause::NotCaptured => {
                Duration::ZERO
            }
            Cause::Turns | Cause::Tls => {
                let one = turns.map_or(0, |turns| time.as_nanos() / u64::from(turns.max(1)));
                Duration::from_nanos(time.as_nanos() - one)
            }
            Cause::Transfer(limit) if !limit.loses_time() => Duration::ZERO,
            _ => time,
        }
    }
}

impl Serialize for Owner {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(self.name())
    }
}

impl Serialize for Cause {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(self.name())
    }
}

/// A part of a connection's time: all that one owner had for one cause.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AccountPart {
    /// Who had it.
    pub owner: Owner,
    /// For what.
    pub cause: Cause,
    /// The direction of the data, where data was on its way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
    /// How much.
    #[serde(rename = "time_us", with = "column::micros")]
    pub time: Duration,
    /// What a remedy gives back of it.
    #[serde(rename = "lost_us", with = "column::micros")]
    pub lost: Duration,
}

impl AccountPart {
    /// Whether the other is the same program's, and what it does slowly, too: it sends nothing for
    /// a moment or for long, or reads nothing.
    pub(super) fn is_kin_of(&self, other: &AccountPart) -> bool {
        const SENDS: [Cause; 2] = [Cause::Transfer(Limit::SenderApplication), Cause::Paused];
        const READS: [Cause; 2] = [Cause::Transfer(Limit::ReceiverApplication), Cause::WindowShut];
        let both = [self.cause, other.cause];
        self.owner == other.owner
            && [SENDS, READS].iter().any(|kin| both.iter().all(|cause| kin.contains(cause)))
    }

    /// Adds the time of another.
    pub(super) fn absorb(&mut self, other: &AccountPart) {
        self.time = self.time.saturating_add(other.time);
        self.lost = self.lost.saturating_add(other.lost);
    }
}

/// Who had the time in which this limit held data of this direction.
pub(super) fn of_limit(limit: Limit, direction: Direction, behind: Behind) -> (Owner, Cause) {
    let [sender, receiver] = match direction {
        Direction::ClientToServer => [0, 1],
        Direction::ServerToClient => [1, 0],
    };
    let owner = match limit {
        Limit::ReceiveWindow if behind.shrinks_window => Owner::Path,
        Limit::ReceiveWindow => Owner::host(receiver),
        Limit::ApplicationWindow if behind.window_is_the_clients => Owner::ClientApplication,
        Limit::ReceiverApplication | Limit::ApplicationWindow => Owner::application(receiver),
        Limit::SendBuffer | Limit::CongestionWindow(CongestionCause::SlowStart) => {
            Owner::host(sender)
        }
        Limit::SenderApplication => Owner::application(sender),
        Limit::CongestionWindow(CongestionCause::Loss) | Limit::Link | Limit::Unknown => {
            Owner::Path
        }
    };
    (owner, Cause::Transfer(limit))
}
