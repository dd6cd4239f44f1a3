//! The points of a connection's graphs, from packets made by hand.

mod path;
#[path = "trace/mod.rs"]
mod text;

use fullpipe_flow::capture::LinkType;
use fullpipe_flow::connection::{Direction, Label};
use fullpipe_flow::diagnosis::DiagnosedConnection;
use fullpipe_flow::trace::{DirectionTrace, Marks, Points, TraceBounds};
use fullpipe_flow::{Analyzer, Config};
use fullpipe_model::units::{Duration, Instant};
use proptest::prelude::*;
use serde_json::{Value, json};

fn analysed(trace: &str, bounds: TraceBounds) -> DiagnosedConnection {
    let mut analyzer = Analyzer::new(Config { trace: Some(bounds), ..Config::default() });
    for line in text::parse(trace) {
        let packet = line.packet();
        analyzer.push(line.at, LinkType::RAW, &packet, packet.len());
    }
    analyzer.finish().connections.remove(0)
}

/// A direction as JSON, where each column of differences is the sums again.
fn direction(connection: &DiagnosedConnection, name: &str) -> Value {
    let trace = connection.trace().expect("it was recorded");
    serde_json::to_value(trace).unwrap()[name].take()
}

fn column(points: &Value, name: &str) -> Vec<i64> {
    let mut sum = 0;
    let differences = points[name].as_array().unwrap_or_else(|| panic!("no {name}: {points}"));
    differences
        .iter()
        .map(|difference| {
            sum += difference.as_i64().unwrap();
            sum
        })
        .collect()
}

const TRANSFER: &str = "
    0.000 > S  0:0            win 65535 <mss 1460,wscale 7,sackOK>
    0.050 < S. 0:0     ack 1  win 65535 <mss 1460,wscale 7,sackOK>
    0.100 > .  1:1     ack 1  win 512
    0.100 > P. 1:101   ack 1  win 512
    0.150 < .  1:1001  ack 101 win 1024
    0.151 < .  1001:2001 ack 101 win 1024
    0.152 < .  2001:3001 ack 101 win 1024
    0.200 > .  101:101 ack 1001 win 500
    0.201 > .  101:101 ack 1001 win 500 <sack 2001-3001>
    0.250 < .  1001:2001 ack 101 win 1024
    0.300 > .  101:101 ack 3001 win 512
";

#[test]
fn the_lines_of_a_transfer_are_its_packets() {
    let connection = analysed(TRANSFER, TraceBounds::default());
    let down = direction(&connection, "server_to_client");
    let segments = &down["segments"];
    assert_eq!(segments["bucket_us"], 0);
    assert_eq!(column(segments, "time_us"), [150_000, 151_000, 152_000, 250_000]);
    assert_eq!(column(segments, "value"), [1000, 2000, 3000, 2000]);
    assert_eq!(segments["length"], json!([1000, 1000, 1000, 1000]));
    assert_eq!(column(segments, "packet"), [5, 6, 7, 10]);
    assert_eq!(column(&down["acks"], "time_us"), [100_000, 200_000, 300_000]);
    assert_eq!(column(&down["acks"], "value"), [0, 1000, 3000]);
    assert_eq!(column(&down["window"], "value"), [65_536, 64_000, 65_536]);
    assert_eq!(column(&down["window_edge"], "value"), [65_536, 65_000, 68_536]);
    // SACK reports one of the two segments, which is then no longer in flight.
    assert_eq!(column(&down["in_flight"], "value"), [0, 1000, 2000, 3000, 2000, 1000, 0]);
    // Karn: the ACK of the segment that was sent twice times nothing.
    assert_eq!(column(&down["rtt"], "value"), [50_000, 50_000]);
    assert_eq!(column(&down["rtt"], "sequence"), [0, 1000]);
    let up = direction(&connection, "client_to_server");
    assert_eq!(column(&up["segments"], "value"), [100]);
    assert_eq!(
        up["marks"]["push"],
        json!({
            "count": 1, "time_us": [100_000], "sequence": [0], "length": [100], "packet": [4]
        })
    );
}

/// A download over a path that loses, reorders and duplicates.
fn download(path: &path::Path, bounds: Option<TraceBounds>) -> DiagnosedConnection {
    let mut analyzer = Analyzer::new(Config { trace: bounds, ..Config::default() });
    for seen in path::run(path).at_sender {
        let headers = path::headers(&seen, ([10, 1, 0, 1], 40_000), ([192, 0, 2, 1], 443));
        let wire = headers.len() + seen.length as usize;
        analyzer.push(Instant::from_nanos(seen.at), LinkType::RAW, &headers, wire);
    }
    analyzer.finish().connections.remove(0)
}

fn lossy() -> path::Path {
    path::Path { loss: 0.01, ack_loss: 0.002, reorder: 0.01, duplicate: 0.001, ..<_>::default() }
}

/// Least and greatest value, number of events, and the last value.
fn facts(points: &Points) -> (i64, i64, u64, i64) {
    let all: Vec<_> = points.iter().collect();
    (
        all.iter().map(|point| point.min).min().unwrap(),
        all.iter().map(|point| point.max).max().unwrap(),
        all.iter().map(|point| point.count).sum(),
        all.last().unwrap().last,
    )
}

/// Whatever is kept: the extremes are those of all events, and no event or byte is lost.
#[test]
fn fewer_points_have_the_same_extremes() {
    let whole = download(&lossy(), Some(TraceBounds::default()));
    for points in [10, 100, 1000] {
        let bounds = TraceBounds { points, rate_bins: 50, marks: 20, ..TraceBounds::default() };
        let mut thinned = whole.clone();
        thinned.trace_mut().unwrap().thin(points);
        for few in [download(&lossy(), Some(bounds)), thinned] {
            let down = |connection: &DiagnosedConnection| {
                let trace = connection.trace().unwrap();
                trace.direction(Direction::ServerToClient).unwrap().clone()
            };
            let (all, few) = (down(&whole), down(&few));
            let lines = |of: &DirectionTrace| {
                [of.segments(), of.acks(), of.window_edge(), of.window(), of.in_flight(), of.rtt()]
                    .map(Points::clone)
            };
            for (all, few) in lines(&all).iter().zip(&lines(&few)) {
                assert_eq!(facts(few), facts(all));
                assert!(few.iter().count() <= points);
                assert!(few.iter().zip(few.iter().skip(1)).all(|(a, b)| a.at() <= b.at()));
                let stretch = few.bucket().unwrap_or(Duration::ZERO);
                assert_eq!(stretch > Duration::ZERO, all.iter().count() > points);
            }
            let sum = |of: &DirectionTrace| -> (u64, u64) {
                let bins = of.rate().iter().map(|(payload, wire)| (payload.get(), wire.get()));
                bins.fold((0, 0), |sum, bin| (sum.0 + bin.0, sum.1 + bin.1))
            };
            let facts = &whole.connection.server_to_client;
            assert_eq!(sum(&few), (facts.payload.get(), facts.wire.get()));
            assert!(few.rate().width() >= all.rate().width());
            let marks = |label| few.marks(label).map_or(0, Marks::count);
            for label in Label::ALL.into_iter().filter(|label| is_of_data(*label)) {
                assert_eq!(marks(label.name()), facts.labels.of(label), "{}", label.name());
            }
        }
    }
}

fn is_of_data(label: Label) -> bool {
    use Label::*;
    matches!(label, Retransmission | FastRetransmission | Rto | OutOfOrder | DuplicatePacket)
}

#[test]
fn without_the_option_there_is_no_trace() {
    assert!(download(&lossy(), None).trace().is_none());
    let traced = download(&lossy(), Some(TraceBounds::default()));
    assert!(traced.without_trace().trace().is_none());
}

/// A packet with any numbers at any time, from either end.
fn any_packet() -> impl Strategy<Value = path::Seen> {
    let numbers = (any::<u8>(), any::<u32>(), any::<u32>(), 0_u32..3000);
    (0_u64..1 << 50, any::<bool>(), numbers, any::<u16>(), any::<[u32; 4]>()).prop_map(
        |(at, from_client, (flags, seq, ack, length), window, words)| {
            let mut options = vec![1, 1, 5, 18];
            options.extend(words.map(u32::to_be_bytes).concat());
            // The numbers of some are near each other, as those of a connection are.
            let near = |number: u32| if words[0] % 4 > 0 { number % 20_000 } else { number };
            let (seq, ack) = (near(seq), near(ack));
            let seen = path::Seen::plain(at, from_client, (flags, seq, ack, length));
            path::Seen { window, options, ..seen }
        },
    )
}

proptest! {
    /// Whatever passes, nothing panics, no byte is lost and columns are as long as each other.
    #[test]
    fn any_packets_have_a_trace(
        packets in prop::collection::vec(any_packet(), 1..200),
        points in 0_usize..60,
        is_sorted: bool,
    ) {
        let mut packets = packets;
        if is_sorted {
            packets.sort_by_key(|seen| seen.at);
        }
        let bounds = TraceBounds { points, rate_bins: points, marks: points, ..<_>::default() };
        let mut analyzer = Analyzer::new(Config { trace: Some(bounds), ..Config::default() });
        for seen in &packets {
            let mut headers = path::headers(seen, ([10, 1, 0, 1], 40_000), ([192, 0, 2, 1], 443));
            if seen.window % 8 == 0 {
                // A header that says that it is shorter than a header can be.
                headers[32] = 0x30;
            }
            let wire = headers.len() + seen.length as usize;
            analyzer.push(Instant::from_nanos(seen.at), LinkType::RAW, &headers, wire);
        }
        for connection in analyzer.finish().connections {
            let trace = connection.trace().unwrap();
            for direction in [Direction::ClientToServer, Direction::ServerToClient] {
                let Some(one) = trace.direction(direction) else { continue };
                let sum = one.rate().iter().fold(0, |sum, (payload, _)| sum + payload.get());
                prop_assert_eq!(sum, connection.connection.facts(direction).payload.get());
                let json = serde_json::to_value(one).unwrap();
                for line in ["segments", "acks", "in_flight", "rtt"] {
                    let columns = json[line].as_object().unwrap();
                    let lengths = columns.values().filter_map(Value::as_array).map(Vec::len);
                    let lengths: Vec<usize> = lengths.collect();
                    prop_assert!(lengths.iter().all(|length| *length == lengths[0]));
                    prop_assert!(lengths[0] <= points.max(1), "{} {}", line, lengths[0]);
                }
                let stalls = json["stalls"].as_array().unwrap();
                prop_assert!(stalls.len() <= points.max(1));
            }
        }
    }
}
