//! A table of trees as it is stored: the nodes' first bytes one after another, then their second
//! ones, and so on. What is alike stands together, so it is packed to a tenth less.

use super::boosted_trees::{CLASSES, NODE};
use flate2::read::GzDecoder;
use std::io::Read;

/// How a table is divided.
struct Parts<'a> {
    /// What comes before the trees.
    head: &'a [u8],
    /// How many trees there are.
    trees: usize,
    rest: &'a [u8],
}

fn parts(table: &[u8]) -> Option<Parts<'_>> {
    let [traits, low, high, ..] = *table else { return None };
    let (head, rest) = table.split_at_checked(3 + 4 * CLASSES + 4 * usize::from(traits))?;
    let trees = usize::from(u16::from_le_bytes([low, high])) * CLASSES;
    Some(Parts { head, trees, rest })
}

fn nodes(count: [u8; 2]) -> usize {
    usize::from(u16::from_le_bytes(count)) * NODE
}

/// Of a table that [`BoostedTrees`](super::BoostedTrees) reads, what is stored, before it is
/// compressed; `None` where it is cut short.
pub fn pack(table: &[u8]) -> Option<Vec<u8>> {
    let Parts { head, trees, mut rest } = parts(table)?;
    let (mut packed, mut all) = (head.to_vec(), Vec::new());
    for _ in 0..trees {
        let (count, after) = rest.split_first_chunk()?;
        let (of_tree, after) = after.split_at_checked(nodes(*count))?;
        packed.extend(count);
        all.extend(of_tree);
        rest = after;
    }
    packed.extend((0..NODE).flat_map(|byte| all.iter().skip(byte).step_by(NODE)));
    rest.is_empty().then_some(packed)
}

/// The table of what is stored; `None` where that is damaged.
pub(super) fn unpack(stored: &[u8]) -> Option<Vec<u8>> {
    let mut packed = Vec::new();
    GzDecoder::new(stored).read_to_end(&mut packed).ok()?;
    let Parts { head, trees, rest } = parts(&packed)?;
    let (counts, planes) = rest.split_at_checked(2 * trees)?;
    let count = planes.len() / NODE;
    let mut all = (0..count).flat_map(|at| (0..NODE).map(move |byte| planes[byte * count + at]));
    let mut table = head.to_vec();
    for of_tree in counts.as_chunks().0 {
        table.extend(of_tree);
        table.extend(all.by_ref().take(nodes(*of_tree)));
    }
    Some(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use proptest::prelude::*;
    use std::io::Write;

    fn stored(bytes: &[u8]) -> Vec<u8> {
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        packed.write_all(bytes).unwrap();
        packed.finish().unwrap()
    }

    proptest! {
        #[test]
        fn what_is_stored_is_the_table(
            traits in 0..9_u8,
            trees in prop::collection::vec(prop::collection::vec(any::<[u8; NODE]>(), 0..9), 2 * CLASSES),
        ) {
            let mut table = vec![traits, 2, 0];
            table.extend((0..4 * (CLASSES + usize::from(traits))).map(|at| at as u8));
            for tree in &trees {
                table.extend((tree.len() as u16).to_le_bytes());
                table.extend(tree.as_flattened());
            }
            prop_assert_eq!(unpack(&stored(&pack(&table).unwrap())), Some(table.clone()));
            prop_assert_eq!(pack(&table[..table.len() - 1]), None);
        }

        #[test]
        fn damaged_bytes_are_no_table_and_no_panic(bytes: Vec<u8>) {
            let _ = unpack(&stored(&bytes));
            prop_assert_eq!(unpack(&bytes), None);
        }
    }
}
