//! What the points of graphs cost on the heap, by an allocator that counts. Alone in its process, so
//! that nothing else counts.
#![allow(clippy::print_stdout, reason = "the memory measured is shown")]

mod path;

use fullpipe_flow::capture::LinkType;
use fullpipe_flow::connection::Direction;
use fullpipe_flow::trace::TraceBounds;
use fullpipe_flow::{Analyzer, Config};
use fullpipe_model::units::Instant;
use path::{ACK, Seen};
use peak_alloc::PeakAlloc;

const MSS: u32 = 1448;
const SYN: u8 = 2;
const START: u64 = 1_700_000_000_000_000_000;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// Packet `number` of a download: two packets to open, then two segments and their ACK, again and
/// again, each ACK with another window and a SACK block.
fn packet(number: u32) -> Seen {
    if number < 2 {
        let (flags, seq, ack) = [(SYN, 0, 0), (SYN | ACK, 999, 1)][number as usize];
        let mut seen = Seen::plain(START, number == 0, (flags, seq, ack, 0));
        seen.options = vec![1, 3, 3, 7];
        return seen;
    }
    let (turn, place) = ((number - 2) / 3, (number - 2) % 3);
    let at = START + u64::from(number) * 50_000 + u64::from(number % 7) * 1000;
    let first = 1000 + turn * 2 * MSS;
    let mut seen = match place {
        2 => Seen::plain(at, true, (ACK, 1, first + 2 * MSS, 0)),
        _ => Seen::plain(at, false, (ACK, first + place * MSS, 1, MSS)),
    };
    if place == 2 {
        let left = first + 4 * MSS;
        seen.window = 1000 + (turn % 1000) as u16;
        seen.options =
            [&[1, 1, 5, 10][..], &left.to_be_bytes(), &(left + MSS).to_be_bytes()].concat();
    }
    seen
}

fn push(analyzer: &mut Analyzer, seen: &Seen, client: u32) {
    let [_, second, third, fourth] = client.to_be_bytes();
    let headers = path::headers(seen, ([10, second, third, fourth], 40_000), ([192, 0, 2, 1], 443));
    let wire = headers.len() + seen.length as usize;
    analyzer.push(Instant::from_nanos(seen.at), LinkType::RAW, &headers, wire);
}

/// Both in one test, because what one takes and gives back the other would not be seen to take.
#[test]
fn the_points_of_graphs_are_bounded() {
    let before = HEAP.current_usage();
    let grown = || HEAP.current_usage().saturating_sub(before);
    let bounds = TraceBounds::default();
    let mut analyzer = Analyzer::new(Config { trace: Some(bounds), ..Config::default() });
    (0..200_000).for_each(|number| push(&mut analyzer, &packet(number), 1));
    println!("a long connection: {} bytes", grown());
    assert!(grown() < 8 << 20, "{} bytes", grown());
    let connection = analyzer.finish().connections.remove(0);
    let trace = connection.trace().unwrap();
    let down = trace.direction(Direction::ServerToClient).unwrap();
    let few = [down.acks(), down.window_edge(), down.window(), down.rtt()];
    for points in few.into_iter().chain([down.segments(), down.in_flight()]) {
        let count = points.iter().count();
        assert!((bounds.points / 8..=bounds.points / 2).contains(&count), "{count} points");
    }
    assert!(down.rate().iter().count() <= bounds.rate_bins);
    let json = serde_json::to_value(trace).unwrap();
    let sack = &json["server_to_client"]["marks"]["sack"];
    assert_eq!(sack["count"], (200_000 - 2) / 3);
    assert!(sack["packet"].as_array().unwrap().len() <= bounds.marks);
    let written = serde_json::to_string(trace).unwrap().len();
    println!("its JSON: {written} bytes");
    assert!(written < 1_000_000, "{written} bytes of JSON");
    drop((connection, json));

    // 2,000 connections of 300 packets at a time. Half of them are traced at first; 200,000 points
    // are too few for the least detail of all these.
    let bounds = TraceBounds { total: 200_000, open: 1000, ..TraceBounds::default() };
    let mut analyzer = Analyzer::new(Config { trace: Some(bounds), ..Config::default() });
    let mut most = 0;
    for number in 0..300 {
        let seen = packet(number);
        (0..2000).for_each(|client| push(&mut analyzer, &seen, client));
        most = most.max(grown());
    }
    println!("2000 connections: {most} bytes");
    assert!(most < 40 << 20, "{most} bytes");
    let connections = analyzer.finish().connections;
    let traced = connections.iter().take_while(|connection| connection.trace().is_some()).count();
    assert!((300..1000).contains(&traced), "{traced} traced");
    assert!(connections[traced..].iter().all(|connection| connection.trace().is_none()));
}
