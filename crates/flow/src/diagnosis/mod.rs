//! What limited a transfer, with its subject and its evidence. Reports, tables and tuning all start
//! from this one answer.
//!
//! A [`Diagnosis`] is about one [`Subject`]: the data of one direction of one connection, as a
//! capture or a socket saw it. It contains the verdict and what is known of the path.
//! [`Diagnosis::findings`] explains what the verdict means and what would change it. Findings are
//! computed on demand: they are most of the work, and a row of a table does not need them.
//!
//! [`crate::Analyzer`] makes a [`DiagnosedConnection`] of each captured connection: the facts, and
//! a diagnosis for each direction that carried data. [`Diagnosis::from_samples`] makes a diagnosis
//! from the kernel's own counters. Both kinds of evidence give the same type, so they can be
//! compared and can contradict each other.

mod both;
mod connection;
mod consistent;
mod hosts;
pub mod live;
mod losses;
mod measured;
mod subcause;

pub use both::{AnsweredPair, LinkProof, PairAnswer, RoundTripParts, SeenLimit, answered};
pub(crate) use connection::Sampled;
pub use connection::{DiagnosedConnection, OfDirection, Rank, note_others, worst_first};
pub use hosts::KnownHosts;
pub(crate) use losses::Losses;
pub(crate) use subcause::Site;
pub use subcause::{
    AckPath, Allowed, ApplicationWindow, CountedEvent, DelayedAck, Explanation, FlowCapRule,
    HTTP2_INITIAL, HostReordering, IdleRestart, MachineCause, NeededWindow, NoAnswer, Numbers,
    PacketCause, PathMtu, Policer, ProtocolWindow, Reordering, SFTP_BLOCK, SSH_CHANNEL, ScaleSign,
    Sharing, SocketCause, SubCause, Timeouts, WaitedWindow, WindowScale,
};

use crate::connection::{Direction, Place};
use crate::finding::{Finding, Headline, KnownPath, findings};
use crate::limit::{Candidate, PathHint, Verdict, from_receiver, from_samples};
use fullpipe_model::limit::End;
use fullpipe_model::observe::Sample;
use fullpipe_model::units::Duration;
use std::net::SocketAddr;

/// What a diagnosis is about: one sender's data to one receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Subject {
    /// The connection's number in its capture; `None` for sockets.
    pub connection: Option<u64>,
    /// The direction of the data, where it is known who opened the connection.
    pub direction: Option<Direction>,
    /// The end that sent the data.
    pub sender: SocketAddr,
    /// The end that received it.
    pub receiver: SocketAddr,
    /// Where the evidence was taken.
    pub seen_at: SeenAt,
}

/// Where evidence was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SeenAt {
    /// By a sniffer at this place.
    Capture(Place),
    /// At the socket of this end.
    Socket(End),
}

/// What limited one subject's data, and for which share of its time.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnosis {
    /// What the diagnosis is about.
    pub subject: Subject,
    /// What limited the data, interval by interval.
    pub verdict: Verdict,
    /// What is known of the path from other sources.
    pub path: KnownPath,
    /// What is known of the hosts.
    pub hosts: KnownHosts,
}

/// Samples of the sockets at both ends of a transfer, ordered by time, on one clock.
#[derive(Debug, Clone, Copy)]
pub struct Sockets<'a> {
    /// Samples of the sender's socket.
    pub sender: &'a [Sample],
    /// Samples of the receiver's socket; empty where it was not sampled.
    pub receiver: &'a [Sample],
    /// The least length of an interval.
    pub interval: Duration,
}

impl Diagnosis {
    /// What limited the sender, by the kernels' counters. `None` with fewer than two samples of the
    /// sender, because they span no time.
    pub fn from_samples(sockets: Sockets<'_>, hint: PathHint) -> Option<Self> {
        let [first, _, ..] = sockets.sender else { return None };
        let verdict = from_samples(sockets.sender, sockets.receiver, sockets.interval, hint);
        let subject = Subject {
            connection: None,
            direction: None,
            sender: first.local,
            receiver: first.remote,
            seen_at: SeenAt::Socket(End::Sender),
        };
        // The link's rate counts headers, so it is above the rate of any payload that the link
        // carries.
        let path = KnownPath { rtt: hint.rtt, goodput_max: hint.rate };
        let hosts = KnownHosts::sampled(sockets.sender);
        Some(Diagnosis { subject, verdict, path, hosts })
    }

    /// What limited the sender of the data that a socket received, by samples of that socket alone.
    /// `interval` is the least length of an interval. `None` with fewer than two samples.
    pub fn from_receiver(samples: &[Sample], interval: Duration, hint: PathHint) -> Option<Self> {
        let [first, _, ..] = samples else { return None };
        let subject = Subject {
            connection: None,
            direction: None,
            sender: first.remote,
            receiver: first.local,
            seen_at: SeenAt::Socket(End::Receiver),
        };
        Some(Diagnosis {
            subject,
            verdict: from_receiver(samples, interval, hint),
            path: KnownPath { rtt: hint.rtt, goodput_max: hint.rate },
            hosts: KnownHosts::default(),
        })
    }

    /// What the verdict means, the largest share first.
    pub fn findings(&self) -> Vec<Finding> {
        let (headline, all) = (self.headline(), findings(&self.verdict, self.path).into_iter());
        all.map(|finding| headline.advise(self.hosts.fit(finding))).collect()
    }

    /// The answer to "what limits it", and how much is advised on it.
    pub fn headline(&self) -> Headline {
        Headline::of(&self.verdict)
    }

    /// What limited the data for the largest share of its time.
    pub fn limited_by(&self) -> Candidate {
        self.verdict.limited_by()
    }

    /// The time in which neither the path nor the sending application limited the data. In that
    /// time, a setting, a receiver or congestion control did.
    pub fn lost(&self) -> Duration {
        let losing = self.verdict.shares.iter().filter(|candidate| candidate.limit.loses_time());
        let share: f64 = losing.map(|candidate| candidate.share).sum();
        Duration::from_secs_f64(self.verdict.time.as_secs_f64() * share.clamp(0.0, 1.0))
    }

    /// The first finding whose limit loses time.
    pub fn worst_finding(&self) -> Option<Finding> {
        self.findings().into_iter().find(|finding| finding.limit.loses_time())
    }
}

#[cfg(test)]
mod tests;
