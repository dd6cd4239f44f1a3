//! The near end: listens for users, and keeps a session with carriers to the far end.

use super::super::frame::{CloseReason, SessionId, StreamId};
use super::super::{Role, SessionLimits};
use super::allow::Destination;
use super::auto::{self, Auto};
use super::backoff::Backoff;
use super::engine::{Ended, Handle, Unopened};
use super::far::ready_for_user;
use super::proxy::{ProxyHandshake, ProxyKind, ProxyStep};
use super::status::{Observer, Over, Questions, RelayStatus, observed};
use super::wire::{CarrierSockets, Wire};
use super::{Closed, Log, hello};
use crate::log_bound::{EACH, LogBound};
use crate::transport::without_waiting;
use crate::{Client, Keys, PeerError, random};
use fullpipe_kernel::host::clock;
use fullpipe_model::units::{Bytes, Duration};
use fullpipe_transfer::Stop;
use std::cell::{Cell, RefCell};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::TcpStream;
use tokio::sync::{Notify, watch};

/// How long a carrier's connection and its handshake may take each, and how long a user waits for a
/// session.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it is looked whether the streams have ended.
const LOOK: Duration = Duration::from_millis(50);
/// How often the number of carriers is considered.
const TICK: Duration = Duration::from_millis(200);
/// The round trip of a session that has not measured it.
const RTT: Duration = Duration::from_millis(100);
/// A listener that fails for want of descriptors or memory is asked again after this.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
/// The most users at a time.
const USERS: usize = 10_000;

/// Who says where the far end connects a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// Everybody to the same destination: `HOST:PORT`, as the far end sees it.
    To(String),
    /// The user, by a proxy's protocol.
    Proxy(ProxyKind),
}

/// How many carriers a session has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carriers {
    /// So many; at least one.
    Fixed(usize),
    /// As many as pay, by measuring what users move: one at first, 32 at most. The log says why.
    Auto,
}

/// What a near end does.
#[derive(Debug, Clone)]
pub struct RelayOptions {
    /// The far end: a name or an address with a port.
    pub server: String,
    /// The keys; without them the far end has to be on loopback.
    pub keys: Option<Keys>,
    /// Where users connect to.
    pub listen: SocketAddr,
    /// Where the far end connects them.
    pub entry: Entry,
    /// How many carriers.
    pub carriers: Carriers,
    /// `SO_RCVBUF` of carriers; `None`: the kernel tunes it.
    pub receive_buffer: Option<Bytes>,
    /// For how long streams are kept while there is no carrier.
    pub resume_for: Duration,
    /// How long streams may take to end when the relay is stopped.
    pub drain: Duration,
    /// What carriers' sockets are told.
    pub sockets: CarrierSockets,
}

/// Why a relay cannot start.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// No listening socket.
    #[error("listen on {addr}: {source}; choose another address or port with --listen")]
    Bind {
        /// The address.
        addr: SocketAddr,
        /// The kernel's error.
        source: io::Error,
    },
    /// A destination without a port, or no destination at all.
    #[error("relay to '{0}': that is no destination; give HOST:PORT, with an IPv6 address in []")]
    Destination(String),
    /// The far end can never be reached like this.
    #[error(transparent)]
    Peer(#[from] PeerError),
    /// The thread cannot wait for sockets.
    #[error("prepare to wait for sockets: {0}; is there a limit on descriptors?")]
    Runtime(io::Error),
}

/// A relay's near end that listens.
#[derive(Debug)]
pub struct Relay {
    options: RelayOptions,
    listener: TcpListener,
    addr: SocketAddr,
    observer: Observer,
    questions: Questions,
}

/// What the tasks of a near end share.
struct Near {
    options: RelayOptions,
    log: Log,
    /// Bounds the lines that users cause.
    bound: LogBound,
    /// The session that users are given to.
    session: RefCell<Option<Handle>>,
    has_changed: Notify,
    users: Cell<usize>,
    over: RefCell<Over>,
}

impl Relay {
    /// Listens. Keys that are missing, and names that make no sense, are told here.
    pub fn bind(options: RelayOptions) -> Result<Relay, RelayError> {
        if let Entry::To(to) = &options.entry
            && Destination::parse(to).is_none()
        {
            return Err(RelayError::Destination(to.clone()));
        }
        match Client::new(&options.server, options.keys.as_ref(), PATIENCE) {
            // A name may have an address later.
            Ok(_) | Err(PeerError::Resolve { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let addr = options.listen;
        let bound = TcpListener::bind(addr).and_then(without_waiting);
        let (listener, addr) = bound.map_err(|source| RelayError::Bind { addr, source })?;
        let (observer, questions) = observed();
        Ok(Relay { options, listener, addr, observer, questions })
    }

    /// The address for users, with the port that the kernel chose.
    pub fn local_addr(&self) -> SocketAddr {
        self.addr
    }

    /// Who may ask it what it does, from another thread.
    pub fn observer(&self) -> Observer {
        self.observer.clone()
    }

    /// Serves on the calling thread until `stop`. Then it listens no more, and gives the streams
    /// [`RelayOptions::drain`]; `abort` ends them at once. `log` gets a line for each event.
    pub fn run(
        self,
        stop: &Stop,
        abort: &Stop,
        log: impl Fn(&str) + 'static,
    ) -> Result<(), RelayError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(RelayError::Runtime)?;
        let near = Rc::new(Near {
            options: self.options,
            log: Rc::new(log),
            bound: LogBound::default(),
            session: RefCell::new(None),
            has_changed: Notify::new(),
            users: Cell::new(0),
            over: RefCell::default(),
        });
        let local = tokio::task::LocalSet::new();
        let ended =
            local.block_on(&runtime, near.serve(self.listener, self.questions, stop, abort));
        drop(local);
        // A carrier that is being connected may take longer.
        runtime.shutdown_background();
        ended.map_err(RelayError::Runtime)
    }
}

impl Near {
    async fn serve(
        self: Rc<Self>,
        listener: TcpListener,
        questions: Questions,
        stop: &Stop,
        abort: &Stop,
    ) -> io::Result<()> {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let near = Rc::clone(&self);
        tokio::task::spawn_local(questions.answer(move || RelayStatus {
            sessions: near.session.borrow().iter().map(Handle::status).collect(),
            over: *near.over.borrow(),
        }));
        let keeper = tokio::task::spawn_local(Rc::clone(&self).keep_session());
        tokio::task::spawn_local(Rc::clone(&self).catch_up());
        tokio::select! {
            () = Rc::clone(&self).accept(listener) => {}
            () = stop.stopped() => {}
            () = abort.stopped() => {}
        }
        (self.log)("stopping: no new streams, and those that there are may end");
        let drained = tokio::time::timeout(self.options.drain.into(), self.drain());
        tokio::select! {
            drained = drained => if drained.is_err() {
                (self.log)("some streams did not end in time, and are reset");
            },
            () = abort.stopped() => {}
        }
        keeper.abort();
        let session = self.session.take();
        if let Some(session) = session {
            session.end(Ended::Stopped);
        }
        // Sockets are closed by their tasks.
        tokio::task::yield_now().await;
        self.bound.end(&*self.log);
        Ok(())
    }

    /// Writes a line that users have caused.
    fn say(&self, line: &str) {
        self.bound.line(clock::now(), line, &*self.log);
    }

    /// Says now and then how many lines were left out.
    async fn catch_up(self: Rc<Self>) {
        loop {
            tokio::time::sleep(EACH.into()).await;
            self.bound.catch_up(clock::now(), &*self.log);
        }
    }

    /// Waits until no user is left.
    async fn drain(&self) {
        while self.users.get() > 0 || !self.session.borrow().as_ref().is_none_or(Handle::is_idle) {
            tokio::time::sleep(LOOK.into()).await;
        }
    }

    /// Accepts users for good.
    async fn accept(self: Rc<Self>, listener: tokio::net::TcpListener) {
        loop {
            match listener.accept().await {
                Ok((socket, _)) => {
                    // One too many is closed at once, by a reset.
                    let streams = self.session.borrow().as_ref().map_or(0, Handle::streams);
                    if let Ok(socket) = ready_for_user(socket)
                        && self.users.get() + streams < USERS
                    {
                        self.users.set(self.users.get() + 1);
                        tokio::task::spawn_local(Rc::clone(&self).user(socket));
                    }
                }
                // Descriptors or memory ran out: at once it would only fail again.
                Err(error) if matches!(error.raw_os_error(), Some(23 | 24 | 12 | 105)) => {
                    self.say(&format!("accept a user: {error}"));
                    tokio::time::sleep(ACCEPT_AGAIN.into()).await;
                }
                // Anything else is about that one connection.
                Err(_) => {}
            }
        }
    }

    /// Opens a stream for a user. Whatever fails, dropping the socket resets the user.
    async fn user(self: Rc<Self>, socket: TcpStream) {
        self.introduce(socket).await;
        self.users.set(self.users.get() - 1);
    }

    async fn introduce(&self, mut socket: TcpStream) {
        let (destination, handshake) = match &self.options.entry {
            Entry::To(to) => (to.clone(), None),
            Entry::Proxy(kind) => {
                let asked = tokio::time::timeout(PATIENCE.into(), ask(&mut socket, *kind)).await;
                let Ok(Some((destination, handshake))) = asked else { return };
                (destination, Some(handshake))
            }
        };
        let opened = self.open(&socket, &destination).await;
        let mut rest = Vec::new();
        if let Some(handshake) = handshake {
            let result = opened.as_ref().map(drop).map_err(|unopened| match unopened {
                Some(Unopened::Refused(refusal)) => Some(*refusal),
                Some(Unopened::Reset) | None => None,
            });
            let answer = handshake.answer(result);
            if socket.write_all(&answer).await.is_err() {
                return opened.map_or((), |(session, stream)| session.reset(stream));
            }
            rest = handshake.into_rest();
            if opened.is_err() {
                // The answer is the whole of this connection.
                let _ = socket2::SockRef::from(&socket).set_linger(None);
            }
        }
        match opened {
            Ok((session, stream)) => {
                session.write_early(stream, rest.into());
                session.attach_user(stream, socket);
            }
            Err(Some(unopened)) => {
                self.say(&format!("connect to {}: {unopened}", destination.escape_debug()));
            }
            Err(None) => {}
        }
    }

    /// Opens a stream for a user; `Err(None)`: there is no session, or the user has gone.
    async fn open(
        &self,
        socket: &TcpStream,
        destination: &str,
    ) -> Result<(Handle, StreamId), Option<Unopened>> {
        let waited = tokio::time::timeout(PATIENCE.into(), self.open_session()).await;
        let session = waited.map_err(|_| None)?;
        let (stream, opened) = session.open(destination).ok_or(None)?;
        let result = tokio::select! {
            result = opened => result.map_err(|_| None)?,
            // The user was reset, or did so.
            _ = socket.ready(Interest::ERROR) => {
                session.reset(stream);
                return Err(None);
            }
        };
        result.map(|()| (session, stream)).map_err(Some)
    }

    /// The session, once there is one that takes streams.
    async fn open_session(&self) -> Handle {
        loop {
            let changed = self.has_changed.notified();
            if let Some(session) = &*self.session.borrow()
                && session.is_open()
            {
                return session.clone();
            }
            changed.await;
        }
    }

    /// Begins a session, and a new one whenever it is over.
    async fn keep_session(self: Rc<Self>) {
        let mut backoff = Backoff::new();
        let mut told = String::new();
        loop {
            let Some(name) = random::<16>() else {
                return (self.log)("begin a session: the system gives no randomness");
            };
            let wire = match self.connect(name, false).await {
                Ok(wire) => wire,
                Err(closed) => {
                    // The same again would only fill the log.
                    let why = closed.to_string();
                    if why != told {
                        (self.log)(&format!("no session: {why}; trying again"));
                        told = why;
                    }
                    pause(&mut backoff).await;
                    continue;
                }
            };
            (backoff, told) = (Backoff::new(), String::new());
            let limits =
                SessionLimits { resume_for: self.options.resume_for, ..Default::default() };
            let session = Handle::start(Role::Initiator, limits, None);
            let mut slots = tokio::task::JoinSet::new();
            let (first_target, most) = match self.options.carriers {
                Carriers::Fixed(count) => (count.max(1), count.max(1)),
                Carriers::Auto => (1, auto::MOST),
            };
            let (target, _) = watch::channel(first_target);
            let mut first = Some(wire);
            for index in 0..most {
                let slot =
                    CarrierSlot { near: Rc::clone(&self), session: session.clone(), name, index };
                slots.spawn_local(slot.keep(first.take(), target.subscribe()));
            }
            if self.options.carriers == Carriers::Auto {
                slots.spawn_local(Rc::clone(&self).choose(session.clone(), target.clone()));
            }
            (self.log)(&format!("connected to {}", self.options.server));
            self.session.replace(Some(session.clone()));
            self.has_changed.notify_waiters();
            let ended = session.over().await;
            self.session.take();
            self.over.borrow_mut().add(&session.state());
            // This ends its carriers' tasks.
            drop(slots);
            (self.log)(&format!("the session is over: {}", in_words(&ended)));
            pause(&mut backoff).await;
        }
    }

    /// Sets how many carriers there should be, by what they carry.
    async fn choose(self: Rc<Self>, session: Handle, target: watch::Sender<usize>) {
        let mut auto = Auto::new(clock::now());
        loop {
            tokio::time::sleep(TICK.into()).await;
            let (now, state) = (clock::now(), session.state());
            let round_trips = state.carriers.iter().filter_map(|carrier| carrier.round_trip);
            let rtt = round_trips.min().unwrap_or(RTT);
            auto.push(now, state.delivered + state.received, state.carriers.len(), rtt);
            target.send_if_modified(|target| {
                std::mem::replace(target, auto.target()) != auto.target()
            });
            if let Some(words) = auto.poll() {
                (self.log)(&words);
            }
        }
    }

    /// Connects a carrier, and exchanges HELLO.
    async fn connect(&self, session: SessionId, joins: bool) -> Result<Wire, Closed> {
        let options = &self.options;
        let (server, keys) = (options.server.clone(), options.keys.clone());
        let (receive_buffer, transport) = (options.receive_buffer, options.sockets.transport);
        // It looks up the name again: the far end's address may have changed.
        let connected = tokio::task::spawn_blocking(move || {
            let client = Client::new(&server, keys.as_ref(), PATIENCE)?;
            client.over(transport).carrier(receive_buffer)
        });
        let connected = connected.await.map_err(broken)?.map_err(broken)?;
        let mut wire = Wire::new(connected, &options.sockets).map_err(broken)?;
        hello::initiate(&mut wire, session, joins).await?;
        Ok(wire)
    }
}

fn broken(error: impl std::fmt::Display) -> Closed {
    Closed::Broken(error.to_string())
}

/// The place of one carrier in a session.
struct CarrierSlot {
    near: Rc<Near>,
    session: Handle,
    name: SessionId,
    index: usize,
}

impl CarrierSlot {
    /// Keeps the carrier alive for as long as the target is beyond its index.
    async fn keep(self, mut wire: Option<Wire>, mut target: watch::Receiver<usize>) {
        let mut backoff = Backoff::new();
        let log = &self.near.log;
        loop {
            if target.wait_for(|target| *target > self.index).await.is_err() {
                return;
            }
            let connected = match wire.take() {
                Some(wire) => Ok(wire),
                None => self.near.connect(self.name, true).await,
            };
            let closed = match connected {
                Ok(wire) => {
                    backoff = Backoff::new();
                    let Some((carrier, closed)) = self.session.attach(wire) else { return };
                    tokio::select! {
                        closed = closed => match closed {
                            Ok(closed) => closed,
                            Err(_) => return,
                        },
                        Ok(_) = target.wait_for(|target| *target <= self.index) => {
                            self.session.retire(carrier);
                            continue;
                        }
                    }
                }
                Err(closed) => closed,
            };
            match &closed {
                Closed::Refused(CloseReason::UnknownSession, _) => {
                    return self.session.end(Ended::Unknown);
                }
                Closed::Refused(CloseReason::TooMany, text) => {
                    let text = text.escape_debug();
                    return log(&format!("one carrier less: the far end says: {text}"));
                }
                _ => log(&format!("a carrier is gone: {closed}; connecting again")),
            }
            pause(&mut backoff).await;
        }
    }
}

/// Asks a proxy's user where it wants to go; `None`: nowhere, and it was told so.
async fn ask(socket: &mut TcpStream, kind: ProxyKind) -> Option<(String, ProxyHandshake)> {
    let mut handshake = ProxyHandshake::new(kind);
    let mut bytes = [0; 2048];
    loop {
        match handshake.poll() {
            ProxyStep::Open(destination) => return Some((destination, handshake)),
            ProxyStep::Send(answer) => socket.write_all(&answer).await.ok()?,
            ProxyStep::Refuse(answer) => {
                let _ = socket2::SockRef::from(&*socket).set_linger(None);
                socket.write_all(&answer).await.ok()?;
                return None;
            }
            ProxyStep::More => {
                let count = socket.read(&mut bytes).await.ok().filter(|count| *count > 0)?;
                handshake.push(bytes.get(..count)?);
            }
        }
    }
}

async fn pause(backoff: &mut Backoff) {
    let random = random::<1>().map_or(0, |[random]| random);
    tokio::time::sleep(backoff.next(random).into()).await;
}

fn in_words(ended: &Ended) -> String {
    match ended {
        Ended::Lost => "no carrier came back in time, so its streams were reset".into(),
        Ended::Unknown => "the far end was started anew, so its streams were reset".into(),
        Ended::PeerStopped => "the far end stops".into(),
        Ended::Stopped => "this end stops".into(),
        Ended::Violation(why) => format!("the far end was cut: {why}"),
        Ended::Accused(why) => {
            format!("the far end says that this end broke the protocol: {}", why.escape_debug())
        }
    }
}
