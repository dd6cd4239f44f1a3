//! What a kernel says of a socket: samples, its options, who has it open, what its packets pass;
//! and where its peer is, by a table of prefixes.
//!
//! A [`Sample`] is what `ss -tinm` shows in one line: the queues, [`TcpInfo`] (`INET_DIAG_INFO`, or
//! `getsockopt(TCP_INFO)`) and [`SocketMemory`] (`INET_DIAG_SKMEMINFO`). The shells fetch the bytes
//! and this module reads them, so that a recording and a live socket give the same answers.
//! Serialised, a sample is one JSON line whose column names carry their units: `.._us`, `.._ns`,
//! `.._bytes`, `.._bps`; a name without a unit counts segments (`snd_cwnd`, `unacked`) or events.
//!
//! Fields that a kernel does not know are absent, never zero: a zero is a measurement.

mod egress;
mod line;
mod memory;
mod pod_name;
mod prefixes;
mod process;
mod reasons;
mod socket_options;
pub mod ss;
mod state;
mod tcp_info;
pub mod tool_result;
mod workload;

pub use egress::{Class, Egress, Qdisc};
pub use line::{ParseSampleError, is_line};
pub use memory::{ParseMemoryError, SocketMemory};
pub use pod_name::PodName;
pub use prefixes::{PeerSite, Prefixes, PrefixesError};
pub use process::Process;
pub use reasons::{Phase, Reason, Reasons, Wait};
pub use socket_options::SocketOptions;
pub use state::{CongestionState, TcpState};
pub use tcp_info::{ParseTcpInfoError, TcpInfo};
pub use workload::{ContainerRuntime, HOST, PodId, PodQos, Workload};

use crate::units::{Bytes, Instant, column};
use std::net::SocketAddr;

/// A socket's own end and the other one.
pub type SocketEnds = (SocketAddr, SocketAddr);

/// Whether a port is below those that Linux gives to clients (`net.ipv4.ip_local_port_range`).
pub fn is_server_port(port: u16) -> bool {
    const FIRST_EPHEMERAL: u16 = 32_768;
    port < FIRST_EPHEMERAL
}

/// An end as packets have it: a socket of IPv6 says `::ffff:192.0.2.1` of an address of IPv4.
pub fn canonical(end: SocketAddr) -> SocketAddr {
    SocketAddr::new(end.ip().to_canonical(), end.port())
}

/// Both ends as packets have them.
pub fn canonical_ends((local, remote): SocketEnds) -> SocketEnds {
    (canonical(local), canonical(remote))
}

/// A socket at an instant.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Sample {
    /// When it was taken, by the clock of the program that took it.
    #[serde(rename = "at_ns", with = "column::instant")]
    pub at: Instant,
    /// The socket's own end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// State by RFC 9293.
    pub state: TcpState,
    /// Received and not read by the application (`Recv-Q` of ss).
    #[serde(rename = "rqueue_bytes", with = "column::bytes")]
    pub rqueue: Bytes,
    /// Written by the application and not acknowledged (`Send-Q` of ss).
    #[serde(rename = "wqueue_bytes", with = "column::bytes")]
    pub wqueue: Bytes,
    /// Name of the congestion control, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion_control: Option<String>,
    /// The kernel's `struct tcp_info`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub info: Option<TcpInfo>,
    /// The socket's memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<SocketMemory>,
    /// Why it did not send, if its kernel counts that; in results the run's truth has it.
    #[serde(skip)]
    pub reasons: Option<Reasons>,
}

impl Sample {
    /// A socket of which no more than its ends and its state is known: empty queues, and nothing
    /// that was not asked for.
    #[must_use]
    pub const fn new(at: Instant, local: SocketAddr, remote: SocketAddr, state: TcpState) -> Self {
        Self {
            at,
            local,
            remote,
            state,
            rqueue: Bytes::ZERO,
            wqueue: Bytes::ZERO,
            congestion_control: None,
            info: None,
            memory: None,
            reasons: None,
        }
    }
}
