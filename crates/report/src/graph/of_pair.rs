//! The graphs of a connection that two captures saw, over one clock.

use super::line::{Graph, Line, Quantity, Shape, Span};
use fullpipe_flow::Language;
use fullpipe_flow::connection::pair::{CourseSpan, PairedConnection, WayCourse};
use fullpipe_model::units::Duration;

/// The graphs of what passed both places: sequence numbers of each direction with data, with what
/// was lost between the places, and how long packets of either direction waited there. There are
/// none without courses ([`WayBetween::course`](fullpipe_flow::connection::pair::WayBetween)).
pub fn pair_graphs(one: &PairedConnection, language: Language) -> Vec<Graph> {
    let [to_client, to_server] =
        [&one.to_client, &one.to_server].map(|way| way.as_ref()?.course.as_ref());
    let courses = [to_client, to_server].into_iter().flatten();
    let ends = courses.map(|course| course.ends).max().unwrap_or_default();
    let words = PairWords::of(language);
    let micros = 1.0 / Duration::from_micros(1).as_nanos() as f64;
    let waits = [(to_server, words.to_server), (to_client, words.to_client)];
    let waits = waits
        .into_iter()
        .filter_map(|(course, name)| Some(line(name, Shape::Dots, &course?.waited, micros)));
    let mut graphs = vec![
        sequence(to_client, "to-client", words.sequence_to_client, &words),
        sequence(to_server, "to-server", words.sequence_to_server, &words),
        Graph {
            name: "waited",
            title: words.waited,
            quantity: Quantity::Micros,
            lines: waits.collect(),
            seconds: 0.0,
        },
    ];
    // A request and its handshake are a few bytes, and no picture.
    graphs.retain(|graph| graph.lines.iter().any(|line| line.spans.len() > LEAST_SPANS));
    for graph in &mut graphs {
        graph.seconds = ends.as_secs_f64().max(1e-6);
    }
    graphs
}

/// A graph of fewer places shows nothing that its table does not.
const LEAST_SPANS: usize = 4;

fn sequence(
    course: Option<&WayCourse>,
    name: &'static str,
    title: &'static str,
    words: &PairWords,
) -> Graph {
    let lines = course.map_or_else(Vec::new, |course| {
        vec![
            line(words.near, Shape::Dots, &course.sent, 1.0),
            line(words.far, Shape::Dots, &course.arrived, 1.0),
            line(words.lost, Shape::Marks, &course.lost, 1.0),
        ]
    });
    Graph { name, title, quantity: Quantity::Bytes, lines, seconds: 0.0 }
}

fn line(name: &'static str, shape: Shape, spans: &[CourseSpan], scale: f64) -> Line {
    let spans = spans.iter().map(|one| {
        let (min, max) = (one.least as f64 * scale, one.most as f64 * scale);
        Span { at: one.at.as_secs_f64(), min, max, last: max }
    });
    Line { name, shape, spans: spans.collect() }
}

/// What stands in the pictures.
struct PairWords {
    near: &'static str,
    far: &'static str,
    lost: &'static str,
    to_server: &'static str,
    to_client: &'static str,
    sequence_to_client: &'static str,
    sequence_to_server: &'static str,
    waited: &'static str,
}

impl PairWords {
    fn of(language: Language) -> PairWords {
        match language {
            Language::English => PairWords {
                near: "passed the place nearer to its sender",
                far: "passed the other place",
                lost: "lost between",
                to_server: "to the server",
                to_client: "to the client",
                sequence_to_client: "Sequence numbers, to the client",
                sequence_to_server: "Sequence numbers, to the server",
                waited: "Waited between the places",
            },
            Language::Chinese => PairWords {
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
