//! Variations of a cause: bounds that are close to each other, several requests or downloads, or
//! two causes one after the other.
//!
//! They are drawn from a random stream of their own. A scenario without a variation therefore does
//! not depend on which variations exist.

use super::super::Cause;
use super::dice::Dice;

/// How a scenario differs from the plain case of its cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Variation {
    /// Not at all.
    Plain,
    /// Another bound is only slightly above the one that binds.
    Close,
    /// The client requests one small thing after another on one connection.
    Requests,
    /// Several downloads share the link.
    Shared,
    /// Something else binds first, for one third of the time or for two thirds.
    Sequence,
}

impl Variation {
    /// The minimum length of a transfer, in seconds.
    pub fn seconds_least(self) -> f64 {
        match self {
            // Each part must be longer than the uncertainty about when the transfer starts on the
            // link's clock.
            Variation::Sequence => 5.0,
            _ => 1.0,
        }
    }

    /// Draws a variation that the cause can have.
    pub fn draw(cause: Cause, dice: &mut Dice) -> Variation {
        use Variation::{Close, Plain, Requests, Sequence, Shared};
        match cause {
            Cause::Link => *dice.pick(&[Plain, Plain, Plain, Close, Close, Shared]),
            Cause::Policer => *dice.pick(&[Plain, Plain, Plain, Close]),
            Cause::ReceiveWindow | Cause::ReceiverApplication | Cause::SendBuffer => {
                *dice.pick(&[Plain, Plain, Plain, Close, Close, Sequence])
            }
            Cause::SenderApplication => {
                *dice.pick(&[Plain, Plain, Plain, Requests, Requests, Sequence, Sequence])
            }
            Cause::Loss => *dice.pick(&[Plain, Plain, Plain, Sequence]),
            Cause::SlowStart => Plain,
        }
    }
}
