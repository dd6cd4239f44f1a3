//! A forest of decision trees (Geurts, Ernst, Wehenkel: Extremely randomized trees, Machine
//! Learning 63, 2006). Each tree asks a few questions about traits. Its leaf holds how often each
//! cause was the true one among the training transfers with the same answers. The forest takes the
//! mean of its trees.
//!
//! The table is made by `cargo xtask judge` and committed. It begins with the number of traits (1
//! byte), the number of trees (2), the sharpness (4, a float) and the typical value of each trait
//! (4 each, a float). The trees follow, each with its number of nodes (2) and its nodes ([`NODE`]
//! bytes each). A node begins with the number of the trait that it asks about. If the trait is at
//! most the threshold (the upper half of a float, in bytes 3 and 4), the next node follows
//! directly; otherwise bytes 1 and 2 give its number. A node that begins with [`LEAF`] is a leaf:
//! the numbers of the two most frequent classes, four bits each, and then their fractions in
//! 255ths. All numbers are little-endian.

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
pub struct Forest<'a> {
    sharpness: f32,
    typical: Vec<f32>,
    trees: Vec<&'a [[u8; NODE]]>,
}

impl<'a> Forest<'a> {
    /// Reads a table; `None` where it is cut short.
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let (&traits, bytes) = bytes.split_first()?;
        let (trees, bytes) = bytes.split_first_chunk()?;
        let (sharpness, mut bytes) = bytes.split_first_chunk()?;
        let mut typical = Vec::with_capacity(traits.into());
        for _ in 0..traits {
            let (value, rest) = bytes.split_first_chunk()?;
            typical.push(f32::from_le_bytes(*value));
            bytes = rest;
        }
        let mut all = Vec::new();
        for _ in 0..u16::from_le_bytes(*trees) {
            let (nodes, rest) = bytes.split_first_chunk()?;
            let (nodes, rest) =
                rest.split_at_checked(usize::from(u16::from_le_bytes(*nodes)) * NODE)?;
            all.push(nodes.as_chunks().0);
            bytes = rest;
        }
        let sharpness = f32::from_le_bytes(*sharpness);
        bytes.is_empty().then_some(Forest { sharpness, typical, trees: all })
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
        let mut sum = [0.0; CLASSES];
        for tree in &self.trees {
            let leaf = walk(tree, 0, traits, |_, _| ())?;
            for (sum, part) in sum.iter_mut().zip(parts(leaf)) {
                *sum += part;
            }
        }
        self.sharpened(sum)
    }

    /// The probabilities of the classes if one trait had its typical value: one answer for each
    /// trait. `None` where the traits are not those of the training.
    pub fn weigh_without_each(&self, traits: &[f32]) -> Option<Vec<[f64; CLASSES]>> {
        if traits.len() != self.typical.len() || self.trees.is_empty() {
            return None;
        }
        let mut whole = [0.0; CLASSES];
        let mut changes = vec![[0.0; CLASSES]; traits.len()];
        let mut replaced = traits.to_vec();
        for tree in &self.trees {
            // A trait changes nothing if no question on the path to the leaf asks about it. If one
            // does, nothing changes before the first such question.
            let mut first_nodes = [None; LEAF as usize];
            let leaf = walk(tree, 0, traits, |number, at| {
                first_nodes[usize::from(number)].get_or_insert(at);
            });
            let leaf = parts(leaf?);
            for (sum, part) in whole.iter_mut().zip(leaf) {
                *sum += part;
            }
            for at in 0..traits.len() {
                let Some(node) = first_nodes[at] else { continue };
                replaced[at] = self.typical[at];
                let other = parts(walk(tree, node, &replaced, |_, _| ())?);
                replaced[at] = traits[at];
                for (class, change) in changes[at].iter_mut().enumerate() {
                    *change += other[class] - leaf[class];
                }
            }
        }
        let with = |change: [f64; CLASSES]| {
            // Rounding can leave a sum slightly below zero.
            self.sharpened(std::array::from_fn(|class| (whole[class] + change[class]).max(0.0)))
        };
        changes.into_iter().map(with).collect()
    }

    fn sharpened(&self, sum: [f64; CLASSES]) -> Option<[f64; CLASSES]> {
        // The mean of many trees is less confident than it is accurate. The exponent was fitted on
        // transfers that the trees had not seen.
        let sharp = sum.map(|part| (part / self.trees.len() as f64).powf(self.sharpness.into()));
        let all: f64 = sharp.iter().sum();
        (all > 0.0).then(|| sharp.map(|part| part / all))
    }
}

/// The bytes that follow [`LEAF`].
type Leaf = [u8; NODE - 1];

/// The fraction of each class at a leaf.
fn parts(leaf: &Leaf) -> [f64; CLASSES] {
    let [classes, one, other, _] = *leaf;
    let all = (f64::from(one) + f64::from(other)).max(1.0);
    let mut parts = [0.0; CLASSES];
    for (class, part) in [(classes & 0xf, one), (classes >> 4, other)] {
        if let Some(sum) = parts.get_mut(usize::from(class)) {
            *sum += f64::from(part) / all;
        }
    }
    parts
}

/// A threshold as a table stores it: the upper half of a float, which is precise enough for a
/// question.
pub fn half(threshold: f32) -> [u8; 2] {
    let [_, _, low, high] = threshold.to_le_bytes();
    [low, high]
}

/// Walks a tree from node `at` to its leaf. For each question on the path, `ask` is called with the
/// number of the trait and with the node.
fn walk<'t>(
    tree: &'t [[u8; NODE]],
    mut at: usize,
    traits: &[f32],
    mut ask: impl FnMut(u8, usize),
) -> Option<&'t Leaf> {
    for _ in 0..DEPTH_MAX {
        let [number, rest @ ..] = tree.get(at)?;
        if *number == LEAF {
            return Some(rest);
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

    /// One tree: if trait 0 is at most 0.5 it is class 1, otherwise class 2 or 3.
    fn table() -> Vec<u8> {
        let mut bytes = vec![1];
        bytes.extend(1u16.to_le_bytes());
        bytes.extend(1f32.to_le_bytes());
        bytes.extend(0.25f32.to_le_bytes());
        bytes.extend(3u16.to_le_bytes());
        let [c, d] = half(0.5);
        bytes.extend([0, 2, 0, c, d]);
        bytes.extend([LEAF, 1, 255, 0, 0]);
        bytes.extend([LEAF, 2 | 3 << 4, 191, 64, 0]);
        bytes
    }

    #[test]
    fn a_tree_is_walked_to_the_leaf_that_the_traits_lead_to() {
        let table = table();
        let forest = Forest::read(&table).unwrap();
        assert_eq!((forest.traits(), forest.typical()), (1, &[0.25][..]));
        assert_eq!(forest.weigh(&[0.5]).unwrap()[1], 1.0);
        let above = forest.weigh(&[0.6]).unwrap();
        assert!((above[2] - 0.75).abs() < 0.01 && (above.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        assert_eq!(forest.weigh(&[]), None);
        // With the typical 0.25 it is class 1 again.
        assert_eq!(forest.weigh_without_each(&[0.6]).unwrap(), [forest.weigh(&[0.25]).unwrap()]);
        assert_eq!(forest.weigh_without_each(&[]), None);
    }

    proptest::proptest! {
        #[test]
        fn a_broken_table_gives_no_answer_and_no_panic(
            bytes in proptest::collection::vec(0u8..4, 0..200),
            cut in 0usize..40,
        ) {
            let whole = table();
            for bytes in [&bytes[..], &whole[..whole.len().saturating_sub(cut)]] {
                if let Some(forest) = Forest::read(bytes) {
                    let traits = vec![0.7; forest.traits()];
                    let without = forest.weigh_without_each(&traits).into_iter().flatten();
                    for parts in without.chain(forest.weigh(&traits)) {
                        let sum: f64 = parts.iter().sum();
                        proptest::prop_assert!((sum - 1.0).abs() < 1e-6, "{sum}");
                    }
                }
            }
        }
    }
}
