//! What limited each workload of a host, hour by hour: a recording of days as sums that a fleet of
//! hosts can be asked by.
//!
//! A part of a recording is answered for itself, and belongs to the hour in which it begins. What
//! the sums of two parts say is the sum of both, so it does not matter in which groups parts are
//! read.

use super::{History, LiveConnection, LookNote, PastAnswer, moved};
use crate::account::{AccountPart, Cause};
use fullpipe_model::limit::End;
use fullpipe_model::observe::{PeerSite, PodName, Prefixes, Workload, is_server_port};
use fullpipe_model::units::{Bytes, Duration, Instant};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Length of the time that is summed.
const HOUR: u64 = 3_600_000_000_000;

/// What a sum is of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorkloadHour {
    /// The name of the host, where its recorder wrote it.
    pub host: Option<Arc<str>>,
    /// When the hour begins, since 1970.
    pub hour: Instant,
    /// Which connections; `None` of those of which no samples were kept.
    pub of: Option<WorkloadPart>,
}

/// Connections of a workload, and one thing that took their time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorkloadPart {
    /// The pod, container or systemd unit, or `host`; `None` where the process is hidden.
    pub workload: Option<String>,
    /// What the pod is called, where its node said so.
    pub pod: Option<PodName>,
    /// The name of the process.
    pub process: Option<String>,
    /// The lower port of both, if it is a server's.
    pub port: Option<u16>,
    /// Where the other end is.
    pub site: Option<PeerSite>,
    /// Which end of the data the host is: `sender` or `receiver`.
    pub role: &'static str,
    /// Whose the time was.
    pub owner: &'static str,
    /// What for.
    pub cause: &'static str,
}

/// What is summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkloadSum {
    /// The time, summed over connections; of those of which nothing was kept it is not known.
    pub time: Duration,
    /// What is lost of it.
    pub lost: Duration,
    /// What moved meanwhile, in the direction that moved more.
    pub bytes: Bytes,
    /// For how long looks were taken in this hour; only where no connection is meant.
    pub watched: Duration,
}

/// The sums of a recording's parts.
#[derive(Debug, Clone, Default)]
pub struct WorkloadHours {
    prefixes: Arc<Prefixes>,
    sums: BTreeMap<WorkloadHour, WorkloadSum>,
}

impl WorkloadHours {
    /// Nothing yet; `prefixes` say where peers are.
    pub fn new(prefixes: Arc<Prefixes>) -> WorkloadHours {
        WorkloadHours { prefixes, sums: BTreeMap::new() }
    }

    /// Adds a part, which is all that `part` has; says how many more sums there are.
    pub fn add(&mut self, part: &History) -> u64 {
        let before = self.sums.len();
        let Some(first) = part.hosts().first() else { return 0 };
        let begins = part.looks().first().map_or(first.at, |(_, look)| look.at);
        let begins = first.offset.calendar(begins).as_nanos();
        let hour = Instant::from_nanos(begins - begins % HOUR);
        let host = Some(Arc::from(first.host.as_str())).filter(|name: &Arc<str>| !name.is_empty());
        for (_, look) in part.looks() {
            let whole = WorkloadHour { host: host.clone(), hour, of: None };
            let sum = self.sums.entry(whole).or_default();
            let LookNote { length, lost_unkept, .. } = *look;
            sum.watched = sum.watched.saturating_add(length);
            sum.lost = sum.lost.saturating_add(lost_unkept);
        }
        let all = Instant::from_nanos(u64::MAX);
        for answer in part.answers_between(Instant::ZERO, all, &mut |_| true) {
            self.add_answer(&host, hour, &answer);
        }
        (self.sums.len() - before) as u64
    }

    fn add_answer(&mut self, host: &Option<Arc<str>>, hour: Instant, answer: &PastAnswer) {
        let connection = &answer.connection;
        let parts = &connection.answer.account;
        let bytes = shared(moved_by(answer), parts);
        for (part, bytes) in parts.iter().zip(bytes) {
            let of = Some(self.part_of(connection, part));
            let key = WorkloadHour { host: host.clone(), hour, of };
            let sum = self.sums.entry(key).or_default();
            sum.time = sum.time.saturating_add(part.time);
            sum.lost = sum.lost.saturating_add(part.lost);
            sum.bytes = sum.bytes.saturating_add(bytes);
        }
    }

    fn part_of(&self, connection: &LiveConnection, part: &AccountPart) -> WorkloadPart {
        let answer = &connection.answer;
        let process = connection.process.as_ref();
        let group = process.map(|process| process.cgroup.as_deref().unwrap_or_default());
        let low = answer.local.port().min(answer.remote.port());
        WorkloadPart {
            workload: group.map(|group| Workload::of(group).name().to_string()),
            pod: process.and_then(|process| process.pod.clone()),
            process: process.map(|process| process.name.clone()),
            port: Some(low).filter(|port| is_server_port(*port)),
            site: self.prefixes.site(answer.remote.ip()).cloned(),
            role: match answer.role {
                End::Sender => "sender",
                End::Receiver => "receiver",
            },
            owner: part.owner.name(),
            cause: part.cause.name(),
        }
    }

    /// How many sums there are.
    pub fn len(&self) -> usize {
        self.sums.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.sums.is_empty()
    }

    /// Takes all sums out, in order.
    pub fn take(&mut self) -> BTreeMap<WorkloadHour, WorkloadSum> {
        std::mem::take(&mut self.sums)
    }
}

/// What a connection moved in the direction that moved more.
fn moved_by(answer: &PastAnswer) -> Bytes {
    match answer.connection.answer.role {
        End::Sender => moved(&answer.samples, |info| info.bytes_acked),
        End::Receiver => moved(&answer.samples, |info| info.bytes_received),
    }
}

/// Whether data was on its way.
const fn is_transfer(part: &AccountPart) -> bool {
    matches!(part.cause, Cause::Transfer(_))
}

/// The bytes shared out by the times in which data was on its way; by all times where none was.
/// Nothing is lost by rounding.
fn shared(bytes: Bytes, parts: &[AccountPart]) -> Vec<Bytes> {
    let moving: u128 = parts
        .iter()
        .filter(|part| is_transfer(part))
        .map(|part| u128::from(part.time.as_nanos()))
        .sum();
    let all: u128 = parts.iter().map(|part| u128::from(part.time.as_nanos())).sum();
    let whole = if moving > 0 { moving } else { all };
    let (mut passed, mut given) = (0_u128, 0_u128);
    let shares = parts.iter().map(|part| {
        let counts = moving == 0 || is_transfer(part);
        passed += if counts { u128::from(part.time.as_nanos()) } else { 0 };
        let until = u128::from(bytes.get()).saturating_mul(passed).checked_div(whole).unwrap_or(0);
        let share = until - given;
        given = until;
        Bytes::new(u64::try_from(share).unwrap_or(u64::MAX))
    });
    shares.collect()
}

#[cfg(test)]
mod tests;
