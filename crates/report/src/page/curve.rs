//! Goodput over what a sweep varied, beside the law.

use fullpipe_flow::schema::RunRow;
use fullpipe_model::law::mathis;
use fullpipe_model::units::{Bytes, Duration, Probability, Rate};
use serde::Serialize;

/// Payload of a full segment over Ethernet, with timestamps.
const SEGMENT: Bytes = Bytes::new(1448);
/// The keys whose values are probabilities.
const SHARES: [&str; 4] = ["loss", "duplicate", "corrupt", "reorder"];

/// Goodput over one varied quantity.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Curve {
    /// What else the rows have in common.
    pub title: String,
    /// The key of the scenario file that was varied.
    pub key: String,
    /// The unit of its values.
    pub unit: Unit,
    /// What was measured.
    pub points: Vec<CurvePoint>,
    /// What the law says.
    pub law: Vec<LawPoint>,
    /// The law's name.
    pub law_name: String,
}

/// A measured point.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CurvePoint {
    /// The key's value.
    pub x: f64,
    /// Goodput.
    #[serde(rename = "goodput_bps", with = "fullpipe_model::units::column::rate")]
    pub goodput: Rate,
    /// The number of its run.
    pub run: usize,
}

/// A point of the law.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LawPoint {
    /// The key's value.
    pub x: f64,
    /// The rate that the law allows.
    #[serde(rename = "bps", with = "fullpipe_model::units::column::rate")]
    pub rate: Rate,
}

/// The unit of a varied quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Microseconds.
    Us,
    /// Bytes.
    Bytes,
    /// Bits a second.
    Bps,
    /// A share, 0 to 1.
    Share,
    /// A number of things.
    Count,
}

/// The curves of a sweep: one for each key that takes three values or more while the others stand
/// still. What a row varies stands in its name: `b2/rtt=10ms/tcp_rmem=4096-131072-6291456`.
pub fn curves(rows: &[RunRow]) -> Vec<Curve> {
    let mut curves: Vec<Curve> = Vec::new();
    for (run, row) in rows.iter().enumerate().filter(|(_, row)| row.error.is_none()) {
        let parts: Vec<&str> = row.name.split('/').collect();
        for (at, part) in parts.iter().enumerate() {
            let Some((key, value)) = part.split_once('=') else { continue };
            let Some((x, unit)) = number(key, value) else { continue };
            let others = parts.iter().enumerate().filter(|(other, _)| *other != at);
            let title = others.map(|(_, part)| *part).collect::<Vec<_>>().join(", ");
            let is_same =
                |curve: &Curve| curve.key == key && curve.title == title && curve.unit == unit;
            let found = curves.iter().position(is_same).unwrap_or_else(|| {
                curves.push(Curve::new(title, key, unit));
                curves.len() - 1
            });
            curves[found].add(run, row, x);
        }
    }
    curves.retain(|curve| curve.distinct() > 2);
    for curve in &mut curves {
        curve.points.sort_by(|a, b| a.x.total_cmp(&b.x));
        curve.law.sort_by(|a, b| a.x.total_cmp(&b.x));
        curve.law.dedup_by(|a, b| a.x == b.x);
    }
    curves
}

impl Curve {
    fn new(title: String, key: &str, unit: Unit) -> Self {
        let (points, law, law_name) = (Vec::new(), Vec::new(), String::new());
        Curve { title, key: key.into(), unit, points, law, law_name }
    }

    fn add(&mut self, run: usize, row: &RunRow, x: f64) {
        let goodput = row.steady_goodput.unwrap_or(row.goodput);
        self.points.push(CurvePoint { x, goodput, run });
        let Some((rate, name)) = Curve::law(row) else { return };
        self.law.push(LawPoint { x, rate });
        if self.law_name.is_empty() {
            self.law_name = name;
        } else if !self.law_name.split(", ").any(|known| known == name) {
            self.law_name = format!("{}, {name}", self.law_name);
        }
    }

    /// What the law allows: what the row says, and under random loss no more than Mathis.
    fn law(row: &RunRow) -> Option<(Rate, String)> {
        let of_row = row.law.zip(row.law_term).map(|(law, term)| (law, term.to_string()));
        let loss = row.name.split('/').find_map(|part| {
            let (percent, _) = number("loss", part.strip_prefix("loss=")?)?;
            Probability::new(percent).filter(|loss| *loss > Probability::ZERO)
        });
        let by_loss = loss.zip(row.rate_nominal).map(|(loss, link)| {
            let (rate, _) = mathis::rate(SEGMENT, row.rtt_nominal, loss, link);
            (rate, "Mathis".to_string())
        });
        match (of_row, by_loss) {
            (Some(of_row), Some(by_loss)) if by_loss.0 < of_row.0 => Some(by_loss),
            (of_row, by_loss) => of_row.or(by_loss),
        }
    }

    fn distinct(&self) -> usize {
        let mut values: Vec<u64> = self.points.iter().map(|point| point.x.to_bits()).collect();
        values.sort_unstable();
        values.dedup();
        values.len()
    }
}

/// A value of a row's name as a number with its unit. Names have no `%`, and `-` for spaces: the
/// third number of a sysctl's three is the one that bounds a transfer.
fn number(key: &str, value: &str) -> Option<(f64, Unit)> {
    if SHARES.contains(&key) {
        return value.parse::<f64>().ok().map(|percent| (percent / 100.0, Unit::Share));
    }
    if let [_, _, most] = value.split('-').collect::<Vec<_>>()[..] {
        return most.parse::<u64>().ok().map(|bytes| (bytes as f64, Unit::Bytes));
    }
    if let Ok(plain) = value.parse::<u64>() {
        return Some((plain as f64, Unit::Count));
    }
    if let Ok(time) = value.parse::<Duration>() {
        return Some((time.as_secs_f64() * 1e6, Unit::Us));
    }
    if let Ok(rate) = value.parse::<Rate>() {
        return Some((rate.as_f64(), Unit::Bps));
    }
    value.parse::<Bytes>().ok().map(|bytes| (bytes.as_f64(), Unit::Bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, goodput: &str) -> RunRow {
        let rate = goodput.parse().unwrap();
        RunRow {
            name: name.into(),
            goodput: rate,
            rtt_nominal: "40ms".parse().unwrap(),
            rate_nominal: Some("1gbit".parse().unwrap()),
            law: Some(rate),
            law_term: Some(fullpipe_model::limit::Limit::Link),
            ..RunRow::default()
        }
    }

    #[test]
    fn a_sweep_over_two_keys_gives_a_curve_for_each_value_of_the_other() {
        let mut rows = Vec::new();
        for rtt in ["1ms", "10ms", "100ms"] {
            for buffer in ["4096-8192-65536", "4096-8192-131072"] {
                rows.push(row(&format!("s/rtt={rtt}/tcp_rmem={buffer}"), "10mbit"));
            }
        }
        let curves = curves(&rows);
        let found: Vec<_> =
            curves.iter().map(|curve| (curve.key.as_str(), curve.title.as_str())).collect();
        assert_eq!(
            found,
            [("rtt", "s, tcp_rmem=4096-8192-65536"), ("rtt", "s, tcp_rmem=4096-8192-131072")]
        );
        let times: Vec<f64> = curves[0].points.iter().map(|point| point.x).collect();
        assert_eq!(times, [1_000.0, 10_000.0, 100_000.0]);
        assert_eq!(curves[1].points[2].run, 5);
        assert_eq!(curves[0].law_name, "link");
    }

    #[test]
    fn loss_is_a_share_and_its_law_falls() {
        let rows: Vec<RunRow> = ["0", "0.1", "1", "10"]
            .iter()
            .map(|loss| row(&format!("s/loss={loss}"), "900mbit"))
            .collect();
        let [curve] = &curves(&rows)[..] else { panic!("one curve") };
        assert_eq!((curve.unit, curve.points[3].x), (Unit::Share, 0.1));
        assert_eq!(curve.law_name, "link, Mathis");
        let rates: Vec<Rate> = curve.law.iter().map(|point| point.rate).collect();
        assert!(rates.len() == 4 && rates.is_sorted_by(|a, b| a > b), "{rates:?}");
    }

    #[test]
    fn two_values_and_failed_rows_are_no_curve() {
        let failed = RunRow { error: Some("no".into()), ..row("s/rtt=3ms", "1mbit") };
        let rows = [row("s/rtt=1ms", "1mbit"), row("s/rtt=2ms", "1mbit"), failed];
        assert_eq!(curves(&rows), []);
    }
}
