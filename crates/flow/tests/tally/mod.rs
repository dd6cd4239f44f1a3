//! How right the analysis is about one kind of event.

/// Found, true, and both.
#[derive(Debug, Default, Clone, Copy)]
pub struct Score {
    pub found: u64,
    pub truth: u64,
    pub both: u64,
}

impl Score {
    /// One packet.
    pub fn note(&mut self, found: bool, truth: bool) {
        self.found += u64::from(found);
        self.truth += u64::from(truth);
        self.both += u64::from(found && truth);
    }

    /// Numbers in a connection: as many as both have are taken for the same.
    pub fn count(&mut self, found: u64, truth: u64) {
        self.found += found;
        self.truth += truth;
        self.both += found.min(truth);
    }

    /// The part of what was found that is true; where there was nothing to find, nothing found is
    /// right.
    pub fn precision(&self) -> f64 {
        self.part_of(self.found)
    }

    /// The part of what is true that was found.
    pub fn recall(&self) -> f64 {
        self.part_of(self.truth)
    }

    fn part_of(&self, all: u64) -> f64 {
        if self.found + self.truth == 0 { 1.0 } else { self.both as f64 / all.max(1) as f64 }
    }
}
