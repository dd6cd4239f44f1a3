//! The session of two relays: user streams over carriers that come and go.
//!
//! A session is sans-IO. Whoever drives it owns the carriers and the users' connections:
//!
//! 1. A carrier is connected and has exchanged HELLO: [`Session::attach`]. It is gone:
//!    [`Session::detach`].
//! 2. Frames of a carrier: [`Session::push`]. After an error the session is over.
//! 3. A carrier has room: [`Session::poll_frame`], until that is `None`. A carrier *takes* frames;
//!    none is assigned to it before, so a slow one takes little. Every attached carrier must be
//!    asked whenever it has room: the others leave urgent frames to it if it is the quickest.
//! 4. At [`Session::poll_at`], and after any of these: [`Session::poll`].
//! 5. [`Session::poll_event`] says what the users have to know. They [`Session::read`] and
//!    [`Session::write`]; a stream that gives or takes nothing is told of by an event when it does.
//!
//! # What is kept, and what goes again
//! Every frame but HELLO, CLOSE and ACK is acknowledged by count, carrier by carrier. When a
//! carrier dies, what it had not acknowledged goes again on others. All such frames may therefore
//! arrive twice, and none changes anything the second time. A chunk that a slow carrier holds is
//! copied to one that has had nothing to do for a while; such copies take at most 1 MiB and a
//! sixteenth of what was delivered. A carrier that is silent for longer than `SILENT_AFTER` loses
//! all it holds to the others. A stream ends with its whole length, or by
//! a reset: what is missing is never taken for the end.
//!
//! # Which carrier takes what
//! Any carrier takes chunks. Frames that open, close or grant, and chunks of streams that have
//! little to send, are taken by carriers whose round trip is near the best one's.

mod incoming;
mod opened;
mod outgoing;
mod stream;

use super::carrier::{Carrier, CarrierId, CarrierState, Item};
use super::frame::{Frame, Refusal, ResetReason, StreamId};
use super::send_buffer;
use super::turns::Turns;
use super::window::{Budget, WINDOW_LEAST};
use bytes::Bytes as Buffer;
use fullpipe_model::units::{Bytes, Duration, Instant};
use opened::Opened;
use std::collections::{BTreeMap, HashMap, VecDeque};
use stream::{RelayStream, StreamPhase};

/// Which end of the relay a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Opens streams: where users connect to.
    Initiator,
    /// Accepts streams, and connects to destinations.
    FarEnd,
}

/// What a session may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionLimits {
    /// Memory for what was received and not read, over all streams. Each stream has 64 KiB beyond
    /// it.
    pub receive: Bytes,
    /// Memory for what was sent and not acknowledged, over all streams.
    pub send: Bytes,
    /// Streams at a time that a far end accepts.
    pub streams: usize,
    /// For how long streams are kept while there is no carrier.
    pub resume_for: Duration,
}

impl Default for SessionLimits {
    /// 128 MiB received, 64 MiB sent, 10,000 streams, and no time without a carrier.
    fn default() -> Self {
        SessionLimits {
            receive: Bytes::new(128 << 20),
            send: Bytes::new(64 << 20),
            streams: 10_000,
            resume_for: Duration::ZERO,
        }
    }
}

/// What the users of a session have to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// At the far end: connect to a destination, then [`Session::accept`] or [`Session::refuse`].
    Incoming {
        /// The new stream.
        stream: StreamId,
        /// `HOST:PORT`, or empty; from the peer, so not to be trusted.
        destination: String,
    },
    /// At the initiator: the far end is connected.
    Opened(StreamId),
    /// At the initiator: the far end is not connected, and the stream is no more.
    Refused(StreamId, Refusal),
    /// [`Session::read`] gives something again.
    Readable(StreamId),
    /// [`Session::room`] is there again.
    Writable(StreamId),
    /// The stream is no more, and what was not read is lost.
    Reset(StreamId, ResetReason),
    /// A carrier acknowledged nothing for 15 s although it should: close and detach it.
    CarrierDead(CarrierId),
    /// The peer accepts no new streams.
    Draining,
    /// There was no carrier for too long. All streams were reset.
    Lost,
}

/// What reading gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Read {
    /// The stream's next bytes.
    Data(Buffer),
    /// Nothing now: wait for [`Event::Readable`].
    Later,
    /// Everything was read, and the other user has closed its direction.
    End,
    /// There is no such stream: it was reset or refused.
    Gone,
}

/// One end of a session.
#[derive(Debug)]
pub struct Session {
    role: Role,
    limits: SessionLimits,
    carriers: BTreeMap<CarrierId, Carrier>,
    next_carrier: u32,
    /// Since when there is no carrier.
    alone_since: Option<Instant>,
    is_lost: bool,
    streams: HashMap<StreamId, RelayStream>,
    next_stream: u32,
    opened: Opened,
    budget: Budget,
    /// Frames that are not chunks, in order.
    control: VecDeque<Frame>,
    turns: Turns,
    /// Bytes of all streams that were sent and are not acknowledged, and that wait.
    sent_bytes: u64,
    waiting_bytes: u64,
    /// Payload that the peer acknowledged for the first time, and that was read here.
    delivered: u64,
    received: u64,
    /// Payload that was sent more than once.
    repeated: u64,
    /// That part of it which was copied because it was late.
    copied: u64,
    /// Since when carriers with room find nothing new to send.
    idle_since: Option<Instant>,
    events: VecDeque<Event>,
    next_poll: Option<Instant>,
}

/// A session's state, for the status and for tests.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionState {
    /// The carriers.
    pub carriers: Vec<CarrierState>,
    /// Streams that are not over.
    pub streams: usize,
    /// Payload that the peer acknowledged, each byte once.
    pub delivered: Bytes,
    /// Payload that users here have read.
    pub received: Bytes,
    /// Payload that was sent more than once.
    pub repeated: Bytes,
    /// Received, in order, and not read.
    pub unread: Bytes,
    /// Received behind a gap.
    pub behind_gap: Bytes,
    /// The most memory that the peer may fill now.
    pub granted: Bytes,
    /// Sent or waiting, and not acknowledged.
    pub unacknowledged: Bytes,
    /// Streams that could send if the peer granted more: their far readers are slow.
    pub out_of_credit: usize,
}

impl Session {
    /// A session without carriers at `now`.
    pub fn new(now: Instant, role: Role, limits: SessionLimits) -> Self {
        Session {
            role,
            limits,
            carriers: BTreeMap::new(),
            next_carrier: 0,
            alone_since: Some(now),
            is_lost: false,
            streams: HashMap::new(),
            next_stream: 1,
            opened: Opened::new(),
            budget: Budget::new(limits.receive.get()),
            control: VecDeque::new(),
            turns: Turns::default(),
            sent_bytes: 0,
            waiting_bytes: 0,
            delivered: 0,
            received: 0,
            repeated: 0,
            copied: 0,
            idle_since: None,
            events: VecDeque::new(),
            next_poll: None,
        }
    }

    /// Adds a carrier that has exchanged HELLO.
    pub fn attach(&mut self, now: Instant) -> CarrierId {
        let carrier = CarrierId(self.next_carrier);
        self.next_carrier += 1;
        self.carriers.insert(carrier, Carrier::new(now));
        self.alone_since = None;
        carrier
    }

    /// Removes a carrier. What it did not acknowledge goes again on others.
    pub fn detach(&mut self, now: Instant, carrier: CarrierId) {
        let Some(gone) = self.carriers.remove(&carrier) else { return };
        let mut again = Vec::new();
        for item in gone.into_items() {
            match item {
                Item::Chunk { stream, offset, .. } => {
                    if let Some(state) = self.streams.get_mut(&stream) {
                        state.send.lose(offset);
                        self.turns.join(stream);
                    }
                }
                Item::Control(Frame::Ping) => {}
                Item::Control(frame) => again.push(frame),
            }
        }
        // In their order, and before what waits already.
        again.into_iter().rev().for_each(|frame| self.control.push_front(frame));
        if self.carriers.is_empty() {
            self.alone_since = Some(now);
            self.poll(now);
        }
    }

    /// Opens a stream to `destination`; at most 512 bytes. [`Event::Opened`] or [`Event::Refused`]
    /// follows. `None` when the session is lost, has no number left, or is not the initiator's.
    pub fn open(&mut self, destination: &str) -> Option<StreamId> {
        if self.is_lost || self.role != Role::Initiator || self.next_stream == u32::MAX {
            return None;
        }
        let stream = StreamId(self.next_stream);
        self.next_stream += 1;
        let state =
            RelayStream::new(StreamPhase::Opening { is_abandoned: false }, &mut self.budget);
        let credit = Bytes::new(state.window.limit());
        self.streams.insert(stream, state);
        self.control.push_back(Frame::Open { stream, credit, destination: destination.into() });
        Some(stream)
    }

    /// The destination of an incoming stream is connected.
    pub fn accept(&mut self, stream: StreamId) {
        let Some(state) = self.streams.get_mut(&stream) else { return };
        if state.phase == StreamPhase::Incoming {
            state.phase = StreamPhase::Open;
            let credit = Bytes::new(state.window.limit());
            self.control.push_back(Frame::Opened { stream, credit });
        }
    }

    /// The destination of an incoming stream could not be connected.
    pub fn refuse(&mut self, stream: StreamId, reason: Refusal) {
        if self.streams.get(&stream).is_some_and(|state| state.phase == StreamPhase::Incoming) {
            self.remove(stream);
            self.control.push_back(Frame::Refused { stream, reason });
        }
    }

    /// How much may be written; if nothing, [`Event::Writable`] tells when.
    pub fn room(&mut self, stream: StreamId) -> Bytes {
        let Some(state) = self.streams.get_mut(&stream) else { return Bytes::ZERO };
        let room = state.send.room();
        state.wants_room |= room == 0;
        Bytes::new(room)
    }

    /// Sends more of a stream that is open. What is beyond [`Session::room`] is taken all the same,
    /// so the writer bounds the memory.
    pub fn write(&mut self, stream: StreamId, data: Buffer) {
        let Some(state) = self.streams.get_mut(&stream) else { return };
        let before = state.send.waiting_bytes();
        state.send.write(data);
        self.waiting_bytes += state.send.waiting_bytes() - before;
        self.turns.join(stream);
    }

    /// The user has closed its direction: the peer's reader comes to an end after what was written.
    pub fn finish(&mut self, stream: StreamId) {
        let Some(state) = self.streams.get_mut(&stream) else { return };
        state.send.finish();
        self.queue_fin(stream);
    }

    /// Ends both directions now.
    pub fn reset(&mut self, stream: StreamId, reason: ResetReason) {
        let Some(state) = self.streams.get_mut(&stream) else { return };
        match &mut state.phase {
            StreamPhase::Opening { is_abandoned } => *is_abandoned = true,
            StreamPhase::Incoming => self.refuse(stream, Refusal::Failed),
            StreamPhase::Open => {
                self.remove(stream);
                self.control.push_back(Frame::Reset { stream, reason });
            }
        }
    }

    /// The stream's next bytes.
    pub fn read(&mut self, now: Instant, stream: StreamId) -> Read {
        let rtt = self.best_rtt();
        let Some(state) = self.streams.get_mut(&stream) else { return Read::Gone };
        if state.phase != StreamPhase::Open {
            return Read::Later;
        }
        if let Some(data) = state.receive.pop() {
            let keeps_up = !state.receive.is_ready();
            let amount = data.len() as u64;
            self.received += amount;
            let limit = state.window.consume(now, amount, rtt, keeps_up, &mut self.budget);
            if let Some(limit) = limit.map(Bytes::new) {
                self.control.push_back(Frame::Credit { stream, limit });
            }
            return Read::Data(data);
        }
        if !state.receive.is_at_end() {
            return Read::Later;
        }
        state.is_end_read = true;
        self.remove_if_done(stream);
        Read::End
    }

    /// Tells the peer not to open streams any more.
    pub fn drain(&mut self) {
        self.control.push_back(Frame::Drain);
    }

    /// What the users have to know next.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Whether there is neither a stream nor a frame that the peer must still get.
    pub fn is_idle(&self) -> bool {
        self.streams.is_empty() && self.control.is_empty()
    }

    /// The state now.
    pub fn state(&self, now: Instant) -> SessionState {
        let held = self.streams.values().map(|state| state.receive.held());
        let (unread, behind_gap) =
            held.fold((0, 0), |(ready, waiting), (more_ready, more_waiting)| {
                (ready + more_ready, waiting + more_waiting)
            });
        let blocked = self.streams.values().filter(|state| state.send.is_out_of_credit());
        SessionState {
            carriers: self.carriers.iter().map(|(id, carrier)| carrier.state(*id, now)).collect(),
            streams: self.streams.len(),
            delivered: Bytes::new(self.delivered),
            received: Bytes::new(self.received),
            repeated: Bytes::new(self.repeated),
            unread: Bytes::new(unread),
            behind_gap: Bytes::new(behind_gap),
            granted: Bytes::new(self.budget.granted() + WINDOW_LEAST * self.streams.len() as u64),
            unacknowledged: Bytes::new(self.sent_bytes + self.waiting_bytes),
            out_of_credit: blocked.count(),
        }
    }

    /// The most memory that the limits allow for what was received and not read.
    pub fn receive_bound(&self) -> Bytes {
        self.limits.receive + Bytes::new(WINDOW_LEAST * (self.streams.len() as u64))
    }

    /// How much one stream may have waiting.
    pub const fn waiting_max() -> Bytes {
        Bytes::new(send_buffer::WAITING_MAX)
    }

    fn best_rtt(&self) -> Option<Duration> {
        self.carriers.values().filter_map(Carrier::rtt).min()
    }

    /// Queues FIN once everything before it has been sent.
    fn queue_fin(&mut self, stream: StreamId) {
        let Some(state) = self.streams.get_mut(&stream) else { return };
        if state.is_fin_sent || state.phase != StreamPhase::Open {
            return;
        }
        if let Some(length) = state.send.length().map(Bytes::new) {
            state.is_fin_sent = true;
            self.control.push_back(Frame::Fin { stream, length });
        }
    }

    fn remove_if_done(&mut self, stream: StreamId) {
        if self.streams.get(&stream).is_some_and(RelayStream::is_done) {
            self.remove(stream);
        }
    }

    fn remove(&mut self, stream: StreamId) {
        let Some(mut state) = self.streams.remove(&stream) else { return };
        state.window.close(&mut self.budget);
        self.sent_bytes -= state.send.sent_bytes();
        self.waiting_bytes -= state.send.waiting_bytes();
    }

    /// Resets every stream for good.
    fn lose(&mut self) {
        self.is_lost = true;
        let mut streams: Vec<StreamId> = self.streams.keys().copied().collect();
        streams.sort_unstable();
        for stream in streams {
            self.remove(stream);
            self.events.push_back(Event::Reset(stream, ResetReason::SessionLost));
        }
        self.control.clear();
        self.events.push_back(Event::Lost);
    }
}
