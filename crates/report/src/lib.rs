//! Results as tables and text.
//!
//! Everything here is pure: results in, a `String` out. The width of the terminal, its character
//! set and its colours are arguments ([`Layout`]); there is no clock, no environment, no printing.
//! JSON needs nothing from here: results serialise themselves, with the unit in each field's name.
//!
//! * [`Table`]: columns with their unit in the heading, figures right-aligned; quantities as
//!   figures of such a column ([`table::figure`]), sentences wrapped to the width
//!   ([`table::paragraph`]).
//! * [`connection`]: analysed captures, the answers of `fullpipe why`, tests between two hosts.
//! * [`runs`]: results of the lab, before and after a change, beside published figures, and what
//!   they prove.
//! * [`plan`]: a tuning plan with its reasons, ready to paste; one for a single host, also as the
//!   text of other tools; the answers of `fullpipe calc`.
//! * [`graph`]: the graphs of a connection, in a terminal and as pictures.
//! * [`page`]: the report as one HTML file.
//! * [`agent`]: bounded answers for programs that read language.
#![forbid(unsafe_code)]

pub mod agent;
mod cells;
pub mod connection;
#[cfg(test)]
mod facts;
pub mod graph;
mod labels;
mod layout;
pub mod page;
pub mod plan;
pub mod runs;
pub mod table;
mod terms;

pub use layout::{Charset, Layout, Tone};
pub use table::{Column, Table};
