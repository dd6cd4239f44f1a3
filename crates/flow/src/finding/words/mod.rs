//! What is found, in English: the one catalogue of sentences for findings and for what lies behind
//! them.
//!
//! Whatever finds something says which it is and gives the numbers ([`crate::finding::Finding`],
//! [`SubCause`], [`crate::finding::Remedy`]). What people read of it is made here, and nothing
//! reads these sentences again. Rows (JSON, Parquet, Python) have them too, so they are made beside
//! the tables of the rows.

mod limit;
mod machine;
mod packets;
mod remedy;
mod rows;
mod socket;

pub use limit::{claim, doubt, event};
pub use machine::machine_limit;
pub use remedy::remedy;
pub(crate) use rows::serialize_remedy;

use crate::diagnosis::SubCause;

/// What lies behind a limit, in one sentence.
pub fn sub_cause(cause: &SubCause) -> String {
    match cause {
        SubCause::Packets(cause) => packets::claim(*cause),
        SubCause::Socket(cause) => socket::claim(cause),
        SubCause::Machine(cause) => machine::claim(cause),
    }
}
