//! The host's flight recorder: what its sockets did in the last days, within a bound on the disk.
//!
//! [`HistoryRecorder`] looks at all sockets about once a second and keeps samples of those that
//! lost or moved most; each minute a part is written to a [`HistoryRing`], a folder that never
//! takes more than it may. [`past`] reads the parts of a time that is asked about, and answers as
//! [`crate::why()`] does.
//!
//! A part is a recording as `why --record` writes it, compressed, with two more kinds of lines
//! ([`fullpipe_flow::diagnosis::live::History`]); its name says when it begins. So whoever is
//! killed loses the part that is not complete, a minute at most, and a question about ten minutes
//! opens some twelve files, however many there are.

mod choice;
mod past;
mod recorder;
mod ring;
mod sighting;
mod unsent;

pub use past::{Gap, Past, PastGround, PastQuestion, past, watched};
pub use recorder::{HistoryOptions, HistoryProgress, HistoryRecorder};
pub use ring::{HistoryRing, RingTrouble, directory};
pub use sighting::{Sighting, Sought, is_there, sightings};
pub use unsent::Unsent;

/// What cannot be done with a ring.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The kernel refuses.
    #[error(transparent)]
    Refused(#[from] fullpipe_kernel::Refused),
    /// Somebody else records into it.
    #[error(
        "record sockets to {0}: another recorder writes there; end that one, or name another folder"
    )]
    Held(String),
    /// There is no recording of that time.
    #[error("read {place}: there is no recording; `fullpipe record --sockets` makes one")]
    Empty {
        /// The folder.
        place: String,
    },
    /// The folder cannot be written to.
    #[error(
        "record sockets to {place}: {cause}; name a folder of your own that nobody else can write to"
    )]
    Unwritable {
        /// Which folder.
        place: String,
        /// Why.
        cause: std::io::Error,
    },
    /// The folder cannot be read.
    #[error("read recording {place}: {cause}; name its folder with --ring, or run as its user")]
    Unreadable {
        /// Which folder.
        place: String,
        /// Why.
        cause: std::io::Error,
    },
}
