//! Axes: round values, and their texts.

use super::line::Quantity;

/// An axis: what a value is divided by for its text, the unit of that, and round values.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Axis {
    pub unit: &'static str,
    /// Values with their texts, from the lowest.
    pub ticks: Vec<(f64, String)>,
}

/// An axis from `min` to `max` with about `count` values.
pub(super) fn axis(quantity: Quantity, min: f64, max: f64, count: usize) -> Axis {
    let (divisor, unit) = scale(quantity, max);
    Axis { unit, ticks: ticks(min / divisor, max / divisor, count, divisor) }
}

/// An axis of time, from 0.
pub(super) fn time_axis(seconds: f64, count: usize) -> Axis {
    let (divisor, unit) = match seconds {
        s if s < 2e-3 => (1e-6, "us"),
        s if s < 2.0 => (1e-3, "ms"),
        _ => (1.0, "s"),
    };
    Axis { unit, ticks: ticks(0.0, seconds / divisor, count, divisor) }
}

fn scale(quantity: Quantity, max: f64) -> (f64, &'static str) {
    let steps: [(f64, &str); 4] = match quantity {
        Quantity::Bytes => [(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")],
        Quantity::Rate => [(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")],
        Quantity::Micros => [(1e6, "s"), (1e3, "ms"), (1.0, "us"), (1.0, "us")],
    };
    steps.into_iter().find(|(divisor, _)| max >= 2.0 * divisor).unwrap_or((1.0, steps[3].1))
}

/// Round values from `min` to `max`: multiples of 1, 2 or 5 times a power of ten.
fn ticks(min: f64, max: f64, count: usize, divisor: f64) -> Vec<(f64, String)> {
    let rough = (max - min) / count.max(1) as f64;
    let least = (min * divisor, text(min, 1.0));
    if !rough.is_finite() || rough <= 0.0 {
        return vec![least];
    }
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().find(|step| step * power >= rough * 0.999);
    let step = step.unwrap_or(10.0) * power;
    let first = (min / step - 1e-9).ceil();
    let values = (0..=2 * count.max(1)).map(|number| (first + number as f64) * step);
    let values: Vec<_> = values
        .take_while(|value| *value <= max + step * 1e-6)
        .map(|value| (value * divisor, text(value, step)))
        .collect();
    if values.is_empty() { vec![least] } else { values }
}

/// A value with as many decimals as its step needs.
fn text(value: f64, step: f64) -> String {
    let decimals = (-step.log10().floor()).clamp(0.0, 6.0) as usize;
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_are_round_and_have_the_unit_that_suits_them() {
        let axis = axis(Quantity::Rate, 0.0, 93e6, 5);
        assert_eq!(axis.unit, "Mbit/s");
        let texts: Vec<_> = axis.ticks.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["0", "20", "40", "60", "80"]);
        assert_eq!(axis.ticks[1].0, 20e6);
        let texts: Vec<_> = time_axis(0.3, 4).ticks.into_iter().map(|(_, text)| text).collect();
        assert_eq!(texts, ["0", "100", "200", "300"]);
    }

    proptest! {
        #[test]
        fn any_range_has_few_values_within_it(min in -1e12..1e12_f64, span in 0.0..1e15_f64, count in 1_usize..20) {
            let axis = axis(Quantity::Bytes, min, min + span, count);
            prop_assert!((1..=2 * count + 2).contains(&axis.ticks.len()) || span < 1.0, "{axis:?}");
            let room = span * 1e-6 + 1e-3;
            let inside = |value: f64| value >= min - room && value <= min + span + room;
            prop_assert!(span < 1.0 || axis.ticks.iter().all(|(value, _)| inside(*value)), "{axis:?}");
        }
    }
}
