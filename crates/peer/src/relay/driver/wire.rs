//! A carrier's socket: whole frames in, frames out, encrypted or not. It never waits; whoever holds
//! it asks the socket when to try again.
//!
//! What was queued and does not go stays here, and the kernel keeps little that it has not sent
//! ([`Unsent`]): so a slow carrier takes little that a quicker one could carry.

use super::super::frame::{Frame, FrameError, decode};
use super::unsent::Unsent;
use crate::{Connection, ConnectionSlot, PublicKey, Transport};
use bytes::{Buf, BytesMut};
use fullpipe_kernel::host::clock;
use std::io::{self, BufRead, ErrorKind, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;
use tokio::net::TcpStream;

/// The most that is queued at a time: four chunks are one call to the kernel.
const BATCH: usize = 64 << 10;

/// What is read at a time.
pub(super) const READ: usize = 64 << 10;

/// What a carrier's socket is told before it carries.
#[derive(Debug, Clone, Default)]
pub struct CarrierSockets {
    /// What the near end connects by; the far end's daemon has its own.
    pub transport: Transport,
    /// `TCP_CONGESTION`, for what this end sends; `None`: the host's own.
    pub congestion: Option<String>,
    /// Options that take unsafe code, such as pacing.
    pub set_up: Option<fn(BorrowedFd<'_>) -> io::Result<()>>,
}

impl CarrierSockets {
    /// Tries them on a socket that is not connected: what the kernel refuses is told before there
    /// is a carrier.
    pub fn check(&self) -> io::Result<()> {
        use socket2::{Domain, Protocol, Socket, Type};
        self.transport.check()?;
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
        self.apply(socket.as_fd())
    }

    fn apply(&self, socket: BorrowedFd<'_>) -> io::Result<()> {
        if let Some(name) = &self.congestion {
            socket2::SockRef::from(&socket).set_tcp_congestion(name.as_bytes())?;
        }
        self.set_up.map_or(Ok(()), |set_up| unless_unknown(set_up(socket)))
    }
}

/// What reading a socket gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    Some,
    Nothing,
    End,
}

/// One carrier's socket.
pub(super) struct Wire {
    stream: Rc<TcpStream>,
    tls: Option<Box<rustls::Connection>>,
    received: BytesMut,
    out: BytesMut,
    is_blocked: bool,
    unsent: Unsent,
    remote: SocketAddr,
    key: Option<PublicKey>,
    /// Held for as long as the carrier lives.
    place: Option<ConnectionSlot>,
}

impl Wire {
    /// The carrier of a connection. Its stream becomes one that does not wait.
    pub fn new(connection: Connection, sockets: &CarrierSockets) -> io::Result<Wire> {
        let Connection { stream, tls, remote, key, place } = connection;
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let unsent = Unsent::new();
        let set = socket2::SockRef::from(&stream).set_tcp_notsent_lowat(unsent.bound());
        unless_unknown(set)?;
        sockets.apply(stream.as_fd())?;
        let stream = Rc::new(TcpStream::from_std(stream)?);
        let (received, out) = (BytesMut::new(), BytesMut::new());
        let tls = tls.map(Box::new);
        let is_blocked = false;
        let mut wire = Wire { stream, tls, received, out, is_blocked, unsent, remote, key, place };
        if let Some(tls) = &mut wire.tls {
            // What waits is bounded by whoever queues.
            tls.set_buffer_limit(None);
            take_plaintext(tls, &mut wire.received)?;
        }
        Ok(wire)
    }

    pub fn stream(&self) -> Rc<TcpStream> {
        Rc::clone(&self.stream)
    }

    /// The addresses of this end and of the other one.
    pub fn ends(&self) -> Option<(SocketAddr, SocketAddr)> {
        Some((self.stream.local_addr().ok()?, self.remote))
    }

    pub fn remote(&self) -> SocketAddr {
        self.remote
    }

    pub fn key(&self) -> Option<PublicKey> {
        self.key
    }

    /// The carrier belongs to a session from now on: it keeps its place.
    pub fn settle(&self) {
        if let Some(place) = &self.place {
            place.settle();
        }
    }

    /// Reads once what has arrived; `scratch` has [`READ`] bytes.
    pub fn read(&mut self, scratch: &mut [u8]) -> io::Result<Reading> {
        let count = match &mut self.tls {
            None => {
                if self.received.capacity() - self.received.len() < READ / 2 {
                    self.received.reserve(2 * READ);
                }
                self.stream.try_read_buf(&mut self.received)
            }
            Some(_) => self.stream.try_read(scratch),
        };
        let count = match count {
            Ok(0) => return Ok(Reading::End),
            Ok(count) => count,
            Err(error) if is_later(&error) => return Ok(Reading::Nothing),
            Err(error) => return Err(error),
        };
        if let Some(tls) = &mut self.tls {
            let mut rest = scratch.get(..count).unwrap_or_default();
            while !rest.is_empty() {
                tls.read_tls(&mut rest)?;
                let state = tls.process_new_packets();
                let state = state.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
                let is_over = state.peer_has_closed();
                take_plaintext(tls, &mut self.received)?;
                if is_over {
                    return Ok(Reading::End);
                }
            }
        }
        Ok(Reading::Some)
    }

    /// The next whole frame of what was read.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        decode(&mut self.received)
    }

    /// Queues a frame; [`Wire::flush`] sends it.
    pub fn queue(&mut self, frame: &Frame) {
        frame.encode(&mut self.out);
    }

    /// Bytes of frames that were queued since the last flush that got through.
    pub fn queued(&self) -> usize {
        self.out.len()
    }

    /// How much may be queued at a time: what the kernel may hold as well.
    pub fn batch(&self) -> usize {
        (self.unsent.bound() as usize).min(BATCH)
    }

    /// Whether the socket took less than what was queued: flush again when it is writable.
    pub fn is_blocked(&self) -> bool {
        self.is_blocked
    }

    /// The socket took so many bytes.
    fn has_taken(&mut self, count: usize) -> io::Result<()> {
        match self.unsent.take(clock::now(), count) {
            Some(bound) => {
                let socket = socket2::SockRef::from(&*self.stream);
                unless_unknown(socket.set_tcp_notsent_lowat(bound))
            }
            None => Ok(()),
        }
    }

    /// Sends what is queued, as far as the socket takes it.
    pub fn flush(&mut self) -> io::Result<()> {
        self.is_blocked = true;
        if let Some(tls) = &mut self.tls {
            tls.writer().write_all(&self.out)?;
            self.out.clear();
        }
        while let Some(tls) = self.tls.as_mut().filter(|tls| tls.wants_write()) {
            match tls.write_tls(&mut TlsSocket(&self.stream)) {
                Ok(count) => self.has_taken(count)?,
                Err(error) if is_later(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        while !self.out.is_empty() {
            match self.stream.try_write(&self.out) {
                Ok(count) => {
                    self.out.advance(count);
                    self.has_taken(count)?;
                }
                Err(error) if is_later(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        self.is_blocked = false;
        Ok(())
    }
}

/// What setting an option gave; one that the kernel has not for such a socket is no failure. Older
/// kernels have few of TCP's for Multipath TCP.
fn unless_unknown(set: io::Result<()>) -> io::Result<()> {
    use rustix::io::Errno;
    match set {
        Err(error)
            if [Errno::NOPROTOOPT, Errno::OPNOTSUPP]
                .iter()
                .any(|unknown| error.raw_os_error() == Some(unknown.raw_os_error())) =>
        {
            Ok(())
        }
        set => set,
    }
}

/// Moves what TLS has decrypted.
fn take_plaintext(tls: &mut rustls::Connection, to: &mut BytesMut) -> io::Result<()> {
    loop {
        let mut reader = tls.reader();
        let count = match reader.fill_buf() {
            // An end without close_notify shows at the socket.
            Ok([]) => return Ok(()),
            Ok(data) => {
                to.extend_from_slice(data);
                data.len()
            }
            Err(error) if is_later(&error) => return Ok(()),
            Err(error) => return Err(error),
        };
        reader.consume(count);
    }
}

/// Whether the socket has nothing, or takes nothing, for now.
pub(super) fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// A socket as rustls writes to it.
struct TlsSocket<'a>(&'a TcpStream);

impl Write for TlsSocket<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.0.try_write(buffer)
    }

    fn write_vectored(&mut self, buffers: &[io::IoSlice<'_>]) -> io::Result<usize> {
        self.0.try_write_vectored(buffers)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
