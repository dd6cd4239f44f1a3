//! Gradient boosted decision trees (Friedman: Greedy function approximation: a gradient boosting
//! machine, Annals of Statistics 29, 2001). Each class has one tree a round. A tree asks a few
//! questions about traits, and its leaf holds a score. The scores of a class's trees add up, and
//! the softmax of all classes' scores is how likely each class is.
//!
//! The table is made by `cargo xtask judge` and committed, in the form that [`super::packed`]
//! stores. It begins with the number of traits (1
//! byte), the number of rounds (2), each class's score before the first round (4 each, a float) and
//! the typical value of each trait (4 each, a float). The trees follow, round by round and class by
//! class, each with its number of nodes (2) and its nodes ([`NODE`] bytes each). A node begins with
//! the number of the trait that it asks about. If the trait is at most the threshold (the upper
//! half of a float, in bytes 3 and 4), the next node follows directly; otherwise bytes 1 and 2 give
//! its number. A node that begins with [`LEAF`] is a leaf: its score (4, a float whose lower half
//! is zero). All numbers are little-endian.

/// The number of classes: the limits in their order, and a policer, which the verdict calls a link.
pub const CLASSES: usize = 8;
/// Bytes of a node.
pub const NODE: usize = 5;
/// Stands in place of a trait's number: the tree ends here.
pub const LEAF: u8 = 255;
/// The largest depth that is followed. It bounds the cost of a broken table.
const DEPTH_MAX: usize = 64;

/// A table, read in place without copying its nodes.
#[derive(Debug, Clone)]
pub struct BoostedTrees<'a> {
    typical: Vec<f32>,
    /// Each class's score before the first round.
    start: [f64; CLASSES],
    /// Round by round, and in it class by class.
    trees: Vec<&'a [[u8; NODE]]>,
}

impl<'a> BoostedTrees<'a> {
    /// Reads a table; `None` where it is cut short.
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let (&traits, bytes) = bytes.split_first()?;
        let (rounds, mut bytes) = bytes.split_first_chunk()?;
        let mut start = [0.0; CLASSES];
        for score in &mut start {
            *score = float(&mut bytes)?.into();
        }
        let typical = (0..traits).map(|_| float(&mut bytes)).collect::<Option<_>>()?;
        let mut trees = Vec::new();
        for _ in 0..usize::from(u16::from_le_bytes(*rounds)) * CLASSES {
            let (nodes, rest) = bytes.split_first_chunk()?;
            let (nodes, rest) =
                rest.split_at_checked(usize::from(u16::from_le_bytes(*nodes)) * NODE)?;
            trees.push(nodes.as_chunks().0);
            bytes = rest;
        }
        bytes.is_empty().then_some(BoostedTrees { typical, start, trees })
    }

    /// The number of traits that it asks about.
    pub fn traits(&self) -> usize {
        self.typical.len()
    }

    /// The median of each trait over all training transfers.
    pub fn typical(&self) -> &[f32] {
        &self.typical
    }

    /// The probability of each class; they sum to 1. `None` where the traits are not those of the
    /// training.
    pub fn weigh(&self, traits: &[f32]) -> Option<[f64; CLASSES]> {
        if traits.len() != self.typical.len() || self.trees.is_empty() {
            return None;
        }
        let mut scores = self.start;
        for (at, tree) in self.trees.iter().enumerate() {
            scores[at % CLASSES] += walk(tree, 0, traits, |_, _| ())?;
        }
        Some(softmax(scores))
    }

    /// The probabilities of the classes if one trait had its typical value: one answer for each
    /// trait. `None` where the traits are not those of the training.
    pub fn weigh_without_each(&self, traits: &[f32]) -> Option<Vec<[f64; CLASSES]>> {
        if traits.len() != self.typical.len() || self.trees.is_empty() {
            return None;
        }
        let mut whole = self.start;
        let mut changes = vec![[0.0; CLASSES]; traits.len()];
        let mut replaced = traits.to_vec();
        for (at, tree) in self.trees.iter().enumerate() {
            let class = at % CLASSES;
            // A trait changes nothing if no question on the path to the leaf asks about it. If one
            // does, nothing changes before the first such question.
            let mut asked: Vec<(usize, usize)> = Vec::new();
            let leaf = walk(tree, 0, traits, |number, node| {
                let of = usize::from(number);
                if asked.iter().all(|(earlier, _)| *earlier != of) {
                    asked.push((of, node));
                }
            })?;
            whole[class] += leaf;
            for (of, node) in asked {
                replaced[of] = self.typical[of];
                changes[of][class] += walk(tree, node, &replaced, |_, _| ())? - leaf;
                replaced[of] = traits[of];
            }
        }
        let with =
            |change: [f64; CLASSES]| softmax(std::array::from_fn(|at| whole[at] + change[at]));
        Some(changes.into_iter().map(with).collect())
    }
}

/// The probabilities that follow from scores; they sum to 1.
pub fn softmax(scores: [f64; CLASSES]) -> [f64; CLASSES] {
    let highest = scores.into_iter().fold(f64::MIN, f64::max);
    let parts = scores.map(|score| (score - highest).exp());
    let all: f64 = parts.iter().sum();
    parts.map(|part| part / all)
}

/// Takes a float from the front of the bytes.
fn float(bytes: &mut &[u8]) -> Option<f32> {
    let (value, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(f32::from_le_bytes(*value))
}

/// A threshold as a table stores it: the upper half of a float, which is precise enough for a
/// question.
pub fn half(threshold: f32) -> [u8; 2] {
    let [_, _, low, high] = threshold.to_le_bytes();
    [low, high]
}

/// Walks a tree from node `at` to its leaf, and returns its score. For each question on the path,
/// `ask` is called with the number of the trait and with the node.
fn walk(
    tree: &[[u8; NODE]],
    mut at: usize,
    traits: &[f32],
    mut ask: impl FnMut(u8, usize),
) -> Option<f64> {
    for _ in 0..DEPTH_MAX {
        let [number, rest @ ..] = tree.get(at)?;
        if *number == LEAF {
            // A broken table may hold what is no number.
            return Some(f32::from_le_bytes(*rest)).filter(|it| it.is_finite()).map(f64::from);
        }
        ask(*number, at);
        let [low, high, c, d] = *rest;
        let threshold = f32::from_le_bytes([0, 0, c, d]);
        at = if *traits.get(usize::from(*number))? <= threshold {
            at + 1
        } else {
            u16::from_le_bytes([low, high]).into()
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One round: if trait 0 is at most 0.5, class 1 is likely, otherwise class 2. The other
    /// classes' trees have a leaf alone.
    fn table() -> Vec<u8> {
        let leaf = |score: f32| {
            let [a, b, c, d] = score.to_le_bytes();
            [LEAF, a, b, c, d]
        };
        let mut bytes = vec![1];
        bytes.extend(1u16.to_le_bytes());
        bytes.extend([0.0f32; CLASSES].iter().flat_map(|score| score.to_le_bytes()));
        bytes.extend(0.25f32.to_le_bytes());
        for class in 0..CLASSES {
            let (below, above) = match class {
                1 => (5.0, 0.0),
                2 => (0.0, 5.0),
                _ => (0.0, 0.0),
            };
            let [c, d] = half(0.5);
            bytes.extend(3u16.to_le_bytes());
            bytes.extend([0, 2, 0, c, d]);
            bytes.extend(leaf(below).into_iter().chain(leaf(above)));
        }
        bytes
    }

    #[test]
    fn a_tree_is_walked_to_the_leaf_that_the_traits_lead_to() {
        let table = table();
        let trees = BoostedTrees::read(&table).unwrap();
        assert_eq!((trees.traits(), trees.typical()), (1, &[0.25][..]));
        // e^5 against seven classes of e^0.
        let likely = 5f64.exp() / (5f64.exp() + 7.0);
        assert!((trees.weigh(&[0.5]).unwrap()[1] - likely).abs() < 1e-9);
        let above = trees.weigh(&[0.6]).unwrap();
        assert!((above[2] - likely).abs() < 1e-9 && (above.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        assert_eq!(trees.weigh(&[]), None);
        // With the typical 0.25 it is class 1 again.
        assert_eq!(trees.weigh_without_each(&[0.6]).unwrap(), [trees.weigh(&[0.25]).unwrap()]);
        assert_eq!(trees.weigh_without_each(&[]), None);
    }

    proptest::proptest! {
        #[test]
        fn a_broken_table_gives_no_answer_and_no_panic(
            bytes in proptest::collection::vec(0u8..4, 0..200),
            (at, byte) in (0usize..180, 0u8..=255),
            cut in 0usize..40,
        ) {
            let whole = table();
            let mut changed = whole.clone();
            let changed_at = at % whole.len();
            changed[changed_at] = byte;
            for bytes in [&bytes[..], &whole[..whole.len().saturating_sub(cut)], &changed] {
                if let Some(trees) = BoostedTrees::read(bytes) {
                    let traits = vec![0.7; trees.traits()];
                    let without = trees.weigh_without_each(&traits).into_iter().flatten();
                    for parts in without.chain(trees.weigh(&traits)) {
                        let sum: f64 = parts.iter().sum();
                        proptest::prop_assert!((sum - 1.0).abs() < 1e-6, "{sum}");
                    }
                }
            }
        }
    }
}
