//! A limit as two columns of a row: its name and, for a congestion window, the cause.

use fullpipe_model::limit::Limit;
use serde::de::Error;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serializer};

/// `limited_by` and `limit_cause`.
pub(super) mod by_capture {
    use super::*;

    #[derive(Deserialize)]
    struct Columns {
        #[serde(default)]
        limited_by: Option<String>,
        #[serde(default)]
        limit_cause: Option<String>,
    }

    pub(in crate::row) fn serialize<S: Serializer>(limit: &Limit, s: S) -> Result<S::Ok, S::Error> {
        let mut columns = s.serialize_map(Some(2))?;
        columns.serialize_entry("limited_by", limit.name())?;
        columns.serialize_entry("limit_cause", &limit.cause())?;
        columns.end()
    }

    pub(in crate::row) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Limit, D::Error> {
        let Columns { limited_by, limit_cause } = Columns::deserialize(d)?;
        Ok(read(limited_by, limit_cause)?.unwrap_or_default())
    }
}

/// `limited_by_sockets` and `limit_cause_sockets`. Old rows do not have the second column; a
/// congestion window is then read as unknown.
pub(super) mod by_sockets {
    use super::*;

    #[derive(Deserialize)]
    struct Columns {
        #[serde(default)]
        limited_by_sockets: Option<String>,
        #[serde(default)]
        limit_cause_sockets: Option<String>,
    }

    pub(in crate::row) fn serialize<S: Serializer>(
        limit: &Option<Limit>,
        s: S,
    ) -> Result<S::Ok, S::Error> {
        let mut columns = s.serialize_map(Some(2))?;
        columns.serialize_entry("limited_by_sockets", &limit.map(Limit::name))?;
        columns.serialize_entry("limit_cause_sockets", &limit.and_then(Limit::cause))?;
        columns.end()
    }

    pub(in crate::row) fn deserialize<'de, D: Deserializer<'de>>(
        d: D,
    ) -> Result<Option<Limit>, D::Error> {
        let Columns { limited_by_sockets, limit_cause_sockets } = Columns::deserialize(d)?;
        if limited_by_sockets.as_deref() == Some("congestion_window")
            && limit_cause_sockets.is_none()
        {
            return Ok(None);
        }
        read(limited_by_sockets, limit_cause_sockets)
    }
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
