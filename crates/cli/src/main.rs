//! `fullpipe`: finds what keeps a TCP transfer from filling its path, proves it in a lab, and fixes
//! it.
//!
//! One file a subcommand in [`cmd`]; this one holds the exit policy and nothing else. 0: done. 1:
//! the run failed, or found a problem that it was asked to look for. 2: usage. 3: a privilege or a
//! tool is missing, and the message says which and how to get it. 4: bad input. 130: interrupted. A
//! reader of our output that has seen enough is no error.
#![forbid(unsafe_code)]

mod cmd;
mod failure;
mod progress;
mod terminal;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let done = match cmd::Cli::try_parse() {
        Ok(cli) => cli.run(),
        // Help, and the version: clap knows whether it was asked for, and ends with 0 or 2.
        Err(error) if is_help(&error) => error.exit(),
        Err(error) => Err(error.into()),
    };
    ExitCode::from(done.unwrap_or_else(|failure| failure.told()))
}

fn is_help(error: &clap::Error) -> bool {
    use clap::error::ErrorKind::{
        DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion,
    };
    matches!(error.kind(), DisplayHelp | DisplayHelpOnMissingArgumentOrSubcommand | DisplayVersion)
}
