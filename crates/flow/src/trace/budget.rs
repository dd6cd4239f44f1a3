//! Holds the traces of all open connections to a total.
//!
//! [`crate::Analyzer`] asks it before each packet whether it is time to count, which is rare, and
//! then lets it count and, where needed, thin the traces.

use super::bounds::TraceBounds;
use crate::config::Config;
use crate::connection::Tracker;

/// Packets between two counts, at least.
const COUNT_EVERY: usize = 16_384;

/// How much detail the traces of open connections have at present.
#[derive(Debug)]
pub(crate) struct Budget {
    most: TraceBounds,
    present: TraceBounds,
    /// Connections that were traced at the last count, and those that opened since.
    traced: usize,
    packets_left: usize,
}

impl Budget {
    pub fn new(most: TraceBounds) -> Self {
        Budget { most, present: most, traced: 0, packets_left: COUNT_EVERY }
    }

    /// The bounds for a connection that opens; `None` if it must do without a trace.
    pub fn opens(&mut self) -> Option<TraceBounds> {
        (self.traced < self.most.open).then(|| {
            self.traced += 1;
            self.present
        })
    }

    /// Notes a packet. Returns whether the points are to be counted.
    pub fn is_due(&mut self) -> bool {
        self.packets_left = self.packets_left.saturating_sub(1);
        self.packets_left == 0
    }

    /// Counts the points of the `open` connections, and thins them all if they are too many.
    /// `trackers` are those that may have any.
    pub fn count<'t>(
        &mut self,
        open: usize,
        trackers: impl Iterator<Item = &'t mut Tracker>,
        config: &Config,
    ) {
        // So often that a packet costs a constant time, however many are open.
        self.packets_left = COUNT_EVERY.max(open);
        let mut traced: Vec<_> = trackers.filter(|tracker| tracker.traced_points() > 0).collect();
        self.traced = traced.len();
        let mut held = points(&traced);
        if held < self.most.total / 4 && self.present != self.most {
            self.set(self.present.points.saturating_mul(2), &mut traced, config);
        }
        while held > self.most.total && self.present.points > TraceBounds::LEAST {
            self.set(self.present.points / 2, &mut traced, config);
            held = points(&traced);
        }
        if held <= self.most.total {
            return;
        }
        traced.sort_unstable_by_key(|tracker| std::cmp::Reverse(tracker.id()));
        for tracker in traced {
            if held <= self.most.total {
                break;
            }
            held -= tracker.traced_points();
            tracker.bound_trace(config, None);
            self.traced -= 1;
        }
    }

    fn set(&mut self, points: usize, traced: &mut [&mut Tracker], config: &Config) {
        self.present = self.most.scaled_to(points.max(TraceBounds::LEAST));
        for tracker in traced {
            tracker.bound_trace(config, Some(self.present));
        }
    }
}

fn points(traced: &[&mut Tracker]) -> usize {
    traced.iter().map(|tracker| tracker.traced_points()).sum()
}
