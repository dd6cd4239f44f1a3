//! The end that connects.

use super::channel::Channel;
use super::ticket::Secret;
use super::timed::{Deadline, Timed};
use super::{PeerError, PrivateKey, PublicKey, tls};
use fullpipe_model::units::Duration;
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
}

impl Client {
    /// A client of the daemon at `host`, a name or an address with a port. Each connection attempt
    /// and each handshake may take `patience`. Without keys only loopback is allowed.
    pub fn new(host: &str, keys: Option<&Keys>, patience: Duration) -> Result<Client, PeerError> {
        let resolve = |source| PeerError::Resolve { host: host.into(), source };
        let addr = host.to_socket_addrs().map_err(resolve)?.next();
        let addr = addr.ok_or_else(|| resolve(io::ErrorKind::NotFound.into()))?;
        if keys.is_none() && !addr.ip().to_canonical().is_loopback() {
            return Err(PeerError::NeedsKeys(addr));
        }
        let config = |keys: &Keys| tls::client(&keys.own, keys.server);
        let tls = keys.map(config).transpose();
        let tls = tls.map_err(|error| PeerError::Keys(error.to_string()))?;
        Ok(Client { addr, tls, patience })
    }

    /// The daemon's address.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    fn tcp(&self) -> Result<TcpStream, PeerError> {
        let addr = self.addr;
        let stream = TcpStream::connect_timeout(&addr, self.patience.into()).map_err(|source| {
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

    /// Opens the control connection.
    pub fn control(&self) -> Result<Channel, PeerError> {
        let deadline = Deadline::after(self.patience);
        let stream = Timed { stream: self.tcp()?, deadline: deadline.clone() };
        let addr = self.addr;
        let Some(config) = &self.tls else {
            return Ok(Channel::plain(stream, addr, ANSWER_MOST));
        };
        let name = ServerName::IpAddress(addr.ip().into());
        let failed = |cause: String| PeerError::Authenticate {
            addr,
            cause,
            hint: "compare --server-key with what `fullpipe serve` printed, and look whether this \
                   key is in its --allow-key file",
        };
        let connection = ClientConnection::new(Arc::clone(config), name)
            .map_err(|error| failed(error.to_string()))?;
        deadline.set(self.patience);
        let mut stream = StreamOwned::new(connection, stream);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock).map_err(|error| failed(said(&error)))?;
        }
        Ok(Channel::secured(stream, deadline, addr, ANSWER_MOST))
    }

    /// Opens data connection `index` of the test whose secret the daemon gave as `id` and `key`.
    pub fn data(&self, id: &str, key: &str, index: u16) -> Result<TcpStream, PeerError> {
        let addr = self.addr;
        let wrong = || PeerError::Protocol { addr, cause: "its test has no valid secret".into() };
        let ticket = Secret::from_texts(id, key).ok_or_else(wrong)?.ticket(index);
        let stream = self.tcp()?;
        let mut timed = Timed { stream, deadline: Deadline::after(self.patience) };
        let mut taken = [0];
        let asked = timed.write_all(&ticket).and_then(|()| timed.read_exact(&mut taken));
        asked.map_err(|error| PeerError::broken(addr, error))?;
        if taken != [TAKEN] {
            return Err(PeerError::Protocol { addr, cause: "it refused a data connection".into() });
        }
        Ok(timed.stream)
    }
}

/// A failed handshake in words.
fn said(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => {
            "the daemon closed the connection: it may not know this key, or have no keys".into()
        }
        io::ErrorKind::TimedOut => "no answer came in time".into(),
        _ => error.to_string(),
    }
}
