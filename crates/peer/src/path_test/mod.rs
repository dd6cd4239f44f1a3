//! A test of the path between two hosts: both ends of it.
//!
//! [`Responder`] is the far end, a [`Service`](crate::Service) of a
//! [`Daemon`](crate::Daemon). [`Tester`] is the near end: it opens the control connection,
//! and each [`Tester::run`] is one run, with data one way or both ways. Both ends sample their
//! sockets while data flows. How a socket is sampled is the caller's: it passes a [`Sampler`],
//! because only the kernel's room may ask the kernel.
//!
//! The order of messages is that of [`TestRequest`]: `hello`, `clock` some times, `mtu` where the
//! path MTU is asked for ([`Tester::path_mtu`]), then for each run `prepare`, `start`, `finish`,
//! and `samples` as often as there are pieces.
//!
//! **Data.** A thread for each connection writes 128 KiB at a time from one buffer, or reads into
//! one. A run by time ends when the sender's time is over: what is still in its buffer is dropped
//! with a reset, so that a slow path does not have to carry it. A run by bytes ends when the
//! receiver has read the last of them.

mod data;
mod error;
mod message;
mod mtu;
mod responder;
mod running;
mod sampler;
mod samples;
mod tester;

pub use error::TestError;
pub use message::{Amount, Response, Spec, TestDirection, TestRequest};
pub use mtu::PathMtu;
pub use responder::{Responder, ResponderLimits};
pub use sampler::{Ends, HostFacts, Sampler, Sampling};
pub use samples::{PackError, unpack};
pub use tester::{Outcome, Progress, Tester};
