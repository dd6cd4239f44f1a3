//! How long a file takes: on the full path, with present and planned settings, and under loss.

use super::{Sheet, TransferSheet};
use crate::law::KernelVersion;
use crate::units::{Bytes, Rate, column};

/// The least times of one file.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct FileSheet {
    /// Its size.
    #[serde(rename = "amount_bytes", with = "column::bytes")]
    pub amount: Bytes,
    /// A time for each assumption; none at rate zero.
    pub times: Vec<FileTime>,
}

/// The least time under one assumption.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct FileTime {
    /// What decides the steady rate.
    pub steady_by: SteadyBy,
    /// The kernel whose settings decide, where settings do.
    pub kernel: Option<KernelVersion>,
    /// The steady rate.
    #[serde(rename = "steady_bps", with = "column::rate")]
    pub steady: Rate,
    /// The time.
    #[serde(flatten)]
    pub transfer: TransferSheet,
}

/// What decides the rate of a transfer once slow start is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SteadyBy {
    /// The path alone: nothing is in its way.
    Path,
    /// The settings as they are.
    Settings,
    /// The settings of the plan.
    Plan,
    /// CUBIC under the given loss.
    Cubic,
    /// Reno under the given loss, with timeouts.
    Reno,
}

impl FileSheet {
    /// The times of `amount` on the path of `sheet`.
    pub fn new(sheet: &Sheet, amount: Bytes) -> Self {
        let mut rates = vec![(SteadyBy::Path, None, sheet.goodput)];
        for kernel in &sheet.kernels {
            let (version, plan) = (Some(kernel.kernel), &kernel.plan);
            rates.push((SteadyBy::Settings, version, plan.before.goodput));
            if !plan.changes.is_empty() {
                rates.push((SteadyBy::Plan, version, plan.after.goodput));
            }
        }
        if let Some(loss) = &sheet.loss {
            rates.push((SteadyBy::Cubic, None, loss.cubic.goodput));
            rates.push((SteadyBy::Reno, None, loss.reno_with_timeouts.goodput));
        }
        let times = rates.into_iter().filter_map(|(steady_by, kernel, steady)| {
            let transfer = TransferSheet::new(sheet.path, amount, steady)?;
            Some(FileTime { steady_by, kernel, steady, transfer })
        });
        FileSheet { amount, times: times.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::{Path, Question, sheet};
    use crate::units::Duration;

    fn asked(loss: Option<&str>, file: &str) -> FileSheet {
        let path = Path::new("1gbit".parse().unwrap(), "50ms".parse().unwrap());
        let kernel = Some("6.1".parse().unwrap());
        let loss = loss.map(|text| text.parse().unwrap());
        let sheet = sheet(&Question { path, buffer: None, kernel, loss });
        FileSheet::new(&sheet, file.parse().unwrap())
    }

    /// Article B: 1967 MiB took 37.12 s with the default send buffer (B3) and 17.01 s with larger
    /// ones (B4).
    #[test]
    fn the_articles_file() {
        let sheet = asked(None, "1967MiB");
        let total = |by| {
            let time = sheet.times.iter().find(|time| time.steady_by == by).unwrap();
            time.transfer.total.as_secs_f64()
        };
        assert!((total(SteadyBy::Settings) / 37.12 - 1.0).abs() < 0.05, "{sheet:?}");
        assert!((total(SteadyBy::Plan) / 17.01 - 1.0).abs() < 0.05, "{sheet:?}");
        assert!(total(SteadyBy::Path) <= total(SteadyBy::Plan));
    }

    #[test]
    fn loss_and_small_files() {
        let lossy = asked(Some("0.1%"), "1GB");
        let times: Vec<_> = lossy.times.iter().map(|time| time.steady_by).collect();
        assert!(times.ends_with(&[SteadyBy::Cubic, SteadyBy::Reno]), "{times:?}");
        // 10 kB fit the initial window: two round trips and their own time, whatever the settings.
        let small = asked(None, "10kB");
        for time in &small.times {
            assert!(time.transfer.total >= Duration::from_millis(100), "{time:?}");
            assert!(time.transfer.total < Duration::from_millis(102), "{time:?}");
        }
    }
}
