//! `why --at`: the answer of a time that is past, from what `record --sockets` kept.

use super::when::{When, calendar};
use super::{Looked, Why, failed};
use crate::failure::{Failure, Kind};
use crate::sentence::{Sentence, either};
use crate::terminal::remark;
use fullpipe_host::history::{HistoryError, Past, PastGround, PastQuestion, directory, past};
use fullpipe_kernel::host::clock;
use fullpipe_model::units::{Duration, Instant};

/// How much of a recording is told without `--for`.
const SPAN: Duration = Duration::from_secs(600);
/// A part that a recorder has in memory is not longer, with some time to write it.
const PENDING: Duration = Duration::from_secs(75);
/// How many gaps are told one by one.
const GAPS_TOLD: usize = 3;

/// Answers for the time that `--at` and `--for` say.
pub fn run(why: &Why, at: When) -> Result<u8, Failure> {
    let files = super::Files::begin(why.record.as_deref(), why.parquet.as_deref())?;
    let now = clock::now() + clock::realtime_offset();
    let from = at.before(now).ok_or_else(|| {
        let told = Sentence::new(
            "why: --at is not past; --at -10m is ten minutes ago",
            "why：--at 还没有过去；--at -10m 是十分钟前",
        );
        Failure::new(Kind::Usage, told)
    })?;
    let until = (from + why.span.unwrap_or(SPAN)).min(now);
    let ring = why.ring.clone().map_or_else(directory, Ok).map_err(not_read)?;
    let filter = why.filter();
    let (loopback, most) = (why.has_loopback(), usize::from(why.most));
    let question = PastQuestion { from, until, filter: &filter, loopback, most };
    let Past { mut found, ground } = past(&ring, question).map_err(not_read)?;
    why.name_sites(&mut found);
    let (has_none, selected) = (found.connections == 0, found.selected);
    let look = Looked { found, ..Looked::default() };
    if !has_none || why.json {
        why.show(&look, until, Some(&ground))?;
    }
    tell(&ground, selected.saturating_sub(look.found.followed.len()), now);
    files.add_all(&look.found.followed, until)?;
    if has_none {
        return Err(Failure::new(Kind::Run, nothing(&ground)));
    }
    Ok(0)
}

/// Says what the answer lacks.
fn tell(ground: &PastGround, more: usize, now: Instant) {
    if more > 0 {
        remark(&either(
            format!("{more} more connections are recorded: --most tells more"),
            format!("还有 {more} 个连接有记录：--most 可给出更多"),
        ));
    }
    for gap in ground.gaps.iter().take(GAPS_TOLD) {
        let is_pending =
            now.since(gap.until) < Duration::from_secs(1) && gap.until.since(gap.from) <= PENDING;
        let [from, until] = [gap.from, gap.until].map(calendar);
        remark(&if is_pending {
            either(
                format!("nothing is written yet from {from} on: a recorder writes each minute"),
                format!("从 {from} 起尚未写出：记录程序每分钟写一次"),
            )
        } else {
            either(
                format!("nothing was recorded from {from} to {until}: the recorder did not run"),
                format!("从 {from} 到 {until} 没有记录：记录程序当时没有运行"),
            )
        });
    }
    if ground.gaps.len() > GAPS_TOLD {
        let more = ground.gaps.len() - GAPS_TOLD;
        remark(&either(format!("{more} more such times"), format!("还有 {more} 段这样的时间")));
    }
    if ground.lost_unkept > Duration::ZERO {
        let (lost, all, most) = (ground.lost_unkept, ground.lost, ground.unkept);
        remark(&either(
            format!(
                "of {all} that all connections lost, {lost} were lost by connections of which \
                 nothing was kept, {most} at a time at most: those that lost and moved most are kept"
            ),
            format!(
                "在所有连接损失的 {all} 中，{lost} 属于没有保留采样的连接（同一时刻最多 {most} 个）：\
                 只保留损失最多和传输最多的连接"
            ),
        ));
    }
    for part in &ground.unreadable {
        remark(&either(
            format!("a part of the recording cannot be read: {part}"),
            format!("记录的一部分无法读取：{part}"),
        ));
    }
    if ground.is_blind {
        remark(either(
            "the recorder could not see other users' processes: run it as root",
            "记录程序看不到其他用户的进程：请以 root 运行它",
        ));
    }
}

/// Why there is no answer at all.
fn nothing(ground: &PastGround) -> Sentence {
    let [from, until] = [ground.from, ground.until].map(calendar);
    let [first, last] =
        [ground.first, ground.last].map(|at| at.map_or_else(|| "?".to_owned(), calendar));
    Sentence::new(
        format!(
            "why: nothing was recorded from {from} to {until}; the recording has {first} to {last}, \
             and what is recorded now is written within a minute"
        ),
        format!(
            "why：从 {from} 到 {until} 没有记录；记录包含 {first} 到 {last}，正在记录的内容会在一分钟内写出"
        ),
    )
}

/// Why a recording of sockets cannot be used.
pub fn not_read(error: HistoryError) -> Failure {
    let told = Sentence::from(&error);
    match error {
        HistoryError::Refused(refused) => failed(refused),
        HistoryError::Held(_) | HistoryError::Unwritable { .. } => Failure::new(Kind::Run, told),
        _ => Failure::new(Kind::Input, told),
    }
}
