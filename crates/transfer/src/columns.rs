//! Quantities as columns of a result row: whole numbers, with the unit in the column's name.

use fullpipe_model::units::{Bytes, Duration, Instant};
use serde::Serializer;

/// For columns `.._us`.
pub(crate) fn micros<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(duration.as_micros())
}

/// For columns `.._bytes`.
pub(crate) fn count<S: Serializer>(amount: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(amount.get())
}

/// For columns `.._bytes` that may be unknown.
pub(crate) fn count_if_known<S: Serializer>(amount: &Option<Bytes>, serializer: S) -> Result<S::Ok, S::Error> {
    match amount {
        Some(amount) => serializer.serialize_some(&amount.get()),
        None => serializer.serialize_none(),
    }
}

/// For columns `.._ns` on `CLOCK_MONOTONIC`.
pub(crate) fn nanos<S: Serializer>(instant: &Instant, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(instant.as_nanos())
}
