//! Why two peers cannot talk.

use crate::FrameError;
use std::io;
use std::net::SocketAddr;

/// Why a connection to a daemon failed.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    /// The name has no address.
    #[error("look up {host}: {source}; check the name, or give the address")]
    Resolve {
        /// The name.
        host: String,
        /// What the resolver said.
        source: io::Error,
    },
    /// Nobody answers.
    #[error("connect to {addr}: {source}; {hint}")]
    Connect {
        /// The daemon's address.
        addr: SocketAddr,
        /// What the kernel said.
        source: io::Error,
        /// What to try.
        hint: &'static str,
    },
    /// The address needs keys.
    #[error(
        "connect to {0}: another host needs keys: make one with `fullpipe keygen FILE`, and give \
         --key FILE and --server-key KEY"
    )]
    NeedsKeys(SocketAddr),
    /// The handshake failed.
    #[error("authenticate with {addr}: {cause}; {hint}")]
    Authenticate {
        /// The daemon's address.
        addr: SocketAddr,
        /// What went wrong.
        cause: String,
        /// What to try.
        hint: &'static str,
    },
    /// The connection ended or stood still.
    #[error("talk to {addr}: {source}; {hint}")]
    Broken {
        /// The other end.
        addr: SocketAddr,
        /// What the kernel said.
        source: io::Error,
        /// What to try.
        hint: &'static str,
    },
    /// What came is not the protocol.
    #[error("talk to {addr}: {cause}")]
    Protocol {
        /// The other end.
        addr: SocketAddr,
        /// What came.
        cause: String,
    },
    /// A key that the library does not accept, or no randomness.
    #[error("prepare keys: {0}")]
    Keys(String),
}

impl PeerError {
    /// A frame that is none.
    pub(super) fn frame(addr: SocketAddr, error: FrameError) -> PeerError {
        PeerError::protocol(addr, error.to_string())
    }

    /// What the other end should not have said.
    pub(super) fn protocol(addr: SocketAddr, cause: impl Into<String>) -> PeerError {
        PeerError::Protocol { addr, cause: cause.into() }
    }

    /// A stream that failed.
    pub(crate) fn broken(addr: SocketAddr, source: io::Error) -> PeerError {
        let hint = match source.kind() {
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::BrokenPipe => {
                "the other end closed the connection: it may have ended, be full, or want keys \
                 (--key, --server-key); its log says more"
            }
            // An alert of TLS 1.3: the client's key is judged after its handshake has ended.
            io::ErrorKind::InvalidData => {
                "the daemon may not know this key: its --allow-key file needs the line that \
                 `fullpipe keygen` printed"
            }
            io::ErrorKind::TimedOut => "no answer came: the path or the other host may be down",
            _ => "check the route to it",
        };
        PeerError::Broken { addr, source, hint }
    }
}

/// Why a daemon cannot start.
#[derive(Debug, thiserror::Error)]
pub enum AcceptError {
    /// No listening socket.
    #[error("listen on {addr}: {source}; {hint}")]
    Bind {
        /// The address.
        addr: SocketAddr,
        /// The kernel's error.
        source: io::Error,
        /// What to try.
        hint: &'static str,
    },
    /// Without keys other hosts would be let in.
    #[error(
        "listen on {0}: an address that other hosts reach needs keys: make one with `fullpipe \
         keygen FILE`, and give --key FILE and --allow-key FILE"
    )]
    NeedsKeys(SocketAddr),
    /// A key that the library does not accept.
    #[error("prepare keys: {0}")]
    Keys(String),
    /// The listening socket failed.
    #[error("wait for connections on {addr}: {source}; start it again")]
    Wait {
        /// The address.
        addr: SocketAddr,
        /// The kernel's error.
        source: io::Error,
    },
}

impl AcceptError {
    /// An address that cannot be listened on.
    pub(super) fn bind(addr: SocketAddr, source: io::Error) -> AcceptError {
        let hint = match source.kind() {
            io::ErrorKind::AddrInUse => {
                "another program has it (ss -ltnp shows which); choose another port with --listen, \
                 or port 0 for a free one"
            }
            io::ErrorKind::AddrNotAvailable => {
                "choose an address of this host (ip address shows them)"
            }
            io::ErrorKind::PermissionDenied => "choose a port of 1024 or above",
            _ => "check the address",
        };
        AcceptError::Bind { addr, source, hint }
    }
}
