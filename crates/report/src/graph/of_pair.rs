//! The graphs of a connection that two captures saw, over one clock.

use super::line::{Graph, Line, Quantity, Shape, Span};
use fullpipe_flow::Language;
use fullpipe_flow::connection::pair::{CourseSpan, PairedConnection, WayBetween};
use fullpipe_model::units::Duration;

/// The graphs of what passed both places: sequence numbers of each direction with data, with what
/// was lost between the places, and how long packets of either direction waited there. There are
/// none without courses ([`WayBetween::course`]).
pub fn pair_graphs(one: &PairedConnection, language: Language) -> Vec<Graph> {
    let ways = [&one.to_client, &one.to_server];
    let courses = ways.into_iter().flatten().filter_map(|way| way.course.as_ref());
    let ends = courses.map(|course| course.ends).max().unwrap_or_default();
    let seconds = ends.as_secs_f64().max(1e-6);
    let graph = |name, title, quantity, lines| Graph { name, title, quantity, lines, seconds };
    let words = Words::of(language);
    let sequence = |way: &Option<WayBetween>, name, title| {
        let course = way.as_ref()?.course.as_ref()?;
        let lines = vec![
            line(words.near, Shape::Dots, &course.sent, 1.0),
            line(words.far, Shape::Dots, &course.arrived, 1.0),
            line(words.lost, Shape::Marks, &course.lost, 1.0),
        ];
        Some(graph(name, title, Quantity::Bytes, lines))
    };
    let waited = |way: &Option<WayBetween>, name| {
        let course = way.as_ref()?.course.as_ref()?;
        let micros = 1.0 / Duration::from_micros(1).as_nanos() as f64;
        Some(line(name, Shape::Dots, &course.waited, micros))
    };
    let waits = [waited(&one.to_server, words.to_server), waited(&one.to_client, words.to_client)];
    let waits = waits.into_iter().flatten().collect();
    let all = [
        sequence(&one.to_client, "to-client", words.sequence_to_client),
        sequence(&one.to_server, "to-server", words.sequence_to_server),
        Some(graph("waited", words.waited, Quantity::Micros, waits)),
    ];
    // A request and its handshake are a few bytes, and no picture.
    let is_telling = |graph: &Graph| {
        let most = graph.lines.iter().map(|line| line.spans.len()).max();
        most.is_some_and(|most| most > LEAST_SPANS)
    };
    all.into_iter().flatten().filter(is_telling).collect()
}

/// A graph of fewer places shows nothing that its table does not.
const LEAST_SPANS: usize = 4;

fn line(name: &'static str, shape: Shape, spans: &[CourseSpan], scale: f64) -> Line {
    let span = |one: &CourseSpan| {
        let (min, max) = (one.least as f64 * scale, one.most as f64 * scale);
        Span { at: one.at.as_secs_f64(), min, max, last: max }
    };
    Line { name, shape, spans: spans.iter().map(span).collect() }
}

/// What stands in the pictures.
struct Words {
    near: &'static str,
    far: &'static str,
    lost: &'static str,
    to_server: &'static str,
    to_client: &'static str,
    sequence_to_client: &'static str,
    sequence_to_server: &'static str,
    waited: &'static str,
}

impl Words {
    fn of(language: Language) -> Words {
        match language {
            Language::English => Words {
                near: "passed the place nearer to its sender",
                far: "passed the other place",
                lost: "lost between",
                to_server: "to the server",
                to_client: "to the client",
                sequence_to_client: "Sequence numbers, to the client",
                sequence_to_server: "Sequence numbers, to the server",
                waited: "Waited between the places",
            },
            Language::Chinese => Words {
                near: "经过靠近发送方的一处",
                far: "经过另一处",
                lost: "两处之间丢失",
                to_server: "发往服务器",
                to_client: "发往客户端",
                sequence_to_client: "序列号，发往客户端",
                sequence_to_server: "序列号，发往服务器",
                waited: "在两处之间的等待",
            },
        }
    }
}
