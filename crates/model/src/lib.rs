//! Quantities and laws of a TCP transfer over a path: no sockets, no files, no clock, no randomness
//! of its own.
//!
//! * [`units`]: bytes, rates, times and windows as types that never confuse bit and byte, decimal
//!   and binary.
//! * [`law`]: one formula a file, each with its source.
//! * [`limit`]: what limits a transfer, in one vocabulary for laws, verdicts, plans, rows and text.
//! * [`link`]: the emulated path as a state machine that is told the time.
//! * [`scenario`]: what an experiment is, as plain data.
//! * [`tune`]: from a path and its hosts to the settings that fill it, each with its reason.
#![forbid(unsafe_code)]

pub mod law;
pub mod limit;
pub mod link;
pub mod scenario;
pub mod tune;
pub mod units;
