//! A scenario becomes two hosts, a link between them, a transfer over it, captures, socket samples, and results.
//!
//! The only room that combines the shells. [`link`] is the emulated path between two ports; the rest follows.
#![forbid(unsafe_code)]

pub mod hosts;
pub mod link;
pub mod preset;
