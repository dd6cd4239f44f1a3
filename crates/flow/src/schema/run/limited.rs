//! A limit from two columns of a row: its name and, for a congestion window, the cause.

use fullpipe_model::limit::Limit;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

#[derive(Deserialize)]
struct ByCapture {
    #[serde(default)]
    limited_by: Option<String>,
    #[serde(default)]
    limit_cause: Option<String>,
}

/// From `limited_by` and `limit_cause`.
pub(super) fn by_capture<'de, D: Deserializer<'de>>(d: D) -> Result<Limit, D::Error> {
    let ByCapture { limited_by, limit_cause } = ByCapture::deserialize(d)?;
    Ok(read(limited_by, limit_cause)?.unwrap_or_default())
}

#[derive(Deserialize)]
struct BySockets {
    #[serde(default)]
    limited_by_sockets: Option<String>,
    #[serde(default)]
    limit_cause_sockets: Option<String>,
}

/// From `limited_by_sockets` and `limit_cause_sockets`. Old rows do not have the second column; a
/// congestion window is then read as unknown.
pub(super) fn by_sockets<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Limit>, D::Error> {
    let BySockets { limited_by_sockets, limit_cause_sockets } = BySockets::deserialize(d)?;
    if limited_by_sockets.as_deref() == Some("congestion_window") && limit_cause_sockets.is_none() {
        return Ok(None);
    }
    read(limited_by_sockets, limit_cause_sockets)
}

fn read<E: Error>(name: Option<String>, cause: Option<String>) -> Result<Option<Limit>, E> {
    let Some(name) = name.filter(|name| !name.is_empty()) else { return Ok(None) };
    match Limit::from_names(&name, cause.as_deref()) {
        Some(limit) => Ok(Some(limit)),
        None => {
            Err(E::custom(format!("reading a row: '{name}' with the cause {cause:?} is no limit")))
        }
    }
}
