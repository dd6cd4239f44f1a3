//! Requests for connections over the link. Each is answered once the other machine's answer is
//! known.

use super::carry::join;
use super::connections::{ConnectionEnds, ConnectionTable, Slot};
use super::destinations::{Destinations, PAUSE, spawn};
use fullpipe_kernel::process::wait::{self, PollFd, PollFlags};
use fullpipe_kernel::run::outside::Outside;
use fullpipe_kernel::socket::connection_request::{ConnectionRequest, ConnectionRequests, Refusal};
use fullpipe_kernel::socket::sock_diag::SockDiag;
use fullpipe_kernel::socket::transparent;
use fullpipe_model::units::Duration;
use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};

/// How often to check whether a command still waits for an unanswered connection.
const LOOK: Duration = Duration::from_millis(100);
/// A handshake that is not complete after the kernel's five repetitions (`tcp_synack_retries`, 63
/// s, tcp(7)) never will be.
const HANDSHAKE: std::time::Duration = std::time::Duration::from_secs(64);

/// The state shared by a gateway's threads.
pub(super) struct Gateway {
    pub(super) requests: ConnectionRequests,
    pub(super) outside: Arc<Outside>,
    pub(super) destinations: Destinations,
    pub(super) connections: Arc<ConnectionTable>,
    /// Finds the command's sockets.
    pub(super) near: Mutex<SockDiag>,
}

impl Gateway {
    /// Whether the command's socket that made this request is still there.
    fn sees(&self, request: &ConnectionRequest) -> bool {
        let mut near = self.near.lock().unwrap_or_else(PoisonError::into_inner);
        near.sample(request.from, request.to).is_ok_and(|socket| socket.is_some())
    }
}

/// Why an onward connection failed.
enum NoConnection {
    /// The other machine, or one on the way, refused it.
    Refused(Refusal),
    /// There was no answer, or nobody waits for it any more.
    Silent,
}

/// Receives requests forever.
pub(super) fn take(gateway: &Arc<Gateway>) {
    let mut buffer = Vec::new();
    loop {
        let Ok(request) = gateway.requests.receive(&mut buffer) else {
            std::thread::park_timeout(PAUSE);
            continue;
        };
        let ends = ConnectionEnds { near: request.from, meant: request.to };
        match gateway.connections.is_connected(ends) {
            // The answer to the first SYN was lost, or is on its way.
            Some(true) => drop(gateway.requests.pass(&request)),
            Some(false) => {}
            None => begin(gateway, ends, request),
        }
    }
}

/// Answers `request` on a thread; refuses it at once if there is no slot or no thread.
fn begin(gateway: &Arc<Gateway>, ends: ConnectionEnds, request: ConnectionRequest) {
    let request = Arc::new(request);
    let begun = gateway.connections.enter(ends).is_some_and(|slot| {
        let (gateway, request) = (Arc::clone(gateway), Arc::clone(&request));
        spawn("gateway", move || answer(&gateway, &request, &slot)).is_ok()
    });
    if !begun {
        let _ = gateway.requests.refuse(&request, Refusal::Reset);
    }
}

/// Accepts connections forever and passes them to the threads that requested them.
pub(super) fn accept(listener: &TcpListener, gateway: &Arc<Gateway>) {
    loop {
        let Ok((near, from)) = listener.accept() else {
            // Descriptors ran out, or the connection is gone already; the next one may work.
            std::thread::park_timeout(PAUSE);
            continue;
        };
        let Ok(meant) = near.local_addr() else { continue };
        let ends = ConnectionEnds { near: from, meant };
        let Err(near) = gateway.connections.hand_over(ends, near) else { continue };
        // Its request had IPv6 extension headers, which are not parsed, so the connection is
        // already established.
        let Some(slot) = gateway.connections.enter(ends) else {
            transparent::reset(near);
            continue;
        };
        slot.connection.accepted();
        let gateway = Arc::clone(gateway);
        let _ = spawn("gateway", move || {
            match gateway.outside.connect(gateway.destinations.target(meant)) {
                Ok(far) => {
                    let far = Arc::new(far);
                    slot.connection.connected(&far);
                    join(&near, &far, &slot.connection);
                }
                Err(_) => transparent::reset(near),
            }
        });
    }
}

/// Connects to the requested address, reports the outcome to the command, and carries the bytes.
fn answer(gateway: &Gateway, request: &ConnectionRequest, slot: &Slot) {
    match connect(gateway, request) {
        Ok(far) => {
            let far = Arc::new(far);
            let accepted = slot.connection.expect();
            slot.connection.connected(&far);
            if gateway.requests.pass(request).is_err() {
                return;
            }
            if let Ok(near) = accepted.recv_timeout(HANDSHAKE) {
                join(&near, &far, &slot.connection);
            }
        }
        Err(NoConnection::Refused(refusal)) => drop(gateway.requests.refuse(request, refusal)),
        Err(NoConnection::Silent) => {}
    }
}

fn connect(gateway: &Gateway, request: &ConnectionRequest) -> Result<TcpStream, NoConnection> {
    let target = gateway.destinations.target(request.to);
    let far = gateway.outside.begin_connect(target).map_err(|refused| refusal(refused.errno()))?;
    // A socket that was never seen is in a namespace that the command has made, so it cannot be
    // found.
    let seen = gateway.sees(request);
    loop {
        let mut fds = [PollFd::new(far.as_fd(), PollFlags::POLLOUT)];
        match wait::ready(&mut fds, Some(LOOK)) {
            Ok(0) if seen && !gateway.sees(request) => return Err(NoConnection::Silent),
            Ok(0) => {}
            Ok(_) => {
                return match far.take_error() {
                    Ok(None) => Ok(far),
                    Ok(Some(error)) => Err(refusal(error.raw_os_error())),
                    Err(_) => Err(NoConnection::Silent),
                };
            }
            Err(_) => return Err(NoConnection::Silent),
        }
    }
}

/// What an error of `connect` means for the requester (connect(2)).
fn refusal(errno: Option<i32>) -> NoConnection {
    match errno.map(|errno| std::io::Error::from_raw_os_error(errno).kind()) {
        Some(ErrorKind::TimedOut) => NoConnection::Silent,
        Some(ErrorKind::NetworkUnreachable) => NoConnection::Refused(Refusal::NetworkUnreachable),
        Some(ErrorKind::HostUnreachable) => NoConnection::Refused(Refusal::HostUnreachable),
        Some(ErrorKind::PermissionDenied) => NoConnection::Refused(Refusal::Prohibited),
        _ => NoConnection::Refused(Refusal::Reset),
    }
}
