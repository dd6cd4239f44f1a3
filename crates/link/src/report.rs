//! The report of a link that has ended.

use super::direction::Finished;
use super::lateness::Lateness;
use super::statistics::DriverCounters;
use fullpipe_model::link::Counters;
use fullpipe_model::units::{Bytes, Duration};

/// The report of one direction.
#[derive(Debug, Clone, Default)]
pub struct DirectionReport {
    /// The model's counters.
    pub link: Counters,
    /// The driver's counters.
    pub driver: DriverCounters,
    /// How late deliveries were.
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

/// The report of a link.
#[derive(Debug, Clone, Default)]
pub struct LinkReport {
    /// The direction of the data.
    pub to_client: DirectionReport,
    /// The direction of the acknowledgements.
    pub to_server: DirectionReport,
    /// Packets that the captures miss.
    pub capture_dropped: u64,
    /// Records that the truth log misses.
    pub log_dropped: u64,
    /// Packets lost between the hosts and the emulator, which the model does not know about.
    pub port_drops: u64,
    /// Segments due within this time were written together.
    pub coalesce: Duration,
    /// Packet memory, allocated before the run.
    pub memory: Bytes,
    /// The kind of device that joined the hosts to the link.
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
