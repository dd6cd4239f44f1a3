//! `cargo xtask truth`: measures how often the analysis is right on random scenarios whose limit is
//! known.
//!
//! Scenarios come from `model::scenario::generate`. `fullpipe lab run` runs them in virtual time.
//! Runs are kept on disk, and made again only if their scenario changed. Each run is judged from
//! every `Vantage` and scored against the cause that was built in.

#![allow(clippy::print_stdout, reason = "a table is what it was called for")]

mod conversations;
mod judge;
mod labels;
mod own_wire;
mod reasons;
mod remedies;
mod runs;
mod score;
mod tables;
mod worlds;

use crate::build::{debug_program, truth_runs};
use fullpipe_flow::limit::Source;
use fullpipe_model::scenario::Cause;
use judge::Purpose;
use runs::TruthRun;
use score::Scores;
use std::path::{Path, PathBuf};

/// Which scenarios, and where their runs are kept.
#[derive(clap::Args)]
pub struct Truth {
    /// Set of scenarios. Those from 9000 on are held out: run them for published figures only.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Worlds that nobody drew for a cause, in place of scenarios: each runs as it is and with each
    /// of its limits lifted, and what gives most is the right answer.
    #[arg(long, conflicts_with_all = ["only", "counterfactual", "remedies", "truth"])]
    worlds: bool,
    /// Conversations whose times are known, in place of scenarios: what the account says of them is
    /// compared with what was built in.
    #[arg(long, conflicts_with_all = ["worlds", "only", "counterfactual", "remedies", "truth", "poor"])]
    conversations: bool,
    /// How many of its scenarios.
    #[arg(long, default_value_t = 40)]
    count: u32,
    /// The first of them: scenario N of a seed is always the same.
    #[arg(long, value_name = "N", default_value_t = 0)]
    from: u32,
    /// Of them only those with this cause.
    #[arg(long, value_name = "CAUSE", value_parser = cause)]
    only: Option<Cause>,
    /// Folder in which runs are kept.
    #[arg(long, value_name = "DIR", default_value_os_t = truth_runs())]
    runs: PathBuf,
    /// The program that runs scenarios.
    #[arg(long, value_name = "FILE", default_value_os_t = debug_program())]
    program: PathBuf,
    /// Guest kernel for all of them, in place of the scenarios' own.
    #[arg(long, value_name = "RELEASE")]
    kernel: Option<String>,
    /// Runs at once.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Run each scenario with its cause relaxed, too, and score only those that this makes faster.
    #[arg(long)]
    counterfactual: bool,
    /// Judge poor evidence, too: captures one-sided, with gaps, by a mirror port, with a clock that
    /// was set, of 64 and 96 bytes a packet; and samples of one socket alone, over the whole
    /// transfer and for three seconds.
    #[arg(long)]
    poor: bool,
    /// Seconds of this machine's time after which a run is given up.
    #[arg(long, value_name = "SECONDS", default_value_t = 180)]
    patience: u64,
    /// Score only what was run before.
    #[arg(long)]
    no_run: bool,
    /// Run under kernels that count why their sockets do not send (`fullpipe lab kernel build
    /// --truth`), and score each moment by what they counted, too.
    #[arg(long)]
    truth: bool,
    /// Apply each verdict's remedy in a second run, and print what it did in place of the scores.
    #[arg(long)]
    remedies: bool,
    /// Print one JSON line for each run and vantage in place of tables.
    #[arg(long)]
    jsonl: bool,
    /// Print what is right for each capture, one JSON line each, in place of scores. Nothing is
    /// analysed.
    #[arg(long, conflicts_with_all = ["remedies", "jsonl", "poor", "truth"])]
    labels: bool,
}

impl Default for Truth {
    fn default() -> Self {
        Truth {
            seed: 1,
            worlds: false,
            conversations: false,
            count: 40,
            from: 0,
            only: None,
            runs: truth_runs(),
            program: debug_program(),
            kernel: None,
            jobs: 2,
            counterfactual: false,
            poor: false,
            patience: 180,
            no_run: false,
            truth: false,
            remedies: false,
            jsonl: false,
            labels: false,
        }
    }
}

fn cause(text: &str) -> Result<Cause, String> {
    let names = || Cause::ALL.map(Cause::name).join(", ");
    let found = Cause::ALL.into_iter().find(|cause| cause.name() == text);
    found.ok_or_else(|| format!("there are {}", names()))
}

/// A lesson for training: a run, or a part of it, judged from one place.
#[derive(Debug)]
pub struct Lesson {
    pub run: String,
    /// Whether it is one of a world's.
    pub is_world: bool,
    /// The right answers.
    pub causes: Vec<Cause>,
    /// What kind of evidence it rests on.
    pub source: Source,
    /// Whether it is a part of a long transfer.
    pub is_part: bool,
    /// The traits that the judge weighed, of the whole transfer or of a part.
    pub traits: Vec<f32>,
}

/// A set of runs to learn from, by its seed.
#[derive(Debug, Clone, Copy)]
pub enum LessonSet {
    /// Scenarios that were drawn for a cause.
    Drawn(u64),
    Worlds(u64),
}

/// The number of answers that every run has: from both captures, plain and merged, and from
/// sockets.
const MERGED_AND_PLAIN: usize = 5;
/// One in this many parts of a long transfer is a lesson.
const PARTS_TAKEN: usize = 2;
/// Number of scenarios in the smoke test: about ten seconds on a quiet machine.
const SMOKE_COUNT: u32 = 3;

/// Number of conversations in it: some seconds.
const SMOKE_CONVERSATIONS: u32 = 8;

impl Truth {
    /// The numbers of its scenarios.
    fn numbers(&self) -> std::ops::Range<u32> {
        self.from..self.from.saturating_add(self.count)
    }

    /// Seeds from here on are run for published figures only.
    pub const HELD_OUT: u64 = 9000;

    /// Reads lessons from the runs of a set of scenarios, or of worlds, in the folder `runs`.
    ///
    /// # Errors
    /// If a run cannot be read.
    pub fn lessons(set: LessonSet, count: u32, runs: &Path) -> anyhow::Result<Vec<Lesson>> {
        let (seed, worlds) = match set {
            LessonSet::Drawn(seed) => (seed, false),
            LessonSet::Worlds(seed) => (seed, true),
        };
        let runs = runs.into();
        let truth = Truth { seed, worlds, count, runs, no_run: true, ..Truth::default() };
        let found = if worlds { worlds::all(&truth)? } else { runs::all(&truth)? };
        let mut lessons = Vec::new();
        for run in found.done {
            let answers = judge::answers(&run, Purpose::Lessons)?.into_iter();
            let teaches =
                |answer: &judge::RunVerdict| answer.vantage.teaches() && !answer.traits.is_empty();
            for answer in answers.filter(teaches) {
                let source = answer.source();
                let lesson = |is_part| {
                    let run = &run.name;
                    move |(causes, traits)| Lesson {
                        run: run.clone(),
                        is_world: worlds,
                        causes,
                        source,
                        is_part,
                        traits,
                    }
                };
                let is_followed = answer.vantage.is_followed();
                lessons.push(lesson(is_followed)((run.causes.clone(), answer.traits)));
                if is_followed {
                    continue;
                }
                // The parts of a transfer resemble each other.
                lessons.extend(answer.parts.into_iter().step_by(PARTS_TAKEN).map(lesson(true)));
            }
        }
        Ok(lessons)
    }

    /// Runs a handful of scenarios to check that the instrument works. Each is judged from every
    /// vantage. `target` is the folder for builds.
    ///
    /// # Errors
    /// If a run failed or has no answer.
    pub fn smoke(target: &Path) -> anyhow::Result<()> {
        let truth = Truth {
            count: SMOKE_COUNT,
            runs: target.join("truth-smoke"),
            program: target.join("debug/fullpipe"),
            kernel: Some("6.12".into()),
            poor: true,
            ..Truth::default()
        };
        let found = runs::all(&truth)?;
        anyhow::ensure!(found.failed.is_empty(), "truth: {:?}", found.failed);
        for run in &found.done {
            let answers = judge::answers(run, Purpose::ScorePoor)?;
            anyhow::ensure!(
                answers.len() >= MERGED_AND_PLAIN,
                "truth: {} has no answers",
                run.name
            );
        }
        let there = found.done.len() + found.unbound.len();
        anyhow::ensure!(
            there == SMOKE_COUNT as usize,
            "truth: {there} of {SMOKE_COUNT} runs are there"
        );
        conversations::smoke(&Truth { count: SMOKE_CONVERSATIONS, ..truth })
    }

    /// Runs the scenarios, judges and scores them, and prints the scores.
    pub fn run(&self) -> anyhow::Result<()> {
        if self.labels {
            return labels::print(self);
        }
        if self.conversations {
            return conversations::run(self);
        }
        let found = if self.worlds { worlds::all(self)? } else { runs::all(self)? };
        if self.remedies {
            return remedies::print(self, &found.done);
        }
        let mut scores = Scores::default();
        for run in &found.done {
            let purpose = if self.poor { Purpose::ScorePoor } else { Purpose::Score };
            for answer in judge::answers(run, purpose)? {
                if self.jsonl {
                    println!("{}", tables::line(run, &answer));
                }
                scores.add(run, answer);
            }
        }
        if !self.jsonl {
            tables::print(self.seed, &found, &scores);
            if self.truth {
                reasons::print(&found.done)?;
            }
        }
        Ok(())
    }
}
