//! The rows of captures as record batches, one batch in memory at a time.
//!
//! Whoever reads the C stream drives it: [`Batches`] reads on until a batch is full. What cannot
//! be read of a capture does not stop the others; at the end the problems are an error of the
//! stream, unless the caller wants to look at them. So a short table never looks whole.

use crate::input::{Captures, interrupt_again};
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use fullpipe_analyze::{Connections, Error, LabelledPackets, Options, what_is_missing};
use fullpipe_columnar::{Batch, BatchError, Layout, RowKind, RowSource};
use fullpipe_flow::Counts;
use fullpipe_flow::diagnosis::live::WorkloadHours;
use fullpipe_flow::schema::{Cell, PACKETS, WORKLOADS, WorkloadRow};
use pyo3::Python;
use std::sync::{Arc, Mutex, PoisonError};

/// Rows in a batch, but for the rest of a round of connections: some megabytes.
const ROWS: usize = 1 << 13;

/// Captures that were not read to their ends: the name and the problem of each.
pub type Problems = Arc<Mutex<Vec<(String, String)>>>;

/// The batches of captures.
pub struct Batches {
    captures: Captures,
    options: Options,
    kind: RowSource,
    schema: SchemaRef,
    layout: Layout,
    current: Option<(String, Reading)>,
    batch: Batch,
    rows: usize,
    problems: Problems,
    /// Whether problems are an error at the end.
    raises: bool,
    is_over: bool,
}

/// A capture that is being read.
enum Reading {
    Connections(RowKind, Box<Connections>),
    /// With why the capture was not read to its end.
    Packets(Box<LabelledPackets>, Vec<Error>),
    /// All sums of a recording, with why it was not read to its end.
    Workloads(WorkloadHours, Vec<Error>),
}

impl Batches {
    /// The rows of `captures`.
    ///
    /// # Errors
    /// The columns cannot be Arrow's.
    pub fn new(
        captures: Captures,
        kind: RowSource,
        options: Options,
        problems: Problems,
        raises: bool,
    ) -> Result<Self, BatchError> {
        let mut options = options;
        options.config.spans |= kind.needs_spans();
        let layout = kind.layout();
        let schema = Batch::new(layout.clone()).finish()?.schema();
        let batch = Batch::new(layout.clone());
        Ok(Batches {
            captures,
            options,
            kind,
            schema,
            layout,
            current: None,
            batch,
            rows: 0,
            problems,
            raises,
            is_over: false,
        })
    }

    /// Reads until a batch is full, or nothing is left.
    fn advance(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        while self.rows < ROWS {
            check_signals()?;
            let Some((name, reading)) = &mut self.current else {
                if self.open_next() {
                    continue;
                }
                if self.rows > 0 {
                    break;
                }
                return self.end();
            };
            let mut push = Push { batch: &mut self.batch, rows: &mut self.rows };
            if reading.rows(name, &mut push)? {
                continue;
            }
            if let Some((name, reading)) = self.current.take()
                && let Some(problem) = reading.end(&name)
            {
                let mut problems = self.problems.lock().unwrap_or_else(PoisonError::into_inner);
                problems.push((name, problem));
            }
        }
        self.rows = 0;
        let full = std::mem::replace(&mut self.batch, Batch::new(self.layout.clone()));
        full.finish().map(Some).map_err(external)
    }

    /// Opens the next capture; false if there is none.
    fn open_next(&mut self) -> bool {
        let Some((name, capture)) = self.captures.next() else { return false };
        let options = &self.options;
        let reading = match self.kind {
            RowSource::Connection(kind) => {
                let connections = if kind.needs_findings() {
                    capture.connections(options)
                } else {
                    capture.connections_without_findings(options)
                };
                Reading::Connections(kind, Box::new(connections))
            }
            RowSource::Packets => {
                Reading::Packets(Box::new(capture.labelled_packets(options)), Vec::new())
            }
            RowSource::Workloads => {
                let mut hours = WorkloadHours::new(Arc::clone(&options.config.prefixes));
                let (part, errors) = capture.history();
                hours.add(&part);
                Reading::Workloads(hours, errors)
            }
        };
        self.current = Some((name, reading));
        true
    }

    /// The end: nothing, or the error that says what is missing.
    fn end(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        self.is_over = true;
        let problems = self.problems.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.raises || problems.is_empty() {
            return Ok(None);
        }
        let words: Vec<_> = problems.iter().map(|(_, problem)| problem.as_str()).collect();
        Err(ArrowError::ExternalError(words.join("\n").into()))
    }
}

/// A batch with the number of its rows.
struct Push<'a> {
    batch: &'a mut Batch,
    rows: &'a mut usize,
}

impl Push<'_> {
    fn row<'r>(&mut self, cells: impl IntoIterator<Item = Cell<'r>>) -> Result<(), ArrowError> {
        *self.rows += 1;
        self.batch.push(cells).map_err(external)
    }
}

impl Reading {
    /// Reads on and adds some rows; false at the end of the capture.
    fn rows(&mut self, name: &str, push: &mut Push<'_>) -> Result<bool, ArrowError> {
        match self {
            Reading::Connections(kind, connections) => {
                let Some(round) = connections.next_round() else { return Ok(false) };
                for diagnosed in &round {
                    kind.rows(name, diagnosed, |cells| push.row(cells))?;
                }
            }
            Reading::Packets(packets, errors) => {
                while *push.rows < ROWS {
                    match packets.next() {
                        Some(Ok(packet)) => {
                            push.row(Layout::cells(PACKETS, &packet.row(name)))?;
                        }
                        Some(Err(error)) => errors.push(error),
                        None => return Ok(false),
                    }
                }
            }
            Reading::Workloads(hours, _) => {
                for (hour, sum) in &hours.take() {
                    push.row(Layout::cells(WORKLOADS, &WorkloadRow { hour, sum }))?;
                }
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What is missing in the rows, if anything is.
    fn end(self, name: &str) -> Option<String> {
        let (counts, errors) = match self {
            Reading::Connections(_, connections) => connections.finish(),
            Reading::Packets(_, errors) | Reading::Workloads(_, errors) => {
                (Counts::default(), errors)
            }
        };
        what_is_missing(name, &counts, &errors)
    }
}

fn external(error: BatchError) -> ArrowError {
    ArrowError::ExternalError(Box::new(error))
}

/// Ends the analysis where Python has an exception of a signal: Ctrl-C.
fn check_signals() -> Result<(), ArrowError> {
    Python::attach(|py| {
        py.check_signals().map_err(|error| {
            interrupt_again(py, &error);
            ArrowError::ExternalError("analyze: interrupted".into())
        })
    })
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        // Whoever reads may hold Python's lock; other threads, and a file object that threads of
        // the analysis read, need it meanwhile.
        let next = Python::attach(|py| py.detach(|| self.advance())).transpose();
        self.is_over |= matches!(next, None | Some(Err(_)));
        next
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
