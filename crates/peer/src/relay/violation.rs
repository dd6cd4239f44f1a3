//! What a peer may not send: the reason for which it is cut.

use super::frame::{FrameError, StreamId};

/// A breach of the protocol. The session ends with it, and its streams are reset, because nothing
/// that this peer says can be relied on any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// Bytes that are no frame.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// HELLO twice, or something else before it.
    #[error("accept frame: HELLO is the first frame of a carrier, and only that")]
    Hello,
    /// An acknowledgement of what was not sent.
    #[error("accept frame: the peer acknowledges {acknowledged} frames of {sent}")]
    Ack {
        /// As the peer says.
        acknowledged: u64,
        /// As this end knows.
        sent: u64,
    },
    /// A frame about a stream that was never opened.
    #[error("accept frame: stream {} was never opened", .0.0)]
    NeverOpened(StreamId),
    /// A frame that only the other role sends.
    #[error("accept frame: this end of a relay does not receive such a frame")]
    Role,
    /// A chunk beyond what was granted.
    #[error("accept frame: a chunk lies beyond the credit of its stream")]
    BeyondCredit,
    /// A chunk beyond the end of its direction, or an end before a chunk.
    #[error("accept frame: a stream's chunks and its end contradict each other")]
    BeyondEnd,
    /// More gaps than carriers can make.
    #[error("accept frame: a stream is in too many pieces")]
    TooManyPieces,
    /// The peer opens streams and does not take the answers.
    #[error("accept frame: the peer opens streams faster than it takes the answers")]
    TooManyAnswers,
    /// The initiator skipped more numbers than it may have streams.
    #[error("accept frame: stream numbers are too far apart")]
    Numbers,
}
