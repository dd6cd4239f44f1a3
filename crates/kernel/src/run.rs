//! A run: the namespaces that it lives in, its name, and what must be removed after it.

pub mod journal;
pub mod names;
pub mod outside;
pub mod sandbox;
