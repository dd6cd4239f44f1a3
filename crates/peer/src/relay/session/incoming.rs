//! What a peer's frames do to a session.

use super::super::carrier::{CarrierId, Item};
use super::super::frame::{Frame, Refusal, ResetReason, StreamId};
use super::super::violation::Violation;
use super::stream::{RelayStream, StreamPhase};
use super::{Event, Role, Session};
use bytes::Bytes as Buffer;
use fullpipe_model::units::{Bytes, Instant};

/// Frames that may wait for a carrier before the peer's wishes for new streams are a violation. A
/// session with 10,000 streams has some frames for each at most.
const CONTROL_MAX: usize = 100_000;

impl Session {
    /// Takes a frame that arrived on a carrier. HELLO and CLOSE are the carrier's and not for a
    /// session. After an error the session must not be used any more: tell the peer why in CLOSE.
    pub fn push(
        &mut self,
        now: Instant,
        carrier: CarrierId,
        frame: Frame,
    ) -> Result<(), Violation> {
        let Some(state) = self.carriers.get_mut(&carrier) else { return Ok(()) };
        if frame.is_acknowledged() {
            state.receive();
        }
        match frame {
            Frame::Hello(_) | Frame::Close { .. } => Err(Violation::Hello),
            Frame::Ack { frames } => {
                let items = state.acknowledge(now, frames)?;
                items.into_iter().for_each(|item| self.acknowledge(item));
                Ok(())
            }
            Frame::Ping => Ok(()),
            Frame::Drain => {
                self.events.push_back(Event::Draining);
                Ok(())
            }
            Frame::Open { stream, credit, destination } => {
                self.take_open(stream, credit, destination)
            }
            Frame::Opened { stream, credit } => self.take_opened(stream, credit),
            Frame::Refused { stream, reason } => self.take_refused(stream, reason),
            Frame::Data { stream, offset, data } => self.take_data(stream, offset, data),
            Frame::Fin { stream, length } => self.take_fin(stream, length),
            Frame::Reset { stream, reason } => self.take_reset(stream, reason),
            Frame::Credit { stream, limit } => self.take_credit(stream, limit),
        }
    }

    /// The peer has what a frame carried.
    fn acknowledge(&mut self, item: Item) {
        match item {
            Item::Chunk { stream, offset, .. } => {
                let Some(state) = self.streams.get_mut(&stream) else { return };
                let length = state.send.acknowledge(offset);
                self.sent_bytes -= length;
                self.delivered += length;
                self.remove_if_done(stream);
            }
            Item::Control(Frame::Fin { stream, .. }) => {
                let Some(state) = self.streams.get_mut(&stream) else { return };
                state.is_fin_acknowledged = true;
                self.remove_if_done(stream);
            }
            Item::Control(_) => {}
        }
    }

    /// A stream that exists, `None` for one that is over, or a violation.
    fn known(&mut self, stream: StreamId) -> Result<Option<&mut RelayStream>, Violation> {
        let was_opened = match self.role {
            Role::Initiator => stream.0 < self.next_stream,
            Role::FarEnd => self.opened.has(stream),
        };
        if was_opened {
            Ok(self.streams.get_mut(&stream))
        } else {
            Err(Violation::NeverOpened(stream))
        }
    }

    fn take_open(
        &mut self,
        stream: StreamId,
        credit: Bytes,
        destination: String,
    ) -> Result<(), Violation> {
        if self.role != Role::FarEnd {
            return Err(Violation::Role);
        }
        if !self.opened.insert(stream)? {
            return Ok(());
        }
        if self.control.len() > CONTROL_MAX {
            return Err(Violation::TooManyAnswers);
        }
        if self.streams.len() >= self.limits.streams {
            self.control.push_back(Frame::Refused { stream, reason: Refusal::TooMany });
            return Ok(());
        }
        let mut state = RelayStream::new(StreamPhase::Incoming, &mut self.budget);
        state.send.grant(credit.get());
        self.streams.insert(stream, state);
        self.events.push_back(Event::Incoming { stream, destination });
        Ok(())
    }

    fn take_opened(&mut self, stream: StreamId, credit: Bytes) -> Result<(), Violation> {
        if self.role != Role::Initiator {
            return Err(Violation::Role);
        }
        let Some(state) = self.known(stream)? else { return Ok(()) };
        let StreamPhase::Opening { is_abandoned } = state.phase else { return Ok(()) };
        state.phase = StreamPhase::Open;
        if is_abandoned {
            self.reset(stream, ResetReason::Reset);
            return Ok(());
        }
        state.send.grant(credit.get());
        let is_readable = state.receive.is_ready() || state.receive.is_at_end();
        self.turns.join(stream);
        self.events.push_back(Event::Opened(stream));
        if is_readable {
            self.events.push_back(Event::Readable(stream));
        }
        self.queue_fin(stream);
        Ok(())
    }

    fn take_refused(&mut self, stream: StreamId, reason: Refusal) -> Result<(), Violation> {
        if self.role != Role::Initiator {
            return Err(Violation::Role);
        }
        let Some(state) = self.known(stream)? else { return Ok(()) };
        let StreamPhase::Opening { is_abandoned } = state.phase else { return Ok(()) };
        self.remove(stream);
        if !is_abandoned {
            self.events.push_back(Event::Refused(stream, reason));
        }
        Ok(())
    }

    /// A chunk may overtake OPENED: it is kept, and read after that.
    fn take_data(
        &mut self,
        stream: StreamId,
        offset: Bytes,
        data: Buffer,
    ) -> Result<(), Violation> {
        let Some(state) = self.known(stream)? else { return Ok(()) };
        let was_readable = state.receive.is_ready();
        state.receive.push(offset.get(), data, state.window.limit())?;
        self.tell_readable(stream, was_readable);
        Ok(())
    }

    fn take_fin(&mut self, stream: StreamId, length: Bytes) -> Result<(), Violation> {
        let Some(state) = self.known(stream)? else { return Ok(()) };
        let was_readable = state.receive.is_ready() || state.receive.is_at_end();
        state.receive.finish(length.get())?;
        self.tell_readable(stream, was_readable);
        if let Some(state) = self.streams.get_mut(&stream) {
            state.window.end_at(length.get(), &mut self.budget);
        }
        Ok(())
    }

    fn tell_readable(&mut self, stream: StreamId, was_readable: bool) {
        let Some(state) = self.streams.get(&stream) else { return };
        let is_readable = state.receive.is_ready() || state.receive.is_at_end();
        if is_readable && !was_readable && state.phase == StreamPhase::Open {
            self.events.push_back(Event::Readable(stream));
        }
    }

    fn take_reset(&mut self, stream: StreamId, reason: ResetReason) -> Result<(), Violation> {
        let Some(state) = self.known(stream)? else { return Ok(()) };
        // A user that has gone is not told; one that waits for OPENED hears of the reset instead.
        let is_abandoned = state.phase == StreamPhase::Opening { is_abandoned: true };
        self.remove(stream);
        if !is_abandoned {
            self.events.push_back(Event::Reset(stream, reason));
        }
        Ok(())
    }

    fn take_credit(&mut self, stream: StreamId, limit: Bytes) -> Result<(), Violation> {
        let Some(state) = self.known(stream)? else { return Ok(()) };
        state.send.grant(limit.get());
        self.turns.join(stream);
        Ok(())
    }
}
