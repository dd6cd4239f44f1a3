//! `why --at`: the answer of a time that is past, from what `record --sockets` kept.

use super::{Looked, Why};
use crate::cmd::past::{Selection, When, nothing, tell};
use crate::failure::Failure;
use fullpipe_host::history::Past;

/// Answers for the time that `--at` and `--for` say.
pub fn run(why: &Why, at: When) -> Result<u8, Failure> {
    let files = super::Files::begin(why.record.as_deref(), why.parquet.as_deref())?;
    let asked = Selection {
        command: "why",
        span: why.span,
        filter: &why.filter(),
        loopback: why.has_loopback(),
        most: why.most.into(),
    };
    let (Past { mut found, ground }, now) = why.past.read(at, &asked)?;
    why.name_sites(&mut found);
    let (has_none, selected) = (found.connections == 0, found.selected);
    let look = Looked { found, ..Looked::default() };
    if !has_none || why.json {
        why.show(&look, ground.until, Some(&ground))?;
    }
    tell(&ground, selected.saturating_sub(look.found.followed.len()), now);
    files.add_all(&look.found.followed, ground.until)?;
    if has_none {
        return Err(nothing("why", &ground));
    }
    Ok(0)
}
