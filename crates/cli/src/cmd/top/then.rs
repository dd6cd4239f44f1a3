//! The snapshot of a time that is past, from what `record --sockets` kept.

use super::live;
use super::row::{Hidden, Snapshot};
use crate::cmd::past::{PastView, Selection, When, nothing};
use crate::failure::Failure;
use fullpipe_flow::connection::filter::LiveFilter;
use fullpipe_host::history::{Past, PastGround, watched};
use fullpipe_model::observe::Prefixes;
use fullpipe_model::units::Instant;
use std::collections::HashSet;

/// The most connections: those that lost most.
const MOST: usize = 1000;

/// What a time showed, and what is to be said of it when the picture is gone.
pub struct Then {
    pub snapshot: Snapshot,
    pub ground: PastGround,
    /// How many more connections were recorded.
    pub more: usize,
    /// When it was asked.
    pub asked: Instant,
}

/// The connections that `filter` selects, as the time that begins `at` shows them.
///
/// # Errors
/// That time is not past, or nothing of it was recorded.
pub fn read(
    view: &PastView,
    at: When,
    filter: &LiveFilter,
    prefixes: &Prefixes,
) -> Result<Then, Failure> {
    let (span, most) = (view.span, MOST);
    let selection = Selection { command: "top", span, filter, loopback: true, most };
    let (Past { found, ground }, asked) = view.time.read(at, &selection)?;
    if found.connections == 0 {
        return Err(nothing("top", &ground));
    }
    let more = found.selected.saturating_sub(found.followed.len());
    let sockets = found.followed.iter().filter_map(watched);
    let rows = sockets.filter(|socket| socket.is_busy()).map(|socket| {
        let mut row = live::row(&socket, prefixes);
        row.facts = live::facts(&socket);
        row
    });
    let rows: Vec<_> = rows.collect();
    let namespaces: HashSet<u64> = rows.iter().map(|row| row.id.0).collect();
    let snapshot = Snapshot {
        connections: found.connections,
        namespaces: namespaces.len(),
        hidden: Hidden { namespaces: 0, has_processes: ground.is_blind },
        then: Some((ground.from, ground.until.since(ground.from))),
        rows,
    };
    Ok(Then { snapshot, ground, more, asked })
}
