//! What a running end does, for whoever operates it.
//!
//! An end runs on one thread. An [`Observer`] asks that thread from another one, which may wait.

use super::super::{CarrierState, SessionState};
use fullpipe_model::units::{Bytes, Duration, column};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use tokio::sync::{mpsc, oneshot};

/// A running end: its sessions, and what those that are over have moved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RelayStatus {
    /// The sessions that there are.
    pub sessions: Vec<SessionStatus>,
    /// The sum of those that are over.
    pub over: Over,
}

/// The sum of sessions that are over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Over {
    /// How many they are.
    pub sessions: u64,
    /// What they moved.
    #[serde(flatten)]
    pub moved: Moved,
}

/// What sessions have moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Moved {
    /// Payload that the other end acknowledged, each byte once.
    #[serde(rename = "delivered_bytes", with = "column::bytes")]
    pub delivered: Bytes,
    /// Payload that users of this end have read.
    #[serde(rename = "received_bytes", with = "column::bytes")]
    pub received: Bytes,
    /// Payload that was sent more than once.
    #[serde(rename = "repeated_bytes", with = "column::bytes")]
    pub repeated: Bytes,
}

impl Moved {
    fn of(state: &SessionState) -> Moved {
        Moved { delivered: state.delivered, received: state.received, repeated: state.repeated }
    }
}

impl std::ops::AddAssign for Moved {
    fn add_assign(&mut self, more: Moved) {
        self.delivered += more.delivered;
        self.received += more.received;
        self.repeated += more.repeated;
    }
}

impl Over {
    pub(super) fn add(&mut self, session: &SessionState) {
        self.sessions += 1;
        self.moved += Moved::of(session);
    }
}

impl RelayStatus {
    /// What all sessions have moved, those that are over included.
    pub fn moved(&self) -> Moved {
        let mut all = self.over.moved;
        self.sessions.iter().for_each(|session| all += session.moved);
        all
    }
}

/// One session: the streams of one near end, and the carriers that they share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionStatus {
    /// Streams that are not over.
    pub streams: usize,
    /// What it has moved.
    #[serde(flatten)]
    pub moved: Moved,
    /// Sent or waiting to be sent, and not acknowledged.
    #[serde(rename = "unacknowledged_bytes", with = "column::bytes")]
    pub unacknowledged: Bytes,
    /// Received in order, and not read by users of this end.
    #[serde(rename = "unread_bytes", with = "column::bytes")]
    pub unread: Bytes,
    /// Received behind a gap, so in the reassembly buffer.
    #[serde(rename = "behind_gap_bytes", with = "column::bytes")]
    pub behind_gap: Bytes,
    /// Streams that would send more if their readers at the other end read.
    pub out_of_credit: usize,
    /// The carriers.
    pub carriers: Vec<CarrierStatus>,
}

/// One carrier: a TCP connection between the two ends.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CarrierStatus {
    /// Its number within the session.
    pub carrier: u32,
    /// The address of this end.
    pub local: SocketAddr,
    /// The address of the other end.
    pub remote: SocketAddr,
    /// The smoothed time from taking a frame to its acknowledgement, buffers included.
    #[serde(
        rename = "round_trip_us",
        with = "column::micros_optional",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub round_trip: Option<Duration>,
    /// Payload that it took and that is not acknowledged.
    #[serde(rename = "in_flight_bytes", with = "column::bytes")]
    pub in_flight: Bytes,
    /// Payload that was acknowledged on it, copies included.
    #[serde(rename = "delivered_bytes", with = "column::bytes")]
    pub delivered: Bytes,
    /// For how long its oldest frame has waited for the acknowledgement.
    #[serde(rename = "oldest_us", with = "column::micros")]
    pub oldest: Duration,
}

impl SessionStatus {
    /// The status of a session in this state. `ends` gives a carrier's two addresses; one without
    /// them is gone.
    pub(super) fn new(
        state: &SessionState,
        ends: impl Fn(&CarrierState) -> Option<(SocketAddr, SocketAddr)>,
    ) -> SessionStatus {
        let carriers = state.carriers.iter().filter_map(|state| {
            let (local, remote) = ends(state)?;
            Some(CarrierStatus {
                carrier: state.carrier.0,
                local,
                remote,
                round_trip: state.round_trip,
                in_flight: state.in_flight,
                delivered: state.delivered,
                oldest: state.oldest,
            })
        });
        SessionStatus {
            streams: state.streams,
            moved: Moved::of(state),
            unacknowledged: state.unacknowledged,
            unread: state.unread,
            behind_gap: state.behind_gap,
            out_of_credit: state.out_of_credit,
            carriers: carriers.collect(),
        }
    }
}

type Question = oneshot::Sender<RelayStatus>;

/// Asks a running end for its status, from any thread.
#[derive(Debug, Clone)]
pub struct Observer(mpsc::UnboundedSender<Question>);

/// Where an end takes its observers' questions from.
#[derive(Debug)]
pub(super) struct Questions(mpsc::UnboundedReceiver<Question>);

/// An observer, and what it asks.
pub(super) fn observed() -> (Observer, Questions) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (Observer(sender), Questions(receiver))
}

impl Observer {
    /// The status now; `None` if the end does not run any more. Before it runs, this waits.
    pub async fn status(&self) -> Option<RelayStatus> {
        let (sender, answer) = oneshot::channel();
        self.0.send(sender).ok()?;
        answer.await.ok()
    }

    /// The same for a thread that may wait.
    pub fn wait_for_status(&self) -> Option<RelayStatus> {
        let (sender, answer) = oneshot::channel();
        self.0.send(sender).ok()?;
        answer.blocking_recv().ok()
    }
}

impl Questions {
    /// Answers for as long as somebody may ask.
    pub async fn answer(mut self, status: impl Fn() -> RelayStatus) {
        while let Some(question) = self.0.recv().await {
            // Whoever asked may not wait any more.
            let _ = question.send(status());
        }
    }
}
