//! What carries the packets between both ends of a link: our own link, or the kernel's netem.

use crate::emulator::Emulator;
use crate::ends::Junction;
use crate::error::CarrierError;
use crate::netem::{EDGES, NetemLink};
use crate::options::{EDGE_STREAMS, LinkOptions};
use crate::report::LinkReport;
use fullpipe_model::scenario::{LinkEngine, Path as LinkPath};
use std::path::{Path, PathBuf};

/// A link that runs until [`Carrier::stop`].
#[derive(Debug)]
pub enum Carrier {
    /// Our own link.
    Own(Box<Emulator>),
    /// The kernel's netem, which gives no statistics and takes no changes while it runs.
    Netem(Box<NetemLink>),
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
    /// Starts the link `path` at a junction. netem uses only the captures of `options`.
    ///
    /// # Errors
    /// As [`Emulator::start`] and [`NetemLink::start`].
    pub fn start(
        junction: Junction,
        path: &LinkPath,
        options: &LinkOptions<'_>,
    ) -> Result<Carrier, CarrierError> {
        Ok(match junction {
            Junction::Ports(ports) => {
                Carrier::Own(Box::new(Emulator::start(ports, path, options)?))
            }
            Junction::Wire { wire, segments } => {
                let link = NetemLink::start(wire, path, segments, options.capture)?;
                Carrier::Netem(Box::new(link))
            }
        })
    }

    /// Which of the two it is.
    pub fn engine(&self) -> LinkEngine {
        match self {
            Carrier::Own(_) => LinkEngine::Own,
            Carrier::Netem(_) => LinkEngine::Netem,
        }
    }

    /// The capture files that it writes in `folder`.
    pub fn edges(&self, folder: &Path) -> Edges {
        let [server, client] = match self {
            Carrier::Own(_) => EDGE_STREAMS.map(|streams| files(folder, &streams)),
            Carrier::Netem(_) => EDGES.map(|name| files(folder, &[name])),
        };
        Edges { server, client }
    }

    /// Ends it. Captures are complete when this returns.
    ///
    /// # Errors
    /// As [`Emulator::stop`] and [`NetemLink::stop`].
    pub fn stop(self) -> Result<LinkReport, CarrierError> {
        match self {
            Carrier::Own(emulator) => Ok(emulator.stop()?),
            Carrier::Netem(link) => Ok(link.stop()?),
        }
    }
}

fn files(folder: &Path, names: &[&str]) -> Vec<PathBuf> {
    names.iter().map(|name| folder.join(name)).collect()
}
