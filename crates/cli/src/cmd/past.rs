//! A time that is past (`--at`), from what `record --sockets` kept: which one is meant, how it is
//! read, and what it lacks. `why`, `top` and `report` show it.

mod when;

pub use when::{When, calendar};

use crate::failure::{Failure, Kind};
use crate::sentence::{Sentence, either};
use crate::terminal::remark;
use clap::Args;
use fullpipe_flow::connection::filter::LiveFilter;
use fullpipe_host::history::{HistoryError, Past, PastGround, PastQuestion, directory, past};
use fullpipe_kernel::host::clock;
use fullpipe_model::units::{Duration, Instant, ParseError};
use std::path::PathBuf;

/// How much of a recording is told without `--for`.
const SPAN: Duration = Duration::from_secs(600);
/// Bounds of --for: a verdict needs some round trips, and samples are kept in memory.
const SPANS: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(3600));
/// A part that a recorder has in memory is not longer, with some time to write it.
const PENDING: Duration = Duration::from_secs(75);
/// How many gaps are told one by one.
const GAPS_TOLD: usize = 3;

/// Which recording, and which time of it.
#[derive(Args)]
pub struct PastTime {
    /// Answer for this time, from what `fullpipe record --sockets` kept: 03:00 (the last one, by
    /// the clocks here), 2026-11-30T03:00:00Z, or -10m.
    #[arg(long, value_name = "WHEN", value_parser = when::when, allow_hyphen_values = true)]
    pub at: Option<When>,
    /// The folder of that recording [default: where `record --sockets` writes].
    #[arg(long, value_name = "DIR", requires = "at")]
    pub ring: Option<PathBuf>,
}

/// The same, with how much of it is shown, for what shows nothing else for a time.
#[derive(Args)]
pub struct PastView {
    #[command(flatten)]
    pub time: PastTime,
    /// How much of that recording to show [default: 10m].
    #[arg(long = "for", value_name = "TIME", requires = "at", value_parser = span)]
    pub span: Option<Duration>,
}

/// What --for takes.
pub fn span(text: &str) -> Result<Duration, Sentence> {
    let span: Duration = text.parse().map_err(|error: ParseError| Sentence::from(&error))?;
    let (least, most) = SPANS;
    if (least..=most).contains(&span) {
        Ok(span)
    } else {
        Err(Sentence::new(
            format!("{span} must be between {least} and {most}"),
            format!("{span} 须在 {least} 与 {most} 之间"),
        ))
    }
}

/// Which connections of a time are meant.
pub struct Selection<'s> {
    /// The command that asks.
    pub command: &'s str,
    /// How much of the recording.
    pub span: Option<Duration>,
    /// All that must hold of a connection.
    pub filter: &'s LiveFilter,
    /// Whether those within this host count.
    pub loopback: bool,
    /// How many at most, those that lost most first.
    pub most: usize,
}

impl PastTime {
    /// Reads the time that begins `at`; says what it found, and when that was asked.
    ///
    /// # Errors
    /// That time is not past, or there is no recording that can be read.
    pub fn read(&self, at: When, asked: &Selection<'_>) -> Result<(Past, Instant), Failure> {
        let Selection { command, span, filter, loopback, most } = *asked;
        let now = clock::now() + clock::realtime_offset();
        let from = at.before(now).ok_or_else(|| {
            let told = Sentence::new(
                format!("{command}: --at is not past; --at -10m is ten minutes ago"),
                format!("{command}：--at 还没有过去；--at -10m 是十分钟前"),
            );
            Failure::new(Kind::Usage, told)
        })?;
        let until = (from + span.unwrap_or(SPAN)).min(now);
        let ring = self.ring.clone().map_or_else(directory, Ok).map_err(not_read)?;
        let question = PastQuestion { from, until, filter, loopback, most };
        Ok((past(&ring, question).map_err(not_read)?, now))
    }
}

/// Says what the answer lacks.
pub fn tell(ground: &PastGround, more: usize, now: Instant) {
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
pub fn nothing(command: &str, ground: &PastGround) -> Failure {
    let [from, until] = [ground.from, ground.until].map(calendar);
    let [first, last] =
        [ground.first, ground.last].map(|at| at.map_or_else(|| "?".to_owned(), calendar));
    let told = Sentence::new(
        format!(
            "{command}: nothing was recorded from {from} to {until}; the recording has {first} to {last}, \
             and what is recorded now is written within a minute"
        ),
        format!(
            "{command}：从 {from} 到 {until} 没有记录；记录包含 {first} 到 {last}，正在记录的内容会在一分钟内写出"
        ),
    );
    Failure::new(Kind::Run, told)
}

/// Why a recording of sockets cannot be used.
pub fn not_read(error: HistoryError) -> Failure {
    let told = Sentence::from(&error);
    match error {
        HistoryError::Refused(refused) => Failure::of_kernel(refused),
        HistoryError::Held(_) | HistoryError::Unwritable { .. } => Failure::new(Kind::Run, told),
        _ => Failure::new(Kind::Input, told),
    }
}
