//! An agent at work: what its own loop and those who ask by the control socket share.

use super::show::Look;
use crate::failure::{Failure, Kind};
use crate::sentence::{Sentence, either};
use crate::terminal::remark;
use fullpipe_agent::{Adopted, Agent, AgentError, AgentOptions, Connection};
use fullpipe_kernel::network::netns::NetNs;
use fullpipe_kernel::run::sandbox::Interrupt;
use fullpipe_model::tune::window_control::{Settings, least_budget, level};
use fullpipe_model::units::{Bytes, column};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

/// A byte of payload takes no more than so many of a buffer, with the kernel's overhead.
const OVERHEAD: u64 = 2;

/// What an agent tells of itself.
#[derive(Serialize, Deserialize)]
pub struct Status {
    /// Its process.
    pub process: u32,
    /// The control group that it follows.
    pub cgroup: PathBuf,
    /// The program that it runs, if it does: the agent ends with it.
    pub program: Option<String>,
    /// Whether it changes windows; otherwise it only shows them.
    pub control: bool,
    /// Whether it has let go of its connections.
    pub stopped: bool,
    /// The buffers of all connections together, where that is bounded.
    #[serde(rename = "budget_bytes", with = "column::bytes_optional")]
    pub budget: Option<Bytes>,
    #[serde(flatten)]
    pub look: Look,
}

/// An agent that is attached.
pub struct Running {
    agent: Mutex<Agent>,
    /// As the caller chose them; a budget lowers the largest window later.
    settings: Settings,
    cgroup: PathBuf,
    program: Option<String>,
    budget: Option<Bytes>,
    /// Whether it was said that the budget is too small for the connections that there are.
    said_too_small: AtomicBool,
    control: bool,
    stopped: AtomicBool,
    /// Ends the process where it runs no program.
    end: Interrupt,
}

impl Running {
    /// Attaches to a control group and follows the connections that it has. `program`: what this
    /// process runs in it.
    pub fn attach(
        cgroup: &Path,
        options: AgentOptions,
        budget: Option<Bytes>,
        program: Option<String>,
        end: Interrupt,
    ) -> Result<Running, Failure> {
        let (settings, control) = (options.settings, options.control);
        let mut agent = Agent::attach(cgroup, options)?;
        // A group of our own has none yet.
        if program.is_none() {
            adopt(&mut agent)?;
        }
        Ok(Running {
            agent: Mutex::new(agent),
            settings,
            cgroup: cgroup.into(),
            program,
            budget,
            said_too_small: AtomicBool::new(false),
            control,
            stopped: AtomicBool::new(false),
            end,
        })
    }

    fn agent(&self) -> MutexGuard<'_, Agent> {
        self.agent.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The connections now.
    pub fn look(&self) -> Result<Look, Failure> {
        Ok(Look::new(&self.agent().connections()?, &self.settings))
    }

    /// The connections that have not ended.
    pub fn open_connections(&self) -> Result<Vec<Connection>, Failure> {
        let all = self.agent().connections()?;
        Ok(all.into_iter().filter(|one| !one.is_closed).collect())
    }

    /// Whether windows are bounded together, so that [`Running::keep_budget`] has to be called.
    pub fn has_budget(&self) -> bool {
        self.budget.is_some()
    }

    /// Bounds the windows so that all buffers stay within the budget. Where two segments of each do
    /// not fit, says so once.
    pub fn keep_budget(&self) -> Result<(), Failure> {
        let Some(budget) = self.budget else { return Ok(()) };
        let mut agent = self.agent();
        let connections = agent.connections()?;
        let open: Vec<&Connection> =
            connections.iter().filter(|one| !one.is_closed && !one.is_frozen).collect();
        let smallest = least_budget(open.iter().map(|one| one.two_segments), &self.settings);
        let smallest = Bytes::new(smallest.get().saturating_mul(OVERHEAD));
        if smallest > budget && !self.said_too_small.swap(true, Ordering::Relaxed) {
            remark(&too_small(budget, open.len(), smallest));
        }
        let needs = open.iter().map(|one| {
            let taken = one.queue.saturating_add(one.promised.bytes());
            (one.window.bytes().max(taken), one.two_segments)
        });
        let payload = Bytes::new(budget.get() / OVERHEAD);
        let present = agent.options().settings.most;
        let most = level(payload, needs, present, &self.settings);
        if most != present {
            agent.set_most(most)?;
        }
        Ok(())
    }

    /// What is told to those who ask.
    pub fn status(&self) -> Result<Status, Failure> {
        Ok(Status {
            process: std::process::id(),
            cgroup: self.cgroup.clone(),
            program: self.program.clone(),
            control: self.control,
            stopped: self.stopped.load(Ordering::Relaxed),
            budget: self.budget,
            look: self.look()?,
        })
    }

    /// Whether this process ends with its connections let go; otherwise with its program.
    pub fn ends_by_itself(&self) -> bool {
        self.program.is_none()
    }

    /// Ends the agent on a group.
    pub fn end(&self) {
        self.end.set();
    }

    /// Lets go of the connections in every network namespace that may be entered. The second time
    /// it does nothing.
    pub fn release(&self) -> Result<(), Failure> {
        let mut agent = self.agent();
        if self.stopped.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let agent: &mut Agent = &mut agent;
        agent.release()?;
        let others = NetNs::all("this host").map_err(refused)?.into_iter().skip(1);
        // One that ended has no connections left.
        let released: Result<Vec<()>, AgentError> =
            others.filter_map(|namespace| namespace.run(|| agent.release()).ok()).collect();
        released?;
        std::thread::sleep(Agent::FAREWELL.into());
        Ok(())
    }
}

/// A window of less than two segments would stop its sender.
fn too_small(budget: Bytes, connections: usize, smallest: Bytes) -> String {
    either(
        format!(
            "The budget of {budget} cannot hold two segments for each of {connections} connections: \
             that takes {smallest}. They keep those, since less would stop their senders; raise \
             --budget, or lower the MTU."
        ),
        format!(
            "{budget} 的预算容不下 {connections} 个连接每个两个报文段：那需要 {smallest}。它们仍保留这些，因为更少会使\
             发送方停止；请增大 --budget，或降低 MTU。"
        ),
    )
}

fn refused(refused: fullpipe_kernel::Refused) -> Failure {
    Failure::new(Kind::Run, Sentence::from(&refused).of("window"))
}

/// Follows the connections that exist, in every network namespace that may be entered, and says
/// how many.
fn adopt(agent: &mut Agent) -> Result<(), Failure> {
    let mut adopted = Adopted::default();
    for namespace in NetNs::all("this host").map_err(refused)? {
        match namespace.run(|| agent.adopt()) {
            Ok(Ok(found)) => adopted += found,
            Ok(Err(error)) => {
                let why = Sentence::from(&error);
                remark(&either(
                    format!(
                        "Connections that exist already are not followed, new ones are: {}.",
                        why.english()
                    ),
                    format!("不跟踪已有的连接，只跟踪新的：{}。", why.chinese()),
                ));
                return Ok(());
            }
            // It may have ended, or belong to another user namespace.
            Err(_) => {}
        }
    }
    if adopted.followed > 0 {
        let followed = adopted.followed;
        remark(&either(
            format!("Connections that existed before and are followed: {followed}."),
            format!("已有且被跟踪的连接：{followed}。"),
        ));
    }
    if adopted.refused > 0 {
        let refused = adopted.refused;
        remark(&either(
            format!(
                "Connections that existed before and cannot be followed: {refused}; it needs Linux 6.13."
            ),
            format!("已有但不能跟踪的连接：{refused}；这需要 Linux 6.13。"),
        ));
    }
    Ok(())
}
