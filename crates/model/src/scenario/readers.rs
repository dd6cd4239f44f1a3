//! Connections whose readers differ: `[[transfer.readers]]`.

use crate::units::{Rate, written};

/// Some connections of a transfer, all with the same kind of reader.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Readers {
    /// How many.
    #[serde(deserialize_with = "written::count")]
    pub connections: u32,
    /// Each reads no faster than this; `None`: as fast as it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_rate: Option<Rate>,
}
