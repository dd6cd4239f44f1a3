//! What carries the packets of a run between its hosts: our own link, or the kernel's netem.

use crate::hosts::{Hosts, HostsError};
use fullpipe_link::{
    CaptureOptions, EDGES, Emulator, EmulatorError, LinkReport, LogOptions, NetemLink,
    NetemLinkError, Options, STREAMS, gso_max_segs, lacks,
};
use fullpipe_model::scenario::{LinkEngine, Scenario};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A link that runs.
#[derive(Debug)]
pub enum Carrier {
    /// Ours.
    Own(Box<Emulator>),
    /// The kernel's.
    Netem(Box<NetemLink>),
}

/// Why there is no link between two hosts.
#[derive(Debug, thiserror::Error)]
pub enum CarrierError {
    /// The hosts.
    #[error(transparent)]
    Hosts(#[from] HostsError),
    /// Our own link.
    #[error(transparent)]
    Emulator(#[from] EmulatorError),
    /// netem.
    #[error(transparent)]
    Netem(#[from] NetemLinkError),
}

/// The engine that carries `scenario`: the one it asks for, or else in virtual time netem, which
/// there costs a tenth of ours, where it has the path's words, and in real time ours, which needs
/// nothing of the kernel.
pub fn engine(scenario: &Scenario, virtual_time: bool) -> LinkEngine {
    let usual = if virtual_time && lacks(&scenario.path).is_none() {
        LinkEngine::Netem
    } else {
        LinkEngine::Own
    };
    scenario.link_engine.unwrap_or(usual)
}

/// Files with what passed the hosts' edges, those of each in the order in which equals are to be
/// taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edges {
    /// The server's.
    pub server: Vec<PathBuf>,
    /// The client's.
    pub client: Vec<PathBuf>,
}

impl Carrier {
    /// Makes the hosts of `scenario` and the link between them; what a reader must know of it goes
    /// to `notes`. Our own link writes each packet's fate to `log`; netem has no such log.
    pub fn start(
        scenario: &Scenario,
        capture: CaptureOptions<'_>,
        log: Option<&Path>,
        virtual_time: bool,
        notes: &mut Vec<String>,
    ) -> Result<(Hosts<()>, Carrier), CarrierError> {
        let path = &scenario.path;
        match engine(scenario, virtual_time) {
            LinkEngine::Own => {
                let (hosts, ports) = Hosts::create(&scenario.hosts, path.mtu)?.apart();
                if let Some(why) = &ports.not_tun {
                    notes.push(format!(
                        "veth and packet sockets carry the link in place of TUN devices ({why})"
                    ));
                }
                let log = log.map(|path| LogOptions { path, epoch: capture.epoch });
                let options =
                    Options { capture: Some(capture), log, virtual_time, ..Options::default() };
                Ok((
                    hosts,
                    Carrier::Own(Box::new(Emulator::start(Arc::clone(&ports), path, &options)?)),
                ))
            }
            LinkEngine::Netem => {
                if let Some(word) = lacks(path) {
                    return Err(NetemLinkError::Foreign(word).into());
                }
                let segments = gso_max_segs(path);
                let (hosts, wire) =
                    Hosts::create_wired(&scenario.hosts, path.mtu, segments)?.apart();
                let link = NetemLink::start(wire, path, segments, Some(capture))?;
                notes.extend(link.notes.iter().cloned());
                Ok((hosts, Carrier::Netem(Box::new(link))))
            }
        }
    }

    /// Where in `scratch` it writes its captures.
    pub fn edges(&self, scratch: &Path) -> Edges {
        let paths = |names: &[&str]| names.iter().map(|name| scratch.join(name)).collect();
        match self {
            // What comes before what leaves: in virtual time an answer has the time of what it
            // answers.
            Carrier::Own(_) => Edges {
                server: paths(&[STREAMS[3], STREAMS[0]]),
                client: paths(&[STREAMS[1], STREAMS[2]]),
            },
            Carrier::Netem(_) => Edges { server: paths(&EDGES[..1]), client: paths(&EDGES[1..]) },
        }
    }

    /// Ends it. Captures are complete when this returns.
    pub fn stop(self) -> Result<LinkReport, CarrierError> {
        match self {
            Carrier::Own(emulator) => Ok(emulator.stop()?),
            Carrier::Netem(link) => Ok(link.stop()?),
        }
    }
}
