//! `fullpipe window status` and `stop`: the agents that run.

use super::agent::Status;
use super::control::{Found, real};
use super::show;
use crate::failure::Failure;
use crate::terminal::{layout, print, print_json};
use clap::Args;
use std::path::PathBuf;

const NONE: &str = "No window agent of this user runs.\n";

/// Show the agents that run, and the connections that they follow.
///
/// It shows those of the user who calls it, and changes nothing.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe window status
  fullpipe window status --json | jq '.[] | {process, held_bytes, needed_bytes}'")]
pub struct ShowStatus {
    /// Print JSON: an array of agents with their connections.
    #[arg(long)]
    json: bool,
}

/// Have agents let go of their connections.
///
/// Each connection gets a window as large as its buffer, and a buffer of at least what `tcp_rmem`
/// allows. An agent on a control group ends then. One that runs a program stays until the program
/// ends, and changes nothing any more.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe window stop                                             all agents of this user
  fullpipe window stop --cgroup /sys/fs/cgroup/system.slice/nginx.service")]
pub struct Stop {
    /// Only the agents on this control group.
    #[arg(long, value_name = "PATH")]
    cgroup: Option<PathBuf>,
}

impl ShowStatus {
    pub fn run(self) -> Result<u8, Failure> {
        let agents: Vec<Status> = Found::all()?.into_iter().map(|one| one.status).collect();
        if self.json {
            print_json(&agents)?;
        } else if agents.is_empty() {
            print(NONE)?;
        } else {
            let text: Vec<String> = agents.iter().map(in_words).collect();
            print(&text.join("\n"))?;
        }
        Ok(0)
    }
}

/// An agent on a line, and its connections below.
fn in_words(status: &Status) -> String {
    let mut line = format!("process {}", status.process);
    line += &match &status.program {
        Some(program) => format!(" runs {program}"),
        None => format!(" on {}", status.cgroup.display()),
    };
    line += match (status.stopped, status.control) {
        (true, _) => ": it has let go of its connections",
        (false, true) => ": windows follow the readers",
        (false, false) => ": nothing is changed",
    };
    if let Some(budget) = status.budget {
        line += &format!("; all buffers together within {budget}");
    }
    format!("{line}\n{}", show::text(&status.look, status.control, layout()))
}

impl Stop {
    pub fn run(self) -> Result<u8, Failure> {
        let mut agents = Found::all()?;
        if let Some(cgroup) = &self.cgroup {
            agents.retain(|one| real(&one.status.cgroup) == real(cgroup));
        }
        if agents.is_empty() {
            print(&match &self.cgroup {
                Some(cgroup) => {
                    format!("No window agent of this user runs on {}.\n", cgroup.display())
                }
                None => NONE.into(),
            })?;
        }
        for agent in agents {
            let status = agent.stop()?;
            let count = status.look.open();
            let connections = if count == 1 { "connection" } else { "connections" };
            let ends = match &status.program {
                Some(program) => format!("it ends with {program}"),
                None => "it ends".into(),
            };
            print(&format!(
                "Process {} has let go of {count} {connections}; {ends}.\n",
                status.process
            ))?;
        }
        Ok(0)
    }
}
