//! A device between the ends spoils the window scale (RFC 7323, section 2.2): it rewrites or
//! removes the option, so that the sender takes the number in the window field for the window; or
//! it does not know of the scale itself, and drops what lies beyond that number.

use super::DataSeen;
use fullpipe_model::units::Bytes;

/// Data stops at the number in the window field so often, and never passes it.
const STOPS_LEAST: u32 = 8;
/// Data beyond it was sent and had to be sent again so often, and never arrived at once.
const DROPPED_LEAST: u64 = 8;

/// A window scale that does not reach the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowScale {
    /// The window that the sender, or the device, takes it for.
    pub taken: Bytes,
    /// The window that the receiver means.
    pub meant: Bytes,
    /// What the capture shows.
    pub sign: ScaleSign,
}

/// What shows that a window scale does not reach the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScaleSign {
    /// The receiver's first window is that of its SYN, divided by a scale that its SYN does not
    /// have here.
    Rewritten,
    /// The sender stops at the number in the window field.
    StopsAtField,
    /// What the sender sent beyond that number never arrived.
    Dropped,
}

impl WindowScale {
    pub(super) fn of(seen: DataSeen<'_>) -> Option<Self> {
        seen.verdict?;
        let (passage, receiver) = (seen.facts().passage, seen.receiver_facts());
        let window = receiver.window;
        let agreed = window.scale?;
        let largest = window.max?.bytes();
        if let Some(real) = window.scale_inferred.filter(|real| *real > agreed) {
            let meant = Bytes::new(largest.get().saturating_mul(1 << (real - agreed)));
            return Some(WindowScale { taken: largest, meant, sign: ScaleSign::Rewritten });
        }
        let taken = Bytes::new(largest.get() >> agreed);
        let stops = passage.at_field >= STOPS_LEAST && passage.beyond_field == 0;
        let lost = seen.facts().loss.lost_segments;
        let is_dropped = u64::from(passage.beyond_field) >= DROPPED_LEAST
            && !passage.passed_field
            && lost >= DROPPED_LEAST
            && u64::from(receiver.manner.advancing_acks) >= DROPPED_LEAST;
        let sign = match (stops, is_dropped) {
            (true, _) => ScaleSign::StopsAtField,
            (_, true) => ScaleSign::Dropped,
            _ => return None,
        };
        Some(WindowScale { taken, meant: largest, sign })
    }
}
