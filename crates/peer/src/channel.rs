//! A control connection: messages with a deadline, over TCP or TLS.

use crate::timed::{Deadline, Timed};
use crate::{Frame, FrameReader, Kind, PeerError};
use fullpipe_model::units::Duration;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Read, Write};
use std::net::SocketAddr;

/// Bytes that one read may take.
const READ: usize = 16 << 10;

/// A stream that is one of both.
pub(super) trait Stream: Read + Write + Send {}
impl<S: Read + Write + Send> Stream for S {}

/// One end of a control connection.
///
/// Call [`Channel::send`] and [`Channel::receive`] in turns, as the protocol says; each takes the
/// time that it may last. After an error the connection is of no more use.
pub struct Channel {
    stream: Box<dyn Stream>,
    deadline: Deadline,
    reader: FrameReader,
    remote: SocketAddr,
}

impl std::fmt::Debug for Channel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Channel").field("remote", &self.remote).finish_non_exhaustive()
    }
}

impl Channel {
    /// A channel over plain TCP; messages of the other end have up to `most` bytes.
    pub(super) fn plain(stream: Timed, remote: SocketAddr, most: usize) -> Channel {
        let deadline = stream.deadline.clone();
        Channel { stream: Box::new(stream), deadline, reader: FrameReader::new(most), remote }
    }

    /// A channel over a TLS connection whose handshake is done.
    pub(super) fn secured(
        stream: impl Stream + 'static,
        deadline: Deadline,
        remote: SocketAddr,
        most: usize,
    ) -> Channel {
        Channel { stream: Box::new(stream), deadline, reader: FrameReader::new(most), remote }
    }

    /// The other end's address.
    pub fn remote(&self) -> SocketAddr {
        self.remote
    }

    /// Sends a message within `patience`.
    pub fn send(&mut self, message: &impl Serialize, patience: Duration) -> Result<(), PeerError> {
        let payload = serde_json::to_vec(message)
            .map_err(|cause| PeerError::broken(self.remote, cause.into()))?;
        self.send_frame(Kind::Message, &payload, patience)
    }

    /// Sends a frame within `patience`.
    pub fn send_frame(
        &mut self,
        kind: Kind,
        payload: &[u8],
        patience: Duration,
    ) -> Result<(), PeerError> {
        let remote = self.remote;
        let bytes = Frame::encode(kind, payload)
            .ok_or_else(|| PeerError::broken(remote, io::ErrorKind::InvalidInput.into()))?;
        self.deadline.set(patience);
        let sent = self.stream.write_all(&bytes).and_then(|()| self.stream.flush());
        sent.map_err(|error| PeerError::broken(remote, error))
    }

    /// Waits up to `patience` for a message.
    pub fn receive<M: DeserializeOwned>(&mut self, patience: Duration) -> Result<M, PeerError> {
        let frame = self.receive_frame(patience)?;
        let remote = self.remote;
        if frame.kind != Kind::Message {
            let cause = "samples came where an answer was expected";
            return Err(PeerError::protocol(remote, cause));
        }
        serde_json::from_slice(&frame.payload).map_err(|error| {
            let cause =
                format!("its message is not understood ({error}); are both the same version?");
            PeerError::protocol(remote, cause)
        })
    }

    /// Waits up to `patience` for a frame.
    pub fn receive_frame(&mut self, patience: Duration) -> Result<Frame, PeerError> {
        let remote = self.remote;
        self.deadline.set(patience);
        let mut bytes = [0; READ];
        loop {
            if let Some(frame) =
                self.reader.poll().map_err(|error| PeerError::frame(remote, error))?
            {
                return Ok(frame);
            }
            match self.stream.read(&mut bytes) {
                Ok(0) => {
                    return Err(PeerError::broken(remote, io::ErrorKind::UnexpectedEof.into()));
                }
                Ok(count) => self.reader.push(bytes.get(..count).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(PeerError::broken(remote, error)),
            }
        }
    }
}
