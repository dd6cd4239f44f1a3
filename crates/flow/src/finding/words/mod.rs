//! What is found, in words: the one catalogue of sentences for findings and for what lies behind
//! them, in each [`Language`]. The functions here are English; the other languages' have their
//! names.
//!
//! Whatever finds something says which it is and gives the numbers ([`crate::finding::Finding`],
//! [`SubCause`], [`crate::finding::Remedy`]). What people read of it is made here, and nothing
//! reads these sentences again. Rows (JSON, Parquet, Python) have them too, so they are made beside
//! the tables of the rows.

mod in_language;
mod limit;
mod machine;
mod packets;
mod remedy;
mod rows;
mod socket;
mod zh;

pub use limit::{claim, doubt, event};
pub use machine::machine_limit;
pub use packets::with_commas;
pub use remedy::remedy;
pub(crate) use rows::serialize_remedy;

use crate::diagnosis::SubCause;
use crate::language::Language;

/// What lies behind a limit, in one sentence.
pub fn sub_cause(cause: &SubCause) -> String {
    Language::English.sub_cause(cause)
}
