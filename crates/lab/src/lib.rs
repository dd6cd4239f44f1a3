//! A scenario becomes two hosts, a link between them, a transfer over it, captures, socket samples,
//! and results. This is the only room that combines the shells.
//!
//! Order of calls: [`load_scenarios`], [`plan`], and [`run`] inside
//! [`fullpipe_kernel::run::sandbox`], whose end removes everything that a run has made.
//!
//! * [`list_presets`], [`load_scenarios`]: names and files become scenarios.
//! * [`plan`], [`run`]: many runs, in guests several at once; [`Sweep`] has their rows. [`Cache`]
//!   has those that were done before.
//! * [`Shard`], [`merge_shards`]: a sweep on several machines.
//! * [`Columns`]: the columns of a sweep's rows, including what its scenarios vary.
//! * [`plan_tuning`], [`apply_plan`]: a tuning plan for a scenario, and the scenario with the plan.
//! * [`Engine`], [`Options`], [`Event`], [`LabError`]: how runs are made, what is going on, why one
//!   failed.
//! * [`Kernel`], [`KernelBuild`]: the kernels of guests, in which runs take place in virtual time.
//! * Inside: `experiment` is one run in order; `hosts`, `program`, `sampler`, `hog`,
//!   `window_agent` are what it is made of, `carrier` the link between the hosts, `path_for` the
//!   rules that the transfer meets, `merge_capture` the way from the link's streams to a capture,
//!   `row` from an outcome to a row, `results` the directory that keeps it all.
#![forbid(unsafe_code)]

mod cache;
mod carrier;
mod columns;
mod engine;
mod error;
mod event;
mod experiment;
mod guest;
mod hog;
mod hosts;
mod merge_capture;
mod options;
mod path_for;
mod prediction;
mod preset;
mod program;
mod receive_queue;
mod results;
mod row;
mod sampler;
mod scratch;
mod sweep;
mod truth;
mod tuning;
mod window_agent;

pub use cache::{Cache, CachedRun};
pub use columns::Columns;
pub use engine::Engine;
pub use error::LabError;
pub use event::Event;
pub use experiment::ExperimentError;
pub use guest::{
    BuildError, BuildStep, CacheError, GuestError, GuestLimits, InstallError, Kernel, KernelBuild,
    KernelSource, choose_kernel, install_kernels, pack_kernels, run_first_process,
    unsuited_to_virtual_time,
};
pub use hosts::{CLIENT_ADDRESS, HostsError, SERVER_ADDRESS, join_hosts};
pub use options::Options;
pub use preset::{ListedPreset, LoadError, list_presets, load_scenarios, load_with_files};
pub use program::ProgramError;
pub use results::{
    MergeError, Merged, ResultsError, check_results_folder, claim_results_folder, merge_shards,
};
pub use sweep::{FailedRun, Run, Shard, ShardError, Sweep, keys, plan, run, runs_of};
pub use tuning::{apply_plan, plan_tuning};
