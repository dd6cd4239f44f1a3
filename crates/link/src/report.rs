//! What a link did, once it has ended.

use super::direction::Finished;
use super::lateness::Lateness;
use super::statistics::DriverCounters;
use fullpipe_model::link::Counters;
use fullpipe_model::units::{Bytes, Duration};

/// What one direction did.
#[derive(Debug, Clone, Default)]
pub struct DirectionReport {
    /// What the model counted.
    pub link: Counters,
    /// What the driver counted.
    pub driver: DriverCounters,
    /// How late hand-overs were.
    pub lateness: Lateness,
    /// Whether its thread ran in SCHED_FIFO.
    pub real_time: bool,
}

impl DirectionReport {
    pub(super) fn new(finished: Finished, real_time: bool) -> Self {
        let Finished { link, driver, lateness } = finished;
        DirectionReport { link, driver, lateness, real_time }
    }
}

/// What a link did.
#[derive(Debug, Clone, Default)]
pub struct LinkReport {
    /// Way of the data.
    pub to_client: DirectionReport,
    /// Way of the acknowledgements.
    pub to_server: DirectionReport,
    /// Packets that the captures miss.
    pub capture_dropped: u64,
    /// Records that the truth log misses.
    pub log_dropped: u64,
    /// Packets lost between the hosts and the emulator, which the model knows nothing of.
    pub port_drops: u64,
    /// Segments due within this time were written together.
    pub coalesce: Duration,
    /// Packet memory, taken before the run.
    pub memory: Bytes,
    /// Which kind of device joined the hosts to the link.
    pub port_kind: String,
}

impl LinkReport {
    /// Lateness of both directions together.
    pub fn lateness(&self) -> Lateness {
        let mut both = self.to_client.lateness.clone();
        both.merge(&self.to_server.lateness);
        both
    }

    /// Whether both threads ran in SCHED_FIFO.
    pub fn real_time(&self) -> bool {
        self.to_client.real_time && self.to_server.real_time
    }
}
