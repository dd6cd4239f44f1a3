//! What a command leaves behind when it ends: connections whose data has not been delivered.
//!
//! The kernel keeps a socket that a process has closed until its data has arrived. Here it would
//! end with the link, so the link waits: for the command's own sockets, for those of the gateway,
//! and until a server that was started with the link has read everything.

use super::connections::ConnectionTable;
use fullpipe_kernel::process::wait::{self, PollFd, PollFlags};
use fullpipe_kernel::run::sandbox::Inside;
use fullpipe_kernel::socket::sock_diag::{OpenSocket, SockDiag};
use fullpipe_kernel::{Refused, host::clock};
use fullpipe_model::observe::TcpState;
use fullpipe_model::units::{Bytes, Duration};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;

/// Interval of the first checks, which is short because most commands leave nothing behind.
const LOOK_FIRST: Duration = Duration::from_millis(1);
/// The longest interval; a check costs some milliseconds.
const LOOK_MOST: Duration = Duration::from_millis(50);

/// What was undelivered at the last check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PendingData {
    /// Connections that the command has closed and whose data or FIN has not arrived.
    pub closed: usize,
    /// Connections held open by processes that the command left behind.
    pub open: usize,
    /// Those of them with data that has not arrived.
    pub open_with_data: usize,
    /// Bytes that have not arrived.
    pub bytes: Bytes,
    /// Packets on the link, on their way from the command.
    pub packets: u64,
}

impl PendingData {
    /// Connections that would lose something if the link ended now.
    pub fn undelivered(&self) -> usize {
        self.closed + self.open_with_data
    }

    fn is_nothing(&self) -> bool {
        self.closed == 0 && self.open == 0 && self.packets == 0
    }
}

/// The undelivered part of one connection.
#[derive(Debug, Clone, Copy, Default)]
struct PendingConnection {
    bytes: u64,
    open: bool,
}

/// Finds undelivered data.
pub struct Delivery {
    near: SockDiag,
    far: FarReceiver,
}

/// What receives the data at the far end.
pub(super) enum FarReceiver {
    /// Another command, with sockets in its own namespace.
    Server(SockDiag),
    /// The gateway, with its sockets towards the command.
    Gateway(SockDiag, Arc<ConnectionTable>),
    /// Machines outside, which acknowledge to the command itself.
    World,
}

impl Delivery {
    pub(super) fn new(near: SockDiag, far: FarReceiver) -> Delivery {
        Delivery { near, far }
    }

    /// Waits until everything is delivered, a signal comes, or waiting is pointless: closed
    /// connections made no progress for `linger`, and for the rest `linger` has passed since this
    /// began.
    ///
    /// `packets` returns how many are on the link. Returns what is undelivered.
    pub fn wait(
        &mut self,
        inside: &Inside,
        linger: Duration,
        packets: impl Fn() -> u64,
    ) -> Result<PendingData, Refused> {
        // Discards the signal of a key that ended the command; it is not meant for this.
        while let Some(Ok(Some(_))) = inside.signals().map(|signals| signals.read_signal()) {}
        let start = clock::now();
        let (mut progress, mut last, mut look) = (start, PendingData::default(), LOOK_FIRST);
        loop {
            let owed = PendingData { packets: packets(), ..self.look()? };
            let now = clock::now();
            if (owed.closed, owed.bytes) != (last.closed, last.bytes) {
                progress = now;
            }
            last = owed;
            let waits = owed.closed > 0 && now.since(progress) < linger
                || (owed.open > 0 || owed.packets > 0) && now.since(start) < linger;
            if owed.is_nothing() || !waits || interrupted(inside, look)? {
                return Ok(owed);
            }
            look = (look + look).min(LOOK_MOST);
        }
    }

    /// What is undelivered now.
    fn look(&mut self) -> Result<PendingData, Refused> {
        let mut shares: HashMap<SocketAddr, PendingConnection> = HashMap::new();
        for socket in self.near.open_sockets()?.iter().filter(|socket| is_owed(socket)) {
            let share = PendingConnection { bytes: without_end(socket), open: socket.has_owner };
            shares.insert(socket.local, share);
        }
        match &mut self.far {
            FarReceiver::World => {}
            FarReceiver::Server(far) => {
                for socket in far.open_sockets()?.iter().filter(|socket| is_owed_to_server(socket))
                {
                    shares.entry(socket.remote).or_default().bytes += socket.unread.get();
                }
            }
            FarReceiver::Gateway(far, connections) => {
                let sockets = far.open_sockets()?;
                let unaccepted = far.waiting_to_be_accepted()?;
                gateway_shares(&mut shares, &sockets, connections);
                if unaccepted > 0 {
                    // The server will accept it in a moment; it must only be counted.
                    shares.entry(SocketAddr::from(([0; 4], 0))).or_default();
                }
            }
        }
        let mut owed = PendingData::default();
        for share in shares.values() {
            owed.bytes += Bytes::new(share.bytes);
            owed.closed += usize::from(!share.open);
            owed.open += usize::from(share.open);
            owed.open_with_data += usize::from(share.open && share.bytes > 0);
        }
        Ok(owed)
    }
}

/// Adds what the gateway holds; `sockets` are its ends towards the command.
fn gateway_shares(
    shares: &mut HashMap<SocketAddr, PendingConnection>,
    sockets: &[OpenSocket],
    connections: &ConnectionTable,
) {
    for (ends, bytes) in connections.owed() {
        let socket = sockets.iter().find(|socket| socket.remote == ends.near);
        let unread = socket.map_or(Bytes::ZERO, |socket| socket.unread);
        // If the command's end is not in the namespace, a process has moved to another one.
        let open = socket.is_some_and(|socket| socket.state == TcpState::Established);
        let share = shares.entry(ends.near).or_insert(PendingConnection { bytes: 0, open });
        share.bytes += (bytes + unread).get();
    }
}

/// Whether the command's end of a connection has undelivered data. In FIN-WAIT-2 everything is
/// acknowledged.
fn is_owed(socket: &OpenSocket) -> bool {
    !matches!(
        socket.state,
        TcpState::FinWait2 | TcpState::TimeWait | TcpState::Close | TcpState::Listen
    )
}

/// Whether a server has unread data, or has not closed its side after the command's end.
fn is_owed_to_server(socket: &OpenSocket) -> bool {
    socket.unread > Bytes::ZERO || matches!(socket.state, TcpState::CloseWait | TcpState::LastAck)
}

/// Unacknowledged bytes without the FIN.
fn without_end(socket: &OpenSocket) -> u64 {
    let ended = matches!(socket.state, TcpState::FinWait1 | TcpState::Closing | TcpState::LastAck);
    socket.unsent.get().saturating_sub(u64::from(ended))
}

/// Waits for `span`; returns whether a signal has come.
fn interrupted(inside: &Inside, span: Duration) -> Result<bool, Refused> {
    let mut fds: Vec<_> = inside
        .signals()
        .map(|signals| PollFd::new(signals.as_fd(), PollFlags::POLLIN))
        .into_iter()
        .collect();
    Ok(wait::ready(&mut fds, Some(span))
        .map_err(|cause| Refused::new("wait for", "signals", cause))?
        > 0)
}
