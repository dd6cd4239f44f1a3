//! The window agent in an experiment: this very program as `fullpipe window run`, on a control
//! group that the client's application enters.
//!
//! It works in guests only. There the control groups and `net.core.rmem_max`, which bounds what the
//! agent may give, belong to the run alone.

use fullpipe_kernel::guest::CONTROL_GROUPS;
use fullpipe_kernel::{Refused, guest};
use fullpipe_model::scenario::Host;
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The client's group, below the guest's root.
const GROUP: &str = "client";

/// Why a guest has no window agent.
#[derive(Debug, thiserror::Error)]
pub enum WindowAgentError {
    /// There are no control groups.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The client's group could not be made.
    #[error("make control group {path}: {cause}", path = path.display())]
    Group {
        /// The group's folder.
        path: PathBuf,
        /// The kernel's answer.
        cause: io::Error,
    },
    /// The agent's process could not be started.
    #[error("start window agent: {0}")]
    Start(io::Error),
    /// It ended before it was attached.
    #[error("start window agent: {0}")]
    Ended(String),
}

fn group() -> PathBuf {
    Path::new(CONTROL_GROUPS).join(GROUP)
}

/// An agent that is attached. It ends with its guest.
#[derive(Debug)]
pub(crate) struct WindowAgent {
    _process: Child,
}

impl WindowAgent {
    /// Makes the group and attaches the agent that `client` asks for. For a guest's first process,
    /// which is in the network namespace with the machine's own settings.
    pub(crate) fn start(client: &Host) -> Result<WindowAgent, WindowAgentError> {
        guest::mount_control_groups()?;
        let path = group();
        // The hosts' applications are threads of one process, so the group is one of threads.
        fs::create_dir(&path)
            .and_then(|()| fs::write(path.join("cgroup.type"), "threaded"))
            .map_err(|cause| WindowAgentError::Group { path: path.clone(), cause })?;
        // Whatever is mounted over its folder by now.
        let mut command = Command::new("/proc/self/exe");
        command.args(["window", "run", "--json", "--interval", "1h", "--cgroup"]).arg(path);
        if let Some(budget) = client.window_budget {
            command.arg("--budget").arg(format!("{}B", budget.get()));
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().map_err(WindowAgentError::Start)?;
        // The first look is told once it is attached.
        let mut line = String::new();
        if let Some(out) = &mut process.stdout {
            BufReader::new(out).read_line(&mut line).map_err(WindowAgentError::Start)?;
        }
        if line.is_empty() {
            let mut said = String::new();
            if let Some(err) = &mut process.stderr {
                err.read_to_string(&mut said).map_err(WindowAgentError::Start)?;
            }
            return Err(WindowAgentError::Ended(said.trim().into()));
        }
        Ok(WindowAgent { _process: process })
    }
}

/// Moves the calling thread into the client's group: what it connects from now on is followed.
pub(crate) fn enter() -> Result<(), WindowAgentError> {
    let path = group();
    fs::write(path.join("cgroup.threads"), "0")
        .map_err(|cause| WindowAgentError::Group { path, cause })
}
