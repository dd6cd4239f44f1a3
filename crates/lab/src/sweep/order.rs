//! Rows as they come, told and kept in the scenarios' order.

use crate::results::Results;
use crate::{Event, LabError};
use fullpipe_flow::row::Row;

/// The rows so far, and where they go.
pub(super) struct Kept<'a> {
    rows: Vec<Option<Row>>,
    /// All before this one are told.
    next: usize,
    pub(super) results: Option<Results>,
    observer: &'a mut dyn FnMut(Event<'_>),
}

impl<'a> Kept<'a> {
    /// For `total` runs.
    pub(super) fn new(total: usize, results: Option<Results>, observer: &'a mut dyn FnMut(Event<'_>)) -> Self {
        Kept { rows: vec![None; total], next: 0, results, observer }
    }

    /// Whether run `index` is done.
    pub(super) fn has(&self, index: usize) -> bool {
        self.rows[index].is_some()
    }

    /// Tells whoever looks on.
    pub(super) fn tell(&mut self, event: Event<'_>) {
        (self.observer)(event);
    }

    /// Takes the row of run `index`, whose files are in place, and tells every row whose turn that makes it.
    pub(super) fn keep(&mut self, index: usize, row: Row) -> Result<(), LabError> {
        self.rows[index] = Some(row);
        (self.observer)(Event::Finished { index });
        while let Some(Some(row)) = self.rows.get(self.next) {
            self.next += 1;
            if let Some(results) = &mut self.results {
                results.append(row)?;
            }
            (self.observer)(Event::Row(row));
        }
        Ok(())
    }

    /// The rows; those behind a run that is missing are kept, but not told.
    pub(super) fn finish(mut self) -> Result<Vec<Row>, LabError> {
        let behind = self.rows.split_off(self.next);
        let rows: Vec<Row> = self.rows.into_iter().flatten().collect();
        for row in behind.iter().flatten() {
            if let Some(results) = &mut self.results {
                results.append(row)?;
            }
        }
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn row(index: usize) -> Row {
        Row { name: index.to_string(), ..Row::default() }
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
            let mut kept = Kept::new(ends.len(), None, &mut observer);
            for &index in &ends[..done] {
                kept.keep(index, row(index)).unwrap();
            }
            let rows: Vec<String> = kept.finish().unwrap().into_iter().map(|row| row.name).collect();
            let gap = (0..ends.len()).find(|index| !ends[..done].contains(index)).unwrap_or(ends.len());
            let expected: Vec<String> = (0..gap).map(|index| index.to_string()).collect();
            prop_assert_eq!(&told, &expected);
            prop_assert_eq!(rows, expected);
            prop_assert_eq!(&finished[..], &ends[..done]);
        }
    }
}
