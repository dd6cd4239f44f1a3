//! What two ends say first on a carrier.

use super::super::frame::{CloseReason, Frame, Hello, SessionId, VERSION};
use super::Closed;
use super::wire::{READ, Reading, Wire};
use crate::PeerError;
use fullpipe_model::units::Duration;
use std::io;
use tokio::io::Interest;

/// The other end's first frame has to come within this.
const PATIENCE: Duration = Duration::from_secs(10);

/// Sends what was queued, and waits for the other end's HELLO. A carrier that fails before that
/// has failed as `said`.
pub(super) async fn receive(
    wire: &mut Wire,
    said: impl Fn(io::Error) -> String,
) -> Result<Hello, Closed> {
    let waited = tokio::time::timeout(PATIENCE.into(), first_frame(wire)).await;
    let frame = waited.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    match frame.map_err(|error| Closed::Broken(said(error)))? {
        Frame::Hello(hello) => Ok(hello),
        Frame::Close { reason, text } => Err(Closed::Refused(reason, text)),
        _ => Err(Closed::Broken("it did not begin with HELLO".into())),
    }
}

async fn first_frame(wire: &mut Wire) -> io::Result<Frame> {
    let mut scratch = vec![0; READ];
    let stream = wire.stream();
    loop {
        wire.flush()?;
        if let Some(frame) = wire.next_frame().map_err(io::Error::other)? {
            return Ok(frame);
        }
        let interest = match wire.is_blocked() {
            true => Interest::READABLE | Interest::WRITABLE,
            false => Interest::READABLE,
        };
        stream.ready(interest).await?;
        if wire.read(&mut scratch)? == Reading::End {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// The near end's side: names the session, and waits for the far end's HELLO.
pub(super) async fn initiate(
    wire: &mut Wire,
    session: SessionId,
    joins: bool,
) -> Result<(), Closed> {
    wire.queue(&Frame::Hello(Hello { version: VERSION, session, joins }));
    let remote = wire.remote();
    // In TLS 1.3 a daemon judges the key after the client's handshake has ended.
    let answer = receive(wire, |error| PeerError::broken(remote, error).to_string()).await?;
    if answer.version != VERSION {
        return Err(Closed::Refused(CloseReason::Version, versions(answer.version)));
    }
    if answer.session != session {
        return Err(Closed::Broken("it answered for another session".into()));
    }
    Ok(())
}

/// The far end's last word to a carrier that it does not take.
pub(super) fn turn_away(wire: &mut Wire, reason: CloseReason, text: String) {
    wire.queue(&Frame::Close { reason, text });
    // If the carrier is broken, nobody can be told.
    let _ = wire.flush();
}

/// Two versions in words.
pub(super) fn versions(theirs: u16) -> String {
    format!(
        "this end speaks version {VERSION} and the other one {theirs}: install the same release"
    )
}
