//! A report on captures, or on recorded samples.

use super::{empty, worst_first};
use crate::cmd::input;
use crate::failure::{Failure, Kind};
use crate::terminal::remark;
use fullpipe_analyze::{Error, Options};
use fullpipe_report::page::{InputKind as Content, Page, Shortlist, Source};
use std::path::PathBuf;

/// Reads captures for a report.
///
/// # Errors
/// None of them can be opened, none has a packet, or Ctrl-C came before any.
pub fn page(files: &[PathBuf], as_one: bool, options: &Options) -> Result<Page, Failure> {
    let names: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
    let mut page = empty(names.join(", "), Content::Capture);
    let mut samples = 0;
    for capture in input::captures(files, as_one)? {
        let name = capture.name().to_owned();
        let mut shortlist = Shortlist::default();
        let mut connections = capture.connections_without_findings(options);
        while let Some(round) = connections.next_round() {
            shortlist.add(round);
        }
        let (counts, errors) = connections.finish();
        let problems: Vec<_> = input::problems(errors)?.iter().map(Error::to_string).collect();
        let problem = (!problems.is_empty()).then(|| problems.join("\n"));
        page.connections_total += shortlist.total();
        let number = page.sources.len();
        page.connections.extend(shortlist.finish(number));
        samples += counts.samples;
        page.sources.push(Source::counted(name, &counts, problem));
    }
    if samples > 0 && page.sources.iter().all(|source| source.packets.is_none()) {
        page.kind = Content::Samples;
    }
    let problems: Vec<_> =
        page.sources.iter().filter_map(|source| source.problem.as_deref()).collect();
    // Where nothing at all was read there is nothing to show.
    if !problems.is_empty() && page.sources.iter().all(|source| source.packets == Some(0)) {
        return Err(Failure::new(Kind::Input, problems.join("\n")));
    }
    problems.iter().for_each(|problem| remark(&format!("fullpipe: {problem}")));
    worst_first(&mut page.connections);
    Ok(page)
}
