//! The relay's protocol, two ends in virtual time: any order of events gives the whole stream or an
//! error, and carriers are used for what they can carry.
#![allow(clippy::print_stderr)] // Figures of the simulation, for who runs it with --nocapture.

mod interleavings;
mod network;
mod simulation;
mod transfer;
