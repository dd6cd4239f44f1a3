//! The two states of a TCP socket: of the connection (RFC 9293) and of Linux's congestion control.

/// State of a connection, RFC 9293 section 3.3.2, with the numbers of `include/net/tcp_states.h`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names are RFC 9293's")]
pub enum TcpState {
    Established,
    SynSent,
    SynRecv,
    FinWait1,
    FinWait2,
    TimeWait,
    #[default]
    Close,
    CloseWait,
    LastAck,
    Listen,
    Closing,
    /// A request that has no socket of its own yet (`TCP_NEW_SYN_RECV`).
    NewSynRecv,
    /// A number that this program does not know.
    Other(u8),
}

impl TcpState {
    /// The state with the kernel's number.
    pub const fn from_number(number: u8) -> Self {
        match number {
            1 => TcpState::Established,
            2 => TcpState::SynSent,
            3 => TcpState::SynRecv,
            4 => TcpState::FinWait1,
            5 => TcpState::FinWait2,
            6 => TcpState::TimeWait,
            7 => TcpState::Close,
            8 => TcpState::CloseWait,
            9 => TcpState::LastAck,
            10 => TcpState::Listen,
            11 => TcpState::Closing,
            12 => TcpState::NewSynRecv,
            other => TcpState::Other(other),
        }
    }
}

/// State of the sender's congestion control (`enum tcp_ca_state` in `linux/tcp.h`).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum CongestionState {
    /// Nothing suspicious.
    #[default]
    Open,
    /// Duplicate ACKs or SACKs were seen: loss or reordering.
    Disorder,
    /// The window was reduced by an ECN mark or by local congestion.
    Cwr,
    /// Fast retransmission.
    Recovery,
    /// After a retransmission timeout.
    Loss,
    /// A number that this program does not know.
    Other(u8),
}

impl CongestionState {
    /// The state with the kernel's number.
    pub const fn from_number(number: u8) -> Self {
        match number {
            0 => CongestionState::Open,
            1 => CongestionState::Disorder,
            2 => CongestionState::Cwr,
            3 => CongestionState::Recovery,
            4 => CongestionState::Loss,
            other => CongestionState::Other(other),
        }
    }

    /// Whether lost data is being repaired.
    pub const fn repairs_loss(self) -> bool {
        matches!(self, CongestionState::Recovery | CongestionState::Loss)
    }
}
