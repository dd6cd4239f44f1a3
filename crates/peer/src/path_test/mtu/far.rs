//! The far end of a search: a socket that answers who knows the token, for a bounded time.

use super::probe::{Datagram, ProbeKind, Token};
use super::socket::{self, Sent};
use crate::random;
use fullpipe_kernel::host::clock;
use fullpipe_model::units::Duration;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// It answers for so long: a search of a path of 600 ms with many sizes that get lost.
const LASTS: Duration = Duration::from_secs(120);
/// The most answers: far more than a search takes.
const ANSWERS: u32 = 1000;
/// How often it looks whether it should end.
const LOOK: Duration = Duration::from_millis(50);

/// What answers; it ends when it is dropped.
#[derive(Debug)]
pub(in super::super) struct Answering {
    /// What the near end has to know.
    pub port: u16,
    pub token: Token,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Answering {
    /// Answers `peer` at this host's address `local`.
    pub fn start(local: SocketAddr, peer: SocketAddr) -> io::Result<Answering> {
        let token = random().ok_or_else(|| io::Error::other("the host has no randomness"))?;
        let socket = socket::bind(local)?;
        let port = socket.local_addr()?.port();
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        let thread = std::thread::Builder::new()
            .name("mtu".into())
            // Whatever the socket says, the test goes on without.
            .spawn(move || drop(answer(&socket, peer, &token, &ends)))?;
        Ok(Answering { port, token, is_over, thread: Some(thread) })
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn answer(
    socket: &UdpSocket,
    peer: SocketAddr,
    token: &Token,
    is_over: &AtomicBool,
) -> io::Result<()> {
    let (start, mut buffer, mut answers) = (clock::now(), vec![0; 1 << 16], 0);
    while !is_over.load(Ordering::Acquire) && clock::now().since(start) < LASTS {
        let Some((length, from)) = socket::receive(socket, &mut buffer, LOOK)? else { continue };
        let asked = buffer.get(..length).and_then(|bytes| Datagram::decode(bytes, token));
        // Nobody else is sent anything, so nobody else can be flooded.
        let is_peer = from.ip().to_canonical() == peer.ip().to_canonical();
        let Some(asked) = asked.filter(|_| is_peer && answers < ANSWERS) else { continue };
        answers += 1;
        let length = match asked.kind {
            ProbeKind::Probe => 0,
            ProbeKind::Ask => socket::payload(asked.size, from),
            ProbeKind::Answer | ProbeKind::TooLarge => continue,
        };
        let bytes = Datagram { kind: ProbeKind::Answer, ..asked }.encode(token, length);
        if socket::send(socket, &bytes, from)? == Sent::TooLarge {
            let small = Datagram { kind: ProbeKind::TooLarge, ..asked }.encode(token, 0);
            socket::send(socket, &small, from)?;
        }
    }
    Ok(())
}
