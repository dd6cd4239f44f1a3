//! A window inside the application: the sender stops after a fixed amount and goes on when the
//! peer's application answers, although the receive window is open and nothing was lost. SSH
//! channels (RFC 4254 section 5.2), HTTP/2 streams (RFC 9113 section 5.2) and SMB have such a
//! window; one request after another for blocks of one size is a window of one block.

use super::DataSeen;
use crate::limit::{Limit, Verdict};
use fullpipe_model::units::{Bytes, Duration};

/// The least number of pauses that an answer ended, and the least fraction of all pauses.
const COUNT_LEAST: u32 = 8;
const OF_PAUSES: f64 = 0.8;
/// The least fraction of the time that they take.
const PART_LEAST: f64 = 0.2;
/// A bound is fixed where half of the intervals come to within this fraction of it.
const FIXED: f64 = 0.85;
const FIXED_IN: f64 = 0.5;
/// Another bound is open where no more than this fraction of it is used.
const OPEN: f64 = 0.8;
/// A receive window may be full for this fraction of the time at most.
const FULL_MOST: f64 = 0.05;
/// One segment retransmitted in so many pauses says nothing about them.
const OF_LOSS: u64 = 20;
/// Less is a message, which no window cuts.
const SEGMENTS_LEAST: u64 = 8;

/// Data that an application's own window held.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ApplicationWindow {
    /// How many times the sender stopped.
    pub count: u64,
    /// For how long, in total.
    pub time: Duration,
    /// That time as a fraction of the whole transfer's, at most 1.
    pub part: f64,
    /// The most payload in flight, again and again.
    pub bound: Bytes,
    /// The receive window at that time.
    pub window: Bytes,
}

impl ApplicationWindow {
    pub(super) fn of(seen: DataSeen<'_>) -> Option<Self> {
        let verdict = seen.verdict?;
        let facts = seen.facts();
        let answers = facts.answers;
        let part = seen.part(answers.wait).min(1.0);
        let is_mostly = f64::from(answers.awaited) >= OF_PAUSES * f64::from(answers.pauses);
        if answers.awaited < COUNT_LEAST || !is_mostly || part < PART_LEAST {
            return None;
        }
        // Any other limit has evidence of its own.
        let limit = verdict.limited_by().limit;
        let may_be = matches!(limit, Limit::SendBuffer | Limit::SenderApplication | Limit::Unknown);
        let lost: u64 = verdict.intervals.iter().map(|one| one.evidence.retransmissions).sum();
        if !may_be || lost * OF_LOSS > answers.awaited.into() {
            return None;
        }
        let bound = fixed_bound(verdict)?;
        let window = open_window(verdict, bound)?;
        let segment = facts.payload_max.get().min(LARGEST);
        (bound.get() >= SEGMENTS_LEAST * segment).then_some(ApplicationWindow {
            count: answers.awaited.into(),
            time: answers.wait,
            part,
            bound,
            window,
        })
    }
}

/// The largest segment on Ethernet: packets in a host's capture may be several segments merged.
const LARGEST: u64 = 1460;

/// The amount in flight to which intervals come back again and again. `None` where it varies.
fn fixed_bound(verdict: &Verdict) -> Option<Bytes> {
    let intervals = verdict.intervals.iter();
    let mut flights: Vec<Bytes> = intervals.map(|one| one.evidence.in_flight).collect();
    flights.retain(|flight| *flight > Bytes::ZERO);
    flights.sort_unstable();
    let bound = *flights.get(flights.len().saturating_sub(1) * 9 / 10)?;
    let at = flights.iter().filter(|flight| flight.as_f64() >= FIXED * bound.as_f64()).count();
    // More in flight now and then would be no bound; the first flight may be larger.
    let most = flights.get(flights.len().saturating_sub(1) * 95 / 100)?.as_f64();
    let is_fixed = most <= bound.as_f64() / FIXED;
    (is_fixed && at as f64 >= FIXED_IN * flights.len() as f64).then_some(bound)
}

/// The median receive window, if it had room all of the time.
fn open_window(verdict: &Verdict, bound: Bytes) -> Option<Bytes> {
    let intervals = verdict.intervals.iter();
    let full = intervals.clone().map(|one| one.evidence.window_full * one.length.as_secs_f64());
    let full: f64 = full.sum();
    let windows = intervals.filter_map(|one| one.evidence.window);
    let mut windows: Vec<Bytes> = windows.map(|window| window.bytes()).collect();
    windows.sort_unstable();
    let window = *windows.get(windows.len() / 2)?;
    let is_open = full <= FULL_MOST * verdict.time.as_secs_f64();
    (is_open && bound.as_f64() <= OPEN * window.as_f64()).then_some(window)
}
