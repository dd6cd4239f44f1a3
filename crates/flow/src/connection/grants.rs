//! Data that is sent as far as the peer's application grants it. SSH's channels (RFC 4254 section
//! 5.2) and HTTP/2's streams (RFC 9113 section 5.2) have such a window, and so has every client
//! that keeps a fixed number of requests under way.
//!
//! A grant is a message of the peer, and what it acknowledges is what the peer had when it granted
//! more. So with a window of `W` bytes no data is sent beyond `acknowledged by the last grant + W`,
//! and a sender that waits for the next grant has sent just up to there. Both numbers stand in the
//! packets, so `W` shows at either end of the path, and without a word of the protocol's contents:
//!
//! * `extent` is what was sent beyond the acknowledgement of the last grant when the next one
//!   arrived: always `W` where the application holds the data;
//! * `flight` is what was sent beyond the next grant's own acknowledgement: always the same where a
//!   buffer or a window of TCP holds the data, whose acknowledgements come between the grants, too.
//!
//! The two differ by what was granted, so one of them varies where that varies. Where it does not,
//! the sender stops, and goes on with a grant: it was silent, or ACKs without data released
//! nothing.

use super::answers::{AT_ONCE, AT_ONCE_PART};
use crate::capture::segment::SequenceNumber;
use fullpipe_model::units::{Bytes, Duration, Instant};
use std::collections::VecDeque;

/// Fewer ACKs that release nothing are no pause: hosts send several segments at a time.
const IDLE_ACKS: u32 = 2;
/// Nor are those that a host handed to TCP at once with what did: they came in this time.
const BATCH: Duration = Duration::from_micros(250);
/// A silence of so much of a round trip is one, too.
const SILENT_PART: u64 = 8;
/// Grants that are remembered one by one. Of more, every second is.
const MAX_KEPT: usize = 512;
/// ACKs and messages on their way to a sender far from the capture point that are remembered. More
/// ACKs are not counted, which makes pauses seem shorter.
const MAX_ON_THEIR_WAY: usize = 1024;
/// The extent of a grant is at the bound within this part of it.
const AT_BOUND: f64 = 0.03;
/// Where the sender stops so often, and goes on with a grant so often, what it had sent by then is
/// told by those grants alone: others come while it still sends.
const PAUSES_LEAST: u64 = 16;
const OF_PAUSES: f64 = 0.8;

/// The grants of one direction's data.
#[derive(Debug, Clone, Default)]
pub(super) struct Grants {
    /// What the other end sent and the sender has not heard yet, as seen from the capture point.
    on_their_way: VecDeque<Heard>,
    /// Whether data was sent since the last message was put on its way.
    is_answered: bool,
    /// What the last message acknowledged that the sender has heard.
    granted: Option<SequenceNumber>,
    /// A message that the sender has heard since it sent data.
    next: Option<Grant>,
    /// When it heard the last one.
    heard_at: Instant,
    /// When it sent data last.
    sent_at: Instant,
    /// ACKs without data that it has heard since it sent data, and when the first of them.
    acks: u32,
    first_ack_at: Instant,
    /// How often it was silent, and how often a grant ended that.
    pauses: u64,
    ended: u64,
    kept: Vec<Grant>,
    /// Of so many grants one is kept, and so many were not since.
    stride: u32,
    skipped: u32,
}

/// Something that the other end sent.
#[derive(Debug, Clone, Copy)]
struct Heard {
    at: Instant,
    /// What a message acknowledges; `None` of an ACK without data.
    message: Option<SequenceNumber>,
}

/// What a message met.
#[derive(Debug, Clone, Copy)]
struct Grant {
    extent: u32,
    flight: u32,
    /// The sender had stopped, and went on at once.
    releases: bool,
    /// ACKs without data had released nothing before.
    is_after_acks: bool,
}

/// What the grants show of one direction's data.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct GrantFacts {
    /// How many messages came while data was under way.
    pub count: u64,
    /// Of them, those at which the data reached [`GrantFacts::bound`].
    pub at_bound: u64,
    /// What was sent beyond the acknowledgement of a grant, again and again: the median of those at
    /// the bound.
    pub bound: Bytes,
    /// What a grant allows more, typically.
    pub step: Bytes,
    /// By how much extents at the bound differ, and flights at the same time.
    pub spread: GrantSpread,
    /// The fraction of the grants at the bound before which the sender had stopped, and after which
    /// it went on at once.
    pub releasing: f64,
}

/// How much extents and flights vary, from the tenth percentile to the ninetieth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GrantSpread {
    /// What was sent beyond the acknowledgement of the grant before.
    pub extents: Bytes,
    /// What was in flight.
    pub flights: Bytes,
}

/// New data.
#[derive(Debug, Clone, Copy)]
pub(super) struct Granted {
    pub at: Instant,
    /// The number after the highest sent before it.
    pub next: SequenceNumber,
    /// The round trip between the capture point and the sender.
    pub lag: Duration,
    /// The least round trip of the whole path so far.
    pub rtt: Duration,
}

impl Granted {
    /// So much of a round trip, or what hosts take to wake an application.
    fn part(&self, of: u64) -> Duration {
        AT_ONCE.max(Duration::from_nanos(self.rtt.as_nanos() / of))
    }
}

impl Grant {
    /// Whether this much was sent beyond the acknowledgement of the grant before.
    fn is_at(&self, bound: u32) -> bool {
        f64::from(self.extent.abs_diff(bound)) <= AT_BOUND * f64::from(bound)
    }
}

impl Grants {
    /// Notes that the other end sent data.
    pub fn message(&mut self, at: Instant, ack: SequenceNumber) {
        let heard = Heard { at, message: Some(ack) };
        let has_room = self.on_their_way.len() < MAX_ON_THEIR_WAY;
        match self.on_their_way.back_mut() {
            // A message of several segments, or of an end that sends a lot.
            Some(last) if !self.is_answered && last.message.is_some() => *last = heard,
            _ if has_room => self.on_their_way.push_back(heard),
            _ => {}
        }
        self.is_answered = false;
    }

    /// Notes an ACK without data that acknowledges something.
    pub fn acknowledged(&mut self, at: Instant) {
        // Before the first message nothing is granted.
        let counts = self.granted.is_some() || !self.on_their_way.is_empty();
        if counts && self.on_their_way.len() < MAX_ON_THEIR_WAY {
            self.on_their_way.push_back(Heard { at, message: None });
        }
    }

    /// Notes new data.
    pub fn sent(&mut self, data: Granted) {
        self.is_answered = true;
        while let Some(heard) = self.on_their_way.front().filter(|one| one.at + data.lag <= data.at)
        {
            let Heard { at, message } = *heard;
            self.on_their_way.pop_front();
            match message {
                None => {
                    if self.acks == 0 {
                        self.first_ack_at = at + data.lag;
                    }
                    self.acks = self.acks.saturating_add(1);
                }
                Some(ack) => self.hears(at + data.lag, ack, data.next),
            }
        }
        let is_silent = data.at.since(self.sent_at) >= data.part(SILENT_PART);
        self.pauses += u64::from(is_silent && self.granted.is_some());
        if let Some(grant) = self.next.take() {
            let is_soon = data.at.since(self.heard_at) <= data.part(AT_ONCE_PART);
            let ends = is_silent && is_soon && grant.is_after_acks && grant.flight > 0;
            self.ended += u64::from(ends);
            let releases = (grant.is_after_acks || is_silent) && is_soon;
            self.keep(Grant { releases, ..grant });
        }
        self.acks = 0;
        self.sent_at = self.sent_at.max(data.at);
    }

    /// The sender hears a message.
    fn hears(&mut self, at: Instant, ack: SequenceNumber, next: SequenceNumber) {
        if let Some(granted) = self.granted.filter(|_| self.next.is_none()) {
            let (extent, flight) = (ahead(next, granted), ahead(next, ack));
            let is_after_acks = self.acks >= IDLE_ACKS && at.since(self.first_ack_at) >= BATCH;
            self.next = Some(Grant { extent, flight, releases: false, is_after_acks });
        }
        self.heard_at = at;
        self.granted = Some(ack);
    }

    fn keep(&mut self, grant: Grant) {
        // A question that comes when all is said grants nothing.
        if grant.flight == 0 {
            return;
        }
        if self.skipped < self.stride {
            self.skipped += 1;
            return;
        }
        self.skipped = 0;
        if self.kept.len() == MAX_KEPT {
            let mut is_kept = false;
            self.kept.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
            self.stride = self.stride.saturating_mul(2).saturating_add(1);
        }
        self.kept.push(grant);
    }

    /// The facts so far.
    pub fn facts(&self) -> GrantFacts {
        let stops =
            self.pauses >= PAUSES_LEAST && self.ended as f64 >= OF_PAUSES * self.pauses as f64;
        let told = self.kept.iter().filter(|one| (one.releases && one.is_after_acks) || !stops);
        let kept: Vec<&Grant> = told.collect();
        let most = percentile(kept.iter().map(|one| one.extent), 95);
        // Before the data has reached it for the first time, congestion control still grows.
        let reached = kept.iter().position(|one| one.is_at(most));
        let after = &kept[reached.unwrap_or(kept.len())..];
        let at_bound: Vec<&Grant> = after.iter().copied().filter(|one| one.is_at(most)).collect();
        let extents = at_bound.iter().map(|one| one.extent);
        let steps = at_bound.iter().map(|one| one.extent.saturating_sub(one.flight));
        let releasing = at_bound.iter().filter(|one| one.releases).count();
        let stride = u64::from(self.stride) + 1;
        GrantFacts {
            count: after.len() as u64 * stride,
            at_bound: at_bound.len() as u64 * stride,
            bound: Bytes::new(percentile(extents.clone(), 50).into()),
            step: Bytes::new(percentile(steps, 50).into()),
            spread: GrantSpread {
                extents: spread(extents),
                flights: spread(at_bound.iter().map(|one| one.flight)),
            },
            releasing: releasing as f64 / at_bound.len().max(1) as f64,
        }
    }
}

/// How far a number is ahead of another, if it is.
fn ahead(next: SequenceNumber, from: SequenceNumber) -> u32 {
    if next.is_before(from) { 0 } else { next.distance(from) }
}

/// From the tenth percentile to the ninetieth.
fn spread(values: impl Iterator<Item = u32> + Clone) -> Bytes {
    Bytes::new((percentile(values.clone(), 90) - percentile(values, 10)).into())
}

fn percentile(values: impl Iterator<Item = u32>, part: usize) -> u32 {
    let mut values: Vec<u32> = values.collect();
    values.sort_unstable();
    values.get(values.len().saturating_sub(1) * part / 100).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests;
