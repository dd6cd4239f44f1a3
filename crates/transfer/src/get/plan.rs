//! What a download knows of its file, and what it makes of each answer.
//!
//! **How to think.** A file is fetched in one version: a part is taken only where a strong
//! validator (RFC 9110 section 8.8.1) says that it is of the version that the other bytes are of.
//! Without one, and without ranges, there is one connection, and one that breaks begins at the
//! first byte again: then the next answer may be of any version, because nothing of another is
//! there.
//!
//! **Order of calls.** [`opened`] judges the first answer; [`RangePlan::begun`] or
//! [`RangePlan::resumed`] follows. Each connection then calls [`RangePlan::ask`],
//! [`RangePlan::answered`], [`RangePlan::accept`] for what arrives, and [`RangePlan::ended`] at the
//! end of a body; [`RangePlan::release`] gives back what it did not fetch.
//! [`RangePlan::begin_anew`] forgets everything. Pure: the model test in `plan/tests.rs` drives it
//! with a server that replaces, cuts, lies and forgets.

use super::answer::{Head, TakesRanges};
use super::part::{FileVersion, ResumeRecord, Validators};
use super::ranges::{Ranges, Worker};
use hyper::StatusCode;
use std::ops::Range;

/// Why an answer is of no use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    /// A part cannot be had, or cannot be trusted.
    NoRanges(&'static str),
    /// The file is another one now: what is different.
    Changed(String),
    /// Another part than the one that was asked for (`None`: the whole file).
    WrongRange {
        asked: Option<Range<u64>>,
        sent: String,
    },
    Status(StatusCode),
}

/// What the first answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opened {
    /// The part that an earlier run lacks.
    Continues,
    /// The whole file.
    Whole,
    /// Nothing that can be used: the whole file has to be asked for.
    AskWhole,
}

/// Judges the first answer, to a request for the whole file or for the first part that an earlier
/// run lacks.
pub(super) fn opened(
    earlier: Option<(&ResumeRecord, &Range<u64>)>,
    status: StatusCode,
    head: &Head,
) -> Result<Opened, Refusal> {
    let Some((record, first)) = earlier else {
        return match status {
            StatusCode::PARTIAL_CONTENT => Err(wrong_range(None, head)),
            _ if !status.is_success() => Err(Refusal::Status(status)),
            _ => Ok(Opened::Whole),
        };
    };
    match status {
        StatusCode::PARTIAL_CONTENT => {
            let same = record.validators.compare(&head.validators) == FileVersion::Same;
            let fits = check(first, Some(record.length), head).is_ok();
            Ok(if same && fits { Opened::Continues } else { Opened::AskWhole })
        }
        StatusCode::RANGE_NOT_SATISFIABLE => Ok(Opened::AskWhole),
        _ if !status.is_success() => Err(Refusal::Status(status)),
        _ => Ok(Opened::Whole),
    }
}

/// A part that is not what was `asked` for, which was no part where that is `None`.
fn wrong_range(asked: Option<&Range<u64>>, head: &Head) -> Refusal {
    Refusal::WrongRange { asked: asked.cloned(), sent: described(head) }
}

fn described(head: &Head) -> String {
    head.part.map_or_else(
        || "no valid Content-Range".into(),
        |part| {
            let total = part.total.map_or_else(|| "*".into(), |total| total.to_string());
            format!("{}-{}/{total}", part.start, part.last)
        },
    )
}

/// Refuses a part that is not the one that was asked for, of a file of `total` bytes.
fn check(asked: &Range<u64>, total: Option<u64>, head: &Head) -> Result<(), Refusal> {
    let part = head.part.ok_or_else(|| wrong_range(Some(asked), head))?;
    if let (Some(total), Some(now)) = (total, part.total)
        && total != now
    {
        return Err(Refusal::Changed(format!("its length was {total} and is {now}")));
    }
    // Where the length is unknown all that follows was asked for, and the part must say that it is.
    let end = if total.is_some() { Some(asked.end) } else { part.total };
    let length = part.last - part.start + 1;
    let fits = part.start == asked.start && end == Some(part.last + 1);
    if !fits || head.length.is_some_and(|said| said != length) {
        return Err(wrong_range(Some(asked), head));
    }
    Ok(())
}

/// What a connection asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ask {
    pub(super) piece: Range<u64>,
    /// Whether that is the whole file, so that no range is asked for.
    pub(super) whole: bool,
}

/// What is known of the file, and which bytes of it are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RangePlan {
    validators: Validators,
    /// `None`: the end of the body tells.
    length: Option<u64>,
    takes_ranges: TakesRanges,
    ranges: Ranges,
    fetched: u64,
}

/// Said where a part could be of any version of the file.
const UNIDENTIFIED: &str =
    "it sends neither a strong ETag nor an old enough Last-Modified to know the file by";
const WHOLE_ONLY: &str = "it has no ranges: it sends whole files only";

impl RangePlan {
    /// For an answer with the whole file.
    pub(super) fn begun(head: &Head) -> RangePlan {
        RangePlan {
            validators: head.validators.clone(),
            length: head.length,
            takes_ranges: head.takes_ranges,
            ranges: Ranges::new(head.length.unwrap_or(u64::MAX)),
            fetched: 0,
        }
    }

    /// For an answer that continues an earlier run; `None` if its record contradicts itself.
    pub(super) fn resumed(record: &ResumeRecord) -> Option<RangePlan> {
        Some(RangePlan {
            validators: record.validators.clone(),
            length: Some(record.length),
            takes_ranges: TakesRanges::Yes,
            ranges: Ranges::resumed(record.length, &record.done)?,
            fetched: 0,
        })
    }

    /// Why several connections cannot share the file, if they cannot.
    pub(super) fn in_parts(&self) -> Result<(), &'static str> {
        match self.takes_ranges {
            TakesRanges::No => Err(WHOLE_ONLY),
            TakesRanges::Unsaid => Err("it does not say that it has ranges (Accept-Ranges)"),
            TakesRanges::Yes if self.length.is_none() => {
                Err("it does not say how long the file is")
            }
            TakesRanges::Yes if self.validators.if_range().is_none() => Err(UNIDENTIFIED),
            TakesRanges::Yes => Ok(()),
        }
    }

    /// Gives the connection a piece to ask for; `None` if there is nothing left for it.
    pub(super) fn ask(&mut self, worker: Worker) -> Result<Option<Ask>, Refusal> {
        if !self.ranges.is_untouched(worker) {
            let refused = match self.takes_ranges {
                TakesRanges::No => Some(WHOLE_ONLY),
                _ => self.validators.if_range().is_none().then_some(UNIDENTIFIED),
            };
            if let Some(why) = refused.filter(|_| !self.ranges.is_complete()) {
                return Err(Refusal::NoRanges(why));
            }
        }
        let Some(piece) = self.ranges.take(worker) else { return Ok(None) };
        let whole = piece == (0..self.ranges.total());
        Ok(Some(Ask { piece, whole }))
    }

    /// The value of `If-Range` for a request for a part.
    pub(super) fn if_range(&self) -> Option<&str> {
        self.validators.if_range()
    }

    /// Judges the answer to what [`RangePlan::ask`] gave.
    pub(super) fn answered(
        &mut self,
        worker: Worker,
        ask: &Ask,
        status: StatusCode,
        head: &Head,
    ) -> Result<(), Refusal> {
        if status == StatusCode::RANGE_NOT_SATISFIABLE && !ask.whole {
            return Err(Refusal::Changed("it is shorter than before".into()));
        }
        if !status.is_success() {
            return Err(Refusal::Status(status));
        }
        let partial = status == StatusCode::PARTIAL_CONTENT;
        let identity = self.validators.compare(&head.validators);
        if ask.whole {
            if partial {
                return Err(wrong_range(None, head));
            }
            if self.ranges.is_untouched(worker) {
                *self = RangePlan::begun(head);
                self.ranges.take(worker);
                return Ok(());
            }
            // Another connection has taken over a part, of the version that was known then.
            let same = identity == FileVersion::Same && head.length == self.length;
            return if same { Ok(()) } else { Err(Refusal::Changed(ANOTHER.into())) };
        }
        match identity {
            FileVersion::Another => return Err(Refusal::Changed(ANOTHER.into())),
            _ if !partial => {
                self.takes_ranges = TakesRanges::No;
                return Err(Refusal::NoRanges(WHOLE_ONLY));
            }
            FileVersion::Unknown => {
                return Err(Refusal::NoRanges("it does not say which file its part is of"));
            }
            FileVersion::Same => check(&ask.piece, self.length, head)?,
        }
        if let (None, Some(part)) = (self.length, head.part) {
            self.length = part.total;
            self.ranges.end_at_most(part.last + 1);
        }
        self.takes_ranges = TakesRanges::Yes;
        Ok(())
    }

    /// Writes what belongs to the connection's piece, by `write`, and counts it once it is written.
    /// Returns whether all of it was wanted.
    pub(super) fn accept<E>(
        &mut self,
        worker: Worker,
        data: &[u8],
        write: impl FnOnce(&[u8], u64) -> Result<(), E>,
    ) -> Result<bool, E> {
        let (at, wanted) = self.ranges.wanted(worker, data.len() as u64);
        write(&data[..wanted as usize], at)?;
        self.ranges.advance(worker, wanted);
        self.fetched += wanted;
        Ok(wanted == data.len() as u64)
    }

    /// The body ended as its framing says. Returns whether the connection's piece is complete.
    pub(super) fn ended(&mut self, worker: Worker) -> bool {
        if self.length.is_none() {
            self.ranges.end_at(self.fetched);
        }
        !self.ranges.has_piece(worker)
    }

    /// Whether the connection has something to fetch.
    pub(super) fn has_piece(&self, worker: Worker) -> bool {
        self.ranges.has_piece(worker)
    }

    /// The connection ended: what it had to fetch is missing again.
    pub(super) fn release(&mut self, worker: Worker) {
        self.ranges.release(worker);
    }

    /// Whether a connection more would find something to do beside `running` ones.
    pub(super) fn has_work(&self, running: usize) -> bool {
        self.ranges.has_work() && (running == 0 || self.in_parts().is_ok())
    }

    /// Forgets everything: what comes next is of whatever version the server has then.
    pub(super) fn begin_anew(&mut self) {
        *self = RangePlan {
            validators: Validators::default(),
            length: None,
            takes_ranges: TakesRanges::Unsaid,
            ranges: Ranges::new(u64::MAX),
            fetched: 0,
        };
    }

    /// Whether every byte is there.
    pub(super) fn is_complete(&self) -> bool {
        self.ranges.is_complete()
    }

    /// The file's length, if it is known.
    pub(super) fn length(&self) -> Option<u64> {
        self.length
    }

    /// Bytes that are there.
    pub(super) fn done(&self) -> u64 {
        if self.length.is_some() { self.ranges.done_bytes() } else { self.fetched }
    }

    /// What this run has fetched of the file.
    pub(super) fn fetched(&self) -> u64 {
        self.fetched
    }

    /// Whether the server has said that it has ranges, or has shown it.
    pub(super) fn takes_ranges(&self) -> TakesRanges {
        self.takes_ranges
    }

    /// What a later run needs, or why none could continue.
    pub(super) fn record(&self, url: &str) -> Result<ResumeRecord, &'static str> {
        if self.takes_ranges == TakesRanges::No {
            return Err("the server has no ranges");
        }
        let length = self.length.ok_or("the server did not say how long the file is")?;
        self.validators.if_range().ok_or(
            "the server sends neither a strong ETag nor an old enough Last-Modified to know the file by",
        )?;
        let done = self.ranges.done();
        if done.is_empty() {
            return Err("nothing has arrived");
        }
        let (url, validators) = (url.into(), self.validators.clone());
        Ok(ResumeRecord { fullpipe_get: 1, url, length, validators, done })
    }
}

const ANOTHER: &str = "its ETag, Last-Modified or length is another";

#[cfg(test)]
mod tests;
