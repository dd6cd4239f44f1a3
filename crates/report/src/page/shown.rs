//! What a report shows.

use super::curve::Curve;
use super::interval::neighbours;
use super::span::{ShownSpan, shown_spans};
use fullpipe_flow::connection::Direction;
use fullpipe_flow::diagnosis::{DiagnosedConnection, OfDirection};
use fullpipe_flow::limit::Interval;
use fullpipe_flow::schema::RunRow;
use fullpipe_flow::schema::Version;
use fullpipe_flow::trace::{SocketSeries, Trace};
use fullpipe_flow::{Counts, GrantedLines};
use fullpipe_model::change::Change;
use fullpipe_model::units::{Bytes, Duration};
use serde::Serialize;

/// What a report shows. It serialises as `PageData` of `web/src/data.ts`.
#[derive(Debug, Serialize)]
pub struct Page {
    /// The version of the names in it.
    pub schema: Version,
    /// The program that wrote it, with its version.
    pub program: String,
    /// What was read, as the user named it.
    pub title: String,
    /// What kind of input it was.
    pub kind: InputKind,
    /// The inputs.
    pub sources: Vec<Source>,
    /// Connections in all inputs.
    pub connections_total: u64,
    /// Those that are shown, in the order in which they are shown.
    pub connections: Vec<ShownConnection>,
    /// The runs of a lab.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lab: Option<Lab>,
}

/// What was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum InputKind {
    /// Captures.
    Capture,
    /// Results of the lab.
    Lab,
    /// Recorded samples of sockets.
    Samples,
}

/// An input.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Source {
    /// Its name, as given.
    pub name: String,
    /// Its packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets: Option<u64>,
    /// Why it was not read to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Packets that were dropped while it was captured, by its own counters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropped: Option<u64>,
    /// Packets whose times go back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backwards: Option<u64>,
    /// Those of them that could not be put into order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsorted: Option<u64>,
}

impl Source {
    /// A capture of which this was counted.
    pub fn counted(name: String, counts: &Counts, problem: Option<String>) -> Self {
        let Counts { packets, samples, dropped, backwards, unsorted, .. } = *counts;
        Source {
            name,
            packets: (samples == 0).then_some(packets),
            problem,
            dropped: dropped.filter(|dropped| *dropped > 0),
            backwards: (backwards > 0).then_some(backwards),
            unsorted: (unsorted > 0).then_some(unsorted),
        }
    }
}

/// Which part of "before and after" a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ComparedPart {
    /// Before the change.
    Before,
    /// After the change.
    After,
}

/// A connection with its graphs.
#[derive(Debug)]
pub struct ShownConnection {
    /// Number of its input among [`Page::sources`].
    pub source: usize,
    /// Number of its run among the lab's.
    pub run: Option<usize>,
    /// Which part of "before and after" it is.
    pub part: Option<ComparedPart>,
    /// The facts, the verdict and the points of the graphs.
    pub connection: DiagnosedConnection,
    /// Samples of the sockets at its ends.
    pub sockets: Vec<SocketSeries>,
    /// The link's queue towards the receiver.
    pub link_queue: Option<LinkQueue>,
}

/// How many bytes waited in the link's queue, over time. Numbers are differences from the one
/// before, as everywhere on the page.
#[derive(Debug, Clone, Default, Serialize)]
pub struct LinkQueue {
    /// Microseconds from the connection's first packet.
    time_us: Vec<i64>,
    /// Bytes from then on.
    bytes: Vec<i64>,
}

/// Most points of a queue.
const POINTS: usize = 4_000;

impl LinkQueue {
    /// The queue as each packet met it: when, from the connection's first packet, and the bytes
    /// that waited. Of many packets, the one that met most in each stretch of time stays.
    pub fn new(met: impl Iterator<Item = (Duration, Bytes)>) -> Self {
        let mut met: Vec<(u64, u64)> =
            met.map(|(at, bytes)| (at.as_micros(), bytes.get())).collect();
        met.sort_unstable();
        let last = met.last().map_or(0, |(at, _)| *at);
        let width = (last / POINTS as u64 + 1).max(1);
        met.dedup_by(|later, kept| {
            let same = met_together(later.0, kept.0, width);
            if same {
                kept.1 = kept.1.max(later.1);
            }
            same
        });
        let times = met.iter().map(|one| one.0);
        let bytes = met.iter().map(|one| one.1);
        LinkQueue { time_us: differences(times), bytes: differences(bytes) }
    }
}

/// What each number has more than the one before it; the first is as it is.
fn differences(numbers: impl Iterator<Item = u64>) -> Vec<i64> {
    let mut before = 0;
    let numbers = numbers.map(|number| i64::try_from(number).unwrap_or(i64::MAX));
    numbers.map(|number| number - std::mem::replace(&mut before, number)).collect()
}

/// Whether two times are in the same stretch.
fn met_together(a: u64, b: u64, width: u64) -> bool {
    a / width == b / width
}

/// The runs of a lab.
#[derive(Debug, Serialize)]
pub struct Lab {
    /// Their rows.
    pub runs: Vec<RunRow>,
    /// Goodput over what was varied.
    pub curves: Vec<Curve>,
    /// What was set between the runs before and after, where that is known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plan: Vec<Change>,
}

impl ShownConnection {
    /// A connection of the input with this number.
    pub fn new(source: usize, connection: DiagnosedConnection) -> Self {
        let sockets = connection.sockets().to_vec();
        ShownConnection { source, run: None, part: None, connection, sockets, link_queue: None }
    }

    /// What limited each direction's data, and when. It is drawn with the graphs, or not at all.
    pub(super) fn intervals(&self) -> Vec<OfDirection<Interval>> {
        if self.connection.trace().is_none() {
            return Vec::new();
        }
        [Direction::ClientToServer, Direction::ServerToClient]
            .into_iter()
            .flat_map(|direction| intervals(&self.connection, direction))
            .collect()
    }

    /// What HTTP/2's windows left to be sent, where its frames were read. It is drawn with the
    /// graphs, or not at all.
    pub(super) fn granted(&self) -> Vec<OfDirection<&GrantedLines>> {
        if self.connection.trace().is_none() {
            return Vec::new();
        }
        [Direction::ClientToServer, Direction::ServerToClient]
            .into_iter()
            .filter_map(|direction| {
                let frames = self.connection.connection.facts(direction).http2.as_deref()?;
                let what = frames.lines.as_deref().filter(|_| frames.data > Bytes::ZERO)?;
                Some(OfDirection { direction, what })
            })
            .collect()
    }

    /// What all its time went for, in order. It is drawn with the graphs, or not at all.
    fn spans(&self) -> Vec<ShownSpan> {
        if self.connection.trace().is_none() {
            return Vec::new();
        }
        shown_spans(&self.connection.spans(), self.connection.connection.start)
    }

    /// The same without the points of its graphs.
    #[must_use]
    pub fn without_graphs(self) -> Self {
        let connection = self.connection.without_trace();
        ShownConnection { connection, sockets: Vec::new(), link_queue: None, ..self }
    }
}

impl Serialize for ShownConnection {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        Written {
            source: self.source,
            run: self.run,
            part: self.part,
            facts: Facts { connection: &self.connection, intervals: self.intervals() },
            trace: self.connection.trace(),
            spans: self.spans(),
            granted: self.granted(),
            sockets: &self.sockets,
            link_queue: self.link_queue.as_ref(),
        }
        .serialize(s)
    }
}

/// The serialised form of a connection.
#[derive(Serialize)]
struct Written<'a> {
    source: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<ComparedPart>,
    facts: Facts<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<&'a Trace>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    spans: Vec<ShownSpan>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    granted: Vec<OfDirection<&'a GrantedLines>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    sockets: &'a [SocketSeries],
    #[serde(skip_serializing_if = "Option::is_none")]
    link_queue: Option<&'a LinkQueue>,
}

/// The JSON of `fullpipe analyze`, with intervals that a page has room for.
#[derive(Serialize)]
struct Facts<'a> {
    #[serde(flatten)]
    connection: &'a DiagnosedConnection,
    intervals: Vec<OfDirection<Interval>>,
}

fn intervals(
    connection: &DiagnosedConnection,
    direction: Direction,
) -> impl Iterator<Item = OfDirection<Interval>> {
    let verdict = connection.diagnosis(direction).map(|diagnosis| &diagnosis.verdict);
    let merged = verdict.map(|verdict| neighbours(&verdict.intervals)).unwrap_or_default();
    merged.into_iter().map(move |what| OfDirection { direction, what })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_of_many_packets_keeps_its_peak_and_few_points() {
        let met = (0..100_000_u64).map(|packet| {
            let bytes = if packet == 54_321 { 9_000_000 } else { packet % 1_000 };
            (Duration::from_micros(packet * 10), Bytes::new(bytes))
        });
        let queue = LinkQueue::new(met);
        assert!((1_000..=POINTS + 1).contains(&queue.bytes.len()), "{}", queue.bytes.len());
        let mut bytes = 0;
        let most = queue.bytes.iter().map(|difference| {
            bytes += difference;
            bytes
        });
        assert_eq!(most.max(), Some(9_000_000));
        assert_eq!(queue.time_us.iter().sum::<i64>(), 999_750);
    }
}
