//! What the lab says of a measured path: whether it repeats the measurement, and what each change
//! gave there.
//!
//! [`Proof::new`] gets the experiment and a row for each of its runs, and compares. Only where the
//! first trial repeats what was measured does a gain in the lab say anything about the user's path;
//! otherwise [`Agreement::agrees`] is false, and nothing is promised.

use crate::limit::Limit;
use crate::schema::{Clock, RunRow};
use fullpipe_model::tune::MeasuredPath;
use fullpipe_model::tune::prove::{Assumption, Experiment, Remedy};
use fullpipe_model::units::{Rate, column};
use std::collections::BTreeMap;

/// The lab agrees if its goodput is within this of the measured one.
pub const AGREES_WITHIN: f64 = 0.10;

/// Less than this times the goodput is no gain.
pub const WORTH: f64 = 1.05;

/// A measured path, rebuilt and tried.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Proof {
    /// What was measured.
    pub measured: MeasuredPath,
    /// Whose clock the trials went by.
    pub engine: Clock,
    /// The kernel of the lab's hosts.
    pub kernel: String,
    /// What was not measured and is assumed instead.
    pub assumptions: Vec<Assumption>,
    /// The transfer as it was measured, in the lab.
    pub before: TrialResult,
    /// How well that repeats the measurement.
    pub agreement: Agreement,
    /// The same with each change alone, and last, if there are several, with all of them.
    pub trials: Vec<TrialResult>,
}

/// What one transfer of the experiment did.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
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
    /// The goodput to expect on the measured path. Absent where the lab does not agree with the
    /// measurement, and where the link limits whose rate is only assumed.
    #[serde(
        rename = "expected_bps",
        default,
        with = "column::rate_optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub expected: Option<Rate>,
}

/// How well the lab's transfer repeats the measured one.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
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
    pub fn new(experiment: Experiment, rows: &[RunRow]) -> Result<Self, ProofError> {
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
            let expected = Rate::from_bits_per_sec_f64(measured.goodput.as_f64() * trial.gain);
            let is_assumed = trial.limited_by == Limit::Link && measured.rate.is_none();
            trial.expected = (agreement.agrees && !is_assumed).then_some(expected);
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

    /// How well rows of the first transfer of `experiment` repeat what was measured.
    pub fn agreement(experiment: &Experiment, rows: &[RunRow]) -> Agreement {
        let seen = experiment.measured.limited_by;
        let before = TrialResult::of(Vec::new(), rows, experiment.is_whole, seen);
        Agreement::of(&experiment.measured, &before)
    }

    /// How far rows of the first transfer of `experiment` are from what was measured: 0 where they
    /// repeat it. Another limit counts as far as a goodput twice or half as high. What was sent
    /// again counts little, and decides between transfers of the same goodput: they tell one
    /// congestion control from another, and a queue that drops early from one that does not.
    pub fn distance(experiment: &Experiment, rows: &[RunRow]) -> f64 {
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
        let most = self.trials.iter().map(|trial| trial.gain).fold(1.0, f64::max);
        let trials = self.trials.iter();
        let near = trials.filter(|trial| trial.gain >= WORTH && trial.gain * WORTH >= most);
        near.min_by_key(|trial| trial.changes.len())
    }
}

impl TrialResult {
    fn of(changes: Vec<Remedy>, rows: &[RunRow], is_whole: bool, seen: Limit) -> Self {
        let rates: Vec<Rate> = rows
            .iter()
            .map(|row| row.steady_goodput.filter(|_| !is_whole).unwrap_or(row.goodput))
            .collect();
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
            expected: None,
        }
    }
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
    use fullpipe_model::scenario::LinkEngine;
    use fullpipe_model::tune::prove::Lab;
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

    fn row(steady: &str, limited_by: Limit) -> RunRow {
        let steady_goodput = Some(steady.parse().unwrap());
        RunRow {
            name: "prove".into(),
            steady_goodput,
            limited_by,
            limit_share: 0.9,
            ..RunRow::default()
        }
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
        let losing = |share: f64| RunRow {
            body: Bytes::new(1_448_000),
            retransmission: (share * 1000.0) as u64,
            ..row("79mbit", Limit::ReceiveWindow)
        };
        let distance = |share| Proof::distance(&experiment, &[losing(share)]);
        assert!(distance(0.05) < distance(0.0) && distance(0.05) < distance(0.3));
        // A quarter less of goodput counts more than no loss at all in place of it.
        let slower = RunRow { steady_goodput: "60mbit".parse().ok(), ..losing(0.05) };
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
