//! What is said of connections: analysed from a capture, followed on this host, or measured by a
//! test.

pub mod account;
pub mod analysis;
pub mod both;
pub mod comments;
mod http2;
pub mod live;
pub mod path_test;
mod spoken;

pub use http2::http2;
pub use spoken::spoken;
