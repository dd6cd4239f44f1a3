//! `fullpipe tune`: what to change on this machine for a path; changes it, and puts it back.

mod apply;
mod container;
mod path;
mod plan;
mod proof;
mod settings;
mod status;
mod undo;
mod verify;

pub(super) use path::Goal;

use crate::failure::{Failure, Kind};
use clap::Subcommand;
use fullpipe_host::tune::{ApplyError, MachineError, UndoError};
use fullpipe_kernel::Refused;

/// Tune this machine for a path: plan, apply, undo.
///
/// `plan`, `status`, `verify` and `settings` change nothing. `apply` changes nothing without --yes,
/// and keeps every old value, so that `undo` can put it back.
#[derive(Subcommand)]
#[command(after_help = "\
Examples:
  fullpipe tune plan --rate 1gbit --rtt 146ms                what falls short of this path, and why
  fullpipe tune apply --rate 1gbit --rtt 146ms --yes --for 10m
  fullpipe tune confirm                                      keep it beyond the ten minutes
  fullpipe tune status
  fullpipe tune undo")]
pub enum Tune {
    Plan(plan::Plan),
    Apply(apply::Apply),
    Confirm(undo::Confirm),
    Undo(undo::Undo),
    Status(status::Status),
    Verify(verify::Verify),
    Settings(settings::Settings),
}

impl Tune {
    pub fn run(self) -> Result<u8, Failure> {
        match self {
            Tune::Plan(plan) => plan.run(),
            Tune::Apply(apply) => apply.run(),
            Tune::Confirm(confirm) => confirm.run(),
            Tune::Undo(undo) => undo.run(),
            Tune::Status(status) => status.run(),
            Tune::Verify(verify) => verify.run(),
            Tune::Settings(settings) => settings.run(),
        }
    }
}

fn kind_of(error: &MachineError) -> Kind {
    if error.is_privilege() { Kind::Missing } else { Kind::Run }
}

impl From<MachineError> for Failure {
    fn from(error: MachineError) -> Self {
        Failure::new(kind_of(&error), &error)
    }
}

impl From<ApplyError<MachineError>> for Failure {
    fn from(error: ApplyError<MachineError>) -> Self {
        let kind = match &error {
            ApplyError::Refused(cause) => kind_of(cause),
            ApplyError::Changed(_) | ApplyError::Stuck { .. } => Kind::Run,
        };
        Failure::new(kind, &error)
    }
}

impl From<UndoError<MachineError>> for Failure {
    fn from(error: UndoError<MachineError>) -> Self {
        let kind = match &error {
            UndoError::Refused(cause) => kind_of(cause),
            UndoError::Changed(_) => Kind::Run,
        };
        Failure::new(kind, &error)
    }
}

/// For requests to the kernel outside of a machine's operations.
fn refused(error: Refused) -> Failure {
    MachineError::from(error).into()
}
