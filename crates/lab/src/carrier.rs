//! The hosts of a run and the link between them: our own, or the kernel's netem.

use crate::hosts::{HostsError, join_hosts, without_machine};
use fullpipe_link::{
    CaptureOptions, Carrier, CarrierError, Junction, LinkEnds, LinkOptions, LogOptions, lacks,
};
use fullpipe_model::scenario::{LinkEngine, Scenario};
use std::path::Path;

/// Why a scenario's hosts are not joined by a link.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The hosts could not be made.
    #[error(transparent)]
    Hosts(#[from] HostsError),
    /// The link could not be started.
    #[error(transparent)]
    Carrier(#[from] CarrierError),
}

/// The engine for `scenario`: the one it names; else netem in virtual time, where it costs a tenth
/// of ours, if it has everything that the path needs; else our own, which needs nothing from the
/// kernel.
pub fn engine(scenario: &Scenario, virtual_time: bool) -> LinkEngine {
    let usual = if virtual_time && lacks(&scenario.path).is_none() {
        LinkEngine::Netem
    } else {
        LinkEngine::Own
    };
    scenario.link_engine.unwrap_or(usual)
}

/// Makes the hosts of `scenario` and starts the link between them; adds what readers must know to
/// `notes`. Our own link logs each packet's fate to `log`; netem has no such log.
pub fn start(
    scenario: &Scenario,
    capture: CaptureOptions<'_>,
    log: Option<&Path>,
    virtual_time: bool,
    notes: &mut Vec<String>,
) -> Result<(LinkEnds, Carrier), SetupError> {
    let engine = engine(scenario, virtual_time);
    // A guest's first process has set what belongs to the machine.
    let own = virtual_time.then(|| without_machine(&scenario.hosts));
    let spec = own.as_ref().unwrap_or(&scenario.hosts);
    let (hosts, junction) = join_hosts(spec, engine, &scenario.path)?;
    if let Junction::Ports(ports) = &junction
        && let Some(why) = &ports.not_tun
    {
        notes.push(format!(
            "veth and packet sockets carry the link in place of TUN devices ({why})"
        ));
    }
    let log = log.map(|path| LogOptions { path, epoch: capture.epoch });
    let options =
        LinkOptions { capture: Some(capture), log, virtual_time, ..LinkOptions::default() };
    let carrier = Carrier::start(junction, &scenario.path, &options)?;
    if let Carrier::Netem(link) = &carrier {
        notes.extend(link.notes.iter().cloned());
    }
    Ok((hosts, carrier))
}
