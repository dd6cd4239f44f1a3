//! Sorts the values of each trait into bins, so that a tree tries each threshold once.

use fullpipe_flow::limit::half;

/// The traits of all lessons as numbers of bins, trait by trait.
pub struct Bins {
    columns: Vec<Vec<u8>>,
    thresholds: Vec<Vec<f32>>,
}

impl Bins {
    /// The most bins of a trait.
    pub const MOST: usize = 256;

    /// Thresholds are values that occur, rounded as a table stores them, and about as many lessons
    /// lie between one and the next.
    pub fn new(traits: &[&[f32]]) -> Bins {
        let width = traits.first().map_or(0, |first| first.len());
        let mut bins = Bins { columns: Vec::new(), thresholds: Vec::new() };
        for of in 0..width {
            let mut values: Vec<f32> = traits.iter().map(|all| all[of]).collect();
            values.sort_by(f32::total_cmp);
            let last = values.len() - 1;
            let mut thresholds: Vec<f32> = (0..Bins::MOST - 1)
                .map(|at| {
                    let [c, d] = half(values[at * last / (Bins::MOST - 1)]);
                    f32::from_le_bytes([0, 0, c, d])
                })
                .collect();
            thresholds.sort_by(f32::total_cmp);
            thresholds.dedup();
            let bin = |value: f32| thresholds.partition_point(|threshold| *threshold < value) as u8;
            bins.columns.push(traits.iter().map(|all| bin(all[of])).collect());
            bins.thresholds.push(thresholds);
        }
        bins
    }

    /// The bin of each lesson's value of trait `of`. A value is at most `thresholds(of)[bin]`
    /// exactly where its bin is at most `bin`.
    pub fn of(&self, of: usize) -> &[u8] {
        &self.columns[of]
    }

    /// The thresholds of trait `of`, ascending; at most [`Bins::MOST`] less one.
    pub fn thresholds(&self, of: usize) -> &[f32] {
        &self.thresholds[of]
    }
}
