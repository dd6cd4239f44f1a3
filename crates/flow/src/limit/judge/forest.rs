//! A forest of decision trees: each tree asks a few questions about traits and ends at how often
//! each cause was the true one where the answers were the same; the forest is their mean
//! (Geurts, Ernst, Wehenkel: Extremely randomized trees, Machine Learning 63, 2006).
//!
//! The table is made by `cargo xtask judge` and committed. Its bytes: the number of traits (1), of
//! trees (2), the sharpness (4, float), the typical value of each trait (4 each, float); then each
//! tree: its number of nodes (2) and its nodes ([`NODE`] bytes each). A node begins with the number
//! of the trait that it asks about; the node that follows at once is that of traits up to the
//! threshold (float, bytes 3 to 6), bytes 1 and 2 name the other. [`LEAF`] in place of a trait is
//! followed by the part of each class, in 255ths. All numbers are little-endian.

/// What a transfer can turn out to be: the limits in their order, and a policer, which the verdict
/// calls a link.
pub const CLASSES: usize = 8;
/// Bytes of a node.
pub const NODE: usize = 1 + CLASSES;
/// In place of a trait's number: the tree ends here.
pub const LEAF: u8 = 255;
/// No tree is deeper: what a broken table can cost.
const DEPTH_MAX: usize = 64;

/// A table, read where it lies.
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

    /// How many traits it asks about.
    pub fn traits(&self) -> usize {
        self.typical.len()
    }

    /// What each trait is in the middle of all transfers that it was trained with.
    pub fn typical(&self) -> &[f32] {
        &self.typical
    }

    /// How likely each class is; they sum to 1. `None` where the traits are not those that it
    /// was trained with.
    pub fn weigh(&self, traits: &[f32]) -> Option<[f64; CLASSES]> {
        if traits.len() != self.typical.len() || self.trees.is_empty() {
            return None;
        }
        let mut sum = [0.0; CLASSES];
        for tree in &self.trees {
            let leaf = walk(tree, traits)?;
            let all: f64 = leaf.iter().map(|part| f64::from(*part)).sum();
            for (sum, part) in sum.iter_mut().zip(leaf) {
                *sum += f64::from(*part) / all.max(1.0);
            }
        }
        // A mean of many trees is less sure than it is right: the exponent was fitted on transfers
        // that the trees had not seen.
        let sharp = sum.map(|part| (part / self.trees.len() as f64).powf(self.sharpness.into()));
        let all: f64 = sharp.iter().sum();
        (all > 0.0).then(|| sharp.map(|part| part / all))
    }
}

/// The leaf at which a tree ends.
fn walk<'t>(tree: &'t [[u8; NODE]], traits: &[f32]) -> Option<&'t [u8]> {
    let mut at = 0;
    for _ in 0..DEPTH_MAX {
        let [number, rest @ ..] = tree.get(at)?;
        if *number == LEAF {
            return Some(rest);
        }
        let [low, high, a, b, c, d, ..] = *rest;
        let threshold = f32::from_le_bytes([a, b, c, d]);
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

    /// One tree: trait 0 up to 0.5 is class 1, above class 2 or 3.
    fn table() -> Vec<u8> {
        let mut bytes = vec![1];
        bytes.extend(1u16.to_le_bytes());
        bytes.extend(1f32.to_le_bytes());
        bytes.extend(0.25f32.to_le_bytes());
        bytes.extend(3u16.to_le_bytes());
        let [a, b, c, d] = 0.5f32.to_le_bytes();
        bytes.extend([0, 2, 0, a, b, c, d, 0, 0]);
        bytes.extend([LEAF, 0, 255, 0, 0, 0, 0, 0, 0]);
        bytes.extend([LEAF, 0, 0, 191, 64, 0, 0, 0, 0]);
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
                    if let Some(parts) = forest.weigh(&traits) {
                        let sum: f64 = parts.iter().sum();
                        proptest::prop_assert!((sum - 1.0).abs() < 1e-6, "{sum}");
                    }
                }
            }
        }
    }
}
