//! The graphs of a connection, to be drawn in a terminal ([`plot`]) or as pictures ([`svg`]).
//!
//! [`graphs`] makes them of the points of a trace: time-sequence, throughput, round trips, window
//! and bytes in flight; [`pair_graphs`] of what two captures saw. A line is resampled to the
//! columns of the picture, with the least and the greatest value of each, so that a picture of a
//! million packets is as small as any other, and shows each peak.

mod axis;
mod line;
mod of_pair;
mod of_trace;
mod plot;
mod svg;

pub use line::{Graph, Line, Quantity, Shape};
pub use of_pair::pair_graphs;
pub use of_trace::graphs;
pub use plot::plot;
pub(crate) use svg::escaped;
pub use svg::{Theme, svg};

#[cfg(test)]
mod tests;
