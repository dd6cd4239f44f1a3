//! A graph and its lines, and how a line is resampled.

/// A graph over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    /// A short name, as for a file: `throughput`.
    pub name: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// What its values are.
    pub quantity: Quantity,
    /// Its lines, the one that matters most last: later lines are drawn over earlier ones.
    pub lines: Vec<Line>,
    /// The seconds that it covers, from 0.
    pub seconds: f64,
}

/// What the values of a graph are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// Sequence numbers, or an amount: bytes.
    Bytes,
    /// Bits a second.
    Rate,
    /// Microseconds.
    Micros,
}

/// How a line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A value holds until the next, and the last to the end.
    Stair,
    /// Each value stands by itself.
    Dots,
    /// Places that must not be overlooked.
    Marks,
}

/// A line of a graph.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Its name in the legend.
    pub name: &'static str,
    /// How it looks.
    pub shape: Shape,
    /// Its points in order of time.
    pub spans: Vec<Span>,
}

/// The values at one time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    /// When, in seconds.
    pub at: f64,
    /// The least value then.
    pub min: f64,
    /// The greatest.
    pub max: f64,
    /// The last: what holds from then on.
    pub last: f64,
}

/// The least, the greatest and the last value in a column of a picture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ColumnSpan {
    pub min: f64,
    pub max: f64,
}

impl Graph {
    /// The greatest value of all lines; at least 1.
    pub(super) fn max(&self) -> f64 {
        let values = self.lines.iter().flat_map(|line| line.spans.iter().map(|span| span.max));
        values.fold(1.0, f64::max)
    }

    /// The least value of all lines where that is not near 0, and 0 otherwise: a graph begins at 0
    /// unless that would leave most of it empty.
    pub(super) fn min(&self) -> f64 {
        let values = self.lines.iter().flat_map(|line| line.spans.iter().map(|span| span.min));
        let min = values.fold(f64::INFINITY, f64::min);
        if min.is_finite() && min > 0.7 * self.max() { min } else { min.min(0.0) }
    }

    /// Whether there is nothing to draw.
    pub fn is_empty(&self) -> bool {
        self.lines.iter().all(|line| line.spans.is_empty())
    }
}

impl Line {
    /// The line in `width` columns of equal time.
    pub(super) fn columns(&self, seconds: f64, width: usize) -> Vec<Option<ColumnSpan>> {
        let mut columns: Vec<Option<ColumnSpan>> = vec![None; width];
        let mut held: Option<(usize, f64)> = None;
        for span in &self.spans {
            let column = column_of(span.at, seconds, width);
            if let Some((from, value)) = held.filter(|_| self.shape == Shape::Stair) {
                for between in columns.iter_mut().take(column + 1).skip(from) {
                    widen(between, value, value);
                }
            }
            if let Some(place) = columns.get_mut(column) {
                widen(place, span.min, span.max);
            }
            held = Some((column, span.last));
        }
        if let Some((from, value)) = held.filter(|_| self.shape == Shape::Stair) {
            columns.iter_mut().skip(from).for_each(|rest| widen(rest, value, value));
        }
        columns
    }
}

fn column_of(at: f64, seconds: f64, width: usize) -> usize {
    let share = if seconds > 0.0 { at / seconds } else { 0.0 };
    ((share * width as f64).max(0.0) as usize).min(width.saturating_sub(1))
}

fn widen(column: &mut Option<ColumnSpan>, min: f64, max: f64) {
    *column = Some(match *column {
        Some(known) => ColumnSpan { min: known.min.min(min), max: known.max.max(max) },
        None => ColumnSpan { min, max },
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line(shape: Shape, values: &[(f64, f64)]) -> Line {
        let span = |&(at, value): &(f64, f64)| Span { at, min: value, max: value, last: value };
        Line { name: "line", shape, spans: values.iter().map(span).collect() }
    }

    #[test]
    fn a_stair_holds_its_value_and_dots_do_not() {
        let values = [(0.0, 1.0), (0.5, 4.0)];
        let at = |shape| line(shape, &values).columns(1.0, 10);
        let stair = at(Shape::Stair);
        assert_eq!(stair[3], Some(ColumnSpan { min: 1.0, max: 1.0 }));
        assert_eq!(stair[5], Some(ColumnSpan { min: 1.0, max: 4.0 }));
        assert_eq!(stair[9], Some(ColumnSpan { min: 4.0, max: 4.0 }));
        assert_eq!(at(Shape::Dots)[3], None);
    }

    proptest! {
        /// No extreme is lost, whatever the width.
        #[test]
        fn columns_keep_the_extremes(
            values in prop::collection::vec((0.0..10.0_f64, -1e9..1e9_f64), 1..200),
            width in 1_usize..300,
        ) {
            let mut values = values;
            values.sort_by(|a, b| a.0.total_cmp(&b.0));
            let columns = line(Shape::Dots, &values).columns(10.0, width);
            let found = columns.iter().flatten();
            let most = values.iter().map(|value| value.1).fold(f64::MIN, f64::max);
            let least = values.iter().map(|value| value.1).fold(f64::MAX, f64::min);
            prop_assert_eq!(found.clone().map(|column| column.max).fold(f64::MIN, f64::max), most);
            prop_assert_eq!(found.map(|column| column.min).fold(f64::MAX, f64::min), least);
        }
    }
}
