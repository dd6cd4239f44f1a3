//! What the lab says of a measured path: whether it repeats the measurement, and what each change
//! gave there.
//!
//! [`Proof::new`] gets the experiment and a row for each of its runs, and compares. Only where the
//! first trial repeats what was measured does a gain in the lab say anything about the user's path;
//! otherwise [`Agreement::agrees`] is false, and nothing is promised. [`Proof::doubt`] adds what
//! the same changes gave on another path that the measurement allows; where that differs much, the
//! promise is a span.

use crate::limit::Limit;
use crate::row::{Clock, Row};
use fullpipe_model::prove::{Doubt, Experiment, Remedy, Unseen};
use fullpipe_model::tune::MeasuredPath;
use fullpipe_model::units::{Rate, column};
use std::collections::BTreeMap;

/// The lab agrees if its goodput is within this of the measured one.
pub const AGREES_WITHIN: f64 = 0.10;
/// Gains on two paths are the same if they differ by at most this: what `bench/prove.py` holds a
/// promise to.
const SAME_GAIN: f64 = 0.15;

/// A measured path, rebuilt and tried.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Proof {
    /// What was measured.
    pub measured: MeasuredPath,
    /// Whose clock the trials went by.
    pub engine: Clock,
    /// The kernel of the lab's hosts.
    pub kernel: String,
    /// What was not measured and is assumed instead.
    pub assumptions: Vec<String>,
    /// The transfer as it was measured, in the lab.
    pub before: TrialResult,
    /// How well that repeats the measurement.
    pub agreement: Agreement,
    /// The same with each change alone, and last, if there are several, with all of them.
    pub trials: Vec<TrialResult>,
}

/// What one transfer of the experiment did.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct TrialResult {
    /// What was changed.
    pub changes: Vec<Remedy>,
    /// Mean goodput of its runs.
    #[serde(rename = "goodput_bps", with = "column::rate")]
    pub goodput: Rate,
    /// The least of them.
    #[serde(rename = "goodput_least_bps", with = "column::rate")]
    pub goodput_least: Rate,
    /// The most of them.
    #[serde(rename = "goodput_most_bps", with = "column::rate")]
    pub goodput_most: Rate,
    /// What limited it: by its capture, or by its sockets if those agree with the measurement. A
    /// capture cannot tell a small send buffer from an application that writes little.
    #[serde(flatten)]
    pub limited_by: Limit,
    /// Goodput divided by that before the changes.
    pub gain: f64,
    /// The least gain on all paths that the measurement allows and that were tried.
    pub gain_least: f64,
    /// The most.
    pub gain_most: f64,
    /// What nobody saw, and the gain depends on: texts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<&'static str>,
    /// The goodput to expect on the measured path. Absent where the lab does not agree with the
    /// measurement, where the link limits whose rate is only assumed, and where the gain depends on
    /// what nobody saw.
    #[serde(
        rename = "expected_bps",
        with = "column::rate_optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub expected: Option<Rate>,
    /// The least to expect, where the gain depends on what nobody saw.
    #[serde(
        rename = "expected_least_bps",
        with = "column::rate_optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub expected_least: Option<Rate>,
    /// The most to expect, where the gain depends on what nobody saw.
    #[serde(
        rename = "expected_most_bps",
        with = "column::rate_optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub expected_most: Option<Rate>,
}

/// How well the lab's transfer repeats the measured one.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Agreement {
    /// The lab's goodput divided by the measured one.
    pub ratio: f64,
    /// Whether what limited it has the same name. A measurement without a limit has any.
    pub same_limit: bool,
    /// Whether the goodput is within [`AGREES_WITHIN`] and the limit the same.
    pub agrees: bool,
}

/// Why rows are no result of an experiment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// A run failed.
    #[error("prove {name}: {error}")]
    Failed {
        /// The run.
        name: String,
        /// Its error.
        error: String,
    },
    /// Rows are missing.
    #[error("prove: {rows} rows for {trials} transfers")]
    Rows {
        /// How many rows there are.
        rows: usize,
        /// How many transfers the experiment has.
        trials: usize,
    },
}

impl Proof {
    /// Compares the rows of `experiment`, those of its first transfer first.
    ///
    /// # Errors
    /// A run failed, or there are not as many rows for each transfer.
    pub fn new(experiment: Experiment, rows: &[Row]) -> Result<Self, ProofError> {
        let planned = experiment.trials();
        let each = rows.len() / planned.len();
        if each == 0 || !rows.len().is_multiple_of(planned.len()) {
            return Err(ProofError::Rows { rows: rows.len(), trials: planned.len() });
        }
        if let Some((name, error)) =
            rows.iter().find_map(|row| Some((row.name.clone(), row.error.clone()?)))
        {
            return Err(ProofError::Failed { name, error });
        }
        let measured = experiment.measured;
        let mut results: Vec<TrialResult> = planned
            .into_iter()
            .zip(rows.chunks(each))
            .map(|(trial, rows)| {
                TrialResult::of(trial.remedies, rows, experiment.is_whole, measured.limited_by)
            })
            .collect();
        let before = results.remove(0);
        let agreement = Agreement::of(&measured, &before);
        for trial in &mut results {
            trial.gain = trial.goodput.fraction_of(before.goodput);
            (trial.gain_least, trial.gain_most) = (trial.gain, trial.gain);
            let is_assumed = trial.limited_by == Limit::Link && measured.rate.is_none();
            trial.expected =
                (agreement.agrees && !is_assumed).then_some(times(measured.goodput, trial.gain));
        }
        Ok(Proof {
            measured,
            engine: rows[0].engine,
            kernel: rows[0].kernel.clone(),
            assumptions: experiment.assumptions,
            before,
            agreement,
            trials: results,
        })
    }

    /// Takes in what the changes gave on another path; `rows` as in [`Proof::new`]. Where that path
    /// does not repeat the measurement, it is not the user's, and nothing changes.
    ///
    /// # Errors
    /// As of [`Proof::new`].
    pub fn doubt(&mut self, doubt: Doubt, rows: &[Row]) -> Result<(), ProofError> {
        let other = Proof::new(doubt.experiment, rows)?;
        if !other.agreement.agrees {
            return Ok(());
        }
        for (trial, theirs) in self.trials.iter_mut().zip(&other.trials) {
            trial.widen(theirs.gain, doubt.unseen, self.measured.goodput);
        }
        Ok(())
    }

    /// How well rows of the first transfer of `experiment` repeat what was measured.
    pub fn agreement(experiment: &Experiment, rows: &[Row]) -> Agreement {
        let seen = experiment.measured.limited_by;
        let before = TrialResult::of(Vec::new(), rows, experiment.is_whole, seen);
        Agreement::of(&experiment.measured, &before)
    }

    /// How far rows of the first transfer of `experiment` are from what was measured: 0 where they
    /// repeat it. Another limit counts as far as a goodput twice or half as high. What was sent
    /// again counts little, and decides between transfers of the same goodput: they tell one
    /// congestion control from another, and a queue that drops early from one that does not.
    pub fn distance(experiment: &Experiment, rows: &[Row]) -> f64 {
        const WEIGHT: f64 = 0.05;
        const FEW: f64 = 0.002;
        let agreement = Proof::agreement(experiment, rows);
        let other = if agreement.same_limit { 0.0 } else { std::f64::consts::LN_2 };
        let measured = &experiment.measured;
        let shares = [measured.loss, measured.overflow].into_iter().flatten();
        let seen = shares.map(|share| share.get()).reduce(|a, b| a + b);
        let again = seen.map_or(0.0, |seen| {
            let mss = measured.framing.mss().as_f64();
            let (again, sent) = rows.iter().fold((0.0, 0.0), |(again, sent), row| {
                let more = row.retransmission as f64;
                (again + more, sent + more + row.body.as_f64() / mss)
            });
            WEIGHT * ((again / sent.max(1.0) + FEW) / (seen + FEW)).ln().abs()
        });
        agreement.ratio.max(1e-9).ln().abs() + other + again
    }

    /// The trial that gains most; among those within a twentieth of it, the one with the fewest
    /// changes. `None` where nothing gains a twentieth.
    pub fn best(&self) -> Option<&TrialResult> {
        const WORTH: f64 = 1.05;
        let most = self.trials.iter().map(|trial| trial.gain).fold(1.0, f64::max);
        let near = |trial: &&TrialResult| trial.gain >= WORTH && trial.gain * WORTH >= most;
        self.trials.iter().filter(near).min_by_key(|trial| trial.changes.len())
    }
}

impl TrialResult {
    fn of(changes: Vec<Remedy>, rows: &[Row], is_whole: bool, seen: Limit) -> Self {
        let goodput = |row: &Row| {
            if is_whole { row.goodput } else { row.steady_goodput.unwrap_or(row.goodput) }
        };
        let rates: Vec<Rate> = rows.iter().map(goodput).collect();
        let sum: f64 = rates.iter().map(|rate| rate.as_f64()).sum();
        let mut shares = BTreeMap::<Limit, f64>::new();
        for row in rows {
            *shares.entry(row.limited_by).or_default() += row.limit_share;
        }
        let first = shares.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
        let by_capture = first.map_or(Limit::Unknown, |(limit, _)| limit);
        let by_sockets = rows.first().and_then(|row| row.limited_by_sockets);
        TrialResult {
            changes,
            goodput: Rate::from_bits_per_sec_f64(sum / rates.len().max(1) as f64),
            goodput_least: rates.iter().copied().min().unwrap_or_default(),
            goodput_most: rates.iter().copied().max().unwrap_or_default(),
            limited_by: by_sockets.filter(|limit| *limit == seen).unwrap_or(by_capture),
            gain: 1.0,
            gain_least: 1.0,
            gain_most: 1.0,
            depends_on: Vec::new(),
            expected: None,
            expected_least: None,
            expected_most: None,
        }
    }

    /// Takes in the gain on another path.
    fn widen(&mut self, gain: f64, unseen: Unseen, measured: Rate) {
        self.gain_least = self.gain_least.min(gain);
        self.gain_most = self.gain_most.max(gain);
        if (gain / self.gain.max(f64::MIN_POSITIVE) - 1.0).abs() <= SAME_GAIN {
            return;
        }
        self.depends_on.push(unseen.words());
        if self.expected.take().is_some() || self.expected_least.is_some() {
            self.expected_least = Some(times(measured, self.gain_least));
            self.expected_most = Some(times(measured, self.gain_most));
        }
    }
}

fn times(rate: Rate, gain: f64) -> Rate {
    Rate::from_bits_per_sec_f64(rate.as_f64() * gain)
}

impl Agreement {
    fn of(measured: &MeasuredPath, before: &TrialResult) -> Self {
        let ratio = before.goodput.fraction_of(measured.goodput);
        let same_limit = measured.limited_by == Limit::Unknown
            || measured.limited_by.name() == before.limited_by.name();
        let agrees = same_limit && (ratio - 1.0).abs() <= AGREES_WITHIN;
        Agreement { ratio, same_limit, agrees }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_model::prove::Lab;
    use fullpipe_model::scenario::LinkEngine;
    use fullpipe_model::units::{Bytes, Probability, Window};

    /// A receive window of 500 kB at 50 ms in a path of 1 Gbit/s: one change is worth a trial.
    fn experiment() -> Experiment {
        let (rtt, goodput) = ("50ms".parse().unwrap(), "80mbit".parse().unwrap());
        let mut measured = MeasuredPath::new(rtt, goodput, Limit::ReceiveWindow);
        measured.rate = Some("1gbit".parse().unwrap());
        measured.receiver.window = Some(Window::new(Bytes::new(500_000)));
        let lab = Lab { kernel: "6.12".parse().unwrap(), link_engine: LinkEngine::Netem };
        Experiment::new(measured, lab).unwrap()
    }

    fn row(steady: &str, limited_by: Limit) -> Row {
        let steady_goodput = Some(steady.parse().unwrap());
        Row { name: "prove".into(), steady_goodput, limited_by, limit_share: 0.9, ..Row::default() }
    }

    #[test]
    fn a_gain_in_the_lab_is_a_promise_only_where_the_lab_repeats_what_was_measured() {
        let after = row("600mbit", Limit::Link);
        let prove = |before| Proof::new(experiment(), &[before, after.clone()]).unwrap();
        let proof = prove(row("75mbit", Limit::ReceiveWindow));
        assert!(proof.agreement.agrees, "{:?}", proof.agreement);
        // 600 / 75 of the measured 80 Mbit/s.
        assert_eq!((proof.trials[0].gain, proof.trials[0].expected), (8.0, "640mbit".parse().ok()));
        assert_eq!(proof.best(), proof.trials.first());
        for before in [row("70mbit", Limit::ReceiveWindow), row("80mbit", Limit::Link)] {
            let proof = prove(before);
            assert!(!proof.agreement.agrees && proof.trials[0].expected.is_none());
        }
    }

    #[test]
    fn a_gain_that_depends_on_what_nobody_saw_is_a_span() {
        let before = || row("80mbit", Limit::ReceiveWindow);
        let proof_with = |other: [Row; 2]| {
            let rows = [before(), row("600mbit", Limit::Link)];
            let mut proof = Proof::new(experiment(), &rows).unwrap();
            let doubt = Doubt { unseen: Unseen::Queue, experiment: experiment() };
            proof.doubt(doubt, &other).unwrap();
            proof.trials.remove(0)
        };
        let trial = proof_with([before(), row("20mbit", Limit::Link)]);
        assert_eq!((trial.gain, trial.gain_least, trial.gain_most), (7.5, 0.25, 7.5));
        assert_eq!(trial.depends_on, [Unseen::Queue.words()]);
        let expected = [trial.expected, trial.expected_least, trial.expected_most];
        assert_eq!(expected, [None, "20mbit".parse().ok(), "600mbit".parse().ok()]);

        // Near misses: nearly the same gain, and a path that does not repeat the measurement.
        for other in [
            [before(), row("540mbit", Limit::Link)],
            [row("60mbit", Limit::ReceiveWindow), row("20mbit", Limit::Link)],
        ] {
            let trial = proof_with(other);
            assert_eq!(trial.expected, "600mbit".parse().ok());
            assert!(trial.depends_on.is_empty() && trial.expected_least.is_none(), "{trial:?}");
        }
    }

    #[test]
    fn several_draws_are_one_mean_with_its_spread() {
        let draw = |rate| row(rate, Limit::ReceiveWindow);
        let rows = [draw("70mbit"), draw("90mbit"), draw("80mbit"), draw("82mbit")];
        let proof = Proof::new(experiment(), &rows).unwrap();
        let spread = [proof.before.goodput, proof.before.goodput_least, proof.before.goodput_most];
        assert_eq!(spread.map(|rate| rate.bits_per_sec() / 1_000_000), [80, 70, 90]);
        assert_eq!(proof.best(), None, "a hundredth is no gain");
    }

    #[test]
    fn of_transfers_as_fast_the_one_that_loses_as_much_is_nearer() {
        let mut experiment = experiment();
        experiment.measured.overflow = Probability::new(0.05);
        let losing = |share: f64| Row {
            body: Bytes::new(1_448_000),
            retransmission: (share * 1000.0) as u64,
            ..row("79mbit", Limit::ReceiveWindow)
        };
        let distance = |share| Proof::distance(&experiment, &[losing(share)]);
        assert!(distance(0.05) < distance(0.0) && distance(0.05) < distance(0.3));
        // A quarter less of goodput counts more than no loss at all in place of it.
        let slower = Row { steady_goodput: "60mbit".parse().ok(), ..losing(0.05) };
        assert!(Proof::distance(&experiment, &[slower]) > distance(0.0));
    }

    #[test]
    fn a_failed_run_is_no_proof() {
        let mut failed = row("1mbit", Limit::Link);
        failed.error = Some("no room".into());
        let error = Proof::new(experiment(), &[row("80mbit", Limit::Link), failed]).unwrap_err();
        assert!(error.to_string().contains("no room"), "{error}");
        assert!(
            Proof::new(experiment(), &[row("1mbit", Limit::Link)]).is_err(),
            "a row is missing"
        );
    }
}
