//! How much is kept for graphs.

/// How much is kept for the graphs of the connections that are open at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceBounds {
    /// Most events of one line of a graph that are kept as they are. Of more, at most half as many
    /// merged points are kept.
    pub points: usize,
    /// Most bins of bytes by time.
    pub rate_bins: usize,
    /// Most places that are listed of each label, and most stalls of each direction.
    pub marks: usize,
    /// Most connections that are traced at a time. Further ones have no trace.
    pub open: usize,
    /// Most points, bins and places of all connections that are open. Beyond it, all of them keep
    /// fewer, down to [`TraceBounds::LEAST`] a line, and if that is not enough, those that opened
    /// last lose their traces.
    pub total: usize,
}

impl TraceBounds {
    /// The least detail of a line.
    pub const LEAST: usize = 64;

    /// These bounds with at most `points` events a line, and bins and places in proportion.
    pub(crate) fn scaled_to(self, points: usize) -> Self {
        let points = points.min(self.points);
        let [rate_bins, marks] = [self.rate_bins, self.marks].map(|bound| {
            // Both are far below 2^32 unless somebody wants no bounds.
            let part = bound.saturating_mul(points) / self.points.max(1);
            part.max(TraceBounds::LEAST.min(bound))
        });
        TraceBounds { points, rate_bins, marks, ..self }
    }
}

impl Default for TraceBounds {
    /// About 1 MB for the JSON of a long connection, and at most 100 MB of memory.
    fn default() -> Self {
        TraceBounds {
            points: 8_000,
            rate_bins: 2_000,
            marks: 2_000,
            open: 16_384,
            total: 2_000_000,
        }
    }
}
