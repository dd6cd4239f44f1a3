//! A scenario becomes two hosts, a link between them, a transfer over it, captures, socket samples,
//! and results.
//!
//! The only room that combines the shells. [`run`] is the door; it must be called inside
//! [`fullpipe_kernel::sandbox`], whose end takes everything with it that a run has made.
//!
//! * [`preset`]: the scenarios that come with the program.
//! * `hosts`, `program`, `sampler`, `hog`: what a run is made of.
//! * `path_for`: which of a path's rules the transfer meets.
//! * `carrier`: our link or the kernel's netem between the hosts.
//! * `experiment`: one run, in order.
//! * `merge_capture`: from the link's streams to the capture at a host's edge.
//! * `row`: from an outcome to its row.
//! * [`Columns`]: the columns of a sweep's rows, its scenarios' words among them.
//! * [`tuning`]: a plan for a scenario, and the scenario with the plan.
//! * [`results`]: the directory that keeps it all.
//! * [`guest`]: the same in virtual time, inside a kernel of our own.
//! * `sweep`: many runs, in guests several at once; `cache`: those that were done before.
//! * `engine`, `options`, `event`, `error`: how runs are made, what is going on, why one failed.
#![forbid(unsafe_code)]

mod cache;
mod carrier;
mod columns;
mod engine;
mod error;
mod event;
mod experiment;
pub mod guest;
mod hog;
mod hosts;
mod merge_capture;
mod options;
mod path_for;
pub mod preset;
mod program;
pub mod results;
mod row;
mod sampler;
mod scratch;
mod sweep;
mod truth;
pub mod tuning;

pub use cache::{Cache, CachedRun};
pub use columns::Columns;
pub use engine::Engine;
pub use error::LabError;
pub use event::Event;
pub use experiment::ExperimentError;
pub use hosts::{CLIENT_ADDRESS, Hosts, HostsError, SERVER_ADDRESS};
pub use options::Options;
pub use program::ProgramError;
pub use sweep::{FailedRun, Run, Sweep, plan, run};
