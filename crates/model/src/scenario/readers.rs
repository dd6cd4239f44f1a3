//! Connections whose readers differ: `[[transfer.readers]]`.

use super::file::TransferFile;
use super::{Client, Server};
use crate::units::{Rate, written};

/// As many connections as a guest with its usual memory holds.
const CONNECTIONS_MAX: u32 = 4000;

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

/// Checks the readers of a file.
pub(super) fn check(file: &TransferFile, server: Server, client: Client) -> Result<(), String> {
    if file.readers.is_empty() {
        return Ok(());
    }
    if (server, client) != (Server::Builtin, Client::Builtin) || file.upload {
        return Err("transfer.readers works with server = \"builtin\" and client = \"builtin\" \
                    only, and not with upload"
            .into());
    }
    if file.read_rate.is_some() || file.read_pause.is_some() {
        return Err("give transfer.readers a read_rate each, and transfer none".into());
    }
    if file.readers.iter().flat_map(|one| one.read_rate).any(|rate| rate.bits_per_sec() < 8_000) {
        return Err("transfer.readers.read_rate must be at least 1 kB/s".into());
    }
    let most = CONNECTIONS_MAX;
    let counts = file.readers.iter().map(|one| one.connections);
    let sum = counts.clone().fold(0, u32::saturating_add);
    if counts.clone().any(|count| count == 0) || sum > most {
        return Err(format!(
            "transfer.readers: each needs a connection, and together they have at most {most}"
        ));
    }
    Ok(())
}
