//! The rows that a capture gives: those of its connections, of each kind, and its packets.

use crate::layout::Layout;
use fullpipe_flow::diagnosis::DiagnosedConnection;
use fullpipe_flow::schema::{
    CONNECTIONS, Cell, FINDINGS, INTERVALS, PACKETS, SPANS, WHOLES, WORKLOADS, WholeRow,
    connection_rows,
};

/// What each row of a connection is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RowKind {
    /// One direction.
    #[default]
    Connections,
    /// A span of time of one direction, and what limited it.
    Intervals,
    /// What a limit means, and what would change it.
    Findings,
    /// A stretch of time that one owner had for one cause.
    Spans,
}

impl RowKind {
    /// Every kind.
    pub const ALL: [RowKind; 4] =
        [RowKind::Connections, RowKind::Intervals, RowKind::Findings, RowKind::Spans];

    /// Its name, as options have it.
    pub const fn name(self) -> &'static str {
        match self {
            RowKind::Connections => "connections",
            RowKind::Intervals => "intervals",
            RowKind::Findings => "findings",
            RowKind::Spans => "spans",
        }
    }

    /// Its columns.
    pub fn layout(self) -> Layout {
        match self {
            RowKind::Connections => Layout::of(CONNECTIONS),
            RowKind::Intervals => Layout::of(WHOLES).and(INTERVALS),
            RowKind::Findings => Layout::of(WHOLES).and(FINDINGS),
            RowKind::Spans => Layout::of(WHOLES).and(SPANS),
        }
    }

    /// Whether the rows need findings, which take much of an analysis' time.
    pub const fn needs_findings(self) -> bool {
        matches!(self, RowKind::Findings)
    }

    /// Whether the rows need the order of time ([`fullpipe_flow::Config::spans`]).
    pub const fn needs_spans(self) -> bool {
        matches!(self, RowKind::Spans)
    }

    /// Gives the cells of each row of a connection to `row`.
    ///
    /// # Errors
    /// The first error of `row`.
    pub fn rows<E>(
        self,
        file: &str,
        diagnosed: &DiagnosedConnection,
        mut row: impl for<'r> FnMut(&mut dyn Iterator<Item = Cell<'r>>) -> Result<(), E>,
    ) -> Result<(), E> {
        let whole = WholeRow { file, connection: &diagnosed.connection };
        match self {
            RowKind::Connections => {
                for one in connection_rows(file, diagnosed) {
                    row(&mut Layout::cells(CONNECTIONS, &one))?;
                }
            }
            RowKind::Intervals => {
                for interval in diagnosed.intervals() {
                    let cells = Layout::cells(INTERVALS, &interval);
                    row(&mut Layout::cells(WHOLES, &whole).chain(cells))?;
                }
            }
            RowKind::Findings => {
                for finding in diagnosed.findings().iter() {
                    let cells = Layout::cells(FINDINGS, finding);
                    row(&mut Layout::cells(WHOLES, &whole).chain(cells))?;
                }
            }
            RowKind::Spans => {
                for span in diagnosed.spans() {
                    let cells = Layout::cells(SPANS, &span);
                    row(&mut Layout::cells(WHOLES, &whole).chain(cells))?;
                }
            }
        }
        Ok(())
    }
}

/// What the rows of a capture are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowSource {
    /// A connection, or a part of it.
    Connection(RowKind),
    /// A packet of a connection.
    Packets,
    /// What took the time of a host's connections in an hour, by a recording of its sockets.
    Workloads,
}

impl RowSource {
    /// Every source.
    pub fn all() -> impl Iterator<Item = RowSource> {
        let others = [RowSource::Packets, RowSource::Workloads];
        RowKind::ALL.into_iter().map(RowSource::Connection).chain(others)
    }

    /// Its name, as options and manifests have it.
    pub const fn name(self) -> &'static str {
        match self {
            RowSource::Connection(kind) => kind.name(),
            RowSource::Packets => "packets",
            RowSource::Workloads => "workloads",
        }
    }

    /// Its columns.
    pub fn layout(self) -> Layout {
        match self {
            RowSource::Connection(kind) => kind.layout(),
            RowSource::Packets => Layout::of(PACKETS),
            RowSource::Workloads => Layout::of(WORKLOADS),
        }
    }

    /// Whether the rows need findings, which take much of an analysis' time.
    pub const fn needs_findings(self) -> bool {
        matches!(self, RowSource::Connection(kind) if kind.needs_findings())
    }

    /// Whether the rows need the order of time ([`fullpipe_flow::Config::spans`]).
    pub const fn needs_spans(self) -> bool {
        matches!(self, RowSource::Connection(kind) if kind.needs_spans())
    }
}
