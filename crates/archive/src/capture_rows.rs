//! Captures, one after another, as rows of one or more kinds in files by day.

use crate::day_tables::{DayTable, DayTables, TableError};
use fullpipe_analyze::{Capture, Options, what_is_missing};
use fullpipe_columnar::{Layout, RowKind, RowSource};
use fullpipe_flow::Counts;
use fullpipe_flow::diagnosis::DiagnosedConnection;
use fullpipe_flow::diagnosis::live::WorkloadHours;
use fullpipe_flow::schema::{PACKETS, WORKLOADS, WorkloadRow};
use std::path::Path;
use std::sync::Arc;

/// Packets between two questions whether to go on.
const PACKETS_BETWEEN: u64 = 1 << 12;

/// Sums of workloads that are held at most: some 50 MB. The hours of a part come in order of its
/// captures, so they seldom are as many.
const SUMS_MOST: usize = 100_000;

/// What was read of a capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureOutcome {
    /// Its rows of each kind, in the order of the kinds.
    pub rows: Vec<u64>,
    /// Why it was not read to its end.
    pub problem: Option<String>,
}

/// The rows of captures, under construction. All kinds but packets come from one reading.
///
/// The order of calls: [`CaptureRows::add`] for each capture, then [`CaptureRows::finish`].
/// Dropping it removes what was written.
pub struct CaptureRows {
    options: Options,
    /// What is written, and where to.
    tables: Vec<(RowSource, DayTables)>,
    /// Sums of workloads, which are written when there are many, or all captures are read.
    hours: WorkloadHours,
}

impl CaptureRows {
    /// No rows yet. Files of each kind are made in `folder`, with names that begin with `name`.
    pub fn new(folder: &Path, name: &str, kinds: &[RowSource], mut options: Options) -> Self {
        let tables = kinds.iter().map(|&kind| {
            let name = format!("{name}-{}", kind.name());
            (kind, DayTables::new(folder.to_path_buf(), name, kind.layout()))
        });
        options.config.spans |= kinds.iter().any(|kind| kind.needs_spans());
        let hours = WorkloadHours::new(Arc::clone(&options.config.prefixes));
        CaptureRows { options, tables: tables.collect(), hours }
    }

    /// Writes the rows of a capture, which `open` opens once or twice; `check` is asked now and
    /// then whether to go on. A capture that cannot be read is an outcome and no error.
    ///
    /// # Errors
    /// The first error of `open` or `check`, or rows cannot be written.
    pub fn add<E: From<TableError>>(
        &mut self,
        name: &str,
        mut open: impl FnMut() -> Result<Capture, E>,
        mut check: impl FnMut() -> Result<(), E>,
    ) -> Result<CaptureOutcome, E> {
        let mut outcome = CaptureOutcome { rows: vec![0; self.tables.len()], problem: None };
        if self.tables.iter().any(|(kind, _)| matches!(kind, RowSource::Connection(_))) {
            outcome.problem = self.connections(name, open()?, &mut outcome.rows, &mut check)?;
        }
        let packets = self.tables.iter().position(|(kind, _)| *kind == RowSource::Packets);
        if let Some(at) = packets {
            let problem = self.packets(name, open()?, at, &mut outcome.rows[at], &mut check)?;
            outcome.problem = outcome.problem.or(problem);
        }
        let workloads = self.tables.iter().position(|(kind, _)| *kind == RowSource::Workloads);
        if let Some(at) = workloads {
            check()?;
            let (part, errors) = open()?.history();
            outcome.rows[at] = self.hours.add(&part);
            if self.hours.len() >= SUMS_MOST {
                self.write_hours()?;
            }
            let problem = what_is_missing(name, &Counts::default(), &errors);
            outcome.problem = outcome.problem.or(problem);
        }
        Ok(outcome)
    }

    /// Writes what the connections of a capture give; returns its problem.
    fn connections<E: From<TableError>>(
        &mut self,
        name: &str,
        capture: Capture,
        rows: &mut [u64],
        check: &mut impl FnMut() -> Result<(), E>,
    ) -> Result<Option<String>, E> {
        let mut connections = if self.tables.iter().any(|(kind, _)| kind.needs_findings()) {
            capture.connections(&self.options)
        } else {
            capture.connections_without_findings(&self.options)
        };
        while let Some(round) = connections.next_round() {
            check()?;
            for ((kind, tables), count) in self.tables.iter_mut().zip(&mut *rows) {
                if let RowSource::Connection(kind) = kind {
                    *count += add_round(*kind, name, &round, tables)?;
                }
            }
        }
        let (counts, errors) = connections.finish();
        Ok(what_is_missing(name, &counts, &errors))
    }

    /// Writes the packets of a capture; returns its problem.
    fn packets<E: From<TableError>>(
        &mut self,
        name: &str,
        capture: Capture,
        at: usize,
        rows: &mut u64,
        check: &mut impl FnMut() -> Result<(), E>,
    ) -> Result<Option<String>, E> {
        let tables = &mut self.tables[at].1;
        let mut errors = Vec::new();
        for packet in capture.labelled_packets(&self.options) {
            if rows.is_multiple_of(PACKETS_BETWEEN) {
                check()?;
            }
            match packet {
                Ok(packet) => {
                    let row = packet.row(name);
                    tables.row(row.at, Layout::cells(PACKETS, &row))?;
                    *rows += 1;
                }
                Err(error) => errors.push(error),
            }
        }
        Ok(what_is_missing(name, &Counts::default(), &errors))
    }

    /// Writes the sums of workloads that there are.
    fn write_hours(&mut self) -> Result<(), TableError> {
        let sums = self.hours.take();
        let mut tables = self.tables.iter_mut();
        let found = tables.find(|(kind, _)| *kind == RowSource::Workloads);
        let Some((_, tables)) = found else { return Ok(()) };
        for (hour, sum) in &sums {
            let row = WorkloadRow { hour, sum };
            tables.row(hour.hour, Layout::cells(WORKLOADS, &row))?;
        }
        Ok(())
    }

    /// Ends all files; returns them in the order of the kinds.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn finish(mut self) -> Result<Vec<(RowSource, Vec<DayTable>)>, TableError> {
        self.write_hours()?;
        self.tables.into_iter().map(|(kind, tables)| Ok((kind, tables.finish()?))).collect()
    }
}

/// Writes the rows of some connections; returns how many.
fn add_round(
    kind: RowKind,
    name: &str,
    round: &[DiagnosedConnection],
    tables: &mut DayTables,
) -> Result<u64, TableError> {
    let mut rows = 0;
    for diagnosed in round {
        let start = diagnosed.connection.start;
        kind.rows(name, diagnosed, |cells| {
            rows += 1;
            tables.row(start, cells)
        })?;
    }
    Ok(rows)
}
