//! A report on a time that is past, from what `record --sockets` kept.

use super::{empty, worst_first};
use crate::cmd::past::{PastView, Selection, When, calendar, nothing, tell};
use crate::failure::Failure;
use crate::sentence::either;
use fullpipe_analyze::Options;
use fullpipe_flow::Counts;
use fullpipe_flow::connection::filter::LiveFilter;
use fullpipe_flow::diagnosis::live::{Note, connections};
use fullpipe_host::history::Past;
use fullpipe_model::observe::Sample;
use fullpipe_report::page::{InputKind as Content, Page, Shortlist, Source};

/// The most connections: those that lost most.
const MOST: usize = 1000;

/// What limited the connections of the time that begins `at`, with graphs. Those within this host
/// count where somebody names them.
///
/// # Errors
/// That time is not past, or nothing of it was recorded.
pub fn page(view: &PastView, at: When, options: &Options) -> Result<Page, Failure> {
    let chosen = &options.config.filter;
    let (filter, loopback) = (&LiveFilter::default(), chosen.is_some());
    let selection = Selection { command: "report", span: view.span, filter, loopback, most: MOST };
    let (Past { found, ground }, asked) = view.time.read(at, &selection)?;
    if found.connections == 0 {
        return Err(nothing("report", &ground));
    }
    let more = found.selected.saturating_sub(found.followed.len());
    let mut followed = found.followed;
    followed.retain(|one| {
        let note = &one.note;
        chosen.as_ref().is_none_or(|filter| filter.matches(note.local, note.remote))
    });
    let notes: Vec<Note> = followed.iter().map(|one| one.note.clone()).collect();
    let samples: Vec<Sample> = followed.into_iter().flat_map(|one| one.samples).collect();
    let counts = Counts { samples: samples.len() as u64, ..Counts::default() };
    let mut shortlist = Shortlist::default();
    shortlist.add(connections(samples, &notes, options.config.trace));
    let [from, until] = [ground.from, ground.until].map(calendar);
    let name = either(format!("this host, {from} to {until}"), format!("本机，{from} 至 {until}"));
    let mut page = empty(name.clone(), Content::Samples);
    page.connections_total = shortlist.total();
    page.connections = shortlist.finish(0);
    page.sources.push(Source::counted(name, &counts, None));
    worst_first(&mut page.connections);
    tell(&ground, more, asked);
    Ok(page)
}
