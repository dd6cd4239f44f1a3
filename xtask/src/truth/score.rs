//! Scores answers against the truth: counts, shares of time, calibration.

use super::TruthRun;
use super::judge::{RunVerdict, Vantage};
use fullpipe_model::scenario::Cause;
use std::collections::BTreeMap;

/// Confidence is binned in tenths.
const BINS: usize = 10;

/// The score of one vantage.
#[derive(Debug, Default)]
pub struct Score {
    pub asked: u32,
    pub right: u32,
    /// Transfers of which this vantage saw no data. They are not asked.
    pub unseen: u32,
    /// Sum of the fractions of steady time with the right limit.
    time: f64,
    /// Number of answers, by true cause and by the limit that was named.
    pub confusion: BTreeMap<(Cause, &'static str), u32>,
    /// For each tenth of confidence: the number of answers, the sum of their confidences, and how
    /// many were right.
    bins: [(u32, f64, u32); BINS],
}

/// Scores by vantage, and the answers that were wrong.
#[derive(Debug, Default)]
pub struct Scores {
    pub of: BTreeMap<Vantage, Score>,
    pub misses: Vec<Miss>,
}

/// A wrong answer.
#[derive(Debug)]
pub struct Miss {
    pub run: String,
    pub answer: RunVerdict,
}

impl Scores {
    pub fn add(&mut self, run: &TruthRun, answer: RunVerdict) {
        let is_right = run.right.contains(&answer.limit);
        self.of.entry(answer.vantage).or_default().add(run.cause, is_right, &answer);
        if !is_right && answer.saw_data {
            self.misses.push(Miss { run: run.name.clone(), answer });
        }
    }
}

impl Score {
    fn add(&mut self, cause: Cause, is_right: bool, answer: &RunVerdict) {
        if !answer.saw_data {
            self.unseen += 1;
            return;
        }
        self.asked += 1;
        self.right += u32::from(is_right);
        self.time += answer.time;
        *self.confusion.entry((cause, answer.limit.words())).or_default() += 1;
        let bin = ((answer.confidence * BINS as f64) as usize).min(BINS - 1);
        let (count, confidence, hits) = &mut self.bins[bin];
        *count += 1;
        *confidence += answer.confidence;
        *hits += u32::from(is_right);
    }

    /// The fraction of answers whose first limit is right.
    pub fn headline(&self) -> f64 {
        f64::from(self.right) / f64::from(self.asked.max(1))
    }

    /// Mean fraction of steady time with the right limit.
    pub fn time(&self) -> f64 {
        self.time / f64::from(self.asked.max(1))
    }

    /// Expected calibration error: the mean distance between the confidence of a bin and how often
    /// it is right, weighted by the bin's answers (Naeini, Cooper, Hauskrecht, AAAI 2015).
    pub fn calibration_error(&self) -> f64 {
        let off =
            self.bins.iter().map(|(_, confidence, hits)| (confidence - f64::from(*hits)).abs());
        off.sum::<f64>() / f64::from(self.asked.max(1))
    }

    /// Of the answers that are at least 90 % sure, how many are right, and how many there are.
    pub fn sure(&self) -> (u32, u32) {
        let (count, _, hits) = self.bins[BINS - 1];
        (hits, count)
    }

    /// Bins that have answers: the lower bound of confidence, the number of answers, and how many
    /// were right.
    pub fn bins(&self) -> impl Iterator<Item = (f64, u32, u32)> {
        let filled = self.bins.iter().enumerate().filter(|(_, (count, ..))| *count > 0);
        filled.map(|(bin, (count, _, hits))| (bin as f64 / BINS as f64, *count, *hits))
    }
}

#[cfg(test)]
mod tests {
    use super::super::runs::right;
    use super::*;
    use fullpipe_flow::limit::Limit;

    fn answer(limit: Limit, confidence: f64) -> RunVerdict {
        RunVerdict {
            vantage: Vantage::Server,
            limit,
            confidence,
            time: confidence,
            saw_data: true,
            traits: Vec::new(),
            parts: Vec::new(),
        }
    }

    #[test]
    fn who_saw_no_data_is_not_asked() {
        let mut score = Score::default();
        score.add(Cause::Link, false, &RunVerdict { saw_data: false, ..answer(Limit::Link, 0.8) });
        score.add(Cause::Link, true, &answer(Limit::Link, 0.8));
        assert_eq!((score.asked, score.right, score.unseen), (1, 1, 1));
    }

    #[test]
    fn right_answers_and_honest_confidence_score_best() {
        let mut score = Score::default();
        for at in 0..10 {
            let limit = if at < 8 { Limit::Link } else { Limit::SendBuffer };
            score.add(Cause::Link, at < 8, &answer(limit, 0.8));
        }
        assert_eq!((score.asked, score.right), (10, 8));
        assert!(score.calibration_error() < 1e-9);
        assert_eq!(score.confusion[&(Cause::Link, "send buffer")], 2);
        let mut boast = Score::default();
        boast.add(Cause::Loss, false, &answer(Limit::Link, 1.0));
        assert!((boast.calibration_error() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn every_cause_has_a_limit_that_is_right() {
        assert!(Cause::ALL.into_iter().all(|cause| right(cause) != Limit::Unknown));
    }
}
