//! What the screen shows, as plain data: a snapshot of the host's busy connections.

use fullpipe_flow::account::AccountPart;
use fullpipe_flow::connection::filter::LiveFilter;
use fullpipe_model::limit::{End, Limit};
use fullpipe_model::observe::{PeerSite, Process};
use fullpipe_model::units::{Duration, Instant, Rate};
use std::net::SocketAddr;
use std::sync::Arc;

/// The host's connections at one moment.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// The busy ones, in any order.
    pub rows: Vec<Row>,
    /// All of them, idle ones too.
    pub connections: usize,
    /// Namespaces that are watched.
    pub namespaces: usize,
    /// What cannot be seen.
    pub hidden: Hidden,
    /// Since when it was so, since 1970, and for how long; nothing of what is now.
    pub then: Option<(Instant, Duration)>,
}

/// What only root sees.
#[derive(Debug, Clone, Copy, Default)]
pub struct Hidden {
    /// How many network namespaces.
    pub namespaces: usize,
    /// Whether there are other users' processes.
    pub has_processes: bool,
}

/// Identifies a connection: its namespace and its cookie.
pub type Id = (u64, u64);

/// A busy connection.
#[derive(Debug, Clone)]
pub struct Row {
    /// What identifies it.
    pub id: Id,
    /// Its own end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// Where that is, by the table of prefixes.
    pub site: Option<PeerSite>,
    /// Which end this is.
    pub role: End,
    /// The process, if known.
    pub process: Option<Arc<Process>>,
    /// What moved in the last moment.
    pub rate: Rate,
    /// Segments sent again.
    pub retransmissions: u64,
    /// The limits with their times, longest first.
    pub times: Vec<(Limit, Duration)>,
    /// Where the time went that no limit of the data had, the longest part first.
    pub waits: Vec<AccountPart>,
    /// All the time.
    pub watched: Duration,
    /// The moments in order of time.
    pub history: Vec<Moment>,
    /// Names and values that the details show.
    pub facts: Vec<(&'static str, String)>,
}

/// What a connection did between two looks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moment {
    /// What moved.
    pub rate: Rate,
    /// What held it, if anything did.
    pub limit: Option<Limit>,
}

impl Row {
    /// Whether the filter selects it.
    pub fn passes(&self, filter: &LiveFilter) -> bool {
        filter.matches(self.local, self.remote, self.process.as_deref())
    }

    /// The limit that held longest.
    pub fn limit(&self) -> Option<Limit> {
        self.times.first().map(|(limit, _)| *limit)
    }

    /// The time that is lost to limits.
    pub fn lost(&self) -> Duration {
        let losing = self.times.iter().filter(|(limit, _)| limit.loses_time());
        losing.fold(Duration::ZERO, |sum, (_, time)| sum.saturating_add(*time))
    }

    /// The time that it was busy.
    pub fn busy(&self) -> Duration {
        self.times.iter().fold(Duration::ZERO, |sum, (_, time)| sum.saturating_add(*time))
    }

    /// The share of the busy time that is lost; 0 where nothing is known.
    pub fn lost_share(&self) -> f64 {
        share(self.lost(), self.busy())
    }
}

/// A part of a whole; 0 of nothing.
pub fn share(part: Duration, whole: Duration) -> f64 {
    if whole == Duration::ZERO { 0.0 } else { part.as_secs_f64() / whole.as_secs_f64() }
}
