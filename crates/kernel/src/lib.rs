//! Every call to Linux: namespaces, devices, sysctls, socket state, scheduling, clocks.
//!
//! The rule of this crate is **clean-up by construction, a journal for the rest**. Nothing gets a
//! name in the host: network namespaces, devices and sysctls depend on file descriptors and
//! processes, and all processes of a run live in one PID namespace ([`run::sandbox`]). When that
//! ends, however it ends, they end. What the kernel does not remove by itself (a scratch directory)
//! is written to the [`run::journal`] before it is made.
//!
//! * [`run`]: a run, and what must be removed after it.
//! * [`network`]: namespaces, devices, routes of packets.
//! * [`socket`]: what the kernel says of sockets, and how they are set up.
//! * [`process`]: processes, threads and CPUs.
//! * [`bpf`]: small programs in the kernel.
//! * [`file`](mod@file): files that nobody else can exchange.
//! * [`host`]: this machine, its sysctls and its clock.
//! * [`guest`]: the duties of a guest's first process.
//!
//! Unsafe code is allowed only here in the workspace; each block says why it is sound.

pub mod bpf;
pub mod file;
pub mod guest;
pub mod host;
pub mod network;
pub mod process;
mod refused;
pub mod run;
pub mod socket;

pub use refused::Refused;
