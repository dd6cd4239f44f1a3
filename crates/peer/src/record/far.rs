//! The far end of a recording: what a daemon does for a peer.

use super::message::{RecordRequest, RecordResponse, WantedPackets, fault};
use crate::{Channel, Kind, Session};
use fullpipe_model::units::{Bytes, Duration};
use std::sync::atomic::{AtomicBool, Ordering};

/// How long a peer may say nothing after its time.
const IDLE: Duration = Duration::from_secs(60);
/// How long an answer may take to leave.
const ANSWER: Duration = Duration::from_secs(30);
/// Bytes of a piece.
pub(super) const PIECE: usize = 1 << 20;

/// Records packets of this host.
pub trait PacketSource: Send + Sync {
    /// Begins: every packet that passes from now on is seen.
    ///
    /// # Errors
    /// It cannot, and why.
    fn start(&self, wanted: &WantedPackets) -> Result<Box<dyn RunningRecording>, String>;
}

/// A recording that goes on. Dropping it ends it.
pub trait RunningRecording: Send {
    /// Ends it.
    ///
    /// # Errors
    /// Something went wrong meanwhile, and what.
    fn finish(self: Box<Self>) -> Result<RecordedPackets, String>;
}

/// What was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordedPackets {
    /// Packets that are in it.
    pub packets: u64,
    /// Packets that the kernel dropped.
    pub dropped: u64,
    /// Whether it ended before, because there was no more room.
    pub is_full: bool,
    /// A pcapng file.
    pub file: Vec<u8>,
}

/// What recordings may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordLimits {
    /// The longest one.
    pub longest: Duration,
    /// The most that one keeps, in memory.
    pub size: Bytes,
}

/// Headers of some 600,000 packets.
impl Default for RecordLimits {
    fn default() -> Self {
        RecordLimits { longest: Duration::from_secs(600), size: Bytes::new(64_000_000) }
    }
}

/// The far end of recordings: one at a time, of all peers.
pub struct RecordService<S> {
    /// `None`: nobody may record.
    source: Option<S>,
    limits: RecordLimits,
    is_taken: AtomicBool,
}

/// The place of the one recording, given back when dropped.
struct Place<'a>(&'a AtomicBool);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl<S: PacketSource> RecordService<S> {
    /// One that records by `source`; without one it refuses.
    pub fn new(source: Option<S>, limits: RecordLimits) -> RecordService<S> {
        RecordService { source, limits, is_taken: AtomicBool::new(false) }
    }

    /// Serves a peer that has asked for this first.
    ///
    /// # Errors
    /// The peer's, for the log.
    pub(crate) fn serve(
        &self,
        first: RecordRequest,
        mut channel: Channel,
        session: &Session<'_>,
    ) -> Result<(), String> {
        let begun = self.begin(first, &channel, session);
        let (recording, time, _place) = match begun {
            Ok(begun) => begun,
            Err(why) => {
                let refused = RecordResponse::Refused { why };
                return channel.send(&refused, ANSWER).map_err(|error| error.to_string());
            }
        };
        let served = converse(recording, time, &mut channel);
        session.set_busy(false);
        served
    }

    /// Begins what is asked, if it may be.
    fn begin(
        &self,
        first: RecordRequest,
        channel: &Channel,
        session: &Session<'_>,
    ) -> Result<(Box<dyn RunningRecording>, Duration, Place<'_>), String> {
        let RecordRequest::Begin { version, ports, time, size } = first else {
            return Err("that question does not come now".into());
        };
        let source = self
            .source
            .as_ref()
            .ok_or("recording is not allowed there; start it as `fullpipe serve --allow-record`")?;
        let bounds = ((time, self.limits.longest), (size, self.limits.size));
        if let Some(fault) = fault([version.into(), ports.len()], bounds.0, bounds.1) {
            return Err(fault);
        }
        let local = session.local.ok_or("the daemon does not know its own address")?;
        if self.is_taken.swap(true, Ordering::AcqRel) {
            return Err("another recording goes on; try again when it is over".into());
        }
        let place = Place(&self.is_taken);
        if !session.set_busy(true) {
            return Err("the daemon is being stopped".into());
        }
        let ends = [channel.remote(), local].map(|end| end.ip().to_canonical());
        let recording = source.start(&WantedPackets { ends, ports, size })?;
        Ok((recording, time, place))
    }
}

/// Records until the peer says so, and gives it what there is.
fn converse(
    recording: Box<dyn RunningRecording>,
    time: Duration,
    channel: &mut Channel,
) -> Result<(), String> {
    channel.send(&RecordResponse::Recording {}, ANSWER).map_err(|error| error.to_string())?;
    let patience = time.saturating_add(IDLE);
    let request: RecordRequest = channel.receive(patience).map_err(|error| error.to_string())?;
    if request != (RecordRequest::End {}) {
        return Err("a recording goes on, and was not ended".into());
    }
    let recorded = match recording.finish() {
        Ok(recorded) => recorded,
        Err(why) => {
            let refused = RecordResponse::Refused { why };
            return channel.send(&refused, ANSWER).map_err(|error| error.to_string());
        }
    };
    let RecordedPackets { packets, dropped, is_full, file } = recorded;
    let size = Bytes::new(file.len() as u64);
    let told = RecordResponse::Recorded { packets, dropped, is_full, size };
    channel.send(&told, ANSWER).map_err(|error| error.to_string())?;
    for piece in file.chunks(PIECE) {
        let request: RecordRequest = channel.receive(IDLE).map_err(|error| error.to_string())?;
        if request != (RecordRequest::Piece {}) {
            return Err("pieces of a recording were to be fetched".into());
        }
        channel.send_frame(Kind::Recording, piece, ANSWER).map_err(|error| error.to_string())?;
    }
    Ok(())
}
