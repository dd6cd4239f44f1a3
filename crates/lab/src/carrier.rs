//! What carries the packets of a run between its hosts: our own link, or the kernel's netem.

use crate::hosts::{Hosts, HostsError};
use fullpipe_link::{
    CaptureOptions, EDGES, Emulator, EmulatorError, LinkReport, LogOptions, NetemLink,
    NetemLinkError, Options, STREAMS, gso_max_segs, lacks,
};
use fullpipe_model::scenario::{LinkEngine, Scenario};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A running link.
#[derive(Debug)]
pub enum Carrier {
    /// Our own.
    Own(Box<Emulator>),
    /// The kernel's netem.
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

/// Capture files of both edges. The order of an edge's files decides between packets of the same
/// time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edges {
    /// The server's edge.
    pub server: Vec<PathBuf>,
    /// The client's edge.
    pub client: Vec<PathBuf>,
}

impl Carrier {
    /// Makes the hosts of `scenario` and the link between them; adds what readers must know to
    /// `notes`. Our own link logs each packet's fate to `log`; netem has no such log.
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

    /// The capture files that it writes in `scratch`.
    pub fn edges(&self, scratch: &Path) -> Edges {
        let paths = |names: &[&str]| names.iter().map(|name| scratch.join(name)).collect();
        match self {
            // Arriving packets come before departing ones: in virtual time an answer has the same
            // time as what it answers.
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
