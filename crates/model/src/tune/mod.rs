//! From a path and the settings of its hosts to the settings that fill it, each with its reason.
//!
//! [`plan`] is pure: it gets the path ([`Path`]) and both hosts ([`HostSettings`]) and returns a
//! [`Plan`]. `calc` prints it, `analyze` explains with it, and the demo applies it. A plan changes
//! only what must change, and never lowers a value.
//!
//! [`MeasuredPath`] is what was measured of a path and its ends. `why` writes it, `tune` and
//! `prove` read it.
//!
//! [`plan_host`] is for the machine in front of the user: one host, everything of it that can be
//! set, its memory, and what it allows to be set where it is.

mod connections;
mod file_sheet;
mod grid;
mod host;
mod host_plan;
mod host_sheet;
mod loss_sheet;
mod measured;
mod note;
mod path;
mod plan;
mod plan_note;
pub mod prove;
mod sheet;
pub mod window_control;

pub use connections::{ConnectionsSheet, Fit, HostConnections, MemoryFit, SocketMemory, TcpMem};
pub use file_sheet::{FileSheet, FileTime, SteadyBy};
pub use grid::{Grid, GridRow, grid};
pub use host::HostSettings;
pub use host_plan::{HostPlan, HostQuestion, HostState, Role, Shown, Wish, plan_host};
pub use host_sheet::HostSheet;
pub use loss_sheet::{LossLaw, LossSheet};
#[cfg(test)]
pub(crate) use measured::tests::any_path as any_measured_path;
pub use measured::{MeasuredEnd, MeasuredGrants, MeasuredPath, MeasuredPathError};
pub use note::Note;
pub use path::{Path, Prediction, predict, predict_with_window};
pub use plan::{Plan, plan};
pub use plan_note::{PlanNote, connections_under};
pub use sheet::{
    BufferSheet, EndSheet, KernelSheet, Question, Sheet, TransferSheet, sheet, sheet_for,
};
