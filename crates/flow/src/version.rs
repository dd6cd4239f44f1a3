//! The version of the schema, in everything that is written.

use serde::Serialize;

/// The version of every table. It changes with a column's name, kind, unit or meaning, and when a
/// column goes. Version 1 is everything that was written before outputs said their version.
pub const SCHEMA_VERSION: u32 = 2;

/// The version of the schema that something was written by; that of this build by default.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(transparent)]
pub struct Version(pub u32);

impl Version {
    /// Of outputs that do not say it.
    pub const fn unsaid() -> Self {
        Version(1)
    }
}

impl Default for Version {
    fn default() -> Self {
        Version(SCHEMA_VERSION)
    }
}

/// Something that is written with its schema's version.
#[derive(Debug, Serialize)]
pub struct Versioned<T> {
    schema: Version,
    #[serde(flatten)]
    what: T,
}

impl<T> Versioned<T> {
    /// By this build's version.
    pub fn new(what: T) -> Self {
        Versioned { schema: Version::default(), what }
    }
}
