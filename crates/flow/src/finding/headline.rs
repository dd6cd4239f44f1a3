//! The headline: what is answered to "what limits it", and how much is advised on it.
//!
//! [`Headline::of`] is the one place that decides how sure an answer has to be. A verdict that is
//! right less often than wrong is no answer: its headline names the two likeliest limits, nobody is
//! told to act, and instead of a setting it says what evidence would decide. A setting needs more
//! than an even chance. Tables, text, JSON, the page and `why` all follow it.

use super::{Finding, Remedy};
use crate::limit::{Candidate, Coverage, Limit, SURE_FROM, Source, Verdict};

/// A setting is advised from this confidence on.
pub const ADVISE_FROM: f64 = 0.6;

/// What is answered to "what limits it".
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Headline {
    /// The likeliest limit.
    pub limit: Limit,
    /// What else it may be, where the answer is no more than a guess.
    pub or: Option<Limit>,
    /// The share of the time for which the verdict's first limit held, 0 to 1.
    pub share: f64,
    /// How often verdicts like this one are right, 0 to 1.
    pub confidence: f64,
    source: Source,
    /// Whether it is short, and nothing held it.
    is_free: bool,
}

impl Headline {
    /// The headline of a verdict.
    pub fn of(verdict: &Verdict) -> Self {
        let Candidate { limit, share } = verdict.limited_by();
        let confidence = verdict.confidence;
        let is_free = verdict.flights.is_some();
        let sure = Headline { limit, or: None, share, confidence, source: verdict.source, is_free };
        if !sure.is_guess() {
            return sure;
        }
        match verdict.runner_up() {
            Some(other) if other.share > confidence => {
                Headline { limit: other.limit, or: Some(limit), ..sure }
            }
            Some(other) => Headline { or: Some(other.limit), ..sure },
            None => Headline { or: other_limit(verdict), ..sure },
        }
    }

    /// Whether the answer is no more than a guess: at least every second one is wrong.
    pub fn is_guess(&self) -> bool {
        self.limit != Limit::Unknown && self.confidence < SURE_FROM
    }

    /// Whether the answer is sure enough to advise a setting.
    pub fn advises(&self) -> bool {
        self.limit == Limit::Unknown || self.confidence >= ADVISE_FROM
    }

    /// How sure the answer is, 0 to 1; `None` where there is no answer.
    pub fn sure(&self) -> Option<f64> {
        (self.limit != Limit::Unknown).then_some(self.confidence)
    }

    /// The two limits of a guess, the likelier first, each with how likely it is.
    pub(super) fn either(&self, verdict: &Verdict) -> Vec<Candidate> {
        let Some(or) = self.or else { return Vec::new() };
        let second = verdict.runner_up();
        let both = [self.limit, or].map(|limit| {
            let share = match second {
                _ if limit == verdict.limited_by().limit => self.confidence,
                Some(second) if second.limit == limit => second.share,
                _ => 0.0,
            };
            Candidate { limit, share }
        });
        both.into()
    }

    /// Whether nothing held the transfer, which is short.
    pub(crate) fn is_nothing(&self) -> bool {
        self.is_free && self.limit == Limit::Unknown
    }

    /// What is advised in place of a setting: the evidence that would decide.
    const fn evidence_first(&self) -> Remedy {
        match self.source {
            Source::Capture => Remedy::CaptureBothEnds,
            Source::Samples | Source::ReceiverSamples => Remedy::WatchLonger,
        }
    }

    /// Withholds the advice of a finding that is not sure enough for it.
    pub(crate) fn advise(&self, finding: Finding) -> Finding {
        let is_setting = !finding.changes.is_empty() || finding.remedy.is_setting();
        if self.advises() || !(self.is_guess() || is_setting) {
            return finding;
        }
        Finding { remedy: self.evidence_first(), changes: Vec::new(), ..finding }
    }

    /// The same for what lies behind the limit. What it saw stays: only its advice to set
    /// something rests on the limit.
    pub(crate) fn advise_behind(&self, remedy: Remedy) -> Remedy {
        if self.advises() || !remedy.is_setting() { remedy } else { self.evidence_first() }
    }
}

/// Why a verdict is no more than a guess.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Doubt {
    /// How often verdicts like this one are right, 0 to 1; `None` where there is no answer.
    pub right: Option<f64>,
    /// What the trained judge finds likely beside it.
    pub judged: Option<Candidate>,
    /// Another limit that it may be.
    pub other: Option<Limit>,
    /// How much of the connection was seen.
    pub coverage: Coverage,
}

impl Doubt {
    /// The doubt about a verdict; `None` where it is sure, or nothing would help.
    pub(super) fn of(verdict: &Verdict) -> Option<Doubt> {
        let Verdict { confidence, coverage, .. } = *verdict;
        if confidence >= SURE_FROM {
            return None;
        }
        let (judged, other) = (verdict.runner_up(), other_limit(verdict));
        if verdict.limited_by().limit == Limit::Unknown {
            let helps = coverage != Coverage::FromStart;
            return helps.then_some(Doubt { right: None, judged, other, coverage });
        }
        Some(Doubt { right: Some(confidence), judged, other, coverage })
    }
}

/// Another limit that the rules name, apart from the one named first.
fn other_limit(verdict: &Verdict) -> Option<Limit> {
    let rivals = verdict.rivals(verdict.limited_by().limit);
    let mut others = verdict.shares.iter().skip(1).chain(&rivals).map(|candidate| candidate.limit);
    others.find(|other| *other != Limit::Unknown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::Interval;
    use fullpipe_model::units::{Duration, Instant};

    fn verdict(confidence: f64) -> Verdict {
        let interval = |at: u64, limit| Interval {
            start: Instant::from_nanos(at),
            length: Duration::from_millis(100),
            candidates: vec![Candidate { limit, share: 1.0 }],
            evidence: Default::default(),
        };
        let limits = [Limit::SendBuffer, Limit::SendBuffer, Limit::Link];
        let intervals = limits.iter().zip(0..).map(|(limit, at)| interval(at, *limit));
        let mut verdict = Verdict::new(Source::Capture, intervals.collect());
        verdict.confidence = confidence;
        verdict
    }

    #[test]
    fn a_short_transfer_that_nothing_held_is_told_so_and_not_as_unknown() {
        let mut verdict = verdict(0.0);
        verdict.shares = vec![Candidate { limit: Limit::Unknown, share: 1.0 }];
        assert_eq!(Headline::of(&verdict).with_share(), "unknown 100 %");
        verdict.flights = Some(1);
        let headline = Headline::of(&verdict);
        assert_eq!((headline.with_share(), headline.sure()), ("nothing".into(), None));
    }

    #[test]
    fn below_one_half_two_limits_are_named_and_below_six_tenths_nothing_is_set() {
        for (confidence, words, is_guess, advises) in [
            (0.49, "probably send buffer or link", true, false),
            (0.50, "send buffer 67 %", false, false),
            (0.59, "send buffer 67 %", false, false),
            (0.60, "send buffer 67 %", false, true),
        ] {
            let headline = Headline::of(&verdict(confidence));
            assert_eq!(headline.with_share(), words);
            assert_eq!((headline.is_guess(), headline.advises()), (is_guess, advises), "{words}");
        }
    }

    #[test]
    fn nothing_is_a_guess_where_nothing_is_answered() {
        let none = Headline::of(&Verdict::new(Source::Capture, Vec::new()));
        assert_eq!(
            (none.is_guess(), none.sure(), none.to_string()),
            (false, None, "unknown".into())
        );
    }
}
