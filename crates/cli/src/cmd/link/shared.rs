//! A running link, shared by its own run and by those who control it from outside.

use super::words::RequestedPath;
use crate::failure::{Failure, Kind};
use crate::sentence::Sentence;
use fullpipe_kernel::host::clock;
use fullpipe_link::{
    Carrier, DirectionReport, DirectionStatistics, Emulator, EmulatorError, GatewayCounters,
    GatewayCounts, LinkReport, Statistics, Words,
};
use fullpipe_model::scenario::{LinkEngine, Path};
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

/// A link that runs until [`Shared::stop`].
pub struct Shared {
    name: String,
    subject: Subject,
    pid: u32,
    carrier: Mutex<Option<Carrier>>,
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
        carrier: Carrier,
        asked: RequestedPath,
    ) -> Shared {
        let (carrier, asked) = (Mutex::new(Some(carrier)), Mutex::new(asked));
        Shared { name: name.into(), subject, pid, carrier, asked, gateway: None }
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
            let (name, mtu) = (&self.name, asked.path.mtu);
            let message = Sentence::new(
                format!("set link {name}: its MTU is its device's and stays {mtu}"),
                format!("更改链路 {name}：其 MTU 是设备的，保持 {mtu}"),
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
            let name = &self.name;
            let message = Sentence::new(
                format!(
                    "set link {name}: which packets of a device are redirected is settled when it is attached; detach it, and \
                     attach it with these matches"
                ),
                format!(
                    "更改链路 {name}：设备的哪些数据包被重定向在挂接时就已确定；请卸下它，再以这些匹配条件挂接"
                ),
            );
            return Err(Failure::new(Kind::Input, message));
        }
        self.with(|emulator| emulator.set(&path)).map_err(|failure| {
            failure.unwrap_or_else(|| {
                let name = &self.name;
                Failure::new(
                    Kind::Input,
                    Sentence::new(
                        format!("set link {name}: netem's path cannot change; use --engine own"),
                        format!("更改链路 {name}：netem 的路径不能改变；请用 --engine own"),
                    ),
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
        let carrier = self.carrier.lock().unwrap_or_else(PoisonError::into_inner).take();
        let carrier = carrier.ok_or_else(|| self.ended())?;
        let engine = carrier.engine();
        let report = carrier.stop()?;
        if engine == LinkEngine::Netem {
            status.statistics = Some(Statistics {
                at: clock::now(),
                to_client: at_end(&report.to_client),
                to_server: at_end(&report.to_server),
            });
        }
        Ok((status, report))
    }

    /// `Err(None)`: this engine cannot do it.
    fn with<T>(
        &self,
        work: impl FnOnce(&Emulator) -> Result<T, EmulatorError>,
    ) -> Result<T, Option<Failure>> {
        let carrier = self.carrier.lock().unwrap_or_else(PoisonError::into_inner);
        match carrier.as_ref().ok_or_else(|| self.ended())? {
            Carrier::Own(emulator) => Ok(work(emulator).map_err(Failure::from)?),
            Carrier::Netem(_) => Err(None),
        }
    }

    fn ended(&self) -> Failure {
        let name = &self.name;
        let what = format!("ask link {name}: it has ended");
        Failure::new(Kind::Run, Sentence::new(what, format!("询问链路 {name}：它已结束")))
    }
}

/// What netem's counters say when it has ended.
fn at_end(direction: &DirectionReport) -> DirectionStatistics {
    DirectionStatistics { link: direction.link, ..DirectionStatistics::default() }
}
