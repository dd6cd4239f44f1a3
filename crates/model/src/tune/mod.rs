//! From a path and the settings of its hosts to the settings that fill it, each with its reason.
//!
//! [`plan`] is pure: it is told the path ([`Path`]) and both hosts ([`HostSettings`]) and answers a
//! [`Plan`]. `calc` prints it, `why` explains with it, the lab's demonstration applies it: each
//! [`Change`] is one sysctl and its value. Only what must change is changed, and nothing is ever
//! lowered.

mod host;
mod note;
mod path;
mod plan;
mod setting;
mod sheet;

pub use host::HostSettings;
pub use note::Note;
pub use path::{Path, Prediction, predict};
pub use plan::{Change, Plan, plan};
pub use setting::{MemTriple, ParseMemTripleError, SetError, Setting, Value};
pub use sheet::{BufferSheet, EndSheet, KernelSheet, Question, Sheet, TransferSheet, sheet};
