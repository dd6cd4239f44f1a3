//! `cargo xtask judge`: trains the judge of the analysis on runs whose limit is known.
//!
//! The runs are those of `cargo xtask truth`. Each run gives one lesson for every place from which
//! it is judged. Trees are boosted from a fixed seed, so the same runs give the same tables.

#![allow(clippy::print_stdout, reason = "what came of it is what it was called for")]

mod bins;
mod boost;
mod grow;

use crate::truth::{Lesson, LessonSet, Truth};
use anyhow::Context;
use boost::{Boosted, Lessons};
use flate2::{Compression, write::GzEncoder};
use fullpipe_flow::limit::{CLASSES, LEAF, LIMITS, NODE, POLICER, Source, pack};
use fullpipe_model::scenario::Cause;
use std::io::Write;
use std::path::PathBuf;

/// With which runs to train.
#[derive(clap::Args)]
pub struct Judge {
    /// Sets of scenarios; those from 9000 on are held out.
    #[arg(long, value_delimiter = ',', default_value = "1,2,3,13,14,15,16,17,18")]
    seeds: Vec<u64>,
    /// How many of each set's scenarios.
    #[arg(long, default_value_t = 200)]
    count: u32,
    /// Sets of worlds, too, as far as they were run.
    #[arg(long, value_delimiter = ',')]
    worlds: Vec<u64>,
    /// How many of each set's worlds.
    #[arg(long, default_value_t = 500)]
    count_worlds: u32,
    /// Folder in which `cargo xtask truth` kept their runs.
    #[arg(long, value_name = "DIR", default_value_os_t = crate::build::truth_runs())]
    runs: PathBuf,
    /// Where to write the tables.
    #[arg(long, value_name = "DIR", default_value = "crates/flow/src/limit/judge")]
    out: PathBuf,
    /// Which tables to make: captures, samples, receiver.
    #[arg(long, value_delimiter = ',', default_value = "captures,samples,receiver")]
    tables: Vec<String>,
}

/// The tables, and the kind of evidence that each is for.
const TABLES: [(&str, Source); 3] = [
    ("captures", Source::Capture),
    ("samples", Source::Samples),
    ("receiver", Source::ReceiverSamples),
];
/// A lesson of a part counts so much of one of a whole transfer: parts resemble each other.
const PART_WEIGHT: f64 = 0.3;
/// A lesson of a world counts so much of one that was drawn for a cause. Most worlds are the
/// link's, and what is seldom in them is to be known as well.
const WORLD_WEIGHT: f64 = 0.5;
/// The runs are divided into so many groups, each of which is judged by trees grown from the
/// others.
const FOLDS: u32 = 4;

impl Judge {
    /// Trains a judge for each kind of evidence and writes their tables.
    ///
    /// # Errors
    /// If runs are missing, or a table cannot be written.
    pub fn run(&self) -> anyhow::Result<()> {
        anyhow::ensure!(
            self.seeds.iter().all(|seed| *seed < Truth::HELD_OUT),
            "seeds from {} on are held out",
            Truth::HELD_OUT
        );
        for asked in &self.tables {
            let is_known = TABLES.iter().any(|(name, _)| name == asked);
            anyhow::ensure!(is_known, "there is no table {asked}");
        }
        let mut lessons = Vec::new();
        for seed in &self.seeds {
            lessons.extend(Truth::lessons(LessonSet::Drawn(*seed), self.count, &self.runs)?);
        }
        for seed in &self.worlds {
            let set = LessonSet::Worlds(*seed);
            lessons.extend(Truth::lessons(set, self.count_worlds, &self.runs)?);
        }
        let is_asked = |name: &str| self.tables.iter().any(|asked| asked == name);
        for (name, source) in TABLES.into_iter().filter(|(name, _)| is_asked(name)) {
            let of_source: Vec<&Lesson> =
                lessons.iter().filter(|lesson| lesson.source == source).collect();
            let lessons = prepare(&of_source)?;
            let boosted = Boosted::train(&lessons, |_| true);
            let bytes = boosted.bytes(&lessons);
            println!(
                "{name}: {} lessons, {} traits, {} bytes; in runs that were left out {}",
                lessons.classes.len(),
                lessons.typical.len(),
                bytes.len(),
                Right::count(&lessons, &of_source),
            );
            let path = self.out.join(format!("{name}.trees.gz"));
            let mut packed = GzEncoder::new(Vec::new(), Compression::best());
            packed.write_all(&pack(&bytes).context("order a table")?).context("pack a table")?;
            let bytes = packed.finish().context("pack a table")?;
            std::fs::write(&path, bytes).with_context(|| format!("write {}", path.display()))?;
        }
        Ok(())
    }
}

fn prepare(lessons: &[&Lesson]) -> anyhow::Result<Lessons> {
    let traits: Vec<&[f32]> = lessons.iter().map(|one| &one.traits[..]).collect();
    let first = traits.first().context("there are no runs: call `cargo xtask truth` first")?;
    let width = first.len();
    anyhow::ensure!(
        traits.iter().all(|of| of.len() == width),
        "lessons have different numbers of traits"
    );
    let weight = |lesson: &Lesson| {
        let of_run = if lesson.is_world { WORLD_WEIGHT } else { 1.0 };
        of_run * if lesson.is_part { PART_WEIGHT } else { 1.0 }
    };
    Ok(Lessons {
        typical: (0..width).map(|at| middle(traits.iter().map(|of| of[at]).collect())).collect(),
        bins: bins::Bins::new(&traits),
        classes: lessons.iter().map(|one| classes(&one.causes)).collect(),
        weights: lessons.iter().copied().map(weight).collect(),
        is_whole: lessons.iter().map(|one| !one.is_part).collect(),
        runs: lessons.iter().map(|one| one.run.clone()).collect(),
    })
}

/// How many whole transfers are judged right by trees that saw nothing of their runs: first those
/// that were drawn for a cause, then worlds.
#[derive(Default)]
struct Right {
    right: [u32; 2],
    all: [u32; 2],
}

impl Right {
    /// `of` are the lessons as they were learnt.
    fn count(lessons: &Lessons, of: &[&Lesson]) -> Right {
        let mut count = Right::default();
        for fold in 0..FOLDS {
            let is_left_out = |run: &str| hash(run, 0) % FOLDS == fold;
            let boosted = Boosted::train(lessons, |run| !is_left_out(run));
            for (at, lesson) in of.iter().enumerate() {
                if lessons.is_whole[at] && is_left_out(&lessons.runs[at]) {
                    let kind = usize::from(lesson.is_world);
                    count.right[kind] += u32::from(is_right(&boosted, lessons, at));
                    count.all[kind] += 1;
                }
            }
        }
        count
    }
}

impl std::fmt::Display for Right {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ([drawn, worlds], [all_drawn, all_worlds]) = (self.right, self.all);
        write!(f, "{drawn} of {all_drawn} drawn for a cause, {worlds} of {all_worlds} worlds right")
    }
}

fn is_right(boosted: &Boosted, lessons: &Lessons, at: usize) -> bool {
    let likely = boosted.weigh(lessons, at);
    let limit = |limit: usize| match limit {
        LINK => likely[LINK] + likely[POLICER],
        _ => likely[limit],
    };
    let most = (0..POLICER).max_by(|a, b| limit(*a).total_cmp(&limit(*b)));
    let of = lessons.classes[at];
    most.is_some_and(|most| of[most] || (most == LINK && of[POLICER]))
}

/// The class of the link, to which a policer belongs.
const LINK: usize = POLICER - 1;

/// Which classes are right answers.
fn classes(causes: &[Cause]) -> [bool; CLASSES] {
    let mut classes = [false; CLASSES];
    for cause in causes {
        classes[class(*cause)] = true;
    }
    classes
}

/// The class of a cause.
fn class(cause: Cause) -> usize {
    let (name, under) = cause.limit();
    match cause {
        Cause::Policer => POLICER,
        _ => LIMITS
            .iter()
            .position(|limit| (limit.name(), limit.cause()) == (name, under))
            .unwrap_or(POLICER),
    }
}

fn middle(mut values: Vec<f32>) -> f32 {
    values.sort_by(f32::total_cmp);
    values[values.len() / 2]
}

/// FNV-1a, 64 bits, folded.
fn hash(text: &str, salt: u64) -> u32 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325 ^ salt, step);
    (hash ^ (hash >> 32)) as u32
}
