//! What held a transfer, with its subject and its evidence: the one answer that reports, tables and
//! tuning start from.
//!
//! A [`Diagnosis`] is about one [`Subject`]: the data of one direction of one connection, as a
//! capture or a socket saw it. It holds the verdict and what is known of the path;
//! [`Diagnosis::findings`] says what that means and what would change it. Findings are made when
//! they are asked for: they are most of the work, and a row does not need them.
//!
//! A [`DiagnosedConnection`] is what [`crate::Analyzer`] makes of a captured connection: the facts,
//! and a diagnosis for each direction that carried data. [`Diagnosis::from_samples`] makes the same
//! of the kernel's own counters. Both kinds of evidence give the same type, so that they can
//! contradict each other.

mod connection;

pub use connection::{DiagnosedConnection, OfDirection, worst_first};

use crate::connection::{Direction, Place};
use crate::finding::{Finding, KnownPath, findings};
use crate::limit::{Candidate, Limit, PathHint, Verdict, from_samples};
use crate::sample::Sample;
use fullpipe_model::limit::End;
use fullpipe_model::units::Duration;
use std::net::SocketAddr;

/// What a diagnosis is about: one sender's data to one receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Subject {
    /// The connection's number in its capture; `None` for sockets.
    pub connection: Option<u64>,
    /// Which way the data went, where it is known who opened the connection.
    pub direction: Option<Direction>,
    /// Who sent the data.
    pub sender: SocketAddr,
    /// Who received it.
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

/// What held one subject's data, and for which share of its time.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnosis {
    /// What it is about.
    pub subject: Subject,
    /// What held it, interval by interval.
    pub verdict: Verdict,
    /// What is known of the path from elsewhere.
    pub path: KnownPath,
}

/// Samples of the sockets at both ends of a transfer, in order of time and on one clock.
#[derive(Debug, Clone, Copy)]
pub struct Sockets<'a> {
    /// Of the sender's socket.
    pub sender: &'a [Sample],
    /// Of the receiver's socket; empty where it was not asked.
    pub receiver: &'a [Sample],
    /// The least length of an interval.
    pub interval: Duration,
}

impl Diagnosis {
    /// What held the sender, by what the kernels counted. `None` with fewer than two samples of the
    /// sender: nothing is known between them.
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
        // The link's rate counts headers, and so is above any payload that it carries.
        let path = KnownPath { rtt: hint.rtt, goodput_max: hint.rate };
        Some(Diagnosis { subject, verdict, path })
    }

    /// What it means, the largest share first.
    pub fn findings(&self) -> Vec<Finding> {
        findings(&self.verdict, self.path)
    }

    /// What held the data for the largest share of its time.
    pub fn limited_by(&self) -> Candidate {
        self.verdict.limited_by()
    }

    /// The time in which neither the path nor the sending application held the data, so that a
    /// setting, a receiver or congestion control did.
    pub fn lost(&self) -> Duration {
        let losing = self.verdict.shares.iter().filter(|candidate| loses(candidate.limit));
        let share: f64 = losing.map(|candidate| candidate.share).sum();
        Duration::from_secs_f64(self.verdict.time.as_secs_f64() * share.clamp(0.0, 1.0))
    }

    /// The first finding of a limit under which time is lost.
    pub fn worst_finding(&self) -> Option<Finding> {
        self.findings().into_iter().find(|finding| loses(finding.limit))
    }
}

/// Whether time under this limit is lost: neither the path's nor the sending application's.
fn loses(limit: Limit) -> bool {
    !matches!(limit, Limit::Link | Limit::SenderApplication | Limit::Unknown)
}

#[cfg(test)]
mod tests;
