//! The machine in front of the user: its sockets and its settings.
//!
//! * [`watch`]: the host's connections, looked at again and again.
//! * [`settings`]: what this machine's settings are, as the laws need them.
//!
//! This room reads the machine; it changes nothing unless it was asked to.
#![forbid(unsafe_code)]

pub mod settings;
pub mod watch;
