//! A running link, shared by its own run and by those who control it from outside.

use super::words::RequestedPath;
use crate::failure::{Failure, Kind};
use fullpipe_kernel::clock;
use fullpipe_link::{
    DirectionReport, DirectionStatistics, Emulator, EmulatorError, GatewayCounters, GatewayCounts,
    LinkReport, NetemLink, Statistics, Words,
};
use fullpipe_model::scenario::Path;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, PoisonError};

/// Whose traffic a link carries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// The traffic of a command.
    Command(String),
    /// The traffic of a device.
    Device(String),
}

/// What emulates a link.
#[derive(Debug)]
pub enum Engine {
    /// Our own link.
    Own(Box<Emulator>),
    /// The kernel's netem, which gives no statistics and takes no changes while it runs.
    Netem(Box<NetemLink>),
}

impl Engine {
    /// Its name, as in `--engine`.
    pub fn name(&self) -> &'static str {
        match self {
            Engine::Own(_) => "own",
            Engine::Netem(_) => "netem",
        }
    }
}

/// A link that runs until [`Shared::stop`].
pub struct Shared {
    name: String,
    subject: Subject,
    pid: u32,
    engine: Mutex<Option<Engine>>,
    asked: Mutex<RequestedPath>,
    gateway: Option<Arc<GatewayCounters>>,
}

/// What a link is and does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Its name, as for `--link`.
    pub name: String,
    /// Whose traffic it carries.
    pub subject: Subject,
    /// The process to signal: the first one of a command's run.
    pub pid: u32,
    /// The path as it was requested.
    pub words: Words,
    /// The path that is emulated.
    pub path: Path,
    /// What it has done so far; netem reports only at the end.
    #[serde(default)]
    pub statistics: Option<Statistics>,
    /// What the gateway could not carry, if there is a gateway.
    #[serde(default)]
    pub gateway: Option<GatewayCounts>,
}

impl Shared {
    /// A started link; `pid` is its process as seen from outside.
    pub fn new(
        name: &str,
        subject: Subject,
        pid: u32,
        engine: Engine,
        asked: RequestedPath,
    ) -> Shared {
        let (engine, asked) = (Mutex::new(Some(engine)), Mutex::new(asked));
        Shared { name: name.into(), subject, pid, engine, asked, gateway: None }
    }

    /// Adds a gateway's counters to its status.
    pub fn with_gateway(self, gateway: Option<Arc<GatewayCounters>>) -> Shared {
        Shared { gateway, ..self }
    }

    /// What the gateway could not carry so far; zeros without a gateway.
    pub fn gateway_counts(&self) -> GatewayCounts {
        self.gateway.as_ref().map(|counters| counters.read()).unwrap_or_default()
    }

    /// Replaces the parts of the path that `words` name, from now on. On error nothing is changed.
    pub fn set(&self, words: &Words) -> Result<(), Failure> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let words = asked.words.with(words);
        let path = words.path()?;
        if path.mtu != asked.path.mtu {
            let message = format!(
                "set link {}: its MTU is its device's and stays {}",
                self.name, asked.path.mtu
            );
            return Err(Failure::new(Kind::Input, message));
        }
        if self.is_device()
            && path.rules.iter().map(|rule| rule.matches).ne(asked
                .path
                .rules
                .iter()
                .map(|rule| rule.matches))
        {
            let message = format!(
                "set link {}: which packets of a device are redirected is settled when it is attached; detach it, and \
                 attach it with these matches",
                self.name
            );
            return Err(Failure::new(Kind::Input, message));
        }
        self.with(|emulator| emulator.set(&path)).map_err(|failure| {
            failure.unwrap_or_else(|| {
                Failure::new(
                    Kind::Input,
                    format!("set link {}: netem's path cannot change; use --engine own", self.name),
                )
            })
        })?;
        *asked = RequestedPath { path, words };
        Ok(())
    }

    fn is_device(&self) -> bool {
        matches!(self.subject, Subject::Device(_))
    }

    /// What it has done so far; `None` if its engine does not report that.
    pub fn statistics(&self) -> Result<Option<Statistics>, Failure> {
        match self.with(Emulator::statistics) {
            Err(None) => Ok(None),
            Err(Some(failure)) => Err(failure),
            Ok(statistics) => Ok(Some(statistics)),
        }
    }

    /// Its state.
    pub fn status(&self) -> Result<Status, Failure> {
        let statistics = self.statistics()?;
        let RequestedPath { path, words } =
            self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (name, subject) = (self.name.clone(), self.subject.clone());
        let gateway = self.gateway.as_ref().map(|counters| counters.read());
        Ok(Status { name, subject, pid: self.pid, words, path, statistics, gateway })
    }

    /// Ends it; returns its state just before and its report. Later requests get an error.
    pub fn stop(&self) -> Result<(Status, LinkReport), Failure> {
        let mut status = self.status()?;
        let engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner).take();
        match engine.ok_or_else(|| self.ended())? {
            Engine::Own(emulator) => Ok((status, emulator.stop()?)),
            Engine::Netem(link) => {
                let report = link.stop()?;
                let of = |way: &DirectionReport| DirectionStatistics {
                    link: way.link,
                    ..DirectionStatistics::default()
                };
                let (to_client, to_server) = (of(&report.to_client), of(&report.to_server));
                status.statistics = Some(Statistics { at: clock::now(), to_client, to_server });
                Ok((status, report))
            }
        }
    }

    /// `Err(None)`: this engine cannot do it.
    fn with<T>(
        &self,
        work: impl FnOnce(&Emulator) -> Result<T, EmulatorError>,
    ) -> Result<T, Option<Failure>> {
        let engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        match engine.as_ref().ok_or_else(|| self.ended())? {
            Engine::Own(emulator) => Ok(work(emulator).map_err(Failure::from)?),
            Engine::Netem(_) => Err(None),
        }
    }

    fn ended(&self) -> Failure {
        Failure::new(Kind::Run, format!("ask link {}: it has ended", self.name))
    }
}
