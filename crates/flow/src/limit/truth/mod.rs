//! What limited a transfer, interval by interval, according to its own kernel and its link.
//! Verdicts are scored against these answers.
//!
//! A verdict infers the limit, but this module does not. The sending kernel counted why it did not
//! send ([`Reasons`]). The receiving kernel counted how long data waited for its application. The
//! [`LinkUse`] shows for how much of the time the link's transmitter was busy. Where these do not
//! decide, the answer is [`Limit::Unknown`].

mod decide;
mod link_use;

pub use link_use::LinkUse;

use crate::limit::{Candidate, Limit};
use fullpipe_model::observe::{Reasons, Sample, Wait};
use fullpipe_model::units::{Duration, Instant, column};
use std::net::SocketAddr;

/// What is known of a transfer besides its packets.
#[derive(Debug, Clone, Copy)]
pub struct Knowledge<'a> {
    /// Samples of the sending socket, in order of time.
    pub sender: &'a [Sample],
    /// Samples of the receiving socket, in order of time.
    pub receiver: &'a [Sample],
    /// What the link carried to the receiver.
    pub link: Option<&'a LinkUse>,
    /// The path's round trip without queues.
    pub rtt: Duration,
    /// Whether only a policer drops packets.
    pub is_policed: bool,
    /// The offset from the samples' clock to the time since 1970.
    pub epoch: Duration,
}

/// What a sender waited for between two samples of its socket.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct TruthInterval {
    /// The sending socket.
    pub local: SocketAddr,
    /// The receiving socket.
    pub remote: SocketAddr,
    /// Its start, since 1970.
    #[serde(rename = "start_ns", with = "column::instant")]
    pub start: Instant,
    /// Its length.
    #[serde(rename = "length_us", with = "column::micros")]
    pub length: Duration,
    /// What limited the transfer, ordered by share of the counted time, largest first.
    pub limits: Vec<Candidate>,
    /// The waits that the kernel counted.
    pub waits: Vec<Wait>,
    /// The fraction of the last round trip, or of the interval if that is longer, in which the link
    /// was busy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_busy: Option<f64>,
    /// The fraction of the same time in which data waited for the receiving application.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<f64>,
}

/// The intervals between samples in which the sending kernel counted anything. There are none if
/// the kernel does not count.
pub fn intervals(known: &Knowledge<'_>) -> Vec<TruthInterval> {
    let end = end_of_data(known.sender);
    let counted = known.sender.windows(2).filter_map(|pair| {
        let waits = pair[1].reasons.as_ref()?.waits_since(pair[0].reasons.as_ref()?);
        (!waits.is_empty()).then_some((&pair[0], &pair[1], waits))
    });
    let intervals = counted.map(|(from, to, waits)| {
        let is_over = end.is_some_and(|end| from.at >= end);
        interval(known, from, to, waits, is_over)
    });
    intervals.collect()
}

/// When the last data had been sent; `None` where the samples do not show it.
fn end_of_data(sender: &[Sample]) -> Option<Instant> {
    let mut sent = sender.iter().filter_map(|sample| {
        let bytes = sample.info.as_ref()?.bytes_sent?;
        Some((sample.at, bytes))
    });
    let (_, all) = sent.clone().next_back()?;
    sent.find(|(_, bytes)| *bytes == all).map(|(at, _)| at)
}

fn interval(
    known: &Knowledge<'_>,
    from: &Sample,
    to: &Sample,
    waits: Vec<Wait>,
    is_over: bool,
) -> TruthInterval {
    let length = to.at.since(from.at);
    // A window releases its data in bursts, so less than a round trip is not representative.
    let since = to.at.saturating_sub(length.max(known.rtt));
    let link_busy = known.link.map(|link| link.busy(since, to.at));
    let unread = unread(known.receiver, since, to.at);
    let facts = decide::Facts {
        is_over,
        link_busy,
        unread,
        is_policed: known.is_policed,
        has_model: from.congestion_control.as_deref() == Some("bbr"),
    };
    TruthInterval {
        local: from.local,
        remote: from.remote,
        start: from.at + known.epoch,
        length,
        limits: shares(&waits, |wait| decide::limit(wait, &facts)),
        waits,
        link_busy,
        unread,
    }
}

/// The fraction of the time from `since` to `until` in which data waited for its reader; `None`
/// where no two samples show it.
fn unread(receiver: &[Sample], since: Instant, until: Instant) -> Option<f64> {
    let [first, last] =
        [since, until].map(|at| receiver.partition_point(|sample| sample.at <= at).checked_sub(1));
    // Begins at the first sample if the connection is younger.
    let (first, last) = (first.unwrap_or(0), last?);
    let (first, last) = (&receiver[first], &receiver[last]);
    let span = last.at.since(first.at).as_nanos();
    let (first, last): (&Reasons, &Reasons) = (first.reasons.as_ref()?, last.reasons.as_ref()?);
    (span > 0).then(|| (last.unread_since(first).as_nanos() as f64 / span as f64).min(1.0))
}

/// The share of the time of each limit, largest first. Equal shares are in the limits' order.
fn shares(waits: &[Wait], limit: impl Fn(&Wait) -> Limit) -> Vec<Candidate> {
    let mut times: Vec<(Limit, u64)> = Vec::new();
    for wait in waits {
        let limit = limit(wait);
        match times.iter_mut().find(|(known, _)| *known == limit) {
            Some((_, time)) => *time = time.saturating_add(wait.time.as_nanos()),
            None => times.push((limit, wait.time.as_nanos())),
        }
    }
    times.sort_by_key(|(limit, time)| (std::cmp::Reverse(*time), *limit));
    let all: f64 = times.iter().map(|(_, time)| *time as f64).sum();
    times.into_iter().map(|(limit, time)| Candidate { limit, share: time as f64 / all }).collect()
}

#[cfg(test)]
mod tests;
