//! What running agents tell, and how they are told to let go: a Unix socket each, one line of JSON
//! in each direction.
//!
//! The socket is in the user's directory of journals, which nobody else may enter. A request is
//! `"status"` or `"stop"`; an answer is the [`Status`], for `"stop"` after the connections were let
//! go.

use super::agent::{Running, Status};
use crate::cmd::control::{self, Answers, Then};
use crate::failure::{Failure, Kind};
use crate::sentence::Sentence;
use fullpipe_kernel::run::journal;
use fullpipe_kernel::run::names::{NamedSocket, Sockets};
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const SUFFIX: &str = ".window.sock";
/// Who holds this file's lock may look for other agents and become one.
const LOCK: &str = "window.lock";

/// What is asked of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentRequest {
    Status,
    Stop,
}

fn failed(operation: &Sentence, why: impl std::fmt::Display) -> Failure {
    Failure::new(Kind::Run, operation.with(why).of("window"))
}

fn place() -> Sentence {
    Sentence::new("find a place", "查找位置")
}

/// Makes this process's socket and answers there, on a thread, until the process ends. Dropping the
/// result removes the socket.
pub fn serve(running: &Arc<Running>) -> Result<NamedSocket, Failure> {
    let directory = journal::own_directory().map_err(|error| failed(&place(), error))?;
    let path = directory.join(format!("{}{SUFFIX}", std::process::id()));
    let making = Sentence::new("make the control socket", "创建控制套接字");
    let made = NamedSocket::bind(path).map_err(|error| failed(&making, error))?;
    let socket = made.ok_or_else(|| {
        let taken = Sentence::new("somebody answers there", "那里已有程序应答");
        Failure::new(Kind::Run, making.and(&taken).of("window"))
    })?;
    let listener = socket.listener().try_clone()?;
    control::serve(listener, Controlled(Arc::clone(running)))?;
    Ok(socket)
}

/// An agent that can be asked.
struct Controlled(Arc<Running>);

impl Controlled {
    fn done(&self, request: &[u8]) -> Result<(Status, Then), Failure> {
        let running = &self.0;
        let request: AgentRequest = serde_json::from_slice(request)
            .map_err(|error| failed(&Sentence::new("read a request", "读取请求"), error))?;
        if request == AgentRequest::Stop {
            running.release()?;
        }
        let ends = request == AgentRequest::Stop && running.ends_by_itself();
        let then = if ends {
            let running = Arc::clone(running);
            Then::End(Box::new(move || running.end()))
        } else {
            Then::Close
        };
        Ok((running.status()?, then))
    }
}

impl Answers for Controlled {
    type Answer = Result<Status, String>;
    const SUBJECT: &str = "agent";

    fn answer(&self, request: &[u8]) -> (Self::Answer, Then) {
        match self.done(request) {
            Ok((status, then)) => (Ok(status), then),
            Err(failure) => (self.refusal(&failure), Then::Close),
        }
    }

    fn refusal(&self, failure: &Failure) -> Self::Answer {
        Err(failure.message().to_string())
    }
}

/// An agent that runs.
pub struct Found {
    socket: PathBuf,
    /// What it told.
    pub status: Status,
}

impl Found {
    /// The agents of this user that run, in the order of their processes.
    pub fn all() -> Result<Vec<Found>, Failure> {
        let sockets = Sockets::named("", SUFFIX)
            .map_err(|error| failed(&Sentence::new("find agents", "查找代理"), error))?;
        // One that ends at this moment does not answer any more.
        let asked = sockets.answered.into_iter().filter_map(|socket| {
            let status = ask(&socket, AgentRequest::Status).ok()?;
            Some(Found { socket, status })
        });
        let mut found: Vec<Found> = asked.collect();
        found.sort_by_key(|one| one.status.process);
        Ok(found)
    }

    /// Has it let go of its connections, and waits until it has ended, unless it runs a program;
    /// returns what it told last.
    pub fn stop(&self) -> Result<Status, Failure> {
        ask(&self.socket, AgentRequest::Stop)
    }
}

/// The right to start an agent, until it is dropped. Nobody else starts one meanwhile, so hold it
/// until [`serve`] has returned: from then on the agent is found.
pub struct Turn {
    _lock: Flock<File>,
}

/// Waits for the right to start an agent on a control group, and refuses it where another one
/// follows that: two would set the same windows, each by its own law.
pub fn take_turn(cgroup: &Path) -> Result<Turn, Failure> {
    let directory = journal::own_directory().map_err(|error| failed(&place(), error))?;
    let path = directory.join(LOCK);
    let wrong = |error: std::io::Error| {
        let path = path.display();
        failed(&Sentence::new(format!("lock {path}"), format!("锁定 {path}")), error)
    };
    let file = File::options().create(true).append(true).open(&path).map_err(wrong)?;
    let lock =
        Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, errno)| wrong(errno.into()))?;
    refuse_a_second(cgroup)?;
    Ok(Turn { _lock: lock })
}

/// The path without links, as far as it can be followed.
pub(super) fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.into())
}

fn refuse_a_second(cgroup: &Path) -> Result<(), Failure> {
    let own = real(cgroup);
    let other = Found::all()?.into_iter().map(|one| one.status).find(|status| {
        let theirs = real(&status.cgroup);
        let shares = own.starts_with(&theirs) || theirs.starts_with(&own);
        status.control && !status.stopped && shares
    });
    let Some(other) = other else { return Ok(()) };
    let (cgroup, process, theirs) = (cgroup.display(), other.process, other.cgroup.display());
    Err(Failure::new(
        Kind::Usage,
        Sentence::new(
            format!(
                "window: follow {cgroup}: process {process} follows {theirs} already; `fullpipe window stop` ends it"
            ),
            format!(
                "window：跟踪 {cgroup}：进程 {process} 已在跟踪 {theirs}；`fullpipe window stop` 结束它"
            ),
        ),
    ))
}

fn ask(socket: &Path, request: AgentRequest) -> Result<Status, Failure> {
    let wrong = |error| {
        let socket = socket.display();
        let what = format!("ask the agent at {socket}");
        failed(&Sentence::new(what, format!("询问 {socket} 的代理")), error)
    };
    let (answer, mut connection) =
        control::ask::<Result<Status, String>>(socket, &request).map_err(wrong)?;
    // One that stops has ended when the connection ends.
    connection.read_to_end(&mut Vec::new()).map_err(wrong)?;
    answer.map_err(|message| Failure::new(Kind::Run, Sentence::as_is(message)))
}
