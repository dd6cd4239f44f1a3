//! Quantities and laws of a TCP transfer over a path. This crate has no sockets, no files, no
//! clock, and no randomness of its own.
//!
//! * [`units`]: bytes, rates, times and windows as types that never confuse bit and byte, decimal
//!   and binary.
//! * [`law`]: one formula in each file, with its source.
//! * [`limit`]: what limits a transfer, in one vocabulary for laws, verdicts, plans, rows and text.
//! * [`link`]: the emulated path as a state machine that gets the time as an argument.
//! * [`scenario`]: an experiment as plain data.
//! * [`observe`]: what a kernel says of a socket.
//! * [`change`]: what of a host can be set, to which value, and why.
//! * [`tune`]: from a path and its hosts to the settings that fill it, each with its reason; the
//!   changes to try on a measured path ([`tune::prove`]); the receive window that follows the
//!   reader ([`tune::window_control`]).
// The example of the crate's page compiles.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]
#![forbid(unsafe_code)]

pub mod change;
pub mod law;
pub mod limit;
pub mod link;
pub mod observe;
pub mod scenario;
pub mod tune;
pub mod units;
