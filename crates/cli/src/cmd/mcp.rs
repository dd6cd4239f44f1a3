//! `fullpipe mcp`: answers for programs that read language, by the Model Context Protocol.
//!
//! The protocol itself is `rmcp`'s; here are the tools. [`server`] runs one at a time on a thread
//! of its own, so that the protocol goes on meanwhile: progress, and an end when it is asked for.
//! [`files`] says which files may be opened, [`work`] bounds a call. What an answer says, and what
//! may not stand in it, is `report::agent`'s.

mod captures;
mod files;
mod host;
mod refusal;
mod server;
mod tools;
mod work;

use super::input::interval;
use crate::failure::{Failure, Kind};
use crate::sentence::Sentence;
use crate::terminal::print_json;
use clap::Args;
use files::Files;
use fullpipe_kernel::run::sandbox::Interrupt;
use fullpipe_model::units::Duration;
use server::Server;
use std::path::PathBuf;

/// Answer a program that reads language, by the Model Context Protocol on standard input and
/// output.
///
/// A client such as an editor or an assistant starts it, and asks by tools: analyze, explain (which
/// packets an answer rests on), why, compare, calc, tune_plan. All of them only read: nothing is
/// written, changed or sent. An answer has at most 4 kB for any capture, and says what it left out.
/// What others wrote (names in packets, programs' names) stands apart, under a key that begins with
/// `from_`, in plain characters. It ends when standard input is closed.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe mcp                                    for a client that starts it, such as an editor
  fullpipe mcp --root ~/captures                  the same, and no file elsewhere is opened
  fullpipe mcp --tools | jq '.[].name'            what a client may ask, with the schemas
  claude mcp add fullpipe -- fullpipe mcp --root ~/captures")]
pub struct Mcp {
    /// Open only files in DIR and below it, wherever symbolic links lead; can be repeated [default:
    /// every regular file that you may read].
    #[arg(long, value_name = "DIR")]
    root: Vec<PathBuf>,
    /// Stop reading a file after this time, and answer for what was read until then.
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = interval)]
    within: Duration,
    /// Print the tools with their schemas as JSON, and end.
    #[arg(long)]
    tools: bool,
}

impl Mcp {
    pub fn run(self) -> Result<u8, Failure> {
        if self.tools {
            print_json(&tools::all())?;
            return Ok(0);
        }
        let files = Files::below(&self.root)?;
        let interrupt = Interrupt::on_signals().map_err(|refused| failed(&refused))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let ended = runtime.block_on(server::serve(Server::new(files, self.within), &interrupt));
        // The thread that waits for a signal ends, too; one that waits for standard input cannot.
        interrupt.set();
        runtime.shutdown_background();
        ended
    }
}

fn failed(problem: &fullpipe_kernel::Refused) -> Failure {
    Failure::new(Kind::Run, Sentence::from(problem).of("mcp"))
}
