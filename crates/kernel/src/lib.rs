//! Every call to Linux: namespaces, devices, sysctls, socket state, scheduling, clocks.
//!
//! The rule of this crate is **clean-up by construction, a journal for the rest**. Nothing gets a
//! name in the host: network namespaces, devices and sysctls depend on file descriptors and
//! processes, and all processes of a run live in one PID namespace ([`sandbox`]). When that ends,
//! however it ends, they end. What the kernel does not remove by itself (a scratch directory) is
//! written to the [`journal`] before it is made.
//!
//! Unsafe code is allowed only here in the workspace; each block says why it is sound.

pub mod background;
pub mod bpf;
mod btf;
pub mod child;
pub mod clock;
pub mod congestion;
pub mod connection_request;
pub mod constant_window;
pub mod descriptors;
pub mod ethtool;
pub mod filters;
pub mod folder;
pub mod guest;
pub mod host;
pub mod journal;
pub mod named_file;
pub mod names;
pub mod netem;
pub mod netlink;
pub mod netns;
pub mod outside;
pub mod pacing;
mod packet_drops;
pub mod packet_ring;
pub mod port;
pub mod processes;
pub mod program;
pub mod records;
pub mod redirect;
mod refused;
pub mod sandbox;
pub mod sched;
pub mod sock_diag;
pub mod socket_buffers;
pub mod socket_options;
pub mod suspend;
pub mod sysctl;
pub mod transparent;
pub mod wait;
pub mod wire;

pub use refused::Refused;
