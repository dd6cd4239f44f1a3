//! The carriers of an engine: what they bring, what they take, and their end.

use super::super::super::CarrierId;
use super::super::super::frame::{CloseReason, Frame};
use super::super::super::violation::Violation;
use super::super::Closed;
use super::super::wire::{Reading, Wire};
use super::{Ended, Engine, Handle};
use fullpipe_kernel::host::clock;
use fullpipe_model::units::Instant;
use std::rc::Rc;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::sync::{Notify, oneshot};

/// How often a carrier is read before the others have their turn.
const READS: usize = 8;

/// A carrier that belongs to the session.
pub(super) struct Carrying {
    pub wire: Wire,
    /// Tells the carrier's task to look again for what it waits.
    wake: Rc<Notify>,
    closed: Option<oneshot::Sender<Closed>>,
}

impl Handle {
    /// Adds a carrier that has exchanged HELLO. The answer comes when it is no more. `None`: the
    /// session is over.
    pub fn attach(&self, wire: Wire) -> Option<(CarrierId, oneshot::Receiver<Closed>)> {
        let (sender, closed) = oneshot::channel();
        let mut engine = self.0.borrow_mut();
        if engine.ended.is_some() {
            return None;
        }
        let now = clock::now();
        let carrier = engine.session.attach(now);
        engine.has_begun = true;
        let (stream, wake) = (wire.stream(), Rc::new(Notify::new()));
        let carrying = Carrying { wire, wake: Rc::clone(&wake), closed: Some(sender) };
        engine.carriers.insert(carrier, carrying);
        engine.order.push_back(carrier);
        // Frames may have come with HELLO.
        engine.take_frames(now, carrier);
        engine.pump();
        tokio::task::spawn_local(carry(self.clone(), carrier, stream, wake));
        Some((carrier, closed))
    }

    /// Closes a carrier that is not wanted any more. What it held goes again on the others.
    pub fn retire(&self, carrier: CarrierId) {
        let text = "fewer carriers are enough".to_owned();
        let close = Frame::Close { reason: CloseReason::Retired, text };
        let mut engine = self.0.borrow_mut();
        engine.close_carrier(carrier, Some(&close));
        engine.pump();
    }
}

/// Waits for a carrier's socket until the carrier is gone.
async fn carry(engine: Handle, carrier: CarrierId, stream: Rc<TcpStream>, wake: Rc<Notify>) {
    loop {
        let interest = match engine.0.borrow().carriers.get(&carrier) {
            None => return,
            Some(carrying) if carrying.wire.is_blocked() => Interest::READABLE | Interest::WRITABLE,
            Some(_) => Interest::READABLE,
        };
        let ready = tokio::select! {
            ready = stream.ready(interest) => ready,
            () = wake.notified() => continue,
        };
        let has_more = {
            let mut engine = engine.0.borrow_mut();
            let has_more = match ready {
                Ok(ready) => engine.carrier_is_ready(carrier, ready.is_writable()),
                Err(error) => {
                    let closed = Closed::Broken(error.to_string());
                    engine.lose_carrier(clock::now(), carrier, closed);
                    false
                }
            };
            engine.pump();
            has_more
        };
        if has_more {
            tokio::task::yield_now().await;
        }
    }
}

impl Engine {
    /// Reads a carrier, and sends what it holds if it `may_write`. Returns whether there is more to
    /// read.
    fn carrier_is_ready(&mut self, carrier: CarrierId, may_write: bool) -> bool {
        let now = clock::now();
        if may_write
            && let Some(carrying) = self.carriers.get_mut(&carrier)
            && carrying.wire.is_blocked()
            && let Err(error) = carrying.wire.flush()
        {
            self.lose_carrier(now, carrier, Closed::Broken(error.to_string()));
            return false;
        }
        for _ in 0..READS {
            let Some(carrying) = self.carriers.get_mut(&carrier) else { return false };
            let reading = carrying.wire.read(&mut self.scratch);
            self.take_frames(now, carrier);
            match reading {
                Ok(Reading::Some) => {}
                Ok(Reading::Nothing) => return false,
                Ok(Reading::End) => {
                    let why = "the other end closed it".to_owned();
                    self.lose_carrier(now, carrier, Closed::Broken(why));
                    return false;
                }
                Err(error) => {
                    self.lose_carrier(now, carrier, Closed::Broken(error.to_string()));
                    return false;
                }
            }
        }
        true
    }

    /// Gives the session what a carrier has brought.
    pub(super) fn take_frames(&mut self, now: Instant, carrier: CarrierId) {
        loop {
            let Some(carrying) = self.carriers.get_mut(&carrier) else { return };
            let pushed = match carrying.wire.next_frame() {
                Ok(None) => return,
                Ok(Some(Frame::Close { reason, text })) => {
                    return self.take_close(now, carrier, reason, text);
                }
                Ok(Some(frame)) => self.session.push(now, carrier, frame),
                Err(error) => Err(Violation::Frame(error)),
            };
            if let Err(violation) = pushed {
                return self.end(Ended::Violation(violation.to_string()));
            }
        }
    }

    fn take_close(&mut self, now: Instant, carrier: CarrierId, reason: CloseReason, text: String) {
        match reason {
            CloseReason::Stopped => self.end(Ended::PeerStopped),
            CloseReason::Violation => self.end(Ended::Accused(text)),
            CloseReason::UnknownSession => self.end(Ended::Unknown),
            CloseReason::Retired | CloseReason::Version | CloseReason::TooMany => {
                self.lose_carrier(now, carrier, Closed::Refused(reason, text));
            }
        }
    }

    /// Lets carriers take frames for as long as they have room. Returns whether any did.
    pub(super) fn fill_carriers(&mut self, now: Instant) -> bool {
        let mut has_moved = false;
        for _ in 0..self.order.len() {
            let Some(carrier) = self.order.front().copied() else { break };
            self.order.rotate_left(1);
            let Some(carrying) = self.carriers.get_mut(&carrier) else { continue };
            if carrying.wire.is_blocked() {
                continue;
            }
            while carrying.wire.queued() < carrying.wire.batch()
                && let Some(frame) = self.session.poll_frame(now, carrier)
            {
                carrying.wire.queue(&frame);
            }
            if carrying.wire.queued() == 0 {
                continue;
            }
            has_moved = true;
            match carrying.wire.flush() {
                Ok(()) if carrying.wire.is_blocked() => carrying.wake.notify_one(),
                Ok(()) => {}
                Err(error) => self.lose_carrier(now, carrier, Closed::Broken(error.to_string())),
            }
        }
        has_moved
    }

    /// A carrier is no more: what it held goes again on others.
    pub(super) fn lose_carrier(&mut self, now: Instant, carrier: CarrierId, closed: Closed) {
        if let Some(mut carrying) = self.remove_carrier(carrier) {
            self.session.detach(now, carrier);
            if let Some(sender) = carrying.closed.take() {
                // Whoever opened the carrier may not want another.
                let _ = sender.send(closed);
            }
        }
    }

    /// Closes a carrier with a last word.
    pub(super) fn close_carrier(&mut self, carrier: CarrierId, close: Option<&Frame>) {
        if let Some(mut carrying) = self.remove_carrier(carrier) {
            self.session.detach(clock::now(), carrier);
            if let Some(close) = close {
                carrying.wire.queue(close);
                // If the carrier has no room or is broken, the other end finds out by itself.
                let _ = carrying.wire.flush();
            }
        }
    }

    fn remove_carrier(&mut self, carrier: CarrierId) -> Option<Carrying> {
        let carrying = self.carriers.remove(&carrier)?;
        self.order.retain(|other| *other != carrier);
        carrying.wake.notify_one();
        Some(carrying)
    }
}
