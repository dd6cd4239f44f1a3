//! The end that accepts: who may come in, how many, for how long.
//!
//! A thread accepts; each connection has a thread of its own from then on. Until it has
//! authenticated, a connection counts as a stranger: there are at most [`Limits::strangers`] of
//! them and [`Limits::strangers_each`] of one address (of IPv6: one network of 64 bits). Each has
//! [`Limits::first_byte`] to say something and [`Limits::authentication`] in all. One more than
//! that takes the place of another one: of the address with most of them, the oldest that is
//! silent. What a stranger sends is read into buffers of fixed size: one byte that says what it is,
//! a ticket, or a TLS handshake (which rustls bounds).
//!
//! The first byte says what a connection is: a ticket begins with `F`, a TLS record with 22, and
//! with a daemon without keys a control frame with 0 and a relay's carrier with `R`. In TLS, a
//! carrier names its application protocol.

use crate::channel::Channel;
use crate::client::TAKEN;
use crate::connection::{CarrierSink, Connection, ConnectionSlot, Places, Who, is_carrier};
use crate::keyring::Keyring;
use crate::log_bound::LogBound;
use crate::rendezvous::Rendezvous;
use crate::timed::{Deadline, Timed};
use crate::transport::without_waiting;
use crate::{AcceptError, Expected, PrivateKey, PublicKey, Ticket, Transport, tls};
use fullpipe_kernel::host::clock;
use fullpipe_model::units::{Bytes, Duration};
use fullpipe_transfer::Stop;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The longest message of a client.
const REQUEST_MOST: usize = 64 << 10;
/// The first byte of a TLS record with a handshake (RFC 8446 section 5.1).
const TLS_HANDSHAKE: u8 = 22;
/// How often the accepting thread looks whether it has to end.
const LOOK: Duration = Duration::from_millis(100);

/// What peers may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections at once that have not authenticated.
    pub strangers: usize,
    /// Of them, from one address, or from one network of 64 bits of IPv6.
    pub strangers_each: usize,
    /// How long one may take to send its first byte.
    pub first_byte: Duration,
    /// How long one may take to authenticate.
    pub authentication: Duration,
    /// Control connections at once.
    pub sessions: usize,
    /// Of them, of one key, or of one address where there are no keys.
    pub sessions_each: usize,
    /// Carriers of a relay at once.
    pub carriers: usize,
    /// Of them, of one key, or of one address where there are no keys.
    pub carriers_each: usize,
    /// How long sessions may take to end when the daemon is stopped.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            strangers: 256,
            strangers_each: 160,
            first_byte: Duration::from_secs(2),
            authentication: Duration::from_secs(10),
            sessions: 32,
            sessions_each: 8,
            carriers: 512,
            carriers_each: 128,
            drain: Duration::from_secs(30),
        }
    }
}

/// What is done with an authenticated control connection.
pub trait Service: Send + Sync {
    /// Serves one peer until it has no more to ask. Errors are the peer's; the text is for the log.
    fn serve(&self, channel: Channel, session: &Session<'_>) -> Result<(), String>;
}

/// A session of an authenticated peer.
#[derive(Debug)]
pub struct Session<'a> {
    daemon: &'a DaemonShared,
    number: u64,
    /// The peer's key; `None` over loopback without keys.
    pub key: Option<PublicKey>,
    /// The address of this host that the peer has connected to.
    pub local: Option<SocketAddr>,
}

/// The state that all threads of a daemon share.
struct DaemonShared {
    limits: Limits,
    keys: Keyring,
    meet: Rendezvous,
    /// Where carriers go; `None`: nowhere.
    carriers: Option<CarrierSink>,
    strangers: Places,
    carrier_places: Places,
    state: Mutex<DaemonState>,
    log: Box<dyn Fn(&str) + Send + Sync>,
    /// Bounds the lines that peers cause.
    bound: LogBound,
}

impl std::fmt::Debug for DaemonShared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DaemonShared").field("limits", &self.limits).finish_non_exhaustive()
    }
}

#[derive(Default)]
struct DaemonState {
    sessions: HashMap<u64, OpenSession>,
    /// The number of the next session, or of the next sign of life of one.
    next: u64,
    draining: bool,
}

/// A session as the daemon sees it.
struct OpenSession {
    who: Who,
    stream: TcpStream,
    busy: bool,
    /// When it last asked for something, in the order of [`DaemonState::next`]; `None`: never yet.
    asked: Option<u64>,
}

/// A daemon that listens.
pub struct Daemon {
    listener: TcpListener,
    addr: SocketAddr,
    shared: DaemonShared,
}

impl std::fmt::Debug for Daemon {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Daemon").field("addr", &self.addr).finish_non_exhaustive()
    }
}

impl Daemon {
    /// Listens on `addr` for connections of `transport`, with its own key and those of the peers
    /// that it lets in. Without keys
    /// only loopback is allowed. `log` gets a line for each event.
    pub fn bind(
        addr: SocketAddr,
        transport: Transport,
        keys: Option<(&PrivateKey, Vec<PublicKey>)>,
        limits: Limits,
        log: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Daemon, AcceptError> {
        if keys.is_none() && !addr.ip().to_canonical().is_loopback() {
            return Err(AcceptError::NeedsKeys(addr));
        }
        let keys = Keyring::new(keys)?;
        let bound = transport.listen(addr).and_then(without_waiting);
        let (listener, addr) = bound.map_err(|source| AcceptError::bind(addr, source))?;
        let shared = DaemonShared {
            limits,
            keys,
            meet: Rendezvous::default(),
            carriers: None,
            strangers: Places::default(),
            carrier_places: Places::default(),
            state: Mutex::default(),
            log: Box::new(log),
            bound: LogBound::default(),
        };
        Ok(Daemon { listener, addr, shared })
    }

    /// Takes carriers of relays, too, with `SO_RCVBUF` of `receive_buffer` where one is given.
    pub fn with_carriers(
        mut self,
        sink: CarrierSink,
        receive_buffer: Option<Bytes>,
    ) -> Result<Daemon, AcceptError> {
        if let Some(size) = receive_buffer {
            // Accepted sockets have the listener's, and their window's scale fits it.
            let set =
                socket2::SockRef::from(&self.listener).set_recv_buffer_size(size.get() as usize);
            set.map_err(|source| {
                let hint = "choose a smaller receive buffer";
                AcceptError::Bind { addr: self.addr, source, hint }
            })?;
        }
        self.shared.keys.allow_carriers();
        self.shared.carriers = Some(sink);
        Ok(self)
    }

    /// The address for clients, with the port that the kernel chose.
    pub fn local_addr(&self) -> SocketAddr {
        self.addr
    }

    /// Its keys, which may be replaced while it runs.
    pub fn keyring(&self) -> Keyring {
        self.shared.keys.clone()
    }

    /// Serves on the calling thread until `stop`. Then it listens no more, ends sessions that do
    /// nothing, and gives the others [`Limits::drain`], or no more time after `abort`.
    pub fn run(self, service: &dyn Service, stop: &Stop, abort: &Stop) -> Result<(), AcceptError> {
        let Daemon { listener, addr, shared } = self;
        std::thread::scope(|scope| {
            while !stop.is_stopped() {
                match accept(&listener) {
                    Ok(Some((stream, peer))) => {
                        let shared = &shared;
                        let Some(place) = shared.stranger(&stream, peer) else { continue };
                        let thread = std::thread::Builder::new().name("peer".into());
                        if let Err(error) = thread.spawn_scoped(scope, move || {
                            shared.welcome(stream, peer, place, service)
                        }) {
                            shared.say(&format!("start a thread for {peer}: {error}"));
                        }
                    }
                    Ok(None) => shared.bound.catch_up(clock::now(), &shared.log),
                    Err(source) => return Err(AcceptError::Wait { addr, source }),
                }
            }
            drop(listener);
            shared.drain(abort);
            shared.bound.end(&shared.log);
            Ok(())
        })
    }
}

/// Waits a little for a connection.
fn accept(listener: &TcpListener) -> io::Result<Option<(TcpStream, SocketAddr)>> {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use std::os::fd::AsFd;
    let mut fds = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
    let look = PollTimeout::try_from((LOOK.as_micros() / 1000) as i32).unwrap_or(PollTimeout::ZERO);
    match poll(&mut fds, look) {
        Ok(0) | Err(nix::errno::Errno::EINTR) => return Ok(None),
        Ok(_) => {}
        Err(errno) => return Err(errno.into()),
    }
    match listener.accept() {
        Ok((stream, peer)) => {
            stream.set_nonblocking(false)?;
            Ok(Some((stream, peer)))
        }
        // Descriptors or memory ran out: at once it would only fail again.
        Err(error) if matches!(error.raw_os_error(), Some(23 | 24 | 12 | 105)) => {
            std::thread::sleep(LOOK.into());
            Ok(None)
        }
        // Anything else is about that one connection.
        Err(_) => Ok(None),
    }
}

impl DaemonState {
    /// Opens a session, and gives its number; `None` if there is no place. One that does nothing
    /// loses its place to a newer one of the same peer, and one that never asked for anything to
    /// any.
    fn open(&mut self, who: Who, stream: TcpStream, limits: &Limits) -> Option<u64> {
        if self.draining {
            return None;
        }
        let own = self.sessions.values().filter(|open| open.who == who).count();
        let is_own_full = own >= limits.sessions_each;
        if is_own_full || self.sessions.len() >= limits.sessions {
            let idle = self.sessions.iter().filter(|(_, open)| {
                let may_go = if is_own_full { open.who == who } else { open.asked.is_none() };
                !open.busy && may_go
            });
            let number = idle.min_by_key(|(number, open)| (open.asked, **number))?.0;
            let number = *number;
            if let Some(open) = self.sessions.remove(&number) {
                let _ = open.stream.shutdown(Shutdown::Both);
            }
        }
        self.next += 1;
        self.sessions.insert(self.next, OpenSession { who, stream, busy: false, asked: None });
        Some(self.next)
    }
}

impl DaemonShared {
    fn state(&self) -> MutexGuard<'_, DaemonState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stranger(&self, stream: &TcpStream, peer: SocketAddr) -> Option<ConnectionSlot> {
        let Limits { strangers: all, strangers_each: each, .. } = self.limits;
        self.strangers.take(Who::of(None, peer), stream, all, each)
    }

    /// Writes a line that a peer has caused.
    fn say(&self, line: &str) {
        self.bound.line(clock::now(), line, &self.log);
    }

    /// Finds out what a connection is, and does it.
    fn welcome(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        place: ConnectionSlot,
        does: &dyn Service,
    ) {
        let deadline = Deadline::after(self.limits.authentication);
        let patience = self.limits.first_byte.into();
        let mut first = [0];
        let seen = stream.set_read_timeout(Some(patience)).and_then(|()| stream.peek(&mut first));
        if !matches!(seen, Ok(1)) {
            return;
        }
        place.has_spoken();
        let _ = stream.set_nodelay(true);
        let timed = Timed { stream, deadline };
        match (first[0], &self.keys.config()) {
            (first, _) if Ticket::begins_with(first) => self.data(timed),
            (TLS_HANDSHAKE, Some(config)) => match self.authenticate(timed, config) {
                Ok((secured, key)) => {
                    drop(place);
                    self.secured(secured, key, peer, does);
                }
                Err(why) => self.say(&format!("{peer}: not let in: {why}")),
            },
            (first, None) if is_carrier(first) && self.carriers.is_some() => {
                let mut stream = timed.stream;
                if stream.read_exact(&mut [0]).is_ok() {
                    drop(place);
                    let (tls, key, place) = (None, None, None);
                    self.carrier(Connection { stream, tls, remote: peer, key, place });
                }
            }
            (0, None) => {
                drop(place);
                let Ok(stream) = timed.stream.try_clone() else { return };
                let channel = Channel::plain(timed, peer, REQUEST_MOST);
                self.session(channel, stream, None, does);
            }
            _ => self.say(&format!("{peer}: not let in: what it sent is not the protocol")),
        }
    }

    fn data(&self, mut timed: Timed) {
        let mut bytes = [0; Ticket::LENGTH];
        if timed.read_exact(&mut bytes).is_err() {
            return;
        }
        let Some(ticket) = Ticket::parse(&bytes).filter(|ticket| self.meet.admits(ticket)) else {
            return;
        };
        if timed.write_all(&[TAKEN]).is_ok() {
            self.meet.hand_over(&ticket, timed.stream);
        }
    }

    fn authenticate(
        &self,
        timed: Timed,
        config: &Arc<ServerConfig>,
    ) -> Result<(StreamOwned<ServerConnection, Timed>, PublicKey), String> {
        let connection =
            ServerConnection::new(Arc::clone(config)).map_err(|error| error.to_string())?;
        let mut stream = StreamOwned::new(connection, timed);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock).map_err(|error| error.to_string())?;
        }
        let certificates = stream.conn.peer_certificates();
        let key = certificates.and_then(|all| PublicKey::of_spki(all.first()?));
        Ok((stream, key.ok_or("it sent no key")?))
    }

    /// What an authenticated peer wants: a carrier, or a session.
    fn secured(
        &self,
        secured: StreamOwned<ServerConnection, Timed>,
        key: PublicKey,
        peer: SocketAddr,
        does: &dyn Service,
    ) {
        if secured.conn.alpn_protocol() == Some(tls::RELAY) {
            let (tls, timed) = secured.into_parts();
            let (stream, tls) = (timed.stream, Some(tls.into()));
            let key = Some(key);
            return self.carrier(Connection { stream, tls, remote: peer, key, place: None });
        }
        let Ok(stream) = secured.sock.stream.try_clone() else { return };
        let deadline = secured.sock.deadline.clone();
        let channel = Channel::secured(secured, deadline, peer, REQUEST_MOST);
        self.session(channel, stream, Some(key), does);
    }

    /// Passes a carrier on. Until it has said which session it belongs to, it can lose its place.
    fn carrier(&self, connection: Connection) {
        let who = Who::of(connection.key, connection.remote);
        let Limits { carriers: all, carriers_each: each, .. } = self.limits;
        let place = self.carrier_places.take(who, &connection.stream, all, each);
        match (&self.carriers, place) {
            (Some(sink), place @ Some(_)) => sink.take(Connection { place, ..connection }),
            _ => self.say(&format!("{}: not let in: too many carriers", connection.remote)),
        }
    }

    fn session(
        &self,
        channel: Channel,
        stream: TcpStream,
        key: Option<PublicKey>,
        does: &dyn Service,
    ) {
        let peer = channel.remote();
        let who = Who::of(key, peer);
        let local = stream.local_addr().ok();
        let Some(number) = self.state().open(who, stream, &self.limits) else {
            return self.say(&format!("{peer}: not let in: too many sessions"));
        };
        let ended = does.serve(channel, &Session { daemon: self, number, key, local });
        self.state().sessions.remove(&number);
        if let Err(why) = ended {
            self.say(&format!("{peer}: {why}"));
        }
    }

    /// Ends what does nothing, waits for the rest, and then ends that, too.
    fn drain(&self, abort: &Stop) {
        let start = clock::now();
        loop {
            let is_over = clock::now().since(start) >= self.limits.drain;
            let late = is_over || abort.is_stopped();
            let mut state = self.state();
            state.draining = true;
            for open in state.sessions.values().filter(|open| late || !open.busy) {
                let _ = open.stream.shutdown(Shutdown::Both);
            }
            if state.sessions.is_empty() || late {
                return;
            }
            drop(state);
            std::thread::sleep(LOOK.into());
        }
    }
}

impl Session<'_> {
    /// Expects data connections of this peer; `None` without randomness.
    pub fn expect(&self, count: u16) -> Option<Expected> {
        self.daemon.meet.expect(count)
    }

    /// Notes whether the session does something that should not be cut off. The answer is whether
    /// it may: a daemon that is being stopped begins nothing new.
    pub fn set_busy(&self, busy: bool) -> bool {
        let mut state = self.daemon.state();
        let may = !(busy && state.draining);
        state.next += 1;
        let now = state.next;
        // One that has lost its place begins nothing, either.
        let Some(open) = state.sessions.get_mut(&self.number) else { return false };
        open.busy = busy && may;
        open.asked = Some(now);
        may
    }

    /// Whether the peer has ended the connection, or sent something before it got its answer.
    /// Asked while nobody reads the channel.
    pub fn has_left(&self) -> bool {
        use nix::sys::socket::{MsgFlags, recv};
        use std::os::fd::AsRawFd;
        let state = self.daemon.state();
        let Some(open) = state.sessions.get(&self.number) else { return true };
        let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
        let seen = recv(open.stream.as_raw_fd(), &mut [0], flags);
        !matches!(seen, Err(nix::errno::Errno::EAGAIN | nix::errno::Errno::EINTR))
    }
}
