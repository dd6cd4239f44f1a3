//! The sender's state over time, in the form that the limits need: how much was in flight, against
//! which window, and how much was delivered.
//!
//! Time is cut into intervals of about a round trip. Within an interval, amounts are weighted by
//! the time for which they held. Memory is bounded: when a connection outlives [`MAX_INTERVALS`],
//! neighbours are merged and the interval doubles. A long silence is one interval, however long.
//!
//! How much is in flight depends on the point of view. When data passes the capture point, its
//! sender has not yet acted on the ACKs that passed there most recently: it is behind by the round
//! trip between capture point and sender. ACKs are therefore held back by that time (`lag`), which
//! is zero at the sender and the whole round trip at the receiver. Where there are timestamps (RFC
//! 7323), the lag follows the queue, because data that echoes an ACK's TSval left the sender after
//! that ACK arrived.

mod lag;
mod late_acks;
mod passing;

use super::relabel::RTO_LEAST;
use super::scale_guess::ScaleGuess;
use super::spacing::Spacing;
use super::trains::Trains;
use crate::capture::segment::SequenceNumber;
use crate::intake::HostPairSum;
use crate::limit::{Features, Least};
use fullpipe_model::units::{Bytes, Duration, Instant, Window};
pub(super) use late_acks::LateAcks;
use std::collections::VecDeque;

/// The least interval, where the round trip is shorter or not known.
pub(super) const MIN_INTERVAL: Duration = Duration::from_millis(10);
const MAX_INTERVALS: usize = 4096;
/// Data that follows data this soon belongs to the same burst.
const BURST_GAP: Duration = Duration::from_micros(500);
/// Most ACKs that are held back; beyond this number they count at once.
const MAX_HELD: usize = 1 << 14;
/// Most TSvals that are remembered until the lag is known. At the sender, they are echoed at once.
const MAX_STAMPS_OF_GUESS: usize = 1 << 10;
/// A guessed interval is not widened beyond this. Data that waits longer for its acknowledgement
/// waits for something other than the path.
const INTERVAL_MOST_OF_GUESS: Duration = Duration::from_secs(1);
/// The TSvals of ACKs and when each was first seen.
#[derive(Debug, Clone, Default)]
struct Stamps {
    of_acks: VecDeque<(u32, Instant)>,
    /// How many of them were echoed, and the quickest echo. Where there is no handshake, the lag is
    /// inferred from these.
    echoes: u32,
    quickest: Option<Duration>,
}

/// What a series starts with.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeriesStart {
    pub at: Instant,
    /// Where the first data begins, and the highest number acknowledged before it.
    pub seq: SequenceNumber,
    pub una: SequenceNumber,
    /// Right edge of the window, where its scale is known.
    pub edge: Option<SequenceNumber>,
    /// Length of intervals, where a round trip is known.
    pub interval: Option<Duration>,
    /// The round trip between the capture point and the sender, where a handshake or the place of
    /// the capture shows it.
    pub lag: Option<Duration>,
}

/// The window that an ACK advertises.
#[derive(Debug, Clone, Copy)]
pub(super) enum AckWindow {
    /// In bytes.
    Bytes(u32),
    /// As in the header, because the scale was not captured.
    Unscaled(u16),
}

/// Data that passed the capture point.
#[derive(Debug, Clone, Copy)]
pub(super) struct Data {
    pub seq: SequenceNumber,
    pub length: u32,
    /// How many segments it was on the wire, and the size of the largest so far.
    pub segments: u32,
    pub segment: u32,
    /// Its bytes passed before, or it is a retransmission.
    pub is_repeated: bool,
    /// IP identifications show that packets before it did not pass the capture point.
    pub follows_gap: bool,
    /// What its host had sent to the other, in all of their connections, with this data.
    pub carried: HostPairSum,
    /// Its TSecr.
    pub echo: Option<u32>,
}

#[derive(Debug, Clone)]
pub(super) struct Series {
    interval: Duration,
    /// The interval was chosen without knowing a round trip.
    is_guess: bool,
    lag: Duration,
    /// The lag is still to be inferred from timestamps.
    is_lag_open: bool,
    /// First number not acknowledged, number after the highest sent, right edge of the window.
    una: SequenceNumber,
    next: SequenceNumber,
    /// An ACK of this number is the first of the last flight: the next flight begins after it.
    flight: SequenceNumber,
    spacing: Spacing,
    edge: Option<RightEdge>,
    segment: u32,
    now: Instant,
    /// When an ACK last moved the left edge, or at the sender told that bytes arrived behind a
    /// hole.
    acked_at: Instant,
    held: VecDeque<HeldAck>,
    /// Bytes above `una` that SACK reported: they are no longer in flight.
    sacked: u32,
    /// Absent where there is no lag to measure: most connections are short, and many are open at
    /// once.
    stamps: Option<Box<Stamps>>,
    /// The lag without a queue.
    lag_least: Duration,
    /// When data last passed, and whether the burst that it belongs to followed an ACK.
    sent_at: Instant,
    prompted: bool,
    /// What the two hosts' connections had carried by then.
    carried: HostPairSum,
    /// The least round trip.
    least: Least,
    /// The rate of trains: at the sender, of the bytes that ACKs report; elsewhere, of the bytes
    /// that pass. Absent until more events have passed than most connections ever have.
    trains: Option<Box<Trains>>,
    untimed: u8,
    /// Present where the window's scale was not captured.
    scale: Option<Box<ScaleGuess>>,
    current: Features,
    closed: Vec<Features>,
}

/// The right edge of the window.
#[derive(Debug, Clone, Copy)]
struct RightEdge {
    now: SequenceNumber,
    /// The one before the last ACK; the same where none was known. Near the receiver, this is the
    /// one that the sender knew.
    before: SequenceNumber,
}

/// An ACK on its way from the capture point to the sender.
#[derive(Debug, Clone, Copy)]
struct HeldAck {
    due: Instant,
    ack: SequenceNumber,
    window: AckWindow,
    sacked: u32,
}

impl Series {
    /// Starts with the first data.
    pub fn new(start: SeriesStart) -> Self {
        let SeriesStart { at, seq, una, edge, interval, lag } = start;
        let is_guess = interval.is_none();
        let interval = interval.unwrap_or(MIN_INTERVAL).max(Duration::from_micros(1));
        let una = if una.is_before(seq) { una } else { seq };
        Series {
            interval,
            is_guess,
            lag: lag.unwrap_or(Duration::ZERO),
            is_lag_open: lag.is_none(),
            una,
            next: seq,
            flight: una,
            spacing: Spacing::default(),
            edge: edge.map(|now| RightEdge { now, before: now }),
            segment: 1,
            now: at,
            acked_at: Instant::ZERO,
            held: VecDeque::new(),
            sacked: 0,
            stamps: None,
            lag_least: lag.unwrap_or(Duration::ZERO),
            sent_at: at,
            prompted: false,
            carried: HostPairSum::default(),
            least: Least::default(),
            trains: None,
            untimed: 0,
            scale: None,
            current: Features { start: at, ..Features::default() },
            closed: Vec::new(),
        }
    }

    /// Notes data that passed the capture point.
    pub fn sent(&mut self, at: Instant, data: Data) {
        let beside = self.carried_beside(at, data);
        let gap = beside.gap;
        if let Some(echo) = data.echo {
            self.echoed(at, echo, gap);
        }
        self.release(at);
        self.advance(at);
        self.note_beside(at, &beside);
        let is_after_timer = at.since(self.sent_at) >= RTO_LEAST;
        // After so long a silence, the sender's timer prompted the repair, not an ACK.
        self.current.recovered |= data.is_repeated && is_after_timer;
        self.current.follows_gap |= data.follows_gap && is_after_timer;
        let end = data.seq + data.length;
        let may_begin = !self.una_soon(at).is_before(self.flight);
        if self.lag > Duration::ZERO && self.next.is_before(end) {
            self.pace(gap, may_begin);
        }
        // A write of many segments is one event, however long the device or a queue takes to send
        // it.
        if at.since(self.sent_at) > BURST_GAP || self.segment == 1 {
            self.prompted = at.since(self.acked_at) <= self.prompt();
            if !data.is_repeated {
                self.note_pause(at);
            }
        }
        self.sent_at = at;
        self.segment = self.segment.max(data.segment);
        self.current.segments += data.segments;
        self.note_repaired(data);
        if data.is_repeated {
            self.current.retransmissions += data.segments;
        } else {
            let new = u64::from(end.distance(self.next));
            self.current.sent += new;
            if may_begin {
                self.flight = self.next + 1;
            }
            // Data that ends at the window's edge, or at the edge before the last ACK, was cut by
            // the window.
            let cut = self.edge.is_some_and(|edge| [edge.now, edge.before].contains(&end));
            let is_short = !data.length.is_multiple_of(self.segment);
            let ends_short = is_short && !cut;
            self.current.short += u32::from(ends_short);
            if let Some(trains) = &mut self.trains {
                trains.sent(at, ends_short);
            }
            if !self.prompted {
                self.current.unprompted += new;
            }
        }
        self.next = self.next.max(end);
        if self.lag > Duration::ZERO {
            self.passed(at, u64::from(data.length) + beside.bytes, data.length.into());
        }
        if let Some(scale) = &mut self.scale {
            scale.sent(end, self.segment, self.lag == Duration::ZERO);
        }
        self.note();
    }

    /// Notes an ACK that passed the capture point. `sacked` is the number of bytes above it that
    /// the receiver has.
    pub fn acknowledged(
        &mut self,
        at: Instant,
        ack: SequenceNumber,
        window: AckWindow,
        sacked: u32,
    ) {
        self.release(at);
        let held = HeldAck { due: at + self.lag, ack, window, sacked };
        self.note_late(at, &held);
        if self.lag == Duration::ZERO || self.held.len() >= MAX_HELD {
            self.apply(at, held);
        } else {
            if self.held.capacity() == 0 {
                self.held.reserve_exact(1);
            }
            self.held.push_back(held);
        }
    }

    /// Notes the TSval of an ACK.
    pub fn stamped(&mut self, at: Instant, value: u32) {
        if self.lag_least == Duration::ZERO && !self.is_lag_open {
            return;
        }
        let most = if self.is_lag_open { MAX_STAMPS_OF_GUESS } else { MAX_HELD };
        let stamps = &mut self.stamps.get_or_insert_default().of_acks;
        if stamps.back().is_none_or(|(last, _)| value.wrapping_sub(*last) as i32 > 0) {
            if stamps.len() >= most {
                stamps.pop_front();
            }
            stamps.push_back((value, at));
        }
    }

    /// Widens a guessed interval: it must not be shorter than a round trip.
    fn widen(&mut self) {
        let Some(least) = self.least.get().filter(|_| self.is_guess) else { return };
        let least = least.min(INTERVAL_MOST_OF_GUESS);
        if self.interval < least {
            self.interval = least;
            self.merge();
        }
    }

    /// Notes a round trip from data to its ACK, measured at the capture point.
    pub fn measured(&mut self, rtt: Duration) {
        let rtt = rtt.saturating_add(self.lag);
        self.least.note(rtt);
        self.current.rtt.note(rtt);
        self.widen();
    }

    /// Whether the capture was taken at the sender, as far as that is known.
    pub fn is_at_sender(&self) -> bool {
        !self.is_lag_open && self.lag_least == Duration::ZERO
    }

    /// The least measured round trip of the whole path.
    pub fn least_rtt(&self) -> Option<Duration> {
        self.least.get()
    }

    /// Ends the series. The intervals run from the first data to the last interval that is not
    /// silent.
    pub fn finish(mut self) -> Vec<Features> {
        self.release(Instant::from_nanos(u64::MAX));
        // Nobody saw the ACK of the last flight, which would tell of it.
        let is_unseen = self.lag == Duration::ZERO && self.una.is_before(self.flight);
        let open = u16::from(is_unseen) + self.spacing.open_flights();
        self.current.flights = self.current.flights.saturating_add(open);
        self.close(self.now);
        while self.closed.last().is_some_and(Features::is_silent) {
            self.closed.pop();
        }
        self.closed
    }

    fn release(&mut self, at: Instant) {
        while let Some(&held) = self.held.front() {
            if held.due > at {
                break;
            }
            self.held.pop_front();
            self.apply(held.due, held);
        }
    }

    fn apply(&mut self, at: Instant, HeldAck { ack, window, sacked, .. }: HeldAck) {
        self.advance(at);
        let (before, fresh) = (self.una, ack.distance(self.una));
        // A FIN is acknowledged, too.
        let had_data = self.in_flight() > 0;
        // An ACK of data that was not captured moves both the left edge and the highest number
        // sent.
        self.next = self.next.max(ack);
        self.una = self.una.max(ack);
        self.current.delivered += u64::from(fresh);
        // Each ACK reports the bytes that it acknowledges and the bytes that its SACK blocks add.
        let reported = u64::from(fresh) + u64::from(sacked.saturating_sub(self.sacked));
        // What SACK had reported before is no news once the hole below it is filled.
        let new = (u64::from(fresh) + u64::from(sacked)).saturating_sub(self.sacked.into());
        let fills_hole = std::mem::replace(&mut self.sacked, sacked) > 0;
        if self.lag == Duration::ZERO && reported > 0 {
            self.passed(at, reported, new);
        }
        if fresh > 0 {
            let may_begin = before.is_before(self.flight) && !ack.is_before(self.flight);
            if self.lag == Duration::ZERO && had_data && !fills_hole {
                self.pace(at.since(self.acked_at), may_begin);
            }
            self.acked_at = at;
            self.current.acks += 1;
        } else if reported > 0 && self.lag == Duration::ZERO {
            // What comes behind a hole passes like what came before it.
            self.pace(at.since(self.acked_at), false);
            self.acked_at = at;
        }
        if !ack.is_before(self.una) {
            let window = self.bytes_of(ack, window);
            let before = self.edge.map(|edge| edge.now);
            let now = window.map(|window| ack + window);
            self.edge = now.map(|now| RightEdge { now, before: before.unwrap_or(now) });
            if let (Some(before), Some(now)) = (before, now) {
                let unread = fresh.saturating_sub(now.distance(before));
                self.current.unread = self.current.unread.saturating_add(unread);
            }
            let window = window.map(|window| Window::new(Bytes::new(window.into())));
            self.current.window_max = self.current.window_max.max(window.into());
        }
        self.note();
    }

    /// The window that an ACK advertises, in bytes. `None` where its scale is not known, unless the
    /// window is closed, because zero is zero at every scale.
    fn bytes_of(&mut self, ack: SequenceNumber, window: AckWindow) -> Option<u32> {
        let window = match window {
            AckWindow::Bytes(bytes) => return Some(bytes),
            AckWindow::Unscaled(window) => window,
        };
        let scale = self.scale.get_or_insert_default();
        scale.acknowledged(ack, window);
        let bytes = scale.shift().map(|shift| u32::from(window) << shift);
        bytes.or((window == 0).then_some(0))
    }

    /// The shift of a window whose scale was not captured, as far as data and ACKs show it.
    pub fn inferred_scale(&self) -> Option<u8> {
        self.scale.as_ref().and_then(|scale| scale.shift())
    }

    /// The longest time after an ACK in which data counts as prompted by it: twice the spacing of
    /// ACKs, since pacing holds segments back by about that much.
    fn prompt(&self) -> Duration {
        // A blocked writer has to be woken, on a machine that does other work too.
        const LEAST: Duration = Duration::from_millis(1);
        let acks = self.closed.last().map_or(0, |last| u64::from(last.acks));
        let spacing = self.interval.as_nanos().checked_div(acks).unwrap_or(0);
        let least = LEAST.max(Duration::from_nanos(self.lag.as_nanos() / 25));
        least.max(Duration::from_nanos(spacing.saturating_mul(2)).min(Duration::from_millis(100)))
    }

    /// The highest number that the sender knows to be acknowledged, or is about to: data may pass a
    /// moment before the lag says that it can.
    fn una_soon(&self, at: Instant) -> SequenceNumber {
        let soon = at + Duration::from_nanos(self.lag.as_nanos() / 8);
        // On a fast path thousands are under way.
        let due = self.held.partition_point(|held| held.due <= soon);
        let last = due.checked_sub(1).and_then(|at| self.held.get(at));
        last.map_or(self.una, |held| held.ack.max(self.una))
    }

    fn in_flight(&self) -> u32 {
        self.next.distance(self.una).saturating_sub(self.sacked)
    }

    fn note(&mut self) {
        let in_flight = Bytes::new(self.in_flight().into());
        self.current.in_flight_max = self.current.in_flight_max.max(in_flight);
    }

    /// Advances the time to `to`, closing intervals that end on the way.
    fn advance(&mut self, to: Instant) {
        if to <= self.now {
            return;
        }
        let mut end = self.current.start + self.interval;
        if to >= end {
            self.hold(end);
            self.close(end);
            // Whole intervals in which nothing happened become one.
            let whole = to.since(end).as_nanos() / self.interval.as_nanos();
            if whole > 0 {
                end = end + Duration::from_nanos(whole * self.interval.as_nanos());
                self.hold(end);
                self.close(end);
            }
        }
        self.hold(to);
    }

    /// Accounts for the current state up to `to`.
    fn hold(&mut self, to: Instant) {
        let span = to.since(self.now).as_nanos();
        let in_flight = self.in_flight();
        let free = self.edge.map(|edge| edge.now.distance(self.next));
        // The next segment does not fit: the sender may not send, whatever data it has.
        let full = free.is_some_and(|free| free < self.segment);
        self.current.in_flight_time += f64::from(in_flight) * span as f64;
        if full {
            self.current.full += span;
        } else if in_flight == 0 {
            self.current.idle += span;
        }
        self.now = self.now.max(to);
    }

    fn close(&mut self, at: Instant) {
        let in_flight_max = Bytes::new(self.in_flight().into());
        let window = self.window();
        let next =
            Features { start: at, in_flight_max, window_max: window.into(), ..Features::default() };
        let mut done = std::mem::replace(&mut self.current, next);
        done.length = at.since(done.start);
        done.segment = u16::try_from(self.segment).unwrap_or(u16::MAX);
        if done.length > Duration::ZERO {
            self.closed.push(done);
        } else if let Some(last) = self.closed.last_mut() {
            last.absorb(&done);
        }
        if self.closed.len() >= MAX_INTERVALS {
            self.halve();
        }
    }

    /// The current window: all of it from the left edge, not only what is free.
    fn window(&self) -> Option<Window> {
        self.edge.map(|edge| Window::new(Bytes::new(edge.now.distance(self.una).into())))
    }

    fn halve(&mut self) {
        self.interval = self.interval.saturating_mul(2);
        let merged = self.closed.chunks(2).map(|pair| {
            let mut merged = pair[0];
            pair[1..].iter().for_each(|later| merged.absorb(later));
            merged
        });
        self.closed = merged.collect();
    }

    /// Merges neighbours until each is at least as long as the interval now is.
    fn merge(&mut self) {
        let mut merged: Vec<Features> = Vec::with_capacity(self.closed.len() / 2 + 1);
        for closed in self.closed.drain(..) {
            match merged.last_mut().filter(|last| last.length < self.interval) {
                Some(last) => last.absorb(&closed),
                None => merged.push(closed),
            }
        }
        self.closed = merged;
    }
}

#[cfg(test)]
mod tests;
