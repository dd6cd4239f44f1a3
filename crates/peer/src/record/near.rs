//! The near end of a recording: it asks a daemon.

use super::far::PIECE;
use super::message::{RecordRequest, RecordResponse, VERSION};
use crate::{Channel, Client, Kind, PeerError};
use fullpipe_model::units::{Bytes, Duration};

/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(30);

/// Why the far end did not record.
#[derive(Debug, thiserror::Error)]
pub enum FarRecordError {
    /// The connection to it.
    #[error(transparent)]
    Peer(#[from] PeerError),
    /// It said so.
    #[error("the far end refused: {0}")]
    Refused(String),
    /// What it sent could not be kept.
    #[error("keep the far end's recording: {0}")]
    Keep(std::io::Error),
}

/// A recording that goes on at the far end. Dropping it ends it, and nothing of it is kept.
#[derive(Debug)]
pub struct FarRecording {
    channel: Channel,
    most: Bytes,
}

impl FarRecording {
    /// Begins one of at most `time` and `size` of TCP between the two hosts, with one of `ports` at
    /// either end; any where there is none.
    ///
    /// # Errors
    /// It cannot be reached, or refuses.
    pub fn begin(
        client: &Client,
        ports: &[u16],
        time: Duration,
        size: Bytes,
    ) -> Result<FarRecording, FarRecordError> {
        let mut channel = client.control()?;
        let (version, ports) = (VERSION, ports.to_vec());
        let request = RecordRequest::Begin { version, ports, time, size };
        match ask(&mut channel, &request)? {
            RecordResponse::Recording {} => Ok(FarRecording { channel, most: size }),
            other => Err(unexpected(&channel, other)),
        }
    }

    /// Ends it, and passes the pieces of its file to `keep`. Returns how many packets it has, how
    /// many were dropped, and whether there was no room for more.
    ///
    /// # Errors
    /// The far end is gone, or something went wrong there or in `keep`.
    pub fn finish(
        self,
        keep: &mut dyn FnMut(&[u8]) -> std::io::Result<()>,
    ) -> Result<(u64, u64, bool), FarRecordError> {
        let FarRecording { mut channel, most } = self;
        let (packets, dropped, is_full, size) = match ask(&mut channel, &RecordRequest::End {})? {
            RecordResponse::Recorded { packets, dropped, is_full, size } => {
                (packets, dropped, is_full, size)
            }
            other => return Err(unexpected(&channel, other)),
        };
        if size > most {
            let cause = format!("it has {size} where {most} were asked for");
            return Err(PeerError::protocol(channel.remote(), cause).into());
        }
        let mut left = size.get();
        while left > 0 {
            channel.send(&RecordRequest::Piece {}, ANSWER)?;
            let frame = channel.receive_frame(ANSWER)?;
            let length = frame.payload.len() as u64;
            if frame.kind != Kind::Recording || length == 0 || length > left.min(PIECE as u64) {
                let cause = "something else came than a piece of its recording";
                return Err(PeerError::protocol(channel.remote(), cause).into());
            }
            keep(&frame.payload).map_err(FarRecordError::Keep)?;
            left -= length;
        }
        Ok((packets, dropped, is_full))
    }
}

fn ask(channel: &mut Channel, request: &RecordRequest) -> Result<RecordResponse, FarRecordError> {
    channel.send(request, ANSWER)?;
    Ok(channel.receive(ANSWER)?)
}

fn unexpected(channel: &Channel, response: RecordResponse) -> FarRecordError {
    match response {
        RecordResponse::Refused { why } => FarRecordError::Refused(why),
        _ => PeerError::protocol(channel.remote(), "its answer does not come now").into(),
    }
}
