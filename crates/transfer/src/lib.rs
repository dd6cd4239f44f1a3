//! Bytes over sockets: an HTTP/1.1 server, a download that measures, and a downloader.
//!
//! [`get()`] fetches files for a user: with TLS, HTTP/2, proxies, resumption, a limit on the rate,
//! and as many connections as pay. The rest of this page is about the first two, which measure.
//!
//! [`Server`] and [`download`] exist so that an experiment needs no other program, and so that each
//! of TCP's limits can be produced on purpose: by a server that writes slowly
//! ([`ServerOptions::write_rate`]), a client that reads slowly ([`DownloadOptions::read_rate`]), a
//! small `SO_SNDBUF` or `SO_RCVBUF`. [`UploadServer`] and [`upload`] are the same for data that the
//! end sends which opens the connection.
//! The tests run both ends against the real programs, curl and nginx.
//!
//! [`Store`] puts objects into a store that speaks S3.
//!
//! **Threads.** Everything runs on the calling thread: it creates sockets, looks up names, reads
//! and writes files. The caller may have put that thread into a network namespace, pinned it to a
//! core or changed its niceness, and the transfer is subject to that. So a blocking file read
//! stalls the other connections of the same server, as in nginx without `aio threads`.
//!
//! **Stopping.** A [`Stop`] given to the call ends it from any other thread.
//!
//! **Time.** Durations are counted from the start of a call; [`Download::started`] relates them to
//! `CLOCK_MONOTONIC`.
//!
//! ```
//! use fullpipe_transfer::{
//!     DownloadOptions, DownloadRequest, Resource, Server, ServerOptions, Stop, download,
//! };
//! let server = Server::bind(ServerOptions::default()).unwrap();
//! let resource = Resource { server: server.local_addr(), path: "/bytes/1MiB".into() };
//! let stop = Stop::new();
//! let serving = std::thread::spawn({
//!     let stop = stop.clone();
//!     move || server.run(&stop)
//! });
//! let options = DownloadOptions { verify: true, ..Default::default() };
//! let request = DownloadRequest { resource, options };
//! let got = download(&request, &Stop::new(), &mut |_event| {}).unwrap();
//! assert_eq!(got.body, "1MiB".parse().unwrap());
//! stop.stop();
//! assert_eq!(serving.join().unwrap().unwrap().requests, 1);
//! ```
#![forbid(unsafe_code)]

mod causes;
mod clock;
pub mod content;
pub mod count;
mod download;
mod get;
pub mod pace;
mod pacing;
mod server;
mod stop;
mod store;
mod upload;

pub use download::{
    Connected, Download, DownloadError, DownloadEvent, DownloadOptions, DownloadOutcome,
    DownloadPhase, DownloadRequest, Interval, ReadPauses, RequestPhase, Resource, Timing, download,
    download_all,
};
pub use get::{
    Connections, Diagnosis, Distrusted, Family, GetError, GetEvent, GetNotice, GetOptions,
    GetRequest, Got, Kept, LimiterKind, Reason, Step, Target, get,
};
pub use server::{Limits, Served, Server, ServerError, ServerOptions};
pub use stop::Stop;
pub use store::{ParseStoreError, Store, StoreAccess, StoreAddress, StoreError};
pub use upload::{UploadServer, Uploaded, upload};
