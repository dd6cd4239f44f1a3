//! What a command has left behind when it ends: connections that are still owed the delivery of
//! their data.
//!
//! A socket that a process has closed goes on in the kernel until its data have arrived. Here it
//! would end with the link, so the link waits for it: for the command's own sockets, for those of
//! the gateway, and for what a server that was started with the link has not taken yet.

use super::connections::Connections;
use fullpipe_flow::sample::TcpState;
use fullpipe_kernel::sandbox::Inside;
use fullpipe_kernel::sock_diag::{OpenSocket, SockDiag};
use fullpipe_kernel::wait::{self, PollFd, PollFlags};
use fullpipe_kernel::{Refused, clock};
use fullpipe_model::units::{Bytes, Duration};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;

/// The first looks follow each other so closely: most commands leave nothing behind.
const LOOK_FIRST: Duration = Duration::from_millis(1);
/// Later ones: a look costs some milliseconds.
const LOOK_MOST: Duration = Duration::from_millis(50);

/// What had not been delivered when it was last looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Owed {
    /// Connections that the command has closed and whose data, or whose end, have not arrived.
    pub closed: usize,
    /// Connections that processes which the command has left behind have open.
    pub open: usize,
    /// Of these, the ones with data that have not arrived.
    pub open_with_data: usize,
    /// All that has not arrived.
    pub bytes: Bytes,
    /// Packets on the link, on their way from the command.
    pub packets: u64,
}

impl Owed {
    /// Connections of which something was lost if the link ended now.
    pub fn undelivered(&self) -> usize {
        self.closed + self.open_with_data
    }

    fn is_nothing(&self) -> bool {
        self.closed == 0 && self.open == 0 && self.packets == 0
    }
}

/// One connection's part in that.
#[derive(Debug, Clone, Copy, Default)]
struct Share {
    bytes: u64,
    open: bool,
}

/// Looks for what is owed.
pub struct Delivery {
    near: SockDiag,
    far: Far,
}

/// Who takes the data at the far end.
pub(super) enum Far {
    /// Another command, with sockets in a namespace of its own.
    Server(SockDiag),
    /// The gateway, with the sockets that it has towards the command.
    Gateway(SockDiag, Arc<Connections>),
    /// Machines of the world, which acknowledge to the command itself.
    World,
}

impl Delivery {
    pub(super) fn new(near: SockDiag, far: Far) -> Delivery {
        Delivery { near, far }
    }

    /// Waits until nothing is owed any more, a signal comes, or it is not worth waiting: for
    /// connections that are closed when they have not come any further for `linger`, for the rest
    /// `linger` after this began.
    ///
    /// `packets` tells how many are on the link. What is left is returned.
    pub fn wait(
        &mut self,
        inside: &Inside,
        linger: Duration,
        packets: impl Fn() -> u64,
    ) -> Result<Owed, Refused> {
        // A key that has ended the command is not meant for this.
        while let Some(Ok(Some(_))) = inside.signals().map(|signals| signals.read_signal()) {}
        let start = clock::now();
        let (mut progress, mut last, mut look) = (start, Owed::default(), LOOK_FIRST);
        loop {
            let owed = Owed { packets: packets(), ..self.look()? };
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

    /// What is owed now.
    fn look(&mut self) -> Result<Owed, Refused> {
        let mut shares: HashMap<SocketAddr, Share> = HashMap::new();
        for socket in self.near.open_sockets()?.iter().filter(|socket| is_owed(socket)) {
            let share = Share { bytes: without_end(socket), open: socket.has_owner };
            shares.insert(socket.local, share);
        }
        match &mut self.far {
            Far::World => {}
            Far::Server(far) => {
                for socket in far.open_sockets()?.iter().filter(|socket| is_owed_to_server(socket))
                {
                    shares.entry(socket.remote).or_default().bytes += socket.unread.get();
                }
            }
            Far::Gateway(far, connections) => {
                let sockets = far.open_sockets()?;
                let unaccepted = far.waiting_to_be_accepted()?;
                gateway_shares(&mut shares, &sockets, connections);
                if unaccepted > 0 {
                    // Accepted within a moment: it must only not be overlooked.
                    shares.entry(SocketAddr::from(([0; 4], 0))).or_default();
                }
            }
        }
        let mut owed = Owed::default();
        for share in shares.values() {
            owed.bytes += Bytes::new(share.bytes);
            owed.closed += usize::from(!share.open);
            owed.open += usize::from(share.open);
            owed.open_with_data += usize::from(share.open && share.bytes > 0);
        }
        Ok(owed)
    }
}

/// Adds what the gateway has in its hands; `sockets` are its ends towards the command.
fn gateway_shares(
    shares: &mut HashMap<SocketAddr, Share>,
    sockets: &[OpenSocket],
    connections: &Connections,
) {
    for (ends, bytes) in connections.owed() {
        let socket = sockets.iter().find(|socket| socket.remote == ends.near);
        let unread = socket.map_or(Bytes::ZERO, |socket| socket.unread);
        // Where the command's end is not among the namespace's sockets, it is in another one that a
        // process has made.
        let open = socket.is_some_and(|socket| socket.state == TcpState::Established);
        let share = shares.entry(ends.near).or_insert(Share { bytes: 0, open });
        share.bytes += (bytes + unread).get();
    }
}

/// Whether the command's end of a connection is owed something. In FIN-WAIT-2 it has all been
/// acknowledged.
fn is_owed(socket: &OpenSocket) -> bool {
    !matches!(
        socket.state,
        TcpState::FinWait2 | TcpState::TimeWait | TcpState::Close | TcpState::Listen
    )
}

/// Whether a server has not taken what came, or not ended its side in answer to the command's end.
fn is_owed_to_server(socket: &OpenSocket) -> bool {
    socket.unread > Bytes::ZERO || matches!(socket.state, TcpState::CloseWait | TcpState::LastAck)
}

/// Bytes not acknowledged, without the end of the stream.
fn without_end(socket: &OpenSocket) -> u64 {
    let ended = matches!(socket.state, TcpState::FinWait1 | TcpState::Closing | TcpState::LastAck);
    socket.unsent.get().saturating_sub(u64::from(ended))
}

/// Waits for `span`; whether a signal has come.
fn interrupted(inside: &Inside, span: Duration) -> Result<bool, Refused> {
    let mut fds: Vec<_> = inside
        .signals()
        .map(|signals| PollFd::new(signals.as_fd(), PollFlags::POLLIN))
        .into_iter()
        .collect();
    let refused = |cause| Refused::new("wait for", "signals", cause);
    Ok(wait::ready(&mut fds, Some(span)).map_err(refused)? > 0)
}
