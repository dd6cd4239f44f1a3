//! Why a test has no result.

use super::PackError;
use crate::PeerError;
use fullpipe_model::units::Duration;
use std::net::SocketAddr;

/// Why a test failed.
#[derive(Debug, thiserror::Error)]
pub enum TestError {
    /// The connection to the far end.
    #[error(transparent)]
    Peer(#[from] PeerError),
    /// The far end does not do what it was asked to.
    #[error("test with {addr}: it refused: {why}")]
    Refused {
        /// The far end.
        addr: SocketAddr,
        /// Its words.
        why: String,
    },
    /// The far end speaks another version.
    #[error(
        "test with {addr}: it is version {theirs} of the protocol, this is {ours}; install the same fullpipe at both ends"
    )]
    Version {
        /// The far end.
        addr: SocketAddr,
        /// Its version.
        theirs: u16,
        /// Ours.
        ours: u16,
    },
    /// The far end answered something else than it was asked.
    #[error("test with {addr}: its answer does not fit the question; are both the same version?")]
    Confused {
        /// The far end.
        addr: SocketAddr,
    },
    /// A data connection ended before its time.
    #[error(
        "test with {addr}: the data ended after {after}: {why}; the other end or the path may be down"
    )]
    Early {
        /// The far end.
        addr: SocketAddr,
        /// For how long it went well.
        after: Duration,
        /// What the kernel said, here or there.
        why: String,
    },
    /// The path MTU cannot be probed.
    #[error("probe the path MTU to {addr} by UDP: {source}; test without --rfc6349")]
    Probe {
        /// The far end's UDP socket.
        addr: SocketAddr,
        /// The kernel's error.
        source: std::io::Error,
    },
    /// The sockets cannot be sampled.
    #[error("sample sockets: {0}")]
    Sample(String),
    /// A congestion control that this kernel does not have.
    #[error(
        "use congestion control {name}: {source}; net.ipv4.tcp_available_congestion_control lists them (modprobe tcp_{name} may add it, and as an ordinary user it must be in tcp_allowed_congestion_control)"
    )]
    Congestion {
        /// Its name.
        name: String,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// The far end's samples.
    #[error(transparent)]
    Samples(#[from] PackError),
    /// The run is not possible.
    #[error("{0}")]
    Spec(String),
    /// The user ended it.
    #[error("interrupted")]
    Interrupted,
}
