//! The end that connects.

use crate::channel::Channel;
use crate::connection::{CARRIER, Connection};
use crate::ticket::Secret;
use crate::timed::{Deadline, Timed};
use crate::{PeerError, PrivateKey, PublicKey, Transport, tls};
use fullpipe_model::units::{Bytes, Duration};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;

/// The longest message of a daemon: a piece of its samples.
const ANSWER_MOST: usize = 4 << 20;
/// What the daemon says when it has taken a data connection.
pub(super) const TAKEN: u8 = b'+';

/// The keys for a daemon on another host.
#[derive(Debug, Clone)]
pub struct Keys {
    /// Our own.
    pub own: PrivateKey,
    /// The daemon's.
    pub server: PublicKey,
}

/// Opens connections to one daemon.
#[derive(Debug, Clone)]
pub struct Client {
    addr: SocketAddr,
    tls: Option<Arc<ClientConfig>>,
    patience: Duration,
    transport: Transport,
}

impl Client {
    /// A client of the daemon at `host`, a name or an address with a port. Each connection attempt
    /// and each handshake may take `patience`. Without keys only loopback is allowed.
    pub fn new(host: &str, keys: Option<&Keys>, patience: Duration) -> Result<Client, PeerError> {
        let addr = host
            .to_socket_addrs()
            .and_then(|mut found| found.next().ok_or_else(|| io::ErrorKind::NotFound.into()))
            .map_err(|source| PeerError::Resolve { host: host.into(), source })?;
        if keys.is_none() && !addr.ip().to_canonical().is_loopback() {
            return Err(PeerError::NeedsKeys(addr));
        }
        let tls = keys.map(|keys| tls::client(&keys.own, keys.server)).transpose();
        let tls = tls.map_err(|error| PeerError::Keys(error.to_string()))?;
        Ok(Client { addr, tls, patience, transport: Transport::Tcp })
    }

    /// The same with connections of `transport`.
    #[must_use]
    pub fn over(self, transport: Transport) -> Client {
        Client { transport, ..self }
    }

    /// The daemon's address.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Connects, with `SO_RCVBUF` set before, so that the window's scale fits it.
    fn tcp(&self, receive_buffer: Option<Bytes>) -> Result<TcpStream, PeerError> {
        let addr = self.addr;
        let stream = self.connect(receive_buffer).map_err(|source| {
            let hint = match source.kind() {
                io::ErrorKind::ConnectionRefused => {
                    "start `fullpipe serve` there, or check the port"
                }
                io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
                    "a firewall may drop it, or the host is down"
                }
                _ => "check the address and the route to it",
            };
            PeerError::Connect { addr, source, hint }
        })?;
        stream.set_nodelay(true).map_err(|error| PeerError::broken(addr, error))?;
        Ok(stream)
    }

    fn connect(&self, receive_buffer: Option<Bytes>) -> io::Result<TcpStream> {
        let socket = self.transport.to(self.addr)?;
        if let Some(size) = receive_buffer {
            socket.set_recv_buffer_size(size.get() as usize)?;
        }
        socket.connect_timeout(&self.addr.into(), self.patience.into())?;
        Ok(socket.into())
    }

    /// Opens the control connection.
    pub fn control(&self) -> Result<Channel, PeerError> {
        let deadline = Deadline::after(self.patience);
        let stream = Timed { stream: self.tcp(None)?, deadline: deadline.clone() };
        let Some(config) = &self.tls else {
            return Ok(Channel::plain(stream, self.addr, ANSWER_MOST));
        };
        let stream = self.secure(stream, config)?;
        Ok(Channel::secured(stream, deadline, self.addr, ANSWER_MOST))
    }

    /// Opens a carrier of the daemon's relay.
    pub(crate) fn carrier(&self, receive_buffer: Option<Bytes>) -> Result<Connection, PeerError> {
        let remote = self.addr;
        let deadline = Deadline::after(self.patience);
        let mut stream = Timed { stream: self.tcp(receive_buffer)?, deadline };
        let Some(config) = &self.tls else {
            stream.write_all(&[CARRIER]).map_err(|error| PeerError::broken(remote, error))?;
            let stream = stream.stream;
            return Ok(Connection { stream, tls: None, remote, key: None, place: None });
        };
        let (tls, stream) = self.secure(stream, &tls::for_carriers(config))?.into_parts();
        if tls.alpn_protocol() != Some(tls::RELAY) {
            let cause = "it is no relay's far end: start it as `fullpipe serve --relay`";
            return Err(PeerError::protocol(remote, cause));
        }
        let (stream, tls) = (stream.stream, Some(tls.into()));
        Ok(Connection { stream, tls, remote, key: None, place: None })
    }

    /// The TLS handshake.
    fn secure(
        &self,
        stream: Timed,
        config: &Arc<ClientConfig>,
    ) -> Result<StreamOwned<ClientConnection, Timed>, PeerError> {
        self.handshake(stream, config).map_err(|cause| PeerError::Authenticate {
            addr: self.addr,
            cause,
            hint: "compare --server-key with what `fullpipe serve` printed, and look whether this \
                   key is in its --allow-key file",
        })
    }

    fn handshake(
        &self,
        stream: Timed,
        config: &Arc<ClientConfig>,
    ) -> Result<StreamOwned<ClientConnection, Timed>, String> {
        let name = ServerName::IpAddress(self.addr.ip().into());
        let connection =
            ClientConnection::new(Arc::clone(config), name).map_err(|error| error.to_string())?;
        stream.deadline.set(self.patience);
        let mut stream = StreamOwned::new(connection, stream);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock).map_err(|error| said(&error))?;
        }
        Ok(stream)
    }

    /// Opens data connection `index` of the test whose secret the daemon gave as `id` and `key`.
    pub fn data(&self, id: &str, key: &str, index: u16) -> Result<TcpStream, PeerError> {
        let addr = self.addr;
        let secret = Secret::from_texts(id, key)
            .ok_or_else(|| PeerError::protocol(addr, "its test has no valid secret"))?;
        let ticket = secret.ticket(index);
        let stream = self.tcp(None)?;
        let mut timed = Timed { stream, deadline: Deadline::after(self.patience) };
        let mut taken = [0];
        let asked = timed.write_all(&ticket).and_then(|()| timed.read_exact(&mut taken));
        asked.map_err(|error| PeerError::broken(addr, error))?;
        if taken != [TAKEN] {
            return Err(PeerError::protocol(addr, "it refused a data connection"));
        }
        Ok(timed.stream)
    }
}

/// A failed handshake in words.
fn said(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::BrokenPipe => {
            "the daemon closed the connection: it may not know this key, have no keys, or be full \
             (then try again)"
                .into()
        }
        io::ErrorKind::TimedOut => "no answer came in time".into(),
        _ => error.to_string(),
    }
}
