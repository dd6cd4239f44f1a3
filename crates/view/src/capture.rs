//! A capture becomes what a report shows.

use fullpipe_analyze::{Capture, Options};
use fullpipe_flow::Config;
use fullpipe_flow::schema::Version;
use fullpipe_flow::trace::TraceBounds;
use fullpipe_report::page::{InputKind, Page, Shortlist, Source, data};
use std::io::Read;

/// Reads a capture, packed or not, and returns what its report shows as JSON.
///
/// # Errors
/// It is no capture, or holds no packet: a sentence for the reader.
pub fn report(name: &str, source: impl Read + Send + 'static) -> Result<String, String> {
    let options =
        Options::from(Config { trace: Some(TraceBounds::default()), ..Config::default() });
    let mut shortlist = Shortlist::default();
    let mut connections = Capture::reader(name, source).connections_without_findings(&options);
    while let Some(round) = connections.next_round() {
        shortlist.add(round);
    }
    let (counts, errors) = connections.finish();
    let problems: Vec<_> = errors.iter().map(ToString::to_string).collect();
    let problem = (!problems.is_empty()).then(|| problems.join("\n"));
    if let (0, Some(problem)) = (counts.packets, &problem) {
        return Err(problem.clone());
    }
    let mut page = Page {
        schema: Version::default(),
        program: concat!("fullpipe ", env!("CARGO_PKG_VERSION")).into(),
        title: name.into(),
        kind: InputKind::Capture,
        sources: vec![Source::counted(name.into(), &counts, problem)],
        connections_total: shortlist.total(),
        connections: shortlist.finish(0),
        lab: None,
    };
    Ok(data(&mut page).0)
}
