//! A session with its sockets: carriers on one side, users' connections on the other.
//!
//! One thread does everything, so nothing is locked and no byte waits for another thread. Each
//! socket has a task that only waits for it ([`Handle`] starts them). Whatever happened, the
//! engine's `pump` then carries on until nothing moves any more: events of the session go to the
//! users, frames to the carriers that have room.
//!
//! # Never a truncated success
//! A user's socket has `SO_LINGER` 0 from its first moment, and loses it only when both directions
//! have ended in order. So whatever else closes it, this process' death included, closes it with a
//! reset, and no user can take that for the end of the stream.

mod carriers;
mod users;

use super::super::frame::{CloseReason, Frame, Refusal, ResetReason, StreamId};
use super::super::session::{Event, Session, SessionState};
use super::super::{CarrierId, Role, SessionLimits};
use super::status::SessionStatus;
use super::wire::READ;
use bytes::BytesMut;
use carriers::Carrying;
use fullpipe_kernel::host::clock;
use fullpipe_model::units::{Duration, Instant};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::rc::Rc;
use tokio::sync::{Notify, mpsc, oneshot};
use users::User;

/// Why a session is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ended {
    /// There was no carrier for too long.
    Lost,
    /// The other end does not know the session: it was started anew.
    Unknown,
    /// The other end stops.
    PeerStopped,
    /// This end stops.
    Stopped,
    /// The other end broke the protocol.
    Violation(String),
    /// The other end says that this one did.
    Accused(String),
}

/// Why a stream was not opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unopened {
    /// The far end could not connect.
    Refused(Refusal),
    /// The stream or the session ended first.
    Reset,
}

impl std::fmt::Display for Unopened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Unopened::Refused(Refusal::Refused) => "connection refused",
            Unopened::Refused(Refusal::Unreachable) => "the far end has no route to it",
            Unopened::Refused(Refusal::TimedOut) => "it did not answer the far end in time",
            Unopened::Refused(Refusal::UnknownHost) => "the far end does not know the name",
            Unopened::Refused(Refusal::NotAllowed) => {
                "the far end does not allow it: its `fullpipe serve --relay` needs --allow for it"
            }
            Unopened::Refused(Refusal::TooMany) => "the far end has as many streams as it accepts",
            Unopened::Refused(Refusal::Failed) => "the far end could not connect",
            Unopened::Reset => "it was reset",
        })
    }
}

/// A stream that asks for a destination.
pub(super) type Incoming = (StreamId, String);

/// A session and its sockets.
pub(super) struct Engine {
    session: Session,
    carriers: BTreeMap<CarrierId, Carrying>,
    /// The carriers in the order in which they take frames; it turns.
    order: VecDeque<CarrierId>,
    users: HashMap<StreamId, User>,
    openings: HashMap<StreamId, oneshot::Sender<Result<(), Unopened>>>,
    /// At the far end: where streams that ask for a destination go.
    incoming: Option<mpsc::UnboundedSender<Incoming>>,
    /// Users' bytes are read into it and cut off.
    read_buffer: BytesMut,
    /// Encrypted bytes of carriers.
    scratch: Vec<u8>,
    /// When the timer looks, and what tells it that this is too late.
    looks_at: Instant,
    timer: Rc<Notify>,
    /// A carrier was attached. Before that the session is not alone: its first one is on its way.
    has_begun: bool,
    is_draining: bool,
    ended: Option<Ended>,
    over: Rc<Notify>,
}

/// What tasks hold of an engine.
#[derive(Clone)]
pub(super) struct Handle(Rc<RefCell<Engine>>);

impl Handle {
    /// A session whose timer runs. Streams that ask for a destination go to `incoming`.
    pub fn start(
        role: Role,
        limits: SessionLimits,
        incoming: Option<mpsc::UnboundedSender<Incoming>>,
    ) -> Handle {
        let now = clock::now();
        let timer = Rc::new(Notify::new());
        let handle = Handle(Rc::new(RefCell::new(Engine {
            session: Session::new(now, role, limits),
            carriers: BTreeMap::new(),
            order: VecDeque::new(),
            users: HashMap::new(),
            openings: HashMap::new(),
            incoming,
            read_buffer: BytesMut::new(),
            scratch: vec![0; READ],
            looks_at: now,
            timer: Rc::clone(&timer),
            has_begun: false,
            is_draining: false,
            ended: None,
            over: Rc::new(Notify::new()),
        })));
        tokio::task::spawn_local(handle.clone().look(timer));
        handle
    }

    /// Does what is due as time passes.
    async fn look(self, timer: Rc<Notify>) {
        loop {
            let at = {
                let mut engine = self.0.borrow_mut();
                if engine.ended.is_some() {
                    return;
                }
                engine.pump();
                let now = clock::now();
                let at = engine.session.poll_at().unwrap_or(now + Duration::from_secs(1));
                engine.looks_at = at;
                at.since(now)
            };
            tokio::select! {
                () = tokio::time::sleep(at.into()) => {}
                () = timer.notified() => {}
            }
        }
    }

    /// Why the session is over, once it is.
    pub async fn over(&self) -> Ended {
        let over = Rc::clone(&self.0.borrow().over);
        loop {
            let notified = over.notified();
            if let Some(ended) = self.0.borrow().ended.clone() {
                return ended;
            }
            notified.await;
        }
    }

    /// Asks the far end for a stream; `None` if the session takes none.
    pub fn open(
        &self,
        destination: &str,
    ) -> Option<(StreamId, oneshot::Receiver<Result<(), Unopened>>)> {
        let mut engine = self.0.borrow_mut();
        if engine.is_draining || engine.ended.is_some() {
            return None;
        }
        let stream = engine.session.open(destination)?;
        let (sender, opened) = oneshot::channel();
        engine.openings.insert(stream, sender);
        engine.pump();
        Some((stream, opened))
    }

    /// At the far end: the destination could not be connected.
    pub fn refuse(&self, stream: StreamId, reason: Refusal) {
        let mut engine = self.0.borrow_mut();
        engine.session.refuse(stream, reason);
        engine.pump();
    }

    /// Ends a stream that has no user here yet.
    pub fn reset(&self, stream: StreamId) {
        let mut engine = self.0.borrow_mut();
        engine.openings.remove(&stream);
        engine.session.reset(stream, ResetReason::Reset);
        engine.pump();
    }

    /// Tells the other end that no new streams are taken.
    pub fn drain(&self) {
        let mut engine = self.0.borrow_mut();
        engine.is_draining = true;
        engine.session.drain();
        engine.pump();
    }

    /// Whether the session takes new streams.
    pub fn is_open(&self) -> bool {
        let engine = self.0.borrow();
        !engine.is_draining && engine.ended.is_none()
    }

    /// Streams, opened or asked for, and users whose last bytes are not written.
    pub fn streams(&self) -> usize {
        let engine = self.0.borrow();
        engine.users.len() + engine.openings.len()
    }

    /// The session's state now.
    pub fn state(&self) -> SessionState {
        self.0.borrow().session.state(clock::now())
    }

    /// The session's state, with its carriers' addresses.
    pub fn status(&self) -> SessionStatus {
        let engine = self.0.borrow();
        SessionStatus::new(&engine.session.state(clock::now()), |carrier| {
            engine.carriers.get(&carrier.carrier)?.wire.ends()
        })
    }

    /// Whether nothing is under way, in either direction.
    pub fn is_idle(&self) -> bool {
        let engine = self.0.borrow();
        engine.users.is_empty() && engine.openings.is_empty() && engine.session.is_idle()
    }

    /// Ends the session: resets what is left, and tells the other end.
    pub fn end(&self, ended: Ended) {
        self.0.borrow_mut().end(ended);
    }
}

impl Engine {
    /// Carries on until nothing moves.
    fn pump(&mut self) {
        let now = clock::now();
        if self.ended.is_some() || !self.has_begun {
            return;
        }
        self.session.poll(now);
        loop {
            let mut has_moved = false;
            while let Some(event) = self.session.poll_event() {
                has_moved = true;
                self.handle(now, event);
            }
            if self.ended.is_some() {
                return;
            }
            if !(self.fill_carriers(now) || has_moved) {
                break;
            }
        }
        if self.session.poll_at().is_some_and(|at| at < self.looks_at) {
            self.timer.notify_one();
        }
    }

    fn handle(&mut self, now: Instant, event: Event) {
        match event {
            Event::Incoming { stream, destination } => {
                let to = self.incoming.as_ref().filter(|_| !self.is_draining);
                if to.is_none_or(|to| to.send((stream, destination)).is_err()) {
                    self.session.refuse(stream, Refusal::Failed);
                }
            }
            Event::Opened(stream) => self.opened(stream, Ok(())),
            Event::Refused(stream, reason) => self.opened(stream, Err(Unopened::Refused(reason))),
            Event::Readable(stream) => self.flush_user(now, stream),
            Event::Writable(stream) => self.wake_user(stream),
            Event::Reset(stream, _) => {
                self.opened(stream, Err(Unopened::Reset));
                self.cut_user(stream);
            }
            Event::CarrierDead(carrier) => self.lose_carrier(
                now,
                carrier,
                super::Closed::Broken("it said nothing for 15 s".into()),
            ),
            Event::Draining => self.is_draining = true,
            Event::Lost => self.end(Ended::Lost),
        }
    }

    fn opened(&mut self, stream: StreamId, result: Result<(), Unopened>) {
        if let Some(opening) = self.openings.remove(&stream) {
            let has_opened = result.is_ok();
            // The user may have gone while it waited.
            if opening.send(result).is_err() && has_opened {
                self.session.reset(stream, ResetReason::Reset);
            }
        }
    }

    fn end(&mut self, ended: Ended) {
        if self.ended.is_some() {
            return;
        }
        let close = match &ended {
            Ended::Violation(why) => Some((CloseReason::Violation, why.clone())),
            Ended::Stopped => Some((CloseReason::Stopped, "this end stops".to_owned())),
            _ => None,
        };
        let close = close.map(|(reason, text)| Frame::Close { reason, text });
        let carriers: Vec<CarrierId> = self.carriers.keys().copied().collect();
        for carrier in carriers {
            self.close_carrier(carrier, close.as_ref());
        }
        self.openings.clear();
        let users: Vec<StreamId> = self.users.keys().copied().collect();
        users.into_iter().for_each(|stream| self.cut_user(stream));
        self.ended = Some(ended);
        self.over.notify_waiters();
        self.timer.notify_one();
    }
}
