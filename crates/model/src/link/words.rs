//! The words that describe one direction of a path: each may be given or left out, and some may
//! override others.
//!
//! A scenario's `[link]` with its `[link.to_client]`, the options of a command, and a change sent
//! over a control socket are all of this type; [`Words::config`] makes the same [`Config`] of each.

use super::{Chance, Config, ConfigError, Delay, Discipline, Loss, QueueLimit, RateWords};

/// Declares a table of optional keys that includes the words of a path, and `words()` to extract
/// them. So there is one list of words for every place where they can be written (serde cannot both
/// flatten and refuse unknown keys).
macro_rules! with_words {
    (
        $(#[$meta:meta])*
        pub struct $name:ident { $($(#[$field_meta:meta])* pub $field:ident: $type:ty,)* }
    ) => {
        $(#[$meta])*
        pub struct $name {
            $($(#[$field_meta])* pub $field: $type,)*
            /// Rate, with overhead: `1gbit`, `8mbit 8 48 5`.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub rate: Option<$crate::link::RateWords>,
            /// One-way delay with jitter: `100ms 10ms 30% distribution normal`.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub delay: Option<$crate::link::Delay>,
            /// Queue: `100kB`, `1000packets`, `20ms`, `1.5bdp`.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub queue: Option<$crate::link::QueueLimit>,
            /// Queue discipline: `codel target 5ms`.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub discipline: Option<$crate::link::Discipline>,
            /// Loss: `1%`, `gemodel 1% 10% 70% 0.1%`.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub loss: Option<$crate::link::Loss>,
            /// Duplication: `1%`.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub duplicate: Option<$crate::link::Chance>,
            /// Corruption: `0.1%`.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub corrupt: Option<$crate::link::Chance>,
            /// Reordering: `25% 50% gap 5`.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub reorder: Option<$crate::link::Reorder>,
            /// Bursts: `5ms 20ms packets 10`.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub slot: Option<$crate::link::Slot>,
            /// Changes over time: `5s rate 1mbit, 10s rate 10mbit`.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub changes: Option<$crate::link::Changes>,
        }

        impl $name {
            /// The words of a path in it.
            pub fn words(&self) -> $crate::link::Words {
                $crate::link::Words {
                    rate: self.rate,
                    delay: self.delay.clone(),
                    queue: self.queue,
                    discipline: self.discipline,
                    loss: self.loss,
                    duplicate: self.duplicate,
                    corrupt: self.corrupt,
                    reorder: self.reorder,
                    slot: self.slot.clone(),
                    changes: self.changes.clone(),
                }
            }
        }
    };
}
pub(crate) use with_words;

with_words! {
    /// The words that were written for one direction; the others come from what it overrides, or
    /// from the defaults.
    #[derive(Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct Words {}
}

impl Words {
    /// These words, completed by those of `below`.
    pub fn over(&self, below: &Words) -> Words {
        let above = self.clone();
        Words {
            rate: above.rate.or(below.rate),
            delay: above.delay.or_else(|| below.delay.clone()),
            queue: above.queue.or(below.queue),
            discipline: above.discipline.or(below.discipline),
            loss: above.loss.or(below.loss),
            duplicate: above.duplicate.or(below.duplicate),
            corrupt: above.corrupt.or(below.corrupt),
            reorder: above.reorder.or(below.reorder),
            slot: above.slot.or_else(|| below.slot.clone()),
            changes: above.changes.or_else(|| below.changes.clone()),
        }
    }

    /// Whether there are no words.
    pub fn is_empty(&self) -> bool {
        *self == Words::default()
    }

    /// The direction that they describe, unchecked: call [`Config::resolved`] and
    /// [`Config::checked`] next.
    pub fn unchecked(&self) -> Config {
        let words = self.clone();
        Config {
            delay: words.delay.unwrap_or_default(),
            rate: words.rate.map(|rate| rate.rate),
            overhead: words.rate.map(|rate| rate.overhead).unwrap_or_default(),
            queue: words.queue.unwrap_or_default(),
            discipline: words.discipline.unwrap_or_default(),
            loss: words.loss.unwrap_or_default(),
            duplicate: words.duplicate.unwrap_or_default(),
            corrupt: words.corrupt.unwrap_or_default(),
            reorder: words.reorder,
            slot: words.slot,
            changes: words.changes,
        }
    }

    /// The direction that they describe; `read` reads files.
    ///
    /// # Errors
    /// Values that are impossible, with the reason.
    pub fn config(
        &self,
        read: &mut dyn FnMut(&str) -> Result<Vec<u8>, String>,
    ) -> Result<Config, ConfigError> {
        self.unchecked().resolved(read)?.checked()
    }
}

impl From<&Config> for Words {
    /// The words for everything that is not the default.
    fn from(config: &Config) -> Self {
        let config = config.clone();
        fn unless_default<T: Default + PartialEq>(value: T) -> Option<T> {
            (value != T::default()).then_some(value)
        }
        Words {
            rate: config.rate.map(|rate| RateWords { rate, overhead: config.overhead }),
            delay: unless_default::<Delay>(config.delay),
            queue: unless_default::<QueueLimit>(config.queue),
            discipline: unless_default::<Discipline>(config.discipline),
            loss: unless_default::<Loss>(config.loss),
            duplicate: unless_default::<Chance>(config.duplicate),
            corrupt: unless_default::<Chance>(config.corrupt),
            reorder: config.reorder,
            slot: config.slot,
            changes: config.changes,
        }
    }
}
