//! Changes this machine's settings, and puts them back.
//!
//! An **apply** is a transaction with a record on disk. Before a setting is written, the record
//! has its old and its new value; so whatever happens in between (a refusal, a signal, `kill -9`,
//! power loss), [`undo`] knows what to put back. The order of calls:
//!
//! 1. [`read_state`] reads the host, and `model::tune::plan_host` plans.
//! 2. [`apply`] writes. If any write fails, all earlier ones are put back at once.
//! 3. [`undo`] puts the old values back where the new ones still stand. Where somebody has changed
//!    a value since, it changes nothing unless it is told what to do ([`Meanwhile`]).
//!
//! [`apply`] and [`undo`] know the kernel only by the three operations of [`Machine`], so tests
//! walk a fake kernel at random, fail each operation and stop at each step. [`ThisMachine`] is the
//! real one.
//!
//! Between the check of a value and its write somebody else could write as well: the kernel has no
//! compare-and-set for sysctls. The window is that of two system calls.

mod machine;
mod record;
mod state;
mod transaction;
mod watch;

pub use machine::{MachineError, SYSCTL_FILE, ThisMachine, persisted};
pub use record::{Begin, Item, Line, Phase, Record, RecordError, Set};
pub use state::read_state;
pub use transaction::{
    ApplyError, Changed, Machine, Meanwhile, PutBack, Standing, UndoError, apply, standing, undo,
};
pub use watch::Watcher;
