//! A live connection as its host sees it: what limits it, what lies behind that, and which end must
//! act. The answer of `fullpipe why`.
//!
//! A host takes [`Sample`]s of its socket and knows more beside: the process, what the application
//! asked of the socket ([`SocketOptions`]), the settings of the network namespace.
//! [`Observed::answer`] turns that into an [`Answer`]: the same diagnosis as from any samples, with
//! causes that only the host itself can know.

mod cause;
mod history;
mod host;
mod hours;
mod looks;
mod note;
mod path;
mod recording;

pub use history::{
    ClockOffset, History, HistoryLine, HostNote, LookNote, NotedHolder, NotedMemory, NotedTime,
    PastAnswer,
};
pub use host::HostFacts;
pub use hours::{WorkloadHour, WorkloadHours, WorkloadPart, WorkloadSum};
pub use looks::{connections_of_looks, connections_of_results};
pub use note::{Note, NotedGroup, NotedSocket};
pub use recording::connections;

use super::consistent::{leaves_room_above, with_asked_pace, with_channel};
use crate::account::{AccountPart, LiveAccount};
use crate::diagnosis::{Diagnosis, Explanation, Site, SocketCause, Sockets, SubCause};
use crate::finding::{Finding, Headline, Remedy};
use crate::limit::{
    Candidate, Cause, Interval, Limit, PathHint, Verdict, from_looks, from_means,
    from_receiver_looks,
};
use fullpipe_model::limit::End;
use fullpipe_model::observe::tool_result::TestProgram;
use fullpipe_model::observe::{PeerSite, Process, Sample, SocketOptions, TcpInfo};
use fullpipe_model::tune::{HostSettings, MeasuredPath};
use fullpipe_model::units::{Bytes, Duration, Rate, column};
use std::borrow::Cow;
use std::net::SocketAddr;

/// Who has to change something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Acts {
    /// This host.
    Here,
    /// The host at the other end.
    Peer,
    /// Whoever runs the path, because packets are lost on it.
    Path,
    /// Nobody: the path is full.
    Nobody,
    /// It is not known.
    Unknown,
}

impl Acts {
    /// The stable name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Acts::Here => "here",
            Acts::Peer => "peer",
            Acts::Path => "path",
            Acts::Nobody => "nobody",
            Acts::Unknown => "unknown",
        }
    }

    /// A text for people.
    pub const fn words(self) -> &'static str {
        match self {
            Acts::Here => "this host",
            Acts::Peer => "the peer",
            Acts::Path => "the path",
            Acts::Nobody => "nobody",
            Acts::Unknown => "not known",
        }
    }

    /// Who has to act against `limit`, if this host is the end `here` of the data.
    pub fn against(limit: Limit, here: End) -> Acts {
        let end = match limit {
            Limit::ReceiveWindow | Limit::ReceiverApplication | Limit::ApplicationWindow => {
                End::Receiver
            }
            Limit::SendBuffer
            | Limit::SenderApplication
            | Limit::CongestionWindow(Cause::SlowStart) => End::Sender,
            Limit::CongestionWindow(Cause::Loss) => return Acts::Path,
            Limit::Link => return Acts::Nobody,
            Limit::Unknown => return Acts::Unknown,
        };
        if end == here { Acts::Here } else { Acts::Peer }
    }
}

/// What a host saw of one of its connections.
#[derive(Debug, Clone, Copy)]
pub struct Observed<'a> {
    /// Which end of the data this host is.
    pub role: End,
    /// Samples of its socket, in order of time.
    pub samples: &'a [Sample],
    /// Samples of the other end's socket, on the same clock; empty unless that is on this host too.
    pub other: &'a [Sample],
    /// What the application asked of the socket, where that may be known.
    pub asked: Option<SocketOptions>,
    /// The settings of the socket's network namespace, where they are known.
    pub settings: Option<&'a HostSettings>,
    /// What else this host knows of it.
    pub host: HostFacts<'a>,
}

/// The role of a socket: the sender if more was sent than received while it was sampled. Where
/// nothing moved, the sender is the one whose data waits.
pub fn role(samples: &[Sample]) -> End {
    let sent = moved(samples, |info| info.bytes_acked);
    let received = moved(samples, |info| info.bytes_received);
    let waits = samples.last().is_some_and(|sample| sample.wqueue > sample.rqueue);
    if sent > received || (sent == received && waits) { End::Sender } else { End::Receiver }
}

/// By how much the least and the most of a counter differ.
fn moved(samples: &[Sample], get: fn(&TcpInfo) -> Option<Bytes>) -> Bytes {
    let counts = samples.iter().filter_map(|sample| get(sample.info.as_ref()?));
    let (least, most) =
        counts.fold((Bytes::MAX, Bytes::ZERO), |(a, b), one| (a.min(one), b.max(one)));
    most.saturating_sub(least)
}

/// The kernel's account of a sender's time since its connection began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Lifetime {
    /// Time with data to send or unacknowledged.
    #[serde(rename = "busy_us", with = "column::micros")]
    pub busy: Duration,
    /// Of it, limited by the receive window.
    #[serde(rename = "rwnd_limited_us", with = "column::micros")]
    pub rwnd_limited: Duration,
    /// Of it, limited by the send buffer.
    #[serde(rename = "sndbuf_limited_us", with = "column::micros")]
    pub sndbuf_limited: Duration,
}

/// What limits a live connection.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Answer {
    /// This host's end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// Which end of the data this host is: that of the direction that moved more.
    pub role: End,
    /// What limited the data for most of the time watched.
    #[serde(flatten)]
    pub limit: Limit,
    /// Its share of that time, 0 to 1.
    pub share: f64,
    /// How often verdicts like this one are right, 0 to 1.
    pub confidence: f64,
    /// Every limit with its share, largest first.
    pub limits: Vec<Candidate>,
    /// Where the time between the first sample and the last went, the longest part first.
    pub account: Vec<AccountPart>,
    /// The time watched, from the first data to the last.
    #[serde(rename = "time_us", with = "column::micros")]
    pub time: Duration,
    /// How long the first limit has held by now, without a break; at most [`Answer::time`].
    #[serde(rename = "held_us", with = "column::micros")]
    pub held: Duration,
    /// Time in which neither the path nor the sending application held the data.
    #[serde(rename = "lost_us", with = "column::micros")]
    pub lost: Duration,
    /// Mean goodput.
    #[serde(rename = "goodput_bps", with = "column::rate")]
    pub goodput: Rate,
    /// The account of the connection's whole life; only of a sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lifetime: Option<Lifetime>,
    /// The answer in a few words.
    pub headline: Headline,
    /// Who has to change something; not known where the answer is no more than a guess.
    pub acts: Acts,
    /// What would change it, at the place that [`Answer::acts`] names.
    #[serde(flatten, serialize_with = "crate::finding::words::serialize_remedy")]
    pub remedy: Option<Remedy>,
    /// What lies behind the limit, as only the host can know, most important first.
    pub causes: Vec<Explanation>,
    /// What the verdict means, the largest share first.
    pub findings: Vec<Finding>,
    /// The path as it was measured, for `prove` and `tune`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<MeasuredPath>,
}

/// A connection of a host, with what limits it.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct LiveConnection {
    /// What limits it.
    #[serde(flatten)]
    pub answer: Answer,
    /// The label of its network namespace.
    pub namespace: String,
    /// The process that has it open, where that may be known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<Process>,
    /// The user who opened it.
    pub uid: u32,
    /// Where its other end is, by a table of prefixes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer_site: Option<PeerSite>,
}

/// The least length of an interval.
const INTERVAL: Duration = Duration::from_millis(40);

/// Where a cause has to be removed. Of the two limits of a guess it may be behind either.
fn site(cause: &Explanation, headline: &Headline) -> Option<Site> {
    let other = headline.or.filter(|_| headline.is_guess());
    let site = cause.sub_cause.site(headline.limit);
    site.or_else(|| other.and_then(|limit| cause.sub_cause.site(limit)))
}

impl Observed<'_> {
    /// What limits the connection; `None` with fewer than two samples.
    pub fn answer(&self) -> Option<Answer> {
        self.answer_by(&self.diagnosis()?)
    }

    /// The same of looks that are about a second apart: what a recording of days has.
    pub(crate) fn answer_of_looks(&self) -> Option<Answer> {
        self.answer_by(&self.diagnosis_of_looks(None)?)
    }

    fn answer_by(&self, diagnosis: &Diagnosis) -> Option<Answer> {
        let last = self.samples.last()?;
        let diagnosis = &*self.with_window_above(diagnosis);
        let diagnosis = &*self.with_asked_pace(diagnosis);
        let verdict = &diagnosis.verdict;
        let Candidate { limit, share } = verdict.limited_by();
        let headline = diagnosis.headline();
        let goodput = mean_goodput(verdict);
        let causes = self.causes(&headline, verdict, goodput);
        let findings = diagnosis.findings();
        let (acts, remedy) = self.advice(&headline, &causes, &findings);
        Some(Answer {
            local: last.local,
            remote: last.remote,
            role: self.role,
            limit,
            share,
            confidence: verdict.confidence,
            limits: verdict.shares.clone(),
            account: self.account(&verdict.shares),
            time: verdict.time,
            held: held(verdict, limit),
            lost: diagnosis.lost(),
            goodput,
            lifetime: self.lifetime(),
            headline,
            acts,
            remedy,
            findings,
            path: path::measured(self, verdict, goodput),
            causes,
        })
    }

    /// The same with what the window of SSH's channel held, where its sockets show that.
    fn with_window_above<'d>(&self, diagnosis: &'d Diagnosis) -> Cow<'d, Diagnosis> {
        let verdict = &diagnosis.verdict;
        let may_be = leaves_room_above(verdict.limited_by().limit);
        if !may_be || cause::ssh_channel(self, verdict).is_none() {
            return Cow::Borrowed(diagnosis);
        }
        let verdict = with_channel(verdict, self.role);
        Cow::Owned(Diagnosis { verdict, ..diagnosis.clone() })
    }

    /// The same held by its application, which asked for the rate that the socket sends at, unless
    /// data waits on the path, too.
    fn with_asked_pace<'d>(&self, diagnosis: &'d Diagnosis) -> Cow<'d, Diagnosis> {
        let limit = diagnosis.verdict.limited_by().limit;
        let may_be = self.role == End::Sender && matches!(limit, Limit::Link | Limit::Unknown);
        match cause::paced(self).filter(|_| may_be) {
            Some(SocketCause::PacedByApplication { rate, .. })
                if diagnosis.findings().iter().all(|one| one.evidence.queue().is_none()) =>
            {
                let verdict = with_asked_pace(&diagnosis.verdict, rate);
                Cow::Owned(Diagnosis { verdict, ..diagnosis.clone() })
            }
            _ => Cow::Borrowed(diagnosis),
        }
    }

    /// Where the time went, if these limits held the data.
    fn account(&self, shares: &[Candidate]) -> Vec<AccountPart> {
        let Some(first) = self.samples.first() else { return Vec::new() };
        let mut account = LiveAccount::new((first.local, first.remote));
        for pair in self.samples.windows(2) {
            account.note(&pair[0], &pair[1], self.role, shares);
        }
        account.parts()
    }

    /// What lies behind the limit, with what is advised on it. What a device of this host does is
    /// counted, whatever the verdict is, and comes first.
    fn causes(&self, headline: &Headline, verdict: &Verdict, goodput: Rate) -> Vec<Explanation> {
        let limit = verdict.limited_by().limit;
        let carried = host::Carried { limit, goodput };
        let by_socket = cause::causes(self, limit, verdict).into_iter().map(|cause| {
            let own = Explanation::from(cause);
            Explanation { remedy: headline.advise_behind(own.remedy), ..own }
        });
        let device = self.host.device(carried).filter(|_| self.role == End::Sender);
        let of_machine = self.host.flow_cap(carried).into_iter().chain(self.host.group.cloned());
        let first = device.into_iter().map(Explanation::from);
        first.chain(by_socket).chain(of_machine.map(Explanation::from)).collect()
    }

    /// Who has to act, and what to do there: both follow the cause that explains the limit, or else
    /// the limit itself.
    fn advice(
        &self,
        headline: &Headline,
        causes: &[Explanation],
        findings: &[Finding],
    ) -> (Acts, Option<Remedy>) {
        let is_guess = headline.is_guess();
        // What a machine counted is no guess.
        let is_sure =
            |cause: &&Explanation| !is_guess || matches!(cause.sub_cause, SubCause::Machine(_));
        let mut sure = causes.iter().filter(is_sure);
        let explained = sure.find_map(|cause| Some((site(cause, headline)?, cause.remedy)));
        let (acts, remedy) = match explained {
            Some((Site::Path, remedy)) => (Acts::Path, Some(remedy)),
            Some((Site::End(end), remedy)) if end == self.role => (Acts::Here, Some(remedy)),
            Some((Site::End(_), remedy)) => (Acts::Peer, Some(remedy)),
            None if is_guess => (Acts::Unknown, findings.first().map(|finding| finding.remedy)),
            None => {
                let acts = Acts::against(headline.limit, self.role);
                (acts, findings.first().map(|finding| finding.remedy))
            }
        };
        (if remedy.is_some_and(Remedy::is_evidence) { Acts::Unknown } else { acts }, remedy)
    }

    fn diagnosis(&self) -> Option<Diagnosis> {
        let (hint, interval) = (PathHint::default(), INTERVAL);
        match self.role {
            End::Sender => {
                let sockets = Sockets { sender: self.samples, receiver: self.other, interval };
                Diagnosis::from_samples(sockets, hint)
            }
            // The sender's own counters say more than the receiver can.
            End::Receiver if self.other.len() > 1 => {
                let sockets = Sockets { sender: self.other, receiver: self.samples, interval };
                Diagnosis::from_samples(sockets, hint)
            }
            End::Receiver => Diagnosis::from_receiver(self.samples, interval, hint),
        }
    }

    /// The same of looks that are far apart, as people log them, or as a test of another program
    /// took them.
    fn diagnosis_of_looks(&self, by: Option<TestProgram>) -> Option<Diagnosis> {
        let verdict = match self.role {
            End::Sender => match by {
                Some(TestProgram::Iperf3 { rate, sndbuf }) => {
                    from_means(self.samples, rate, sndbuf)
                }
                Some(TestProgram::Ndt7) | None => from_looks(self.samples, self.other),
            },
            End::Receiver if self.other.len() > 1 => from_looks(self.other, self.samples),
            End::Receiver => from_receiver_looks(self.samples),
        };
        Some(Diagnosis { verdict, ..self.diagnosis()? })
    }

    /// The states in which the socket was seen.
    fn infos(&self) -> impl DoubleEndedIterator<Item = &TcpInfo> {
        self.samples.iter().filter_map(|sample| sample.info.as_ref())
    }

    /// The last of them.
    fn info(&self) -> Option<&TcpInfo> {
        self.infos().next_back()
    }

    /// The first and the last state.
    fn ends(&self) -> Option<(&TcpInfo, &TcpInfo)> {
        self.infos().next().zip(self.info())
    }

    fn lifetime(&self) -> Option<Lifetime> {
        let info = self.info().filter(|_| self.role == End::Sender)?;
        Some(Lifetime {
            busy: info.busy_time?,
            rwnd_limited: info.rwnd_limited?,
            sndbuf_limited: info.sndbuf_limited?,
        })
    }
}

fn mean_goodput(verdict: &Verdict) -> Rate {
    let carried = verdict.intervals.iter().map(Interval::carried);
    carried.sum::<Bytes>().per(verdict.time).unwrap_or(Rate::ZERO)
}

/// How long `limit` has held at the end of the verdict's time.
fn held(verdict: &Verdict, limit: Limit) -> Duration {
    let last = verdict.intervals.iter().rev().take_while(|one| one.limit() == limit);
    last.map(|one| one.length).sum()
}

#[cfg(test)]
mod tests;
