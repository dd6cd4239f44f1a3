//! Throughput over lists of round trips and losses: a row for each combination.

use super::{LossSheet, Path, TransferSheet};
use crate::law::slow_start;
use crate::units::{Bytes, Duration, Probability, Rate, Window, column};

/// A rate, and what becomes of it at each round trip and loss.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Grid {
    /// The bottleneck's rate.
    #[serde(rename = "rate_bps", with = "column::rate")]
    pub rate: Rate,
    /// A row for each round trip and loss, in the order of the question.
    pub rows: Vec<GridRow>,
}

/// One round trip and loss.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct GridRow {
    /// Round-trip time without queues.
    #[serde(rename = "rtt_us", with = "column::micros")]
    pub rtt: Duration,
    /// Bytes in flight on the full path.
    #[serde(rename = "bdp_bytes", with = "column::bytes")]
    pub bdp: Bytes,
    /// The path's largest goodput.
    #[serde(rename = "goodput_bps", with = "column::rate")]
    pub goodput: Rate,
    /// The shortest time of slow start until the path is full.
    #[serde(rename = "slow_start_us", with = "column::micros")]
    pub slow_start: Duration,
    /// What one connection carries, if a loss was given.
    pub loss: Option<LossSheet>,
    /// The least time of the file, if one was given: at CUBIC's rate where there is loss.
    pub file: Option<TransferSheet>,
}

/// The rows for `rate` at each of `rtts` and of `losses`, with the time of a `file`.
pub fn grid(rate: Rate, rtts: &[Duration], losses: &[Probability], file: Option<Bytes>) -> Grid {
    let losses: Vec<Option<Probability>> = match losses {
        [] => vec![None],
        given => given.iter().copied().map(Some).collect(),
    };
    let paths = rtts.iter().map(|&rtt| Path::new(rate, rtt));
    let rows =
        paths.flat_map(|path| losses.iter().map(move |&loss| GridRow::new(path, loss, file)));
    Grid { rate, rows: rows.collect() }
}

impl GridRow {
    fn new(path: Path, loss: Option<Probability>, file: Option<Bytes>) -> Self {
        let loss = loss.map(|loss| LossSheet::new(path, loss));
        let steady = loss.as_ref().map_or(path.goodput(), |loss| loss.cubic.goodput);
        let full = Window::new(path.bdp());
        GridRow {
            rtt: path.rtt,
            bdp: path.bdp(),
            goodput: path.goodput(),
            slow_start: slow_start::time_to(path.framing.mss(), full, path.rtt),
            loss,
            file: file.and_then(|amount| TransferSheet::new(path, amount, steady)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::{cubic, mathis, pftk};
    use proptest::prelude::*;

    #[test]
    fn each_combination_has_the_laws_answers() {
        let rtts = ["1ms", "20ms", "146ms"].map(|text| text.parse().unwrap());
        let losses = ["0.01%", "0.1%"].map(|text| text.parse().unwrap());
        let link: Rate = "1gbit".parse().unwrap();
        let grid = grid(link, &rtts, &losses, Some("1GB".parse().unwrap()));
        assert_eq!(grid.rows.len(), 6);
        for (index, row) in grid.rows.iter().enumerate() {
            let (rtt, p) = (rtts[index / 2], losses[index % 2]);
            let (mss, link) = (Bytes::new(1448), row.goodput);
            let loss = row.loss.as_ref().unwrap();
            assert_eq!((row.rtt, loss.loss), (rtt, p));
            assert_eq!(loss.cubic.goodput, cubic::rate(mss, rtt, p, link));
            assert_eq!(loss.reno.goodput, mathis::rate(mss, rtt, p, link).0);
            assert_eq!(loss.reno_with_timeouts.goodput, pftk::rate(mss, rtt, p, link));
            // No file is faster than its own bytes at the steady rate.
            let ideal = loss.cubic.goodput.time_for("1GB".parse().unwrap()).unwrap();
            assert!(row.file.unwrap().total >= ideal, "{row:?}");
        }
    }

    proptest! {
        #[test]
        fn a_longer_path_with_more_loss_is_never_faster(
            micros in 1_u64..1_000_000, more in 1_u64..1_000_000, p in 1e-6..0.1_f64,
        ) {
            let rtts = [Duration::from_micros(micros), Duration::from_micros(micros + more)];
            let losses = [p, 2.0 * p].map(|p| Probability::new(p).unwrap());
            let file = Some(Bytes::new(1 << 30));
            let rows = grid(Rate::from_bits_per_sec(1_000_000_000), &rtts, &losses, file).rows;
            let reno = |index: usize| rows[index].loss.as_ref().unwrap().reno.goodput;
            prop_assert!(reno(1) <= reno(0) && reno(2) <= reno(0) && reno(3) <= reno(1));
            prop_assert!(rows[1].file.unwrap().total >= rows[0].file.unwrap().total);
        }
    }
}
