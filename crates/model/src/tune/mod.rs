//! From a path and the settings of its hosts to the settings that fill it, each with its reason.
//!
//! [`plan`] is pure: it is told the path ([`Path`]) and both hosts ([`HostSettings`]) and answers a [`Plan`]. `calc`
//! prints it, `why` explains with it, the lab's demonstration applies it: each [`Change`] is one sysctl and its value.
//! Only what must change is changed, and nothing is ever lowered.

mod host;
mod plan;

pub use host::{HostSettings, MemTriple, Setting};
pub use plan::{Change, Host, Note, Path, Plan, Prediction, plan};
