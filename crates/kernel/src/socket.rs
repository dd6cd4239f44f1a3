//! Sockets: what the kernel says of them, and how they are set up.

pub mod congestion;
pub mod connection_request;
pub mod pacing;
pub mod sock_diag;
pub mod socket_buffers;
pub mod socket_options;
pub mod transparent;
