//! Grows one tree.

use super::{CLASSES, LEAF, NODE};
use fullpipe_flow::limit::half;
use rand_core::Rng;
use rand_pcg::Pcg64Mcg;

/// Questions that are tried at each node. A question is a trait and a threshold, both drawn at
/// random.
const TRIED: usize = 24;
/// The fewest lessons in a leaf.
const LEAST: usize = 2;
/// The largest depth of a tree.
const DEPTH: usize = 30;

/// A tree: its nodes in the order of the table.
pub struct Tree(Vec<Node>);

enum Node {
    /// The trait, the threshold, and the node where values above it continue.
    Question { of: u8, threshold: f32, above: u16 },
    /// The fraction of each class.
    Leaf([f64; CLASSES]),
}

/// The lessons and the random numbers from which a tree is grown, with its nodes so far.
struct Ground<'a> {
    traits: &'a [&'a [f32]],
    classes: &'a [usize],
    dice: &'a mut Pcg64Mcg,
    nodes: Vec<Node>,
}

/// Grows a tree from the lessons `seen`.
pub fn grow(traits: &[&[f32]], classes: &[usize], seen: Vec<usize>, dice: &mut Pcg64Mcg) -> Tree {
    let mut ground = Ground { traits, classes, dice, nodes: Vec::new() };
    ground.add(seen, 0);
    Tree(ground.nodes)
}

impl Ground<'_> {
    fn add(&mut self, seen: Vec<usize>, depth: usize) {
        let counts = self.counts(seen.iter().copied());
        let is_pure = counts.iter().filter(|count| **count > 0.0).count() < 2;
        let question = if is_pure || depth >= DEPTH { None } else { self.question(&seen) };
        let Some((of, threshold)) = question else {
            let all: f64 = counts.iter().sum();
            self.nodes.push(Node::Leaf(counts.map(|count| count / all.max(1.0))));
            return;
        };
        let (below, above): (Vec<_>, Vec<_>) =
            seen.into_iter().partition(|at| self.traits[*at][of] <= threshold);
        let here = self.nodes.len();
        self.nodes.push(Node::Question { of: of as u8, threshold, above: 0 });
        self.add(below, depth + 1);
        let next = self.nodes.len() as u16;
        self.nodes[here] = Node::Question { of: of as u8, threshold, above: next };
        self.add(above, depth + 1);
    }

    /// The best of some random questions, by how well it divides the classes (Gini). `None` if no
    /// question leaves enough lessons on both sides.
    fn question(&mut self, seen: &[usize]) -> Option<(usize, f32)> {
        let width = self.traits[0].len();
        let mut best: Option<(f64, usize, f32)> = None;
        for _ in 0..TRIED {
            let of = self.dice.next_u32() as usize % width;
            let values = seen.iter().map(|at| self.traits[*at][of]);
            let (low, high) = values
                .fold((f32::MAX, f32::MIN), |(low, high), value| (low.min(value), high.max(value)));
            if low >= high {
                continue;
            }
            // The threshold lies between two values that occur. Ratios have long tails, and a
            // threshold in an empty range divides nothing.
            let [one, other] =
                [(); 2].map(|()| self.traits[seen[self.dice.next_u32() as usize % seen.len()]][of]);
            let part = f64::from(self.dice.next_u32()) / f64::from(u32::MAX);
            let [c, d] = half(one + (other - one) * part as f32);
            let threshold = f32::from_le_bytes([0, 0, c, d]);
            let (below, above): (Vec<_>, Vec<_>) =
                seen.iter().partition(|at| self.traits[**at][of] <= threshold);
            if below.len() < LEAST || above.len() < LEAST {
                continue;
            }
            let impurity = [below, above].map(|side| {
                let count = side.len() as f64;
                let parts = self.counts(side.into_iter().copied());
                count - parts.iter().map(|part| part * part).sum::<f64>() / count
            });
            let impurity = impurity[0] + impurity[1];
            if best.is_none_or(|(least, ..)| impurity < least) {
                best = Some((impurity, of, threshold));
            }
        }
        best.map(|(_, of, threshold)| (of, threshold))
    }

    fn counts(&self, of: impl Iterator<Item = usize>) -> [f64; CLASSES] {
        let mut counts = [0.0; CLASSES];
        for at in of {
            counts[self.classes[at]] += 1.0;
        }
        counts
    }
}

impl Tree {
    /// The number of its nodes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The fraction of each class at the leaf to which these traits lead.
    pub fn leaf(&self, traits: &[f32]) -> [f64; CLASSES] {
        let mut at = 0;
        loop {
            match &self.0[at] {
                Node::Leaf(parts) => return *parts,
                Node::Question { of, threshold, above } => {
                    let is_below = traits[usize::from(*of)] <= *threshold;
                    at = if is_below { at + 1 } else { usize::from(*above) };
                }
            }
        }
    }

    /// Writes its nodes in the format of a table.
    pub fn write(&self, bytes: &mut Vec<u8>) {
        for node in &self.0 {
            let mut node_bytes = [0; NODE];
            match node {
                Node::Leaf(parts) => {
                    let mut classes: Vec<usize> = (0..CLASSES).collect();
                    classes.sort_by(|a, b| parts[*b].total_cmp(&parts[*a]));
                    let [one, other] = [classes[0], classes[1]];
                    let part = |class: usize| (parts[class] * 255.0).round() as u8;
                    let both = one as u8 | (other as u8) << 4;
                    node_bytes = [LEAF, both, part(one), part(other), 0];
                }
                Node::Question { of, threshold, above } => {
                    node_bytes[0] = *of;
                    node_bytes[1..3].copy_from_slice(&above.to_le_bytes());
                    node_bytes[3..5].copy_from_slice(&half(*threshold));
                }
            }
            bytes.extend(node_bytes);
        }
    }
}
