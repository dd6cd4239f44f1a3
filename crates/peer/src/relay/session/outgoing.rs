//! What a session gives to a carrier that has room, and what it does as time passes.

use super::super::carrier::{Carrier, CarrierId, Item, Sent};
use super::super::frame::{CHUNK, Frame, StreamId};
use super::{Event, Session};
use fullpipe_model::units::{Bytes, Duration, Instant};

/// A carrier that acknowledged nothing for this long, or for four of its round trips if that is
/// longer, gives up what it holds to the others. A lost packet costs a sender one timeout, 200 ms
/// at least in Linux, and the second loss of the same packet two more.
const SILENT_AFTER: Duration = Duration::from_secs(1);

/// A carrier that acknowledged nothing for this long is dead.
const DEAD_AFTER: Duration = Duration::from_secs(15);

/// An idle carrier is asked for a sign of life so often. It also keeps address translators from
/// forgetting the connection: RFC 5382 lets them do so after two hours, many do after a minute.
const PING_EVERY: Duration = Duration::from_secs(5);

/// How often the session looks for what is late.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A carrier is slow whose round trip is more than twice the best one and this.
const SLOWER_BY: Duration = Duration::from_millis(20);

/// Streams that have less than this to send, together, are kept off slow carriers.
const BULK: u64 = 8 * CHUNK as u64;

/// A session that had nothing new to send for this long is idle. For less, its user is only about
/// to write: a carrier with room then waits, because a copy would take the place of new chunks.
const IDLE_AFTER: Duration = Duration::from_millis(20);

/// What copies of late chunks may take, beyond their share of what was delivered.
const COPIES_LEAST: u64 = 1 << 20;

/// The share of what was delivered that copies of late chunks may take: one in so many bytes.
const COPIES_SHARE: u64 = 16;

impl Session {
    /// The next frame for a carrier that has room; `None` if there is none for it now. What waits
    /// may come later for the same carrier: after a push, a write, or [`Session::poll`].
    pub fn poll_frame(&mut self, now: Instant, carrier: CarrierId) -> Option<Frame> {
        let state = self.carriers.get_mut(&carrier)?;
        if let Some(frames) = state.take_ack() {
            return Some(Frame::Ack { frames });
        }
        let is_slow = self.is_slow(now, carrier);
        if !is_slow && let Some(frame) = self.control.pop_front() {
            return Some(self.hand_over(now, carrier, frame));
        }
        if let Some(frame) = self.again(now, carrier, false) {
            return Some(frame);
        }
        if !is_slow || self.waiting_bytes >= BULK {
            let chunk = self.chunk(now, carrier);
            self.idle_since = if chunk.is_none() { self.idle_since.or(Some(now)) } else { None };
            if chunk.is_some() {
                return chunk;
            }
        }
        if self.idle_since.is_some_and(|since| now.since(since) >= IDLE_AFTER)
            && let Some(frame) = self.again(now, carrier, true)
        {
            return Some(frame);
        }
        let state = self.carriers.get(&carrier)?;
        let is_due = state.idle(now) >= PING_EVERY;
        is_due.then(|| self.hand_over(now, carrier, Frame::Ping))
    }

    /// When to call [`Session::poll`], then [`Session::poll_frame`] for each carrier with room.
    pub fn poll_at(&self) -> Option<Instant> {
        self.next_poll
    }

    /// Looks for carriers that are dead, and for a session that was alone for too long.
    pub fn poll(&mut self, now: Instant) {
        let dead = self.carriers.iter().filter(|(_, state)| state.silence(now) >= DEAD_AFTER);
        let dead: Vec<CarrierId> = dead.map(|(id, _)| *id).collect();
        self.events.extend(dead.into_iter().map(Event::CarrierDead));
        let alone_until = self.alone_since.map(|since| since + self.limits.resume_for);
        if !self.is_lost && alone_until.is_some_and(|until| now >= until) {
            self.lose();
        }
        let owes = self.carriers.values().any(|state| state.oldest(now) > Duration::ZERO);
        let is_busy = owes || self.sent_bytes + self.waiting_bytes > 0 || !self.control.is_empty();
        self.next_poll = match alone_until {
            Some(_) if self.is_lost => None,
            Some(until) => Some(until),
            None if is_busy => Some(now + LOOK_EVERY),
            None => Some(now + Duration::from_secs(1)),
        };
    }

    /// Whether a carrier should leave what is urgent to others: its round trip is far longer than
    /// the best one's, or its oldest frame is overdue, while another carrier is better.
    fn is_slow(&self, now: Instant, carrier: CarrierId) -> bool {
        let Some(best) = self.best_rtt() else { return false };
        let bound = best.saturating_mul(2).saturating_add(SLOWER_BY);
        let is_over = |state: &Carrier| {
            state.rtt().is_some_and(|rtt| rtt > bound) || state.oldest(now) > bound
        };
        self.carriers.get(&carrier).is_some_and(is_over) && !self.carriers.values().all(is_over)
    }

    /// Notes a frame that goes on a carrier.
    fn hand_over(&mut self, now: Instant, carrier: CarrierId, frame: Frame) -> Frame {
        if let Some(state) = self.carriers.get_mut(&carrier) {
            state.send(now, Item::Control(frame.clone()));
        }
        frame
    }

    fn hand_over_chunk(
        &mut self,
        now: Instant,
        carrier: CarrierId,
        (stream, offset): (StreamId, u64),
        data: bytes::Bytes,
    ) -> Frame {
        let length = data.len() as u64;
        if let Some(state) = self.carriers.get_mut(&carrier) {
            state.send(now, Item::Chunk { stream, offset, length });
        }
        Frame::Data { stream, offset: Bytes::new(offset), data }
    }

    /// A chunk of the stream whose turn it is.
    fn chunk(&mut self, now: Instant, carrier: CarrierId) -> Option<Frame> {
        let may_send_new = self.sent_bytes < self.limits.send.get();
        loop {
            let stream = self.turns.first()?;
            let chunk = self.streams.get_mut(&stream).and_then(|state| {
                let before = (state.send.sent_bytes(), state.send.waiting_bytes());
                let chunk = state.send.take(may_send_new)?;
                Some((chunk, before))
            });
            let Some(((offset, data), (sent_before, waiting_before))) = chunk else {
                // With the memory for what was sent used up, the stream keeps its turn.
                let waits =
                    self.streams.get(&stream).is_some_and(|state| state.send.has_chunk(true));
                if waits && !may_send_new && !self.rotate_to_lost() {
                    return None;
                }
                if !waits {
                    self.turns.leave();
                }
                continue;
            };
            let state = self.streams.get_mut(&stream)?;
            let sent = state.send.sent_bytes() - sent_before;
            self.sent_bytes += sent;
            self.waiting_bytes -= waiting_before - state.send.waiting_bytes();
            if sent == 0 {
                self.repeated += data.len() as u64;
            }
            if state.wants_room && state.send.room() > 0 {
                state.wants_room = false;
                self.events.push_back(Event::Writable(stream));
            }
            self.turns.pay(data.len() as u64);
            self.queue_fin(stream);
            return Some(self.hand_over_chunk(now, carrier, (stream, offset), data));
        }
    }

    /// Gives the turn to a stream that has a lost chunk. Returns whether there is one.
    fn rotate_to_lost(&mut self) -> bool {
        self.turns.rotate_to(|stream| {
            self.streams.get(&stream).is_some_and(|state| state.send.has_chunk(false))
        })
    }

    /// A frame that another carrier holds for too long. `if_idle`: this carrier has nothing else to
    /// do, so what would arrive earlier on it is copied; otherwise only what a silent carrier
    /// holds.
    fn again(&mut self, now: Instant, carrier: CarrierId, if_idle: bool) -> Option<Frame> {
        let own = self.carriers.get(&carrier)?;
        let rtt = own.rtt().or(self.best_rtt()).unwrap_or(SILENT_AFTER);
        let late_after = rtt.saturating_mul(2).saturating_add(SLOWER_BY);
        if own.oldest(now) > late_after {
            return None;
        }
        loop {
            let others = self.carriers.iter().filter(|(id, _)| **id != carrier);
            let late = others.filter_map(|(id, other)| {
                let sent = other.first_not_again()?;
                let is_late = if_idle && self.is_late(now, sent, rtt);
                (is_late || is_silent(now, other)).then_some((sent.at, *id))
            });
            let (_, holder) = late.min()?;
            let other = self.carriers.get_mut(&holder)?;
            let item = other.first_not_again()?.item.clone();
            let is_allowed = match &item {
                Item::Chunk { length, .. } if if_idle && !is_silent(now, other) => {
                    let allowed = COPIES_LEAST + self.delivered / COPIES_SHARE;
                    let may_copy = self.copied + length <= allowed;
                    self.copied += if may_copy { *length } else { 0 };
                    may_copy
                }
                _ => true,
            };
            if !is_allowed {
                return None;
            }
            other.mark_again();
            match item {
                Item::Control(Frame::Ping) => {}
                Item::Control(frame) => return Some(self.hand_over(now, carrier, frame)),
                Item::Chunk { stream, offset, .. } => {
                    let Some(state) = self.streams.get_mut(&stream) else { continue };
                    if let Some(data) = state.send.again(offset) {
                        self.repeated += data.len() as u64;
                        let chunk = (stream, offset);
                        return Some(self.hand_over_chunk(now, carrier, chunk, data));
                    }
                }
            }
        }
    }

    /// Whether a carrier with the round trip `rtt` and nothing to do should copy a frame: the frame
    /// has waited for twice as long as it would have on that carrier; or a little longer than that,
    /// and chunks behind it have arrived.
    fn is_late(&self, now: Instant, sent: &Sent, rtt: Duration) -> bool {
        let held = now.since(sent.at);
        let soon = Duration::from_nanos(rtt.as_nanos() / 4 * 5).saturating_add(SLOWER_BY);
        held > rtt.saturating_mul(2).saturating_add(SLOWER_BY)
            || held > soon && self.is_overtaken(&sent.item)
    }

    fn is_overtaken(&self, item: &Item) -> bool {
        match item {
            Item::Chunk { stream, offset, .. } => {
                self.streams.get(stream).is_some_and(|state| state.send.is_overtaken(*offset))
            }
            Item::Control(_) => true,
        }
    }
}

/// Whether a carrier has acknowledged nothing for so long that the others take what it holds.
fn is_silent(now: Instant, carrier: &Carrier) -> bool {
    let round_trips = carrier.rtt().map_or(SILENT_AFTER, |rtt| rtt.saturating_mul(4));
    carrier.silence(now) >= round_trips.max(SILENT_AFTER)
}
