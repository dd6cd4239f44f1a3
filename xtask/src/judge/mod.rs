//! `cargo xtask judge`: trains the judge of the analysis on runs whose limit is known.
//!
//! The runs are those of `cargo xtask truth`. Each run gives one lesson for every place from which
//! it is judged. Trees are grown from a fixed seed, so the same runs give the same tables.

#![allow(clippy::print_stdout, reason = "what came of it is what it was called for")]

mod grow;

use crate::truth::{Lesson, Truth};
use anyhow::Context;
use fullpipe_flow::limit::{CLASSES, LEAF, LIMITS, NODE, POLICER};
use fullpipe_model::scenario::Cause;
use grow::{Tree, grow};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::path::PathBuf;

/// With which runs to train.
#[derive(clap::Args)]
pub struct Judge {
    /// Sets of scenarios; those from 9000 on are held out.
    #[arg(long, value_delimiter = ',', default_value = "1,2,3,4")]
    seeds: Vec<u64>,
    /// How many of each set's scenarios.
    #[arg(long, default_value_t = 200)]
    count: u32,
    /// Folder in which `cargo xtask truth` kept their runs.
    #[arg(long, value_name = "DIR", default_value = "target/truth")]
    runs: PathBuf,
    /// Where to write the tables.
    #[arg(long, value_name = "DIR", default_value = "crates/flow/src/limit/judge")]
    out: PathBuf,
}

/// Trees in a forest. More trees make the table larger, and no better by cross-validation on seeds
/// 1 to 4.
const TREES: usize = 64;
/// One in this many runs is held back from each tree.
const HELD_BACK: u32 = 4;
/// The seed from which trees are grown.
const SEED: u64 = 20_261_122;

impl Judge {
    /// Trains both judges and writes their tables.
    ///
    /// # Errors
    /// If runs are missing, or a table cannot be written.
    pub fn run(&self) -> anyhow::Result<()> {
        anyhow::ensure!(
            self.seeds.iter().all(|seed| *seed < Truth::HELD_OUT),
            "seeds from {} on are held out",
            Truth::HELD_OUT
        );
        let mut lessons = Vec::new();
        for seed in &self.seeds {
            lessons.extend(Truth::lessons(*seed, self.count, &self.runs)?);
        }
        let (sockets, captures): (Vec<_>, Vec<_>) =
            lessons.into_iter().partition(|lesson| lesson.is_of_sockets);
        for (name, lessons) in [("captures", captures), ("samples", sockets)] {
            let forest = Forest::train(&lessons)?;
            println!(
                "{name}: {} lessons, {} traits, {} nodes; {:.1} % right on runs that a tree did \
                 not see, sharpness {:.2}",
                lessons.len(),
                forest.typical.len(),
                forest.trees.iter().map(Tree::len).sum::<usize>(),
                forest.right * 100.0,
                forest.sharpness
            );
            let path = self.out.join(format!("{name}.forest"));
            std::fs::write(&path, forest.bytes())
                .with_context(|| format!("write {}", path.display()))?;
        }
        Ok(())
    }
}

/// A forest, with its score on runs that its trees had not seen.
struct Forest {
    trees: Vec<Tree>,
    typical: Vec<f32>,
    sharpness: f64,
    right: f64,
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

impl Forest {
    fn train(lessons: &[Lesson]) -> anyhow::Result<Forest> {
        let traits: Vec<&[f32]> = lessons.iter().map(|one| &one.traits[..]).collect();
        let classes: Vec<usize> = lessons.iter().map(|one| class(one.cause)).collect();
        let first = traits.first().context("there are no runs: call `cargo xtask truth` first")?;
        let width = first.len();
        anyhow::ensure!(
            traits.iter().all(|of| of.len() == width),
            "lessons have different numbers of traits"
        );
        let typical = (0..width).map(|at| middle(traits.iter().map(|of| of[at]).collect()));
        let typical = typical.collect();
        let mut dice = Pcg64Mcg::seed_from_u64(SEED);
        let mut trees = Vec::new();
        let mut unseen = vec![[0.0; CLASSES]; lessons.len()];
        for _ in 0..TREES {
            // A tree sees a run from all its places or not at all.
            let salt = dice.next_u64();
            let is_seen = |lesson: &Lesson| !hash(&lesson.run, salt).is_multiple_of(HELD_BACK);
            let seen: Vec<usize> = (0..lessons.len()).filter(|at| is_seen(&lessons[*at])).collect();
            let tree = grow(&traits, &classes, seen, &mut dice);
            for at in (0..lessons.len()).filter(|at| !is_seen(&lessons[*at])) {
                for (sum, part) in unseen[at].iter_mut().zip(tree.leaf(traits[at])) {
                    *sum += part;
                }
            }
            trees.push(tree);
        }
        let right = unseen.iter().zip(&classes).filter(|(parts, class)| {
            let most = (0..CLASSES).max_by(|a, b| parts[*a].total_cmp(&parts[*b]));
            limit_of(most.unwrap_or(0)) == limit_of(**class)
        });
        let right = right.count() as f64 / lessons.len() as f64;
        let sharpness = sharpness(&unseen, &classes);
        Ok(Forest { trees, typical, sharpness, right })
    }

    /// The table, as `flow::limit::Forest` reads it.
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![self.typical.len() as u8];
        bytes.extend((self.trees.len() as u16).to_le_bytes());
        bytes.extend((self.sharpness as f32).to_le_bytes());
        bytes.extend(self.typical.iter().flat_map(|value| value.to_le_bytes()));
        for tree in &self.trees {
            bytes.extend((tree.len() as u16).to_le_bytes());
            tree.write(&mut bytes);
        }
        bytes
    }
}

/// The limit of a class: a policer counts as the link.
fn limit_of(class: usize) -> usize {
    if class == POLICER { POLICER - 1 } else { class }
}

/// The exponent that makes the trees' probabilities match how often they are right, on transfers
/// that the trees did not see. It has the greatest likelihood on a grid.
fn sharpness(unseen: &[[f64; CLASSES]], classes: &[usize]) -> f64 {
    let loss = |exponent: f64| -> f64 {
        let of = |(parts, class): (&[f64; CLASSES], &usize)| {
            let sharp = parts.map(|part| part.max(1e-4).powf(exponent));
            -(sharp[*class] / sharp.iter().sum::<f64>()).ln()
        };
        unseen.iter().zip(classes).map(of).sum()
    };
    let grid = (5..=60).map(|step| f64::from(step) * 0.1);
    grid.min_by(|a, b| loss(*a).total_cmp(&loss(*b))).unwrap_or(1.0)
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
