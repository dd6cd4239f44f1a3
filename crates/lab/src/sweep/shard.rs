//! A part of a sweep, so that several machines, or the jobs of a batch system, run it together.
//!
//! A run belongs to a shard by its place in the whole sweep alone, so shards are disjoint and
//! together complete, whoever runs which. The inner lists of a matrix repeat, and what a run costs
//! often depends on them. Dealt out in turn, 16 shards of a matrix with 16 rates would have one
//! rate each; so each round of dealing begins one shard later.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The most shards of a sweep: each may have one of the most runs that a command has.
const SHARDS_MAX: usize = 10_000;

/// One of several shards of a sweep, as `3/16`: the third of sixteen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Shard {
    /// From 1.
    number: usize,
    of: usize,
}

/// Why a text names no shard.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("shard '{0}': {1}; write for example 3/16, the third of sixteen")]
pub struct ShardError(String, &'static str);

impl Shard {
    /// Whether the run at `place` of the whole sweep, counted from 0, belongs to it.
    pub(crate) fn has(self, place: usize) -> bool {
        Shard::index_of(place, self.of) == self.number - 1
    }

    /// Of `of` shards, the one to which the run at `place` belongs, counted from 0.
    pub(crate) fn index_of(place: usize, of: usize) -> usize {
        (place % of + place / of) % of
    }

    /// Its number, from 1.
    pub(crate) fn number(self) -> usize {
        self.number
    }

    /// How many shards the sweep has.
    pub(crate) fn of(self) -> usize {
        self.of
    }
}

impl FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Shard, ShardError> {
        let wrong = |why| ShardError(text.into(), why);
        let (number, of) = text.split_once('/').ok_or_else(|| wrong("there is no slash"))?;
        let numbers = [number, of].map(|part| {
            let is_number = part.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| part.parse::<usize>().ok()).flatten()
        });
        let [Some(number), Some(of)] = numbers else {
            return Err(wrong("it is not two whole numbers"));
        };
        if of > SHARDS_MAX {
            return Err(wrong("a sweep has at most 10000 shards"));
        }
        if number == 0 || number > of {
            return Err(wrong("shards are counted from 1 to their number"));
        }
        Ok(Shard { number, of })
    }
}

impl TryFrom<String> for Shard {
    type Error = ShardError;

    fn try_from(text: String) -> Result<Shard, ShardError> {
        text.parse()
    }
}

impl From<Shard> for String {
    fn from(shard: Shard) -> String {
        shard.to_string()
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_names_no_shard_is_refused_with_the_reason() {
        assert_eq!("3/16".parse::<Shard>().unwrap().to_string(), "3/16");
        for (text, why) in [
            ("0/16", "counted from 1"),
            ("17/16", "counted from 1"),
            ("0/0", "counted from 1"),
            ("3", "no slash"),
            ("", "no slash"),
            ("a/b", "whole numbers"),
            ("-1/3", "whole numbers"),
            ("+1/3", "whole numbers"),
            ("1/", "whole numbers"),
            ("1/2/3", "whole numbers"),
            ("1/99999999999999999999", "whole numbers"),
            ("1/10001", "at most 10000"),
        ] {
            let error = text.parse::<Shard>().unwrap_err().to_string();
            assert!(error.contains(why) && error.contains("3/16"), "{text}: {error}");
        }
    }

    #[test]
    fn a_list_as_long_as_the_shards_is_spread_over_all_of_them() {
        let third: Shard = "3/16".parse().unwrap();
        let inner: Vec<usize> =
            (0..256).filter(|&place| third.has(place)).map(|place| place % 16).collect();
        let all = (0..16).all(|value| inner.contains(&value));
        assert!(all && inner.len() == 16, "{inner:?}");
    }

    proptest! {
        #[test]
        fn shards_are_disjoint_complete_and_of_similar_length(of in 1..40usize, runs in 0..400usize) {
            let mut lengths = vec![0; of];
            for place in 0..runs {
                let owners: Vec<usize> = (1..=of)
                    .filter(|&number| Shard { number, of }.has(place))
                    .collect();
                prop_assert_eq!(owners.len(), 1);
                lengths[owners[0] - 1] += 1;
            }
            let (least, most) = (lengths.iter().min().unwrap(), lengths.iter().max().unwrap());
            prop_assert!(most - least <= 1, "{:?}", lengths);
        }
    }
}
