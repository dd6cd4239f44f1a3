//! Results as tables and text.
//!
//! Everything here is pure: results in, a `String` out. The width of the terminal, its character
//! set and its colours are arguments ([`Layout`]); there is no clock, no environment, no printing.
//! JSON needs nothing from here: results serialise themselves, with the unit in each field's name.
//!
//! * [`Table`]: columns with their unit in the heading, figures right-aligned.
//! * [`figure`]: quantities as figures of such a column.
//! * [`paragraph`]: sentences wrapped to the width, with a hanging indent.
//! * [`analysis`]: analysed captures, for `fullpipe analyze`.
//! * [`compare`]: two results side by side, and what changed.
//! * [`convert`]: a rate in every unit.
//! * [`calc`]: the answers of `fullpipe calc`.
//! * [`rows`]: results of the lab, in a table or before and after a change.
//! * [`reference`](mod@reference): the same beside published figures.
//! * [`graph`]: the graphs of a connection, in a terminal and as pictures.
//! * [`live`]: the answers of `fullpipe why`.
//! * [`page`]: the report as one HTML file.
//! * [`path_test`]: the runs of a test between two hosts.
//! * [`plan`]: a tuning plan with its reasons, ready to paste.
//! * [`host_plan`]: one for a single host, also as the text of other tools.
//! * [`proof`]: what the lab says of a measured path.
#![forbid(unsafe_code)]

pub mod account;
pub mod analysis;
pub mod calc;
mod cells;
pub mod compare;
pub mod convert;
pub mod escape;
pub mod figure;
pub mod graph;
pub mod host_plan;
mod layout;
pub mod live;
pub mod page;
pub mod paragraph;
pub mod path_test;
pub mod plan;
pub mod proof;
pub mod reference;
pub mod rows;
pub mod table;

pub use layout::{Charset, Layout, Tone};
pub use table::{Column, Table};
