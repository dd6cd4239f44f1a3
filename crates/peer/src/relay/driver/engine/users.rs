//! The users of an engine: their connections, read as far as the session has room, and written as
//! far as they take it.

use super::super::super::frame::{ResetReason, StreamId};
use super::super::super::session::Read;
use super::super::wire::is_later;
use super::{Engine, Handle};
use bytes::{Buf, Bytes as Buffer};
use fullpipe_kernel::host::clock;
use fullpipe_model::units::{Bytes, Instant};
use std::collections::VecDeque;
use std::io::IoSlice;
use std::rc::Rc;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::sync::Notify;

/// What is taken from the session at a time for a user: as much may wait for one who does not read,
/// beyond what the session counts.
const PENDING: usize = 64 << 10;

/// The read buffer's size, and the room in it for one read.
const READ_BLOCK: usize = 256 << 10;
const READ_LEAST: usize = 16 << 10;

/// Smaller reads are copied out of the read buffer: they would keep the whole of it.
const COPY_BELOW: usize = 4096;

/// How often a user is read before the others have their turn.
const READS: usize = 8;

/// A user's connection.
pub(super) struct User {
    stream: Rc<TcpStream>,
    /// Tells the user's task to look again for what it waits.
    wake: Rc<Notify>,
    pending: VecDeque<Buffer>,
    pending_bytes: usize,
    is_blocked: bool,
    /// The stream has given its end, and the user has it.
    is_end_read: bool,
    is_end_written: bool,
    /// The user has closed its direction.
    is_finished: bool,
}

impl Handle {
    /// Gives an open stream its user. At the far end this is what opens it. The socket has
    /// `SO_LINGER` 0.
    pub fn attach_user(&self, stream: StreamId, socket: TcpStream) {
        let (socket, wake) = (Rc::new(socket), Rc::new(Notify::new()));
        let mut engine = self.0.borrow_mut();
        if engine.ended.is_some() {
            return;
        }
        let user = User {
            stream: Rc::clone(&socket),
            wake: Rc::clone(&wake),
            pending: VecDeque::new(),
            pending_bytes: 0,
            is_blocked: false,
            is_end_read: false,
            is_end_written: false,
            is_finished: false,
        };
        engine.users.insert(stream, user);
        engine.session.accept(stream);
        // What came before the user did was told to nobody.
        engine.flush_user(clock::now(), stream);
        engine.pump();
        tokio::task::spawn_local(serve(self.clone(), stream, socket, wake));
    }

    /// What the user said before its stream was open; it is sent with what follows.
    pub fn write_early(&self, stream: StreamId, data: Buffer) {
        let mut engine = self.0.borrow_mut();
        engine.session.write(stream, data);
    }
}

/// Waits for a user's socket until the user is gone.
async fn serve(engine: Handle, stream: StreamId, socket: Rc<TcpStream>, wake: Rc<Notify>) {
    loop {
        let Some(interest) = engine.0.borrow_mut().interest(stream) else { return };
        let ready = tokio::select! {
            ready = socket.ready(interest) => ready,
            () = wake.notified() => continue,
        };
        let has_more = {
            let mut engine = engine.0.borrow_mut();
            let now = clock::now();
            let has_more = match ready {
                Ok(ready) => {
                    if ready.is_writable() && interest.is_writable() {
                        engine.flush_user(now, stream);
                    }
                    let has_more =
                        interest.is_readable() && ready.is_readable() && engine.read_user(stream);
                    if ready.is_error() && !interest.is_readable() {
                        engine.user_failed(stream);
                    }
                    has_more
                }
                Err(_) => {
                    engine.user_failed(stream);
                    false
                }
            };
            engine.pump();
            has_more
        };
        if has_more {
            tokio::task::yield_now().await;
        }
    }
}

impl Engine {
    /// What a user's task has to wait for: a reset in any case. `None`: the user is gone.
    fn interest(&mut self, stream: StreamId) -> Option<Interest> {
        let user = self.users.get(&stream)?;
        let mut interest = Interest::ERROR;
        if user.is_blocked {
            interest |= Interest::WRITABLE;
        }
        if !user.is_finished && self.session.room(stream) > Bytes::ZERO {
            interest |= Interest::READABLE;
        }
        Some(interest)
    }

    /// Reads a user for as long as the session has room. Returns whether there may be more.
    fn read_user(&mut self, stream: StreamId) -> bool {
        for _ in 0..READS {
            let Some(user) = self.users.get_mut(&stream) else { return false };
            if user.is_finished || self.session.room(stream) == Bytes::ZERO {
                return false;
            }
            if self.read_buffer.capacity() - self.read_buffer.len() < READ_LEAST {
                self.read_buffer.reserve(READ_BLOCK);
            }
            match user.stream.try_read_buf(&mut self.read_buffer) {
                Ok(0) => {
                    user.is_finished = true;
                    self.session.finish(stream);
                    self.close_if_done(stream);
                    return false;
                }
                Ok(count) if count < COPY_BELOW => {
                    let data = Buffer::copy_from_slice(&self.read_buffer);
                    self.read_buffer.clear();
                    self.session.write(stream, data);
                }
                Ok(_) => {
                    let data = self.read_buffer.split().freeze();
                    self.session.write(stream, data);
                }
                Err(error) if is_later(&error) => return false,
                Err(_) => {
                    self.user_failed(stream);
                    return false;
                }
            }
        }
        true
    }

    /// Writes what the session has for a user, as far as the user takes it.
    pub(super) fn flush_user(&mut self, now: Instant, stream: StreamId) {
        loop {
            let Some(user) = self.users.get_mut(&stream) else { return };
            while user.pending_bytes < PENDING && !user.is_end_read {
                match self.session.read(now, stream) {
                    Read::Data(data) => {
                        user.pending_bytes += data.len();
                        user.pending.push_back(data);
                    }
                    Read::End => user.is_end_read = true,
                    // A stream that is gone before its end has its event.
                    Read::Later | Read::Gone => break,
                }
            }
            if user.pending.is_empty() {
                user.is_blocked = false;
                if user.is_end_read && !user.is_end_written {
                    user.is_end_written = true;
                    let end = std::net::Shutdown::Write;
                    // It fails where the connection is broken, which its task sees.
                    let _ = socket2::SockRef::from(&*user.stream).shutdown(end);
                    self.close_if_done(stream);
                }
                return;
            }
            let mut slices = [IoSlice::new(&[]); 8];
            let count = user.pending.len().min(slices.len());
            for (slice, data) in slices.iter_mut().zip(&user.pending) {
                *slice = IoSlice::new(data);
            }
            match user.stream.try_write_vectored(slices.get(..count).unwrap_or_default()) {
                Ok(count) => user.written(count),
                Err(error) if is_later(&error) => {
                    if !user.is_blocked {
                        user.is_blocked = true;
                        user.wake.notify_one();
                    }
                    return;
                }
                Err(_) => return self.user_failed(stream),
            }
        }
    }

    /// Both directions have ended in order: nothing is lost by an orderly close.
    fn close_if_done(&mut self, stream: StreamId) {
        let is_done =
            self.users.get(&stream).is_some_and(|user| user.is_finished && user.is_end_written);
        if is_done && let Some(user) = self.users.remove(&stream) {
            // Without it, the close would be a reset, and what is not acknowledged would be lost.
            let _ = socket2::SockRef::from(&*user.stream).set_linger(None);
            user.wake.notify_one();
        }
    }

    /// The user's connection was reset, or failed otherwise.
    fn user_failed(&mut self, stream: StreamId) {
        if self.users.contains_key(&stream) {
            self.session.reset(stream, ResetReason::Reset);
            self.cut_user(stream);
        }
    }

    /// Closes the user's connection, by a reset.
    pub(super) fn cut_user(&mut self, stream: StreamId) {
        if let Some(user) = self.users.remove(&stream) {
            user.wake.notify_one();
        }
    }

    /// The session has room again.
    pub(super) fn wake_user(&mut self, stream: StreamId) {
        if let Some(user) = self.users.get(&stream) {
            user.wake.notify_one();
        }
    }
}

impl User {
    fn written(&mut self, mut count: usize) {
        self.pending_bytes -= count;
        while let Some(first) = self.pending.front_mut() {
            if first.len() > count {
                return first.advance(count);
            }
            count -= first.len();
            self.pending.pop_front();
        }
    }
}
