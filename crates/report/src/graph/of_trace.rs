//! The graphs of a connection, from the points of its trace.

use super::line::{Graph, Line, Quantity, Shape, Span};
use fullpipe_flow::connection::Direction;
use fullpipe_flow::diagnosis::DiagnosedConnection;
use fullpipe_flow::trace::{DirectionTrace, Points};
use fullpipe_model::units::Duration;

/// Labels that say that data was sent again.
const SENT_AGAIN: [&str; 4] =
    ["retransmission", "fast_retransmission", "rto", "spurious_retransmission"];

/// The graphs of one direction's data; none where it has no trace.
pub fn graphs(connection: &DiagnosedConnection, direction: Direction) -> Vec<Graph> {
    let Some(trace) = connection.trace().and_then(|trace| trace.direction(direction)) else {
        return Vec::new();
    };
    let round_trip = connection.connection.handshake_rtt;
    let seconds = connection.connection.duration.as_secs_f64().max(1e-6);
    let graph = |name, title, quantity, lines| Graph { name, title, quantity, lines, seconds };
    let all = [
        graph("sequence", "Sequence numbers", Quantity::Bytes, sequence(trace)),
        graph("throughput", "Throughput", Quantity::Rate, throughput(trace, round_trip)),
        graph(
            "window",
            "Receive window and bytes in flight",
            Quantity::Bytes,
            vec![
                line("receive window", Shape::Stair, trace.window()),
                line("bytes in flight", Shape::Stair, trace.in_flight()),
            ],
        ),
        graph(
            "rtt",
            "Round trips",
            Quantity::Micros,
            vec![line("round trip", Shape::Dots, trace.rtt())],
        ),
    ];
    all.into_iter().filter(|graph| !graph.is_empty()).collect()
}

fn sequence(trace: &DirectionTrace) -> Vec<Line> {
    let sent_again = SENT_AGAIN.iter().filter_map(|label| trace.marks(label));
    let mut marks: Vec<Span> = sent_again
        .flat_map(|marks| marks.places())
        .map(|place| Span {
            at: place.at.as_secs_f64(),
            min: place.sequence as f64,
            max: place.end as f64,
            last: place.end as f64,
        })
        .collect();
    marks.sort_by(|a, b| a.at.total_cmp(&b.at));
    marks.dedup_by(|a, b| a.at == b.at && a.min == b.min);
    vec![
        line("end of the receive window", Shape::Stair, trace.window_edge()),
        line("acknowledged", Shape::Stair, trace.acks()),
        line("sent", Shape::Dots, trace.segments()),
        Line { name: "sent again", shape: Shape::Marks, spans: marks },
    ]
}

/// Payload by time, in bins of a round trip or more: a sender sends a window at once and waits for
/// its acknowledgement, so shorter bins show the burst and not the rate.
fn throughput(trace: &DirectionTrace, round_trip: Option<Duration>) -> Vec<Line> {
    const BINS: usize = 150;
    let rate = trace.rate();
    let bins: Vec<_> = rate.iter().collect();
    let in_round_trip =
        round_trip.map_or(1.0, |rtt| rtt.as_secs_f64() / rate.width().as_secs_f64()).ceil();
    let group = bins.len().div_ceil(BINS).max((in_round_trip as usize).min(bins.len())).max(1);
    let width = rate.width().as_secs_f64() * group as f64;
    let sums = bins.chunks(group).map(|chunk| {
        chunk.iter().fold((0.0, 0.0), |sum, (payload, wire)| {
            (sum.0 + payload.as_f64(), sum.1 + wire.as_f64())
        })
    });
    let wire = rates(sums.clone().map(|sum| sum.1), width);
    let payload = rates(sums.map(|sum| sum.0), width);
    vec![
        Line { name: "on the wire", shape: Shape::Stair, spans: wire },
        Line { name: "payload", shape: Shape::Stair, spans: payload },
    ]
}

/// The bytes of bins of `width` seconds as bits per second.
fn rates(bytes: impl Iterator<Item = f64>, width: f64) -> Vec<Span> {
    let spans = bytes.enumerate().map(|(number, bytes)| {
        let value = bytes * 8.0 / width;
        Span { at: number as f64 * width, min: value, max: value, last: value }
    });
    spans.collect()
}

fn line(name: &'static str, shape: Shape, points: &Points) -> Line {
    let spans = points.iter().map(|point| Span {
        at: point.at().as_secs_f64(),
        min: point.min as f64,
        max: point.max as f64,
        last: point.last as f64,
    });
    Line { name, shape, spans: spans.collect() }
}
