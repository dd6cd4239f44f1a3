//! Analyses captures: from files to TCP connections, each with what limited it. This crate adds
//! files, decompression, merging by time and threads to the pure analysis of `fullpipe-flow`.
//!
//! * [`files`], [`reader`] and [`bytes`] do the main job: iterators of connections, as they finish.
//! * [`Capture`] is the input: a file, several files merged by time, a reader, or bytes. It gives
//!   [`Connections`], [`LabelledPackets`], or raw packets ([`Capture::for_each_packet`]).
//! * Samples of sockets that `fullpipe why --record` wrote are read like a capture, where
//!   [`Capture::or_recording`] says so.
//! * [`Options`] say how to analyse, and with how many threads. The result does not depend on their
//!   number.
//!
//! Memory grows with the number of open connections, not with the capture. Nothing is printed here.
//!
//! ```
//! use fullpipe_analyze::{Options, bytes};
//! # use fullpipe_flow::capture::write;
//! # use fullpipe_model::units::Instant;
//! # let ip = [0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
//! # let tcp = [0x9c, 0x40, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0xff, 0xff, 0, 0, 0, 0];
//! # let packet = [&ip[..], &tcp].concat();
//! # let header = write::record_header(Instant::from_nanos(1), 40, 40);
//! # let capture = [&write::file_header(65_535)[..], &header, &packet].concat();
//! for connection in bytes(capture, &Options::default()) {
//!     let connection = connection?.connection;
//!     println!("{} to {}", connection.client, connection.server);
//!     # assert_eq!(connection.server.port(), 80);
//! }
//! # Ok::<(), fullpipe_analyze::Error>(())
//! ```
// The example of the crate's page compiles.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]
#![forbid(unsafe_code)]

mod capture;
mod connections;
mod drive;
mod error;
mod feed;
mod in_order;
mod numbers;
mod options;
mod origin;
mod packets;
mod recording;
mod relay;
mod rounds;
mod stream;

pub use capture::{Capture, by_first_packet, bytes, files, reader};
pub use connections::Connections;
pub use error::{Error, what_is_missing};
pub use options::Options;
pub use packets::{LabelledPacket, LabelledPackets};
pub use recording::SAMPLES_MAX;
