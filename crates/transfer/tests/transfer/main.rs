//! Both ends against each other, against real programs, and against peers that misbehave.
//!
//! * `ends`: our client and our server, and what their options promise.
//! * `peers`: curl against our server; our client against nginx and Python. Skipped loudly where
//!   not installed.
//! * `get_peers`: our downloader with nginx (TLS, HTTP/2) and by proxies.
//! * `get_versions`: one version of a file, and nobody else's, under the final name.
//! * `client_hostile`, `get_hostile`, `server_hostile`: raw sockets that break the rules.

mod client_hostile;
mod ends;
mod fixture;
mod get_hostile;
mod get_peers;
mod get_versions;
mod peers;
mod server_hostile;
