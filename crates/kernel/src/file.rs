//! Files and folders that nobody else can exchange.

pub mod folder;
pub mod named_file;
pub mod records;
