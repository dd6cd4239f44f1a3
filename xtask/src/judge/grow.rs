//! Grows one regression tree for a round of boosting, leaf by leaf: the leaf that gains most is
//! divided first (as LightGBM does: Ke et al., NeurIPS 2017).

use super::bins::Bins;
use super::{LEAF, NODE};
use fullpipe_flow::limit::half;

/// The most leaves of a tree.
const LEAVES: usize = 31;
/// The fewest lessons in a leaf.
const LEAST: u32 = 20;
/// Shrinks the scores of leaves with few lessons.
const SHRINK: f64 = 1.0;
/// The part of a leaf's best score that a round adds. With fewer, larger steps the judge was less
/// often right on runs that it had not seen; with more, smaller ones, no more often.
const RATE: f64 = 0.1;

/// What one class's probabilities still lack, lesson by lesson: the first two derivatives of the
/// loss by the score.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pull {
    pub gradient: f64,
    pub curvature: f64,
}

impl std::ops::AddAssign for Pull {
    fn add_assign(&mut self, other: Pull) {
        self.gradient += other.gradient;
        self.curvature += other.curvature;
    }
}

impl std::ops::Sub for Pull {
    type Output = Pull;

    fn sub(self, other: Pull) -> Pull {
        Pull {
            gradient: self.gradient - other.gradient,
            curvature: self.curvature - other.curvature,
        }
    }
}

impl Pull {
    /// How much the best score for these lessons lowers the loss, twice.
    fn gain(self) -> f64 {
        self.gradient * self.gradient / (self.curvature + SHRINK)
    }

    /// The score that a leaf with these lessons adds.
    fn score(self) -> f64 {
        -RATE * self.gradient / (self.curvature + SHRINK)
    }
}

/// A tree.
pub struct Tree {
    nodes: Vec<Node>,
}

enum Node {
    /// The trait, the bin up to which lessons are below, and where both sides are.
    Question { of: usize, bin: u8, below: usize, above: usize },
    /// The score.
    Leaf(f64),
}

/// A leaf that may be divided.
struct OpenLeaf {
    node: usize,
    lessons: Vec<u32>,
    /// The best question, and what it gains.
    best: Option<Question>,
}

#[derive(Clone, Copy)]
struct Question {
    gain: f64,
    of: usize,
    bin: u8,
}

/// Grows a tree from `lessons`; it asks about `traits` only.
pub fn grow(bins: &Bins, pulls: &[Pull], lessons: Vec<u32>, traits: &[usize]) -> Tree {
    let open = |node, lessons: Vec<u32>| {
        let best = best_question(bins, pulls, &lessons, traits);
        OpenLeaf { node, lessons, best }
    };
    let mut nodes = vec![Node::Leaf(sum(pulls, &lessons).score())];
    let mut leaves = vec![open(0, lessons)];
    while leaves.len() < LEAVES {
        let gains = leaves.iter().enumerate().filter_map(|(at, leaf)| Some((at, leaf.best?)));
        let Some((at, best)) = gains.max_by(|a, b| a.1.gain.total_cmp(&b.1.gain)) else { break };
        let leaf = leaves.swap_remove(at);
        let is_below = |lesson: &u32| bins.of(best.of)[*lesson as usize] <= best.bin;
        let (below, above): (Vec<u32>, Vec<u32>) = leaf.lessons.into_iter().partition(is_below);
        let first = nodes.len();
        for side in [below, above] {
            nodes.push(Node::Leaf(sum(pulls, &side).score()));
            leaves.push(open(nodes.len() - 1, side));
        }
        nodes[leaf.node] =
            Node::Question { of: best.of, bin: best.bin, below: first, above: first + 1 };
    }
    Tree { nodes }
}

fn sum(pulls: &[Pull], lessons: &[u32]) -> Pull {
    let mut sum = Pull::default();
    for lesson in lessons {
        sum += pulls[*lesson as usize];
    }
    sum
}

/// The question that lowers the loss most. `None` where none leaves enough lessons on both sides.
fn best_question(
    bins: &Bins,
    pulls: &[Pull],
    lessons: &[u32],
    traits: &[usize],
) -> Option<Question> {
    if lessons.len() < 2 * LEAST as usize {
        return None;
    }
    let all = sum(pulls, lessons);
    let mut best: Option<Question> = None;
    for of in traits.iter().copied() {
        let mut parts = [(Pull::default(), 0u32); Bins::MOST];
        let column = bins.of(of);
        for lesson in lessons {
            let (pull, count) = &mut parts[usize::from(column[*lesson as usize])];
            *pull += pulls[*lesson as usize];
            *count += 1;
        }
        let (mut below, mut count) = (Pull::default(), 0);
        for (bin, (part, lessons_in)) in
            parts.into_iter().take(bins.thresholds(of).len()).enumerate()
        {
            below += part;
            count += lessons_in;
            if count < LEAST || (lessons.len() as u32) < count + LEAST {
                continue;
            }
            let gain = below.gain() + (all - below).gain() - all.gain();
            if gain > best.map_or(1e-9, |best| best.gain) {
                best = Some(Question { gain, of, bin: bin as u8 });
            }
        }
    }
    best
}

/// A score with eight bits of precision, which is plenty among hundreds: the rest would be half of
/// what a packed table takes.
fn nearest_half(score: f32) -> f32 {
    const LOWER_HALF: u32 = 0xffff;
    f32::from_bits(score.to_bits().wrapping_add(LOWER_HALF.div_ceil(2)) & !LOWER_HALF)
}

impl Tree {
    /// The score of a lesson whose traits fall into these bins.
    pub fn score(&self, bins: &Bins, lesson: usize) -> f64 {
        let mut at = 0;
        loop {
            match self.nodes[at] {
                Node::Leaf(score) => return score,
                Node::Question { of, bin, below, above } => {
                    at = if bins.of(of)[lesson] <= bin { below } else { above };
                }
            }
        }
    }

    /// Its nodes in the format of a table.
    pub fn write(&self, bins: &Bins, bytes: &mut Vec<u8>) {
        bytes.extend((self.nodes.len() as u16).to_le_bytes());
        let start = bytes.len();
        self.write_from(0, bins, start, bytes);
    }

    fn write_from(&self, at: usize, bins: &Bins, start: usize, bytes: &mut Vec<u8>) {
        match self.nodes[at] {
            Node::Leaf(score) => {
                let [_, _, low, high] = nearest_half(score as f32).to_le_bytes();
                bytes.extend([LEAF, 0, 0, low, high]);
            }
            Node::Question { of, bin, below, above } => {
                let here = bytes.len();
                let [c, d] = half(bins.thresholds(of)[usize::from(bin)]);
                bytes.extend([of as u8, 0, 0, c, d]);
                self.write_from(below, bins, start, bytes);
                let next = ((bytes.len() - start) / NODE) as u16;
                bytes[here + 1..here + 3].copy_from_slice(&next.to_le_bytes());
                self.write_from(above, bins, start, bytes);
            }
        }
    }
}
