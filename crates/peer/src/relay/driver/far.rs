//! The far end: sessions of near ends, and the servers that their users want.

use super::super::frame::{CloseReason, Frame, Hello, Refusal, SessionId, StreamId, VERSION};
use super::super::{Role, SessionLimits};
use super::allow::{AllowList, Destination};
use super::engine::{Ended, Handle, Incoming};
use super::lookups::{Lookups, SessionLookups, THREADS};
use super::own_addresses::own_addresses;
use super::status::{Observer, Over, Questions, RelayStatus, observed};
use super::wire::{CarrierSockets, Wire};
use super::{Log, hello};
use crate::log_bound::{EACH, LogBound};
use crate::{CarrierSink, Connection, PublicKey};
use fullpipe_kernel::host::clock;
use fullpipe_model::units::Duration;
use fullpipe_transfer::Stop;
use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

/// How long a server may take to answer.
const CONNECT: Duration = Duration::from_secs(10);

/// Sessions at once of one key, or over loopback without keys.
const SESSIONS_EACH: usize = 16;
/// Carriers of one session.
const CARRIERS_EACH: usize = 64;
/// How often the far end looks whether its sessions have drained.
const LOOK: Duration = Duration::from_millis(50);

/// What a far end does.
#[derive(Debug, Clone)]
pub struct FarEndOptions {
    /// Where it may connect to, at first.
    pub allow: AllowList,
    /// For how long a session's streams are kept while it has no carrier.
    pub resume_for: Duration,
    /// How long streams may take to end when the far end is stopped.
    pub drain: Duration,
    /// What carriers' sockets are told.
    pub sockets: CarrierSockets,
}

/// The far end of relays. Its carriers come from a daemon ([`FarEnd::sink`]).
#[derive(Debug)]
pub struct FarEnd {
    options: FarEndOptions,
    allow: Arc<RwLock<AllowList>>,
    sender: mpsc::UnboundedSender<Connection>,
    /// What it runs on; taken by the first run.
    inputs: Mutex<Option<Inputs>>,
    observer: Observer,
}

/// Where a far end's carriers and questions come from.
#[derive(Debug)]
struct Inputs {
    carriers: mpsc::UnboundedReceiver<Connection>,
    questions: Questions,
}

/// A near end's session.
struct Known {
    key: Option<PublicKey>,
    engine: Handle,
    carriers: usize,
}

/// What the tasks of a far end share.
struct FarShared {
    options: FarEndOptions,
    allow: Arc<RwLock<AllowList>>,
    sessions: RefCell<HashMap<SessionId, Known>>,
    over: RefCell<Over>,
    lookups: Lookups,
    log: Log,
    /// Bounds the lines that near ends cause.
    bound: LogBound,
}

impl FarEnd {
    /// A far end that does not run yet.
    pub fn new(options: FarEndOptions) -> FarEnd {
        let (sender, carriers) = mpsc::unbounded_channel();
        let (observer, questions) = observed();
        let inputs = Mutex::new(Some(Inputs { carriers, questions }));
        let allow = Arc::new(RwLock::new(options.allow.clone()));
        FarEnd { options, allow, sender, inputs, observer }
    }

    /// Replaces the destinations for streams that begin from now on. Those that there are stay.
    pub fn allow(&self, allow: AllowList) {
        *self.allow.write().unwrap_or_else(PoisonError::into_inner) = allow;
    }

    /// Who may ask it what it does, from another thread.
    pub fn observer(&self) -> Observer {
        self.observer.clone()
    }

    /// Where a daemon puts its carriers.
    pub fn sink(&self) -> CarrierSink {
        let sender = self.sender.clone();
        CarrierSink::new(move |connection| {
            // A far end that has ended takes none: the connection is closed.
            let _ = sender.send(connection);
        })
    }

    /// Runs on the calling thread, once, until `stop`. Then it takes no new streams and gives the
    /// others [`FarEndOptions::drain`]; `abort` ends them at once. `log` gets a line for each
    /// event.
    pub fn run(&self, stop: &Stop, abort: &Stop, log: impl Fn(&str) + 'static) -> io::Result<()> {
        let inputs = self.inputs.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(inputs) = inputs else { return Ok(()) };
        let (options, log) = (self.options.clone(), Rc::new(log));
        let allow = Arc::clone(&self.allow);
        let (sessions, over) = (RefCell::default(), RefCell::default());
        let (lookups, bound) = (Lookups::default(), LogBound::default());
        let shared = Rc::new(FarShared { options, allow, sessions, over, lookups, log, bound });
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().max_blocking_threads(THREADS).build()?;
        let local = tokio::task::LocalSet::new();
        local.block_on(&runtime, shared.serve(inputs, stop, abort));
        // Tasks that are dropped close their sockets; those that look up names may take longer.
        drop(local);
        runtime.shutdown_background();
        Ok(())
    }
}

impl FarShared {
    async fn serve(
        self: Rc<Self>,
        Inputs { mut carriers, questions }: Inputs,
        stop: &Stop,
        abort: &Stop,
    ) {
        let shared = Rc::clone(&self);
        tokio::task::spawn_local(questions.answer(move || RelayStatus {
            sessions: shared.sessions.borrow().values().map(|one| one.engine.status()).collect(),
            over: *shared.over.borrow(),
        }));
        tokio::task::spawn_local(Rc::clone(&self).catch_up());
        loop {
            tokio::select! {
                connection = carriers.recv() => {
                    let Some(connection) = connection else { break };
                    tokio::task::spawn_local(Rc::clone(&self).welcome(connection));
                }
                () = stop.stopped() => break,
                () = abort.stopped() => break,
            }
        }
        (self.log)("stopping: no new streams, and those that there are may end");
        let drained = tokio::time::timeout(self.options.drain.into(), self.drain());
        tokio::select! {
            drained = drained => if drained.is_err() {
                (self.log)("some streams did not end in time, and are reset");
            },
            () = abort.stopped() => {}
        }
        let sessions: Vec<Handle> =
            self.sessions.borrow().values().map(|known| known.engine.clone()).collect();
        sessions.iter().for_each(|engine| engine.end(Ended::Stopped));
        // Sockets are closed by their tasks.
        tokio::task::yield_now().await;
        self.bound.end(&*self.log);
    }

    /// Writes a line that a near end has caused.
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

    async fn drain(&self) {
        let sessions: Vec<Handle> =
            self.sessions.borrow().values().map(|known| known.engine.clone()).collect();
        sessions.iter().for_each(Handle::drain);
        while !sessions.iter().all(Handle::is_idle) {
            tokio::time::sleep(LOOK.into()).await;
        }
    }

    /// Takes a carrier's HELLO, and gives the carrier to its session.
    async fn welcome(self: Rc<Self>, connection: Connection) {
        let remote = connection.remote;
        let mut wire = match Wire::new(connection, &self.options.sockets) {
            Ok(wire) => wire,
            Err(error) => return self.say(&format!("{remote}: carrier not taken: {error}")),
        };
        let hello = match hello::receive(&mut wire, |error| error.to_string()).await {
            Ok(hello) => hello,
            Err(closed) => return self.say(&format!("{remote}: carrier not taken: {closed}")),
        };
        let engine = match self.session(&hello, &wire) {
            Ok(engine) => engine,
            Err((reason, text)) => {
                self.say(&format!("{remote}: carrier not taken: {text}"));
                return hello::turn_away(&mut wire, reason, text);
            }
        };
        wire.settle();
        wire.queue(&Frame::Hello(hello));
        let closed = match engine.attach(wire) {
            Some((_, closed)) => closed.await.ok(),
            None => None,
        };
        if let Some(known) = self.sessions.borrow_mut().get_mut(&hello.session) {
            known.carriers -= 1;
        }
        if let Some(super::Closed::Broken(why)) = closed {
            self.say(&format!("{remote}: a carrier is gone: {why}"));
        }
    }

    /// The session that a carrier belongs to: one that exists, or a new one.
    fn session(
        self: &Rc<Self>,
        hello: &Hello,
        wire: &Wire,
    ) -> Result<Handle, (CloseReason, String)> {
        if hello.version != VERSION {
            return Err((CloseReason::Version, hello::versions(hello.version)));
        }
        let mut sessions = self.sessions.borrow_mut();
        let key = wire.key();
        match (sessions.get_mut(&hello.session), hello.joins) {
            (Some(known), true) if known.key == key => {
                if known.carriers >= CARRIERS_EACH {
                    let text = format!("a session has {CARRIERS_EACH} carriers at most");
                    return Err((CloseReason::TooMany, text));
                }
                known.carriers += 1;
                Ok(known.engine.clone())
            }
            (None, false) => {
                if sessions.values().filter(|known| known.key == key).count() >= SESSIONS_EACH {
                    let text = format!("a key has {SESSIONS_EACH} sessions at most");
                    return Err((CloseReason::TooMany, text));
                }
                let engine = self.begin(hello.session, key);
                let known = Known { key, engine: engine.clone(), carriers: 1 };
                sessions.insert(hello.session, known);
                self.say(&format!("{}: a session begins", wire.remote()));
                Ok(engine)
            }
            (Some(_), false) => Err((CloseReason::Violation, "the session exists".into())),
            // Whose session it is is nobody else's business.
            (_, true) => Err((CloseReason::UnknownSession, "there is no such session".into())),
        }
    }

    fn begin(self: &Rc<Self>, session: SessionId, key: Option<PublicKey>) -> Handle {
        let (sender, incoming) = mpsc::unbounded_channel();
        let limits = SessionLimits { resume_for: self.options.resume_for, ..Default::default() };
        let engine = Handle::start(Role::FarEnd, limits, Some(sender));
        let lookups = self.lookups.of_session(key);
        tokio::task::spawn_local(Rc::clone(self).keep(session, engine.clone(), lookups, incoming));
        engine
    }

    /// Serves a session's streams until it is over.
    async fn keep(
        self: Rc<Self>,
        session: SessionId,
        engine: Handle,
        lookups: SessionLookups,
        mut incoming: mpsc::UnboundedReceiver<Incoming>,
    ) {
        let ended = loop {
            tokio::select! {
                ended = engine.over() => break ended,
                Some((stream, destination)) = incoming.recv() => {
                    let (engine, lookups) = (engine.clone(), lookups.clone());
                    let connect = Rc::clone(&self).connect(engine, lookups, stream, destination);
                    tokio::task::spawn_local(connect);
                }
            }
        };
        self.sessions.borrow_mut().remove(&session);
        self.over.borrow_mut().add(&engine.state());
        let words = match ended {
            Ended::Lost => "no carrier came back in time".to_owned(),
            Ended::PeerStopped => "the near end stopped".to_owned(),
            Ended::Stopped => "this end stops".to_owned(),
            Ended::Unknown => "the near end does not know it".to_owned(),
            Ended::Violation(why) => format!("the near end was cut: {why}"),
            Ended::Accused(why) => {
                format!(
                    "the near end says that this end broke the protocol: {}",
                    why.escape_debug()
                )
            }
        };
        self.say(&format!("a session is over: {words}"));
    }

    async fn connect(
        self: Rc<Self>,
        engine: Handle,
        lookups: SessionLookups,
        stream: StreamId,
        destination: String,
    ) {
        let patience = CONNECT.into();
        let connected = tokio::time::timeout(patience, self.reach(&lookups, &destination)).await;
        match connected.unwrap_or(Err(Refusal::TimedOut)) {
            Ok(socket) => engine.attach_user(stream, socket),
            Err(reason) => {
                if reason == Refusal::NotAllowed {
                    let name = destination.escape_debug();
                    self.say(&format!("connect to {name}: no --allow permits it"));
                }
                engine.refuse(stream, reason);
            }
        }
    }

    /// Connects to a destination, if the list has it.
    async fn reach(
        &self,
        lookups: &SessionLookups,
        destination: &str,
    ) -> Result<TcpStream, Refusal> {
        let to = Destination::parse(destination).ok_or(Refusal::UnknownHost)?;
        let allow = self.allow.read().unwrap_or_else(PoisonError::into_inner).clone();
        if !allow.may_permit(&to) {
            return Err(Refusal::NotAllowed);
        }
        let found = look_up(lookups, &to).await.ok_or(Refusal::UnknownHost)?;
        // They may have changed since the last stream.
        let own = own_addresses().map_err(|_| Refusal::Failed)?;
        let mut reason = Refusal::UnknownHost;
        for address in found {
            if !allow.permits(&to, address.ip(), &own) {
                reason = Refusal::NotAllowed;
                continue;
            }
            let connected = TcpStream::connect(address).await;
            match connected.and_then(ready_for_user) {
                Ok(socket) => return Ok(socket),
                Err(error) => reason = refusal(&error),
            }
        }
        Err(reason)
    }
}

/// The addresses of a destination; `None` if there is none.
async fn look_up(lookups: &SessionLookups, to: &Destination) -> Option<Vec<SocketAddr>> {
    if let Ok(address) = to.host.parse() {
        return Some(vec![SocketAddr::new(address, to.port)]);
    }
    let (host, port) = (to.host.clone(), to.port);
    let found = lookups.run(move || (host.as_str(), port).to_socket_addrs()).await?;
    Some(found.ok()?.collect())
}

/// A user's socket: its small writes leave at once, and only an orderly end is one.
pub(super) fn ready_for_user(socket: TcpStream) -> io::Result<TcpStream> {
    socket.set_nodelay(true)?;
    socket.set_zero_linger()?;
    Ok(socket)
}

/// Why a connect failed, for the near end.
fn refusal(error: &io::Error) -> Refusal {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => Refusal::Refused,
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => Refusal::Unreachable,
        io::ErrorKind::TimedOut => Refusal::TimedOut,
        _ => Refusal::Failed,
    }
}
