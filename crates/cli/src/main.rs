//! `fullpipe`: finds out why a TCP transfer does not fill its path, proves it in a lab, and fixes
//! it.
//!
//! Each subcommand has a file in [`cmd`]; this file holds only the exit policy. 0: success. 1: the
//! run failed, or it found the problem that it was asked to look for. 2: wrong usage. 3: a
//! privilege or tool is missing; the message says which and how to get it. 4: bad input. 130:
//! interrupted. A closed pipe on our output is not an error.
#![forbid(unsafe_code)]

mod cmd;
mod failure;
mod help;
mod progress;
mod sentence;
mod terminal;

use std::process::ExitCode;

/// musl's own gives large blocks back to the kernel each time: the relay had half its speed.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let language = help::asked();
    let done = match cmd::Cli::try_parse_in(language) {
        Ok(cli) => cli.run(),
        // For help and version clap knows whether they were requested, and exits with 0 or 2.
        Err(error) if is_help(&error) => error.exit(),
        Err(error) => {
            // No command line has said it.
            terminal::speak(language);
            Err(error.into())
        }
    };
    ExitCode::from(done.unwrap_or_else(|failure| failure.report()))
}

fn is_help(error: &clap::Error) -> bool {
    use clap::error::ErrorKind::{
        DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion,
    };
    matches!(error.kind(), DisplayHelp | DisplayHelpOnMissingArgumentOrSubcommand | DisplayVersion)
}
