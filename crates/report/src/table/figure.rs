//! Quantities as figures of a table. The column's heading has the unit, which is the same for every
//! row, and so is the number of decimals, so a column can be compared by eye.

use fullpipe_model::units::{Bytes, Duration, Rate};

/// Megabits per second with one decimal, for a column in `Mbit/s`.
pub fn mbit_per_s(rate: Rate) -> String {
    format!("{:.1}", rate.as_f64() / 1e6)
}

/// Megabytes per second with two decimals, for a column in `MB/s`.
pub(crate) fn megabytes_per_s(rate: Rate) -> String {
    format!("{:.2}", rate.as_f64() / 8e6)
}

/// Milliseconds with two decimals, for a column in `ms`.
pub fn ms(time: Duration) -> String {
    format!("{:.2}", time.as_millis_f64())
}

/// Seconds with two decimals, for a column in `s`.
pub fn s(time: Duration) -> String {
    format!("{:.2}", time.as_secs_f64())
}

/// Megabytes (10^6) with three decimals, for a column in `MB`.
pub fn megabytes(amount: Bytes) -> String {
    format!("{:.3}", amount.as_f64() / 1e6)
}

/// Mebibytes (2^20) with three decimals, for a column in `MiB`.
pub fn mebibytes(amount: Bytes) -> String {
    format!("{:.3}", amount.as_f64() / f64::from(1 << 20))
}

/// Whole bytes, for a column in `B`.
pub fn bytes(amount: Bytes) -> String {
    amount.get().to_string()
}

/// A fraction in percent with one decimal, for a column in `%`.
pub fn percent(fraction: f64) -> String {
    format!("{:.1}", fraction * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A figure and its heading's unit, read together, are the quantity within the last decimal
    /// shown.
    #[test]
    fn figure_and_unit_parse_back() {
        let rate: Rate = "442.918mbit".parse().unwrap();
        for (figure, unit, error) in
            [(mbit_per_s(rate), "Mbit/s", 0.0002), (megabytes_per_s(rate), "MB/s", 0.0002)]
        {
            let read: Rate = format!("{figure} {unit}").parse().unwrap();
            assert!((read.fraction_of(rate) - 1.0).abs() < error, "{figure} {unit}");
        }
        let amount = Bytes::new(6_291_456);
        for (figure, unit) in
            [(megabytes(amount), "MB"), (mebibytes(amount), "MiB"), (bytes(amount), "B")]
        {
            let read: Bytes = format!("{figure} {unit}").parse().unwrap();
            assert!((read.as_f64() / amount.as_f64() - 1.0).abs() < 0.001, "{figure} {unit}");
        }
        let time = Duration::from_micros(22_150);
        assert_eq!(format!("{} ms", ms(time)).parse(), Ok(Duration::from_micros(22_150)));
        assert_eq!(format!("{} s", s(time)).parse(), Ok(Duration::from_millis(20)));
        assert_eq!(percent(0.0614), "6.1");
    }
}
