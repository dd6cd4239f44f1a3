//! The kernel and the clock of a run.

use crate::guest::Kernel;

/// What executes a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Engine {
    /// This machine's kernel, in real time.
    #[default]
    Real,
    /// A guest for each run, in virtual time (`guest`), with one of these kernels.
    Virtual(Vec<Kernel>),
    /// This process is inside such a guest.
    Guest,
}
