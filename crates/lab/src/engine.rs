//! Whose kernel and clock a run goes by.

use crate::guest::kernel::Kernel;

/// What carries a run, and by whose clock.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Engine {
    /// This machine's kernel, in real time.
    #[default]
    Real,
    /// A guest for each run, in virtual time: `guest`. These are the kernels to choose from.
    Virtual(Vec<Kernel>),
    /// This process is in such a guest.
    Guest,
}
