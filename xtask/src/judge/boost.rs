//! Boosts trees: each round adds one tree for each class, which corrects what the rounds before
//! still have wrong.

use super::bins::Bins;
use super::grow::{Pull, Tree, grow};
use super::{CLASSES, hash};
use fullpipe_flow::limit::softmax;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// More rounds make the table larger, and were no better on runs that were left out.
const ROUNDS: usize = 100;
/// So many tenths of all runs are seen by a round, and so many of all traits by a tree.
const RUNS_SEEN: u32 = 7;
const TRAITS_SEEN: usize = 5;
/// The seed from which trees are grown.
const SEED: u64 = 20_261_123;

/// What there is to learn from.
pub struct Lessons {
    pub bins: Bins,
    pub typical: Vec<f32>,
    /// Which classes are right answers.
    pub classes: Vec<[bool; CLASSES]>,
    pub weights: Vec<f64>,
    /// Whether it is of a whole transfer.
    pub is_whole: Vec<bool>,
    pub runs: Vec<String>,
}

/// Trees, round by round and class by class.
pub struct Boosted {
    start: [f64; CLASSES],
    trees: Vec<Tree>,
}

impl Boosted {
    /// Trains with the runs that `is_seen` allows.
    pub fn train(lessons: &Lessons, is_seen: impl Fn(&str) -> bool) -> Boosted {
        let all: Vec<u32> = (0..lessons.classes.len() as u32)
            .filter(|at| is_seen(&lessons.runs[*at as usize]))
            .collect();
        let mut boosted = Boosted { start: start(lessons, &all), trees: Vec::new() };
        let mut scores = vec![boosted.start; lessons.classes.len()];
        let mut dice = Pcg64Mcg::seed_from_u64(SEED);
        let mut pulls = vec![Pull::default(); lessons.classes.len()];
        for _ in 0..ROUNDS {
            let salt = dice.next_u64();
            // A round sees a run from all its places or not at all.
            let is_seen = |at: &u32| hash(&lessons.runs[*at as usize], salt) % 10 < RUNS_SEEN;
            let seen: Vec<u32> = all.iter().copied().filter(is_seen).collect();
            let likely: Vec<[f64; CLASSES]> = scores.iter().copied().map(softmax).collect();
            for class in 0..CLASSES {
                for at in &seen {
                    let at = *at as usize;
                    let part = likely[at][class];
                    let wanted = wanted(&likely[at], &lessons.classes[at], class);
                    let weight = lessons.weights[at];
                    // One class's score counts against all others' together (Friedman 2001).
                    let curvature = part * (1.0 - part) * CLASSES as f64 / (CLASSES - 1) as f64;
                    pulls[at] = Pull {
                        gradient: weight * (part - wanted),
                        curvature: weight * curvature.max(1e-6),
                    };
                }
                let traits = choose(lessons.typical.len(), &mut dice);
                let tree = grow(&lessons.bins, &pulls, seen.clone(), &traits);
                for at in &all {
                    scores[*at as usize][class] += tree.score(&lessons.bins, *at as usize);
                }
                boosted.trees.push(tree);
            }
        }
        boosted
    }

    /// The probability of each class for a lesson.
    pub fn weigh(&self, lessons: &Lessons, lesson: usize) -> [f64; CLASSES] {
        let mut scores = self.start;
        for (at, tree) in self.trees.iter().enumerate() {
            scores[at % CLASSES] += tree.score(&lessons.bins, lesson);
        }
        softmax(scores)
    }

    /// The table, as `flow::limit::BoostedTrees` reads it.
    pub fn bytes(&self, lessons: &Lessons) -> Vec<u8> {
        let mut bytes = vec![lessons.typical.len() as u8];
        bytes.extend((ROUNDS as u16).to_le_bytes());
        bytes.extend(self.start.iter().flat_map(|score| (*score as f32).to_le_bytes()));
        bytes.extend(lessons.typical.iter().flat_map(|value| value.to_le_bytes()));
        for tree in &self.trees {
            tree.write(&lessons.bins, &mut bytes);
        }
        bytes
    }
}

/// The probability that a class should have: of the right answers, each as much as it has of them
/// now, so that any of them is right, and they sum to 1.
fn wanted(likely: &[f64; CLASSES], right: &[bool; CLASSES], class: usize) -> f64 {
    if !right[class] {
        return 0.0;
    }
    let of_right = || likely.iter().zip(right).filter(|(_, is_right)| **is_right);
    let all: f64 = of_right().map(|(part, _)| part).sum();
    if all > 0.0 { likely[class] / all } else { 1.0 / of_right().count() as f64 }
}

/// Each class's score before the first round: the logarithm of how often it occurs.
fn start(lessons: &Lessons, all: &[u32]) -> [f64; CLASSES] {
    let mut sums = [1e-3; CLASSES];
    for at in all {
        let at = *at as usize;
        let count = lessons.classes[at].iter().filter(|is_right| **is_right).count();
        for (sum, is_right) in sums.iter_mut().zip(lessons.classes[at]) {
            if is_right {
                *sum += lessons.weights[at] / count as f64;
            }
        }
    }
    let whole: f64 = sums.iter().sum();
    sums.map(|sum| (sum / whole).ln())
}

/// Some of `width` traits, in their order.
fn choose(width: usize, dice: &mut Pcg64Mcg) -> Vec<usize> {
    let mut traits: Vec<usize> = (0..width).collect();
    let count = (width * TRAITS_SEEN).div_ceil(10);
    for at in 0..count {
        let other = at + dice.next_u32() as usize % (width - at);
        traits.swap(at, other);
    }
    traits.truncate(count);
    traits.sort_unstable();
    traits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_right_answers_should_have_sums_to_one_and_of_a_single_one_is_all() {
        let likely = [0.1, 0.3, 0.0, 0.2, 0.4, 0.0, 0.0, 0.0];
        let parts = |right: [bool; CLASSES]| -> Vec<f64> {
            (0..CLASSES).map(|class| wanted(&likely, &right, class)).collect()
        };
        let of = |classes: &[usize]| -> [bool; CLASSES] {
            std::array::from_fn(|class| classes.contains(&class))
        };
        let two = parts(of(&[0, 1]));
        assert!((two[0] - 0.25).abs() < 1e-12 && (two[1] - 0.75).abs() < 1e-12, "{two:?}");
        assert!(two[2..].iter().all(|part| *part == 0.0));
        for class in 0..CLASSES {
            // Also of a class that has nothing yet.
            assert!((parts(of(&[class]))[class] - 1.0).abs() < 1e-12);
        }
        let unlikely = parts(of(&[5, 6]));
        assert!((unlikely.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{unlikely:?}");
    }
}
