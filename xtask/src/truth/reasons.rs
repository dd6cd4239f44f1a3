//! Compares verdicts with what the sending kernel itself counted, moment by moment (`--truth`).

use super::TruthRun;
use super::judge::{CLIENT, SERVER, Vantage, of_capture, records};
use super::runs::right;
use anyhow::Context;
use fullpipe_flow::capture::recapture::as_host;
use fullpipe_flow::limit::truth::TruthInterval;
use fullpipe_flow::limit::{Candidate, Interval, Limit};
use fullpipe_model::limit::Cause as WindowCause;
use fullpipe_model::scenario::Cause;
use std::collections::BTreeMap;

/// A limit other than the one that was built in contradicts it if it has more than this fraction of
/// the time that the kernel knows.
const CONTRADICTION: f64 = 0.5;

/// Seconds whose limit the kernel knows, and how many of them have the same limit in a verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Agreement {
    known: f64,
    right: f64,
}

/// Prints for each capture which fraction of the known time has the right limit. Names the runs
/// whose kernel contradicts the cause that was built in.
///
/// # Errors
/// If a run's file cannot be read.
pub fn print(runs: &[TruthRun]) -> anyhow::Result<()> {
    let mut sums: BTreeMap<Vantage, (u32, f64)> = BTreeMap::new();
    let mut contradictions = Vec::new();
    for run in runs {
        let truth = truth(run)?;
        for (vantage, agreement) in agreements(run, &truth)? {
            if agreement.known > 0.0 {
                let (count, sum) = sums.entry(vantage).or_default();
                *count += 1;
                *sum += agreement.right / agreement.known;
            }
        }
        if let Some(other) = contradiction(&truth, run.cause) {
            contradictions.push((run, other));
        }
    }
    println!(
        "\nBy the kernel's own reasons: of the time whose limit they tell, a mean over runs\n"
    );
    println!("| evidence | runs | time right |\n|---|---|---|");
    for (vantage, (count, sum)) in &sums {
        println!("| {} | {count} | {:.1} % |", vantage.name(), sum / f64::from(*count) * 100.0);
    }
    println!("\nRuns whose kernel contradicts the cause that was built in:\n");
    for (run, Candidate { limit, share }) in contradictions {
        let (name, cause) = (&run.name, run.cause.name());
        println!("* {name}: built for {cause}, the kernel says {limit} for {share:.2} of the time");
    }
    Ok(())
}

/// The lines of a run's `truth.jsonl`. There are none if the run has no such file.
fn truth(run: &TruthRun) -> anyhow::Result<Vec<TruthInterval>> {
    let path = run.folder.join("truth.jsonl");
    if !path.exists() {
        return Ok(Vec::new());
    }
    let action = || format!("read {}", path.display());
    let text = std::fs::read_to_string(&path).with_context(action)?;
    text.lines().map(serde_json::from_str).collect::<Result<_, _>>().with_context(action)
}

fn agreements(
    run: &TruthRun,
    truth: &[TruthInterval],
) -> anyhow::Result<Vec<(Vantage, Agreement)>> {
    let mut agreements = Vec::new();
    if truth.is_empty() {
        return Ok(agreements);
    }
    for (file, host, plain, merged) in [
        ("server.pcap", SERVER, Vantage::Server, Vantage::ServerMerged),
        ("client.pcap", CLIENT, Vantage::Client, Vantage::ClientMerged),
    ] {
        let records = records(&run.folder.join(file))?;
        for (vantage, changes) in [(plain, Vec::new()), (merged, as_host(host).into())] {
            if let Some(verdict) = of_capture(&records, &changes) {
                agreements.push((vantage, agreement(truth, &verdict.intervals)));
            }
        }
    }
    Ok(agreements)
}

/// Of the time that both cover: how much of it the kernel knows, and how much of that the verdict
/// has right.
fn agreement(truth: &[TruthInterval], said: &[Interval]) -> Agreement {
    let mut sum = Agreement::default();
    for interval in said {
        let (start, end) = (interval.start, interval.start + interval.length);
        let first = truth.partition_point(|known| known.start + known.length <= start);
        for known in truth[first..].iter().take_while(|known| known.start < end) {
            let until = end.min(known.start + known.length);
            let common = until.since(start.max(known.start)).as_secs_f64();
            for Candidate { limit, share } in decided(known) {
                sum.known += common * share;
                sum.right += common * share.min(share_of(&interval.candidates, *limit));
            }
        }
    }
    sum
}

fn decided(known: &TruthInterval) -> impl Iterator<Item = &Candidate> {
    known.limits.iter().filter(|candidate| candidate.limit != Limit::Unknown)
}

fn share_of(candidates: &[Candidate], limit: Limit) -> f64 {
    candidates.iter().filter(|one| one.limit == limit).map(|one| one.share).sum()
}

/// The limit that has most of the steady time according to the kernel, if it is not the one built
/// in.
fn contradiction(truth: &[TruthInterval], cause: Cause) -> Option<Candidate> {
    let slow_start = Limit::CongestionWindow(WindowCause::SlowStart);
    let mut times: BTreeMap<Limit, f64> = BTreeMap::new();
    for known in truth {
        let counted =
            decided(known).filter(|one| one.limit != slow_start || cause == Cause::SlowStart);
        for Candidate { limit, share } in counted {
            *times.entry(*limit).or_default() += share * known.length.as_secs_f64();
        }
    }
    let all: f64 = times.values().sum();
    let (limit, time) = times.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let share = time / all;
    (limit != right(cause) && share > CONTRADICTION).then_some(Candidate { limit, share })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_model::units::{Duration, Instant};

    fn known(start: u64, limits: &[(Limit, f64)]) -> TruthInterval {
        TruthInterval {
            local: "192.0.2.1:80".parse().unwrap(),
            remote: "192.0.2.2:4000".parse().unwrap(),
            start: Instant::from_nanos(start * 1_000_000),
            length: Duration::from_millis(10),
            limits: limits.iter().map(|&(limit, share)| Candidate { limit, share }).collect(),
            waits: Vec::new(),
            link_busy: None,
            unread: None,
        }
    }

    fn said(start: u64, length: u64, limit: Limit) -> Interval {
        Interval {
            start: Instant::from_nanos(start * 1_000_000),
            length: Duration::from_millis(length),
            candidates: vec![Candidate { limit, share: 1.0 }],
            evidence: Default::default(),
        }
    }

    #[test]
    fn time_is_right_where_both_have_the_same_limit_and_unknown_time_does_not_count() {
        let truth = [
            known(0, &[(Limit::Link, 1.0)]),
            known(10, &[(Limit::Link, 0.5), (Limit::Unknown, 0.5)]),
            known(20, &[(Limit::SendBuffer, 1.0)]),
        ];
        let agreement =
            agreement(&truth, &[said(5, 20, Limit::Link), said(25, 50, Limit::SendBuffer)]);
        assert!((agreement.known - 0.020).abs() < 1e-9, "{agreement:?}");
        assert!((agreement.right - 0.015).abs() < 1e-9, "{agreement:?}");
    }

    #[test]
    fn a_kernel_that_names_another_limit_contradicts_the_cause() {
        let slow_start = Limit::CongestionWindow(WindowCause::SlowStart);
        let truth = [
            known(0, &[(slow_start, 1.0)]),
            known(10, &[(slow_start, 1.0)]),
            known(20, &[(Limit::Link, 1.0)]),
        ];
        assert_eq!(contradiction(&truth, Cause::Link), None);
        assert_eq!(contradiction(&truth, Cause::SlowStart), None);
        let other = contradiction(&truth, Cause::SendBuffer).unwrap();
        assert_eq!((other.limit, other.share), (Limit::Link, 1.0));
        assert_eq!(contradiction(&[], Cause::Link), None);
    }
}
