//! The window agent: on a stock kernel, the receive window of each TCP connection of a control
//! group follows the rate at which its application reads.
//!
//! How to think about it: `bpf/window.bpf.c` runs in the kernel, just before it chooses the window
//! of an acknowledgement, and computes the law of [`fullpipe_model::tune::window_control`], written
//! once more in C (`bpf/window_law.h`); `tests/law.rs` demands equal answers of both. This crate
//! loads that program, attaches it to a control group, and reads what it notes once in a round
//! trip. Who drives: `fullpipe window`. Nothing here runs for a packet.
//!
//! However this process ends, the kernel detaches the program with its descriptor. Connections go
//! on with the buffer that they have: at least what `tcp_rmem[2]` allows.
//!
//! [`Agent`] is the one door to a BPF object from C; `kernel::bpf` has the link's programs of a few
//! instructions each, which it writes itself. The object is committed, so cargo alone builds the
//! product; `cargo xtask bpf` builds it anew.
#![forbid(unsafe_code)]

mod agent;
mod connection;
mod options;
mod wire;

pub use agent::{Adopted, Agent, AgentError};
pub use connection::Connection;
pub use options::AgentOptions;
