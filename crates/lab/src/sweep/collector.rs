//! Collects rows, and reports and writes them in the scenarios' order.

use super::{FailedRun, Shard, Sweep};
use crate::results::Results;
use crate::{Event, LabError};
use fullpipe_flow::schema::RunRow;

/// The rows so far, and their destination.
pub(super) struct Collector<'a> {
    rows: Vec<Option<RunRow>>,
    /// Whose rows are wanted; `None`: all.
    shard: Option<Shard>,
    failures: Vec<FailedRun>,
    /// All wanted rows before this one are reported.
    next: usize,
    pub(super) results: Option<Results>,
    observer: &'a mut dyn FnMut(Event<'_>),
}

impl<'a> Collector<'a> {
    /// A collector for those of `total` runs that belong to `shard`.
    pub(super) fn new(
        total: usize,
        shard: Option<Shard>,
        results: Option<Results>,
        observer: &'a mut dyn FnMut(Event<'_>),
    ) -> Self {
        let rows = vec![None; total];
        Collector { rows, shard, failures: Vec::new(), next: 0, results, observer }
    }

    /// Whether run `index` is wanted and not done.
    pub(super) fn lacks(&self, index: usize) -> bool {
        self.wants(index) && self.rows[index].is_none()
    }

    fn wants(&self, index: usize) -> bool {
        self.shard.is_none_or(|shard| shard.has(index))
    }

    /// Reports an event to the observer.
    pub(super) fn tell(&mut self, event: Event<'_>) {
        (self.observer)(event);
    }

    /// Accepts the row of run `index`, whose files are in place, and reports every row that is now
    /// due.
    pub(super) fn keep(&mut self, index: usize, row: RunRow) -> Result<(), LabError> {
        self.rows[index] = Some(row);
        (self.observer)(Event::Finished { index });
        while !self.lacks_next() {
            self.next += 1;
            let Some(row) = &self.rows[self.next - 1] else { continue };
            if let Some(results) = &mut self.results {
                results.append(row)?;
            }
            (self.observer)(Event::Row(row));
        }
        Ok(())
    }

    /// Whether the next row is still to come.
    fn lacks_next(&self) -> bool {
        self.next == self.rows.len() || self.lacks(self.next)
    }

    /// Accepts `row` for run `index`, which failed with `error`.
    ///
    /// # Errors
    /// `error` itself if it concerns more than this run.
    pub(super) fn fail(
        &mut self,
        index: usize,
        row: RunRow,
        error: LabError,
    ) -> Result<(), LabError> {
        if !error.is_of_one_run() {
            return Err(error);
        }
        let row = RunRow { error: Some(error.cause()), ..row };
        self.failures.push(FailedRun { index, error });
        self.keep(index, row)
    }

    /// The outcome of the runs. Rows after a missing one are kept, but not reported.
    pub(super) fn finish(mut self) -> Result<Sweep, LabError> {
        let behind = self.rows.split_off(self.next);
        let rows: Vec<RunRow> = self.rows.into_iter().flatten().collect();
        for row in behind.iter().flatten() {
            if let Some(results) = &mut self.results {
                results.append(row)?;
            }
        }
        self.failures.sort_by_key(|failed| failed.index);
        Ok(Sweep { rows, failures: self.failures })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::ExperimentError;
    use proptest::prelude::*;

    fn row(index: usize) -> RunRow {
        RunRow { name: index.to_string(), ..RunRow::default() }
    }

    #[test]
    fn a_failed_run_is_a_row_and_an_interrupt_is_not() {
        let mut told = Vec::new();
        let mut observer = |event: Event<'_>| {
            if let Event::Row(row) = event {
                told.push((row.name.clone(), row.error.clone()));
            }
        };
        let wrong = |cause| LabError::Run { name: "x".into(), cause };
        let mut collector = Collector::new(3, None, None, &mut observer);
        collector.fail(1, row(1), wrong(ExperimentError::NoConnection)).unwrap();
        collector.keep(0, row(0)).unwrap();
        let refused = collector.fail(2, row(2), wrong(ExperimentError::Interrupted)).unwrap_err();
        assert!(refused.is_interrupt());
        let sweep = collector.finish().unwrap();
        assert_eq!((sweep.rows.len(), sweep.failures[0].index), (2, 1));
        let why = ExperimentError::NoConnection.to_string();
        assert_eq!(told, [("0".into(), None), ("1".into(), Some(why))]);
    }

    #[test]
    fn runs_of_other_shards_are_not_waited_for() {
        let mut told = Vec::new();
        let mut observer = |event: Event<'_>| {
            if let Event::Row(row) = event {
                told.push(row.name.clone());
            }
        };
        let shard = "2/3".parse().unwrap();
        let mut collector = Collector::new(9, Some(shard), None, &mut observer);
        let own: Vec<usize> = (0..9).filter(|&index| collector.lacks(index)).collect();
        assert_eq!(own, [1, 3, 8]);
        for index in [3, 1, 8] {
            collector.keep(index, row(index)).unwrap();
        }
        assert_eq!(collector.finish().unwrap().rows.len(), 3);
        assert_eq!(told, ["1", "3", "8"]);
    }

    proptest! {
        #[test]
        fn whatever_ends_first_rows_are_told_in_order(ends in Just((0..12usize).collect::<Vec<_>>()).prop_shuffle(), done in 0..=12usize) {
            let (mut told, mut finished) = (Vec::new(), Vec::new());
            let mut observer = |event: Event<'_>| match event {
                Event::Row(row) => told.push(row.name.clone()),
                Event::Finished { index } => finished.push(index),
                _ => {}
            };
            let mut collector = Collector::new(ends.len(), None, None, &mut observer);
            for &index in &ends[..done] {
                collector.keep(index, row(index)).unwrap();
            }
            let rows: Vec<String> = collector.finish().unwrap().rows.into_iter().map(|row| row.name).collect();
            let gap = (0..ends.len()).find(|index| !ends[..done].contains(index)).unwrap_or(ends.len());
            let expected: Vec<String> = (0..gap).map(|index| index.to_string()).collect();
            prop_assert_eq!(&told, &expected);
            prop_assert_eq!(rows, expected);
            prop_assert_eq!(&finished[..], &ends[..done]);
        }
    }
}
