//! A failure as one line and an exit code.

use fullpipe_kernel::Refused;
use fullpipe_kernel::run::sandbox::SandboxError;
use fullpipe_lab::{ExperimentError, GuestError, HostsError, LabError, LoadError, ProgramError};
use fullpipe_link::{
    CarrierError, CommandLinkError, EmulatorError, NetemLinkError, RunError, WordsError,
};
use fullpipe_report::table::escape;

use crate::sentence::{Sentence, command_line, either};

/// Whose fault it is; decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The run failed.
    Run,
    /// The command line is wrong.
    Usage,
    /// A privilege or a tool is missing.
    Missing,
    /// A file, a scenario or a value is wrong.
    Input,
    /// The user interrupted it.
    Interrupted,
    /// The reader of our output closed the pipe.
    BrokenPipe,
}

/// A failure, reported in one line.
#[derive(Debug)]
pub struct Failure {
    kind: Kind,
    message: Sentence,
}

impl Failure {
    /// A failure with its message: operation, subject, cause, what to try.
    pub fn new(kind: Kind, message: impl Into<Sentence>) -> Self {
        Failure { kind, message: message.into() }
    }

    /// What the kernel refuses: a privilege is missing, or the run failed.
    pub fn of_kernel(refused: Refused) -> Self {
        let kind = match refused.errno() {
            Some(errno) if [1, 13].contains(&errno) => Kind::Missing,
            _ => Kind::Run,
        };
        Failure::new(kind, &refused)
    }

    /// A failure for which another process chose this exit code.
    pub fn with_code(code: u8, message: impl Into<Sentence>) -> Self {
        let kinds = [Kind::Usage, Kind::Missing, Kind::Input, Kind::Interrupted];
        let kind = kinds.into_iter().find(|&kind| Failure::code(kind) == code);
        Failure::new(kind.unwrap_or(Kind::Run), message)
    }

    /// The exit code.
    pub fn exit_code(&self) -> u8 {
        Failure::code(self.kind)
    }

    /// The message.
    pub fn message(&self) -> &Sentence {
        &self.message
    }

    /// Prints it and returns the exit code.
    pub fn report(&self) -> u8 {
        if self.kind != Kind::BrokenPipe {
            self.print();
        }
        Failure::code(self.kind)
    }

    /// The exit code of a kind: for a run that continues after a failure, and ends with its code.
    pub fn code(kind: Kind) -> u8 {
        match kind {
            Kind::BrokenPipe => 0,
            Kind::Run => 1,
            Kind::Usage => 2,
            Kind::Missing => 3,
            Kind::Input => 4,
            Kind::Interrupted => 130,
        }
    }

    fn print(&self) {
        use std::io::Write;
        // If standard error is closed as well, nobody can be told.
        let mut message = self.message.here().replace('\n', " ");
        if self.kind == Kind::Missing {
            message += either(
                "; `fullpipe doctor` says what works here",
                "；`fullpipe doctor` 说明本机能做什么",
            );
        }
        let line = format!("fullpipe: {}", escape::in_line(&message));
        let _ = writeln!(std::io::stderr(), "{}", crate::terminal::fitting(&line));
    }
}

impl From<clap::Error> for Failure {
    fn from(error: clap::Error) -> Self {
        Failure::new(Kind::Usage, command_line::sentence(&error))
    }
}

impl From<GuestError> for Failure {
    fn from(error: GuestError) -> Self {
        let kind = if error.is_interrupt() { Kind::Interrupted } else { of_guest(&error) };
        Failure::new(kind, &error)
    }
}

impl From<WordsError> for Failure {
    fn from(error: WordsError) -> Self {
        let kind = if error.names_file() { Kind::Input } else { Kind::Usage };
        Failure::new(kind, Sentence::as_is(error))
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        let kind = if matches!(error, LoadError::Unknown(_)) { Kind::Usage } else { Kind::Input };
        Failure::new(kind, &error)
    }
}

impl From<SandboxError> for Failure {
    fn from(error: SandboxError) -> Self {
        let kind = if matches!(
            error,
            SandboxError::NoPrivilege { .. } | SandboxError::RootWithoutCapabilities(_)
        ) {
            Kind::Missing
        } else {
            Kind::Run
        };
        Failure::new(kind, &error)
    }
}

impl From<LabError> for Failure {
    fn from(error: LabError) -> Self {
        Failure::new(kind_of(&error), &error)
    }
}

/// Whose fault an error of the lab is.
pub fn kind_of(error: &LabError) -> Kind {
    match error {
        LabError::Run { cause, .. } => of_experiment(cause),
        LabError::Guest { .. } if error.is_interrupt() => Kind::Interrupted,
        LabError::Guest { cause, .. } => of_guest(cause),
        LabError::Results(error) if error.is_choice() => Kind::Usage,
        _ => Kind::Run,
    }
}

/// Errors inside a guest arrive as text.
fn of_guest(error: &GuestError) -> Kind {
    match error {
        GuestError::NoKernel(_) => Kind::Missing,
        GuestError::Unsuited(_) | GuestError::OtherKernel { .. } => Kind::Input,
        _ => Kind::Run,
    }
}

fn of_experiment(error: &ExperimentError) -> Kind {
    match error {
        ExperimentError::Interrupted => Kind::Interrupted,
        ExperimentError::Program(ProgramError::Missing { .. }) => Kind::Missing,
        ExperimentError::Carrier(cause) | ExperimentError::Hosts(HostsError::Junction(cause)) => {
            of_carrier(cause)
        }
        ExperimentError::Hosts(
            HostsError::Name { .. }
            | HostsError::Sysctl { .. }
            | HostsError::CongestionControl { .. }
            | HostsError::Cpu { .. },
        ) => Kind::Input,
        _ => Kind::Run,
    }
}

fn of_carrier(error: &CarrierError) -> Kind {
    match error {
        CarrierError::Ports(_) => Kind::Missing,
        CarrierError::Emulator(error) => of_emulator(error),
        CarrierError::Netem(NetemLinkError::Foreign(_)) => Kind::Input,
        CarrierError::Netem(NetemLinkError::Refused(_)) => Kind::Missing,
        CarrierError::Netem(NetemLinkError::Watch(_)) => Kind::Run,
    }
}

fn of_emulator(error: &EmulatorError) -> Kind {
    if matches!(error, EmulatorError::Memory { .. }) { Kind::Input } else { Kind::Run }
}

impl From<CarrierError> for Failure {
    fn from(error: CarrierError) -> Self {
        Failure::new(of_carrier(&error), &error)
    }
}

impl From<EmulatorError> for Failure {
    fn from(error: EmulatorError) -> Self {
        Failure::new(of_emulator(&error), &error)
    }
}

impl From<CommandLinkError> for Failure {
    fn from(error: CommandLinkError) -> Self {
        let kind = match &error {
            CommandLinkError::Gateway(_)
            | CommandLinkError::Nat(_)
            | CommandLinkError::Run(RunError::NotFound(_)) => Kind::Missing,
            CommandLinkError::Run(RunError::NoCommand) => Kind::Usage,
            _ => Kind::Run,
        };
        Failure::new(kind, &error)
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        CommandLinkError::from(error).into()
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        let kind = if error.kind() == std::io::ErrorKind::BrokenPipe {
            Kind::BrokenPipe
        } else {
            Kind::Run
        };
        Failure::new(
            kind,
            Sentence::new(format!("write output: {error}"), format!("写出结果：{error}")),
        )
    }
}
