//! Two results side by side: which figures changed, by how much, and whether that is more than
//! noise.
//!
//! Rows with the same name (scenario, case and place in the matrix) are compared; the repetitions
//! of a row are one sample. [`Comparison::new`] matches and measures, [`Noise`] says what a
//! difference is worth, a [`Bound`] says which one is too much, and [`Comparison::render`] prints
//! it. This module is pure: rows in, text out; [`rows`] parses them from the bytes of files.

mod bound;
mod figure;
mod noise;
mod read;
mod table;

pub use bound::{Bound, BoundError};
pub use figure::{FIGURES, Figure, Worse};
pub use noise::Noise;
pub use read::{RowsError, rows};
pub use table::Extent;

use fullpipe_flow::schema::{Clock, RunRow};
use serde::Serialize;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// The differences between two results.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    a: Side,
    b: Side,
    /// Names of rows that both sides have.
    compared: usize,
    /// Every figure that differs: goodput first, then the largest change.
    changes: Vec<Change>,
    /// Rows with another limit.
    limits: Vec<LimitChange>,
    /// Figures that a row has on one side only, for which no bound can be checked.
    not_compared: Vec<Missing>,
    only_in_a: Vec<String>,
    only_in_b: Vec<String>,
    /// Rows whose runs all failed on this side; they are not compared.
    failed_in_a: Vec<String>,
    failed_in_b: Vec<String>,
    /// If there are bounds: rows that failed in B and not in A. A missing figure is worse than any
    /// other.
    newly_failed: Vec<String>,
    /// Changes that exceed a bound.
    exceeded: Vec<Exceeded>,
}

/// One of the results.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Side {
    source: String,
    rows: usize,
    engines: Vec<String>,
    kernels: Vec<String>,
}

/// A figure of a row that differs between the sides.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    name: String,
    figure: &'static Figure,
    /// The means, in the unit of the figure's name.
    a: f64,
    b: f64,
    runs_a: usize,
    runs_b: usize,
    /// B minus A.
    change: f64,
    /// The change as a fraction of A; absent if A is zero.
    relative: Option<f64>,
    noise: Noise,
    /// Whether B is worse; absent if neither direction is, or if it is noise.
    worse: Option<bool>,
}

/// A row whose limit changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct LimitChange {
    name: String,
    a: String,
    b: String,
}

/// A figure that a row lacks on one side.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Missing {
    name: String,
    figure: &'static Figure,
    /// The side that has it: `a` or `b`.
    only_in: &'static str,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Exceeded {
    bound: String,
    name: String,
    figure: &'static Figure,
}

impl Change {
    fn new(name: String, figure: &'static Figure, a: &[f64], b: &[f64], noise: Noise) -> Change {
        let (mean_a, mean_b) = (noise::mean(a), noise::mean(b));
        let change = mean_b - mean_a;
        let worse = match figure.worse() {
            _ if noise == Noise::Within || change == 0.0 => None,
            Worse::Less => Some(change < 0.0),
            Worse::More => Some(change > 0.0),
            Worse::Neither => None,
        };
        Change {
            name,
            figure,
            a: mean_a,
            b: mean_b,
            runs_a: a.len(),
            runs_b: b.len(),
            change,
            relative: (mean_a != 0.0).then(|| change / mean_a),
            noise,
            worse,
        }
    }

    /// Goodput comes first, because people look for it; then the largest change.
    fn order(&self, other: &Change) -> Ordering {
        let by_figure = other.is_goodput().cmp(&self.is_goodput());
        by_figure.then(other.size().total_cmp(&self.size()))
    }

    fn is_goodput(&self) -> bool {
        self.figure.name() == "goodput_bps"
    }

    fn size(&self) -> f64 {
        self.relative.map_or(f64::INFINITY, f64::abs)
    }
}

/// Names of rows without a successful run, in order.
fn failed(rows: &[RunRow]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for row in rows.iter().filter(|row| row.is_failed()) {
        let is_done = rows.iter().any(|other| other.name == row.name && !other.is_failed());
        if !is_done && !names.contains(&row.name) {
            names.push(row.name.clone());
        }
    }
    names
}

/// The successful rows of each name, in the order of first appearance.
fn by_name(rows: &[RunRow]) -> (Vec<&str>, BTreeMap<&str, Vec<&RunRow>>) {
    let mut order = Vec::new();
    let mut groups: BTreeMap<&str, Vec<&RunRow>> = BTreeMap::new();
    for row in rows.iter().filter(|row| !row.is_failed()) {
        let group = groups.entry(&row.name).or_default();
        if group.is_empty() {
            order.push(row.name.as_str());
        }
        group.push(row);
    }
    (order, groups)
}

/// One side of a comparison.
#[derive(Debug, Clone, Copy)]
pub struct ComparedRows<'a> {
    /// Where its rows are from, for people.
    pub source: &'a str,
    /// Its rows.
    pub rows: &'a [RunRow],
}

impl Comparison {
    /// The changes from `a` to `b`, which are lists of rows.
    pub fn new(side_a: ComparedRows<'_>, side_b: ComparedRows<'_>, bounds: &[Bound]) -> Comparison {
        let (a, b) = (side_a.rows, side_b.rows);
        let ((order_a, in_a), (order_b, in_b)) = (by_name(a), by_name(b));
        let both: Vec<&str> =
            order_a.iter().copied().filter(|name| in_b.contains_key(name)).collect();
        let (failed_a, failed_b) = (failed(a), failed(b));
        let mut changes: Vec<Change> =
            both.iter().flat_map(|&name| changes(name, &in_a[name], &in_b[name])).collect();
        // A stable sort: equal ones keep the order of rows and figures.
        changes.sort_by(Change::order);
        let exceeded = changes.iter().flat_map(|change| {
            bounds.iter().filter(|bound| bound.is_exceeded(change)).map(|bound| Exceeded {
                bound: bound.to_string(),
                name: change.name.clone(),
                figure: change.figure,
            })
        });
        Comparison {
            a: Side::new(side_a.source, a),
            b: Side::new(side_b.source, b),
            compared: both.len(),
            limits: both
                .iter()
                .filter_map(|&name| limit_change(name, &in_a[name], &in_b[name]))
                .collect(),
            not_compared: both
                .iter()
                .flat_map(|&name| missing(name, &in_a[name], &in_b[name]))
                .collect(),
            only_in_a: lacking(&order_a, &in_b, &failed_b),
            only_in_b: lacking(&order_b, &in_a, &failed_a),
            newly_failed: if bounds.is_empty() {
                Vec::new()
            } else {
                failed_b.iter().filter(|name| in_a.contains_key(name.as_str())).cloned().collect()
            },
            failed_in_a: failed_a,
            failed_in_b: failed_b,
            exceeded: exceeded.collect(),
            changes,
        }
    }

    /// How many rows both sides have.
    pub fn compared(&self) -> usize {
        self.compared
    }

    /// How many rows failed on either side, so that they cannot be compared.
    pub fn failed(&self) -> usize {
        self.failed_in_a.len() + self.failed_in_b.len()
    }

    /// Whether a change exceeds a bound, or a row has lost the figures that a bound is for.
    pub fn is_worse(&self) -> bool {
        !self.exceeded.is_empty() || !self.newly_failed.is_empty()
    }
}

impl Side {
    fn new(source: &str, rows: &[RunRow]) -> Side {
        Side {
            source: source.into(),
            rows: rows.len(),
            engines: distinct(rows.iter().map(|row| row.engine.name().into())),
            kernels: distinct(rows.iter().map(|row| row.kernel.clone())),
        }
    }
}

/// The names of one side that the other has neither as a row nor as a failed one.
fn lacking(names: &[&str], other: &BTreeMap<&str, Vec<&RunRow>>, failed: &[String]) -> Vec<String> {
    let not_there = names.iter().filter(|name| !other.contains_key(*name));
    let unknown = not_there.filter(|name| !failed.iter().any(|failed| failed == *name));
    unknown.map(ToString::to_string).collect()
}

/// Each value once, in order.
fn distinct(values: impl Iterator<Item = String>) -> Vec<String> {
    let mut values: Vec<String> = values.collect();
    values.sort();
    values.dedup();
    values
}

/// Every figure of a row that differs.
fn changes(name: &str, a: &[&RunRow], b: &[&RunRow]) -> Vec<Change> {
    let exact = a.iter().chain(b).all(|row| row.engine == Clock::Virtual);
    // A share of one limit and a share of another cannot be compared; the change of limit is
    // reported instead.
    let mut limits = a.iter().chain(b).map(|row| row.limited_by);
    let first = limits.next();
    let is_one_limit = limits.all(|limit| Some(limit) == first);
    let differing = FIGURES.iter().filter_map(|figure| {
        if figure.name() == "limit_share" && !is_one_limit {
            return None;
        }
        let [in_a, in_b]: [Vec<f64>; 2] =
            [a, b].map(|rows| rows.iter().filter_map(|row| figure.of(row)).collect());
        if in_a == in_b || in_a.is_empty() || in_b.is_empty() {
            return None;
        }
        let noise = if exact { Noise::None } else { noise::of_samples(&in_a, &in_b) };
        Some(Change::new(name.into(), figure, &in_a, &in_b, noise))
    });
    differing.collect()
}

/// Every figure that no repetition on one side has.
fn missing(name: &str, a: &[&RunRow], b: &[&RunRow]) -> Vec<Missing> {
    let one_sided = FIGURES.iter().filter_map(|figure| {
        let has = [a, b].map(|rows| rows.iter().any(|row| figure.of(row).is_some()));
        let only_in = match has {
            [true, false] => "a",
            [false, true] => "b",
            _ => return None,
        };
        Some(Missing { name: name.into(), figure, only_in })
    });
    one_sided.collect()
}

/// The limit of most repetitions.
fn usual_limit(rows: &[&RunRow]) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for row in rows {
        *counts.entry(row.limited_by.to_string()).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(limit, _)| limit).unwrap_or_default()
}

/// The limit of most repetitions on each side, if they differ.
fn limit_change(name: &str, a: &[&RunRow], b: &[&RunRow]) -> Option<LimitChange> {
    let (a, b) = (usual_limit(a), usual_limit(b));
    (a != b).then(|| LimitChange { name: name.into(), a, b })
}

#[cfg(test)]
mod tests;
