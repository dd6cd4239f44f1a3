//! `fullpipe window status` and `stop`: the agents that run.

use super::agent::Status;
use super::control::{Found, real};
use super::show;
use crate::failure::Failure;
use crate::sentence::either;
use crate::terminal::{answer_layout, print, print_json};
use clap::Args;
use std::path::PathBuf;

fn none() -> &'static str {
    either("No window agent of this user runs.\n", "当前用户没有正在运行的窗口代理。\n")
}

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
            print(none())?;
        } else {
            let text: Vec<String> = agents.iter().map(in_words).collect();
            print(&text.join("\n"))?;
        }
        Ok(0)
    }
}

/// An agent on a line, and its connections below.
fn in_words(status: &Status) -> String {
    let mut line = format!("{} {}", either("process", "进程"), status.process);
    line += &match &status.program {
        Some(program) => either(format!(" runs {program}"), format!(" 运行 {program}")),
        None => {
            let cgroup = status.cgroup.display();
            either(format!(" on {cgroup}"), format!(" 在 {cgroup} 上"))
        }
    };
    line += match (status.stopped, status.control) {
        (true, _) => either(": it has let go of its connections", "：它已放开其连接"),
        (false, true) => either(": windows follow the readers", "：窗口跟随读取方"),
        (false, false) => either(": nothing is changed", "：没有改变任何东西"),
    };
    if let Some(budget) = status.budget {
        line += &either(
            format!("; all buffers together within {budget}"),
            format!("；所有缓冲区合计不超过 {budget}"),
        );
    }
    format!("{line}\n{}", show::text(&status.look, status.control, answer_layout()))
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
                    let cgroup = cgroup.display();
                    either(
                        format!("No window agent of this user runs on {cgroup}.\n"),
                        format!("当前用户在 {cgroup} 上没有正在运行的窗口代理。\n"),
                    )
                }
                None => none().into(),
            })?;
        }
        for agent in agents {
            let status = agent.stop()?;
            let count = status.look.open();
            let connections = if count == 1 { "connection" } else { "connections" };
            let ends = match &status.program {
                Some(program) => {
                    either(format!("it ends with {program}"), format!("它随 {program} 结束"))
                }
                None => either("it ends", "它正在结束").into(),
            };
            let process = status.process;
            print(&either(
                format!("Process {process} has let go of {count} {connections}; {ends}.\n"),
                format!("进程 {process} 已放开 {count} 个连接；{ends}。\n"),
            ))?;
        }
        Ok(0)
    }
}
