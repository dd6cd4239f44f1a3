//! What is counted of a connection's time.

use super::course::Course;
use super::spent::Sums;
use fullpipe_model::units::Duration;

/// What was counted of a connection's time while it passed. The time in which data went one way is
/// not divided yet: the verdict does that, for [`crate::account::Account`].
#[derive(Debug, Clone, Default)]
pub struct Counted {
    pub(crate) sums: Sums,
    pub(crate) requests: u32,
    pub(crate) turns: u32,
    /// Those of the handshake of TLS.
    pub(crate) tls_turns: u8,
    pub(crate) syn_retransmissions: u16,
    pub(crate) waiting: Option<Duration>,
    pub(crate) from_handshake: bool,
    /// The same time in its order, where that was asked for.
    pub(crate) course: Option<Box<Course>>,
}
