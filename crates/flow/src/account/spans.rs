//! The account in the order of time.

use super::parts::of_limit;
use super::{Behind, Cause, Owner, whose};
use crate::connection::{Counted, Direction};
use crate::limit::{Interval, Limit, Verdict};
use fullpipe_model::units::{Duration, Instant, column};
use serde::Serialize;

/// A stretch of a connection's time that one owner had for one cause.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AccountSpan {
    /// When it begins, since 1970.
    #[serde(rename = "start_ns", with = "column::instant")]
    pub start: Instant,
    /// How long it is.
    #[serde(rename = "length_us", with = "column::micros")]
    pub length: Duration,
    /// Who had it.
    pub owner: Owner,
    /// For what.
    pub cause: Cause,
    /// The direction of the data, where data was on its way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
}

/// The stretches of a connection that began at `start`, one after another without a gap. Time in
/// which data was on its way is divided where the verdict names another limit. The other arguments
/// are those of [`super::Account::new`].
pub(crate) fn spans(
    counted: &Counted,
    start: Instant,
    verdicts: [Option<&Verdict>; 2],
    behind: [Behind; 2],
) -> Vec<AccountSpan> {
    let mut spans = Spans { all: Vec::new(), at: start };
    for (what, time) in counted.course.iter().flat_map(|course| course.iter()) {
        match whose(what, behind) {
            Ok((owner, cause)) => spans.add(time, owner, cause, None),
            Err(direction) => {
                let end = match direction {
                    Direction::ClientToServer => 0,
                    Direction::ServerToClient => 1,
                };
                let [own, data] = [end, 1 - end]
                    .map(|end| verdicts[end].map_or(&[][..], |verdict| &verdict.intervals));
                if behind[end].grants {
                    spans.grants(time, direction, [own, data], [behind[end], behind[1 - end]]);
                } else {
                    spans.transfer(time, direction, own, behind[end]);
                }
            }
        }
    }
    spans.all
}

struct Spans {
    all: Vec<AccountSpan>,
    at: Instant,
}

impl Spans {
    fn add(&mut self, time: Duration, owner: Owner, cause: Cause, direction: Option<Direction>) {
        if time == Duration::ZERO {
            return;
        }
        match self.all.last_mut() {
            Some(last) if (last.owner, last.cause, last.direction) == (owner, cause, direction) => {
                last.length = last.length.saturating_add(time);
            }
            _ => {
                let start = self.at;
                self.all.push(AccountSpan { start, length: time, owner, cause, direction });
            }
        }
        self.at = self.at + time;
    }

    /// Adds time in which messages were on their way that grant what the other end may send: of
    /// the other end's data, where the window above TCP held it. `intervals` are of the messages,
    /// then of the data.
    fn grants(
        &mut self,
        time: Duration,
        direction: Direction,
        [own, data]: [&[Interval]; 2],
        [behind, behind_data]: [Behind; 2],
    ) {
        const WINDOW: Limit = Limit::ApplicationWindow;
        let end = self.at + time;
        let first = data.partition_point(|one| one.start + one.length <= self.at);
        let held = data[first..].iter().take_while(|one| one.start < end);
        for interval in held.filter(|one| one.limit() == WINDOW) {
            self.transfer(interval.start.since(self.at), direction, own, behind);
            let until = (interval.start + interval.length).min(end);
            self.held(until.since(self.at), WINDOW, direction.reversed(), behind_data);
        }
        self.transfer(end.since(self.at), direction, own, behind);
    }

    /// Adds time in which data of a direction was on its way, divided by what held it.
    fn transfer(
        &mut self,
        time: Duration,
        direction: Direction,
        intervals: &[Interval],
        behind: Behind,
    ) {
        let end = self.at + time;
        let first = intervals.partition_point(|one| one.start + one.length <= self.at);
        for interval in &intervals[first..] {
            if interval.start >= end {
                break;
            }
            self.held(interval.start.since(self.at), Limit::Unknown, direction, behind);
            let until = (interval.start + interval.length).min(end);
            self.held(until.since(self.at), interval.limit(), direction, behind);
        }
        self.held(end.since(self.at), Limit::Unknown, direction, behind);
    }

    fn held(&mut self, time: Duration, limit: Limit, direction: Direction, behind: Behind) {
        let (owner, cause) = of_limit(limit, direction, behind);
        self.add(time, owner, cause, Some(direction));
    }
}
