//! Whose clock a run went by.

use serde::{Deserialize, Serialize};

/// Whose clock a run went by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// The machine's clock.
    #[default]
    Real,
    /// A guest kernel's clock, which stands still while anything computes.
    Virtual,
}

impl Clock {
    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Clock::Real => "real",
            Clock::Virtual => "virtual",
        }
    }
}
