//! A report on captures, or on recorded samples.

use super::{empty, worst_first};
use crate::cmd::input;
use crate::failure::{Failure, Kind};
use crate::sentence::Sentence;
use crate::terminal::remark;
use fullpipe_analyze::Options;
use fullpipe_report::page::{InputKind as Content, Page, Shortlist, Source};
use std::path::PathBuf;

/// Reads captures for a report.
///
/// # Errors
/// None of them can be opened, none has a packet, or Ctrl-C came before any.
pub fn page(files: &[PathBuf], as_one: bool, options: &Options) -> Result<Page, Failure> {
    let names: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
    let mut page = empty(names.join(", "), Content::Capture);
    let (mut samples, mut problems) = (0, Vec::new());
    for capture in input::captures(files, as_one)? {
        let name = capture.name().to_owned();
        let mut shortlist = Shortlist::default();
        let mut connections = capture.connections_without_findings(options);
        while let Some(round) = connections.next_round() {
            shortlist.add(round);
        }
        let (counts, errors) = connections.finish();
        let found: Vec<_> = input::problems(errors)?.iter().map(Sentence::from).collect();
        let problem = (!found.is_empty()).then(|| Sentence::lines(&found));
        page.connections_total += shortlist.total();
        let number = page.sources.len();
        page.connections.extend(shortlist.finish(number));
        samples += counts.samples;
        let in_page = problem.as_ref().map(|problem| problem.english().to_string());
        page.sources.push(Source::counted(name, &counts, in_page));
        problems.extend(problem);
    }
    if samples > 0 && page.sources.iter().all(|source| source.packets.is_none()) {
        page.kind = Content::Samples;
    }
    // Where nothing at all was read there is nothing to show.
    if !problems.is_empty() && page.sources.iter().all(|source| source.packets == Some(0)) {
        return Err(Failure::new(Kind::Input, Sentence::lines(&problems)));
    }
    problems.iter().for_each(|problem| remark(&format!("fullpipe: {}", problem.here())));
    worst_first(&mut page.connections);
    Ok(page)
}
