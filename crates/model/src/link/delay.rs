//! Propagation delay, and how it varies from packet to packet.

use super::distribution::Distribution;
use super::grammar::{Reader, WordsError, words_serde};
use crate::units::{Duration, Probability};

/// One-way propagation delay.
///
/// Text: `DELAY [JITTER [CORRELATION]] [distribution NAME]`, as in
/// `100ms 10ms 30% distribution normal`. With jitter, packets leave in the order of their departure
/// times: jitter larger than the gap between packets reorders them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Delay {
    /// The delay without jitter.
    pub base: Duration,
    /// Uniform: the delay is within this of `base`. Other distributions: its standard deviation.
    pub jitter: Duration,
    /// How much a packet's draw depends on the previous packet's.
    pub correlation: Probability,
    /// How the delay is spread around `base`.
    pub distribution: Distribution,
}

impl Delay {
    /// Always `base`.
    pub fn constant(base: Duration) -> Self {
        Delay { base, ..Delay::default() }
    }

    /// Whether every packet has the same delay.
    pub fn is_constant(&self) -> bool {
        self.jitter == Duration::ZERO
    }
}

impl From<Duration> for Delay {
    fn from(base: Duration) -> Self {
        Delay::constant(base)
    }
}

impl std::fmt::Display for Delay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.base.to_exact())?;
        let correlated = self.correlation > Probability::ZERO;
        let distributed = self.distribution != Distribution::Uniform;
        if !self.is_constant() || correlated || distributed {
            write!(f, " {}", self.jitter.to_exact())?;
        }
        if correlated {
            write!(f, " {}", self.correlation)?;
        }
        if distributed { write!(f, " distribution {}", self.distribution) } else { Ok(()) }
    }
}

impl std::str::FromStr for Delay {
    type Err = WordsError;

    fn from_str(text: &str) -> Result<Self, WordsError> {
        let mut words = Reader::new("delay", "100ms, or 100ms 10ms 30% distribution normal", text);
        let base = words.value("delay")?;
        let jitter: Option<Duration> = words.optional("jitter")?;
        let correlation = words.optional("correlation")?.unwrap_or_default();
        let distribution = words.after("distribution")?.unwrap_or_default();
        words.end()?;
        Ok(Delay { base, jitter: jitter.unwrap_or_default(), correlation, distribution })
    }
}

words_serde!(Delay);

#[cfg(test)]
mod tests {
    use super::super::tests::{autocorrelation, evenly, link, run};
    use crate::units::Duration;

    const COUNT: usize = 50_000;

    /// The delay of each packet, in milliseconds, in the order of arrival. Packets come one a
    /// millisecond.
    fn delays(delay: &str, seed: u64) -> Vec<f64> {
        let gap = Duration::from_millis(1);
        let mut departures =
            run(&mut link(&format!("delay = '{delay}'"), seed), evenly(COUNT, gap)).departures;
        departures.sort_by_key(|departure| departure.item);
        let arrived = |index: usize| gap.saturating_mul(index as u64 + 1);
        departures
            .iter()
            .map(|one| one.at.as_nanos() as f64 / 1e6 - arrived(one.item).as_millis_f64())
            .collect()
    }

    fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let variance =
            values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64;
        (mean, variance.sqrt())
    }

    #[test]
    fn distributions_have_their_mean_and_deviation() {
        // Mean and deviation in jitters; of pareto and paretonormal those of iproute2's tables.
        let third = 1.0 / 3.0f64.sqrt();
        for (name, shift, spread) in [
            ("", 0.0, third),
            (" distribution normal", 0.0, 1.0),
            (" distribution pareto", -0.0335, 0.8197),
            (" distribution paretonormal", -0.0253, 0.8339),
        ] {
            let values = delays(&format!("200ms 20ms{name}"), 7);
            let (mean, deviation) = mean_and_deviation(&values);
            let error = 4.0 * 20.0 * spread / (COUNT as f64).sqrt();
            assert!((mean - 200.0 - 20.0 * shift).abs() < error, "{name}: mean {mean}");
            // The tail of pareto makes its deviation the least certain.
            assert!(
                (deviation / (20.0 * spread) - 1.0).abs() < 0.05,
                "{name}: deviation {deviation}"
            );
        }
    }

    #[test]
    fn uniform_jitter_stays_within_its_bounds() {
        let values = delays("100ms 10ms", 3);
        assert!(values.iter().all(|delay| (90.0..=110.0).contains(delay)));
        assert!(
            values.iter().any(|delay| *delay < 91.0) && values.iter().any(|delay| *delay > 109.0)
        );
    }

    /// `x(n) = rho x(n-1) + (1 - rho) u(n)`: the correlation of neighbours is rho, and the
    /// deviation shrinks by sqrt((1 - rho) / (1 + rho)).
    #[test]
    fn correlated_delays_follow_each_other_as_asked() {
        for (percent, rho) in [(30, 0.3f64), (60, 0.6), (90, 0.9)] {
            let values = delays(&format!("100ms 10ms {percent}%"), 5);
            let found = autocorrelation(&values);
            assert!((found - rho).abs() < 0.03, "{percent} %: {found}");
            let spread = 10.0 / 3.0f64.sqrt() * ((1.0 - rho) / (1.0 + rho)).sqrt();
            let (_, deviation) = mean_and_deviation(&values);
            assert!(
                (deviation / spread - 1.0).abs() < 0.05,
                "{percent} %: {deviation} against {spread}"
            );
        }
        assert!(autocorrelation(&delays("100ms 10ms", 5)).abs() < 0.03);
    }

    #[test]
    fn packets_leave_in_the_order_of_their_departure_times() {
        let outcome =
            run(&mut link("delay = '100ms 50ms'", 1), evenly(1000, Duration::from_millis(1)));
        assert!(outcome.departures.windows(2).all(|pair| pair[0].at <= pair[1].at));
        assert!(outcome.departures.windows(2).any(|pair| pair[0].item > pair[1].item));
    }

    #[test]
    fn a_delay_that_makes_no_sense_is_refused() {
        for (delay, says) in [
            ("10ms 20ms", "before they were sent"),
            ("10ms 0ms 30%", "nothing to spread"),
            ("10ms distribution normal", "nothing to spread"),
            ("10ms 1ms distribution gauss", "unknown distribution gauss"),
            ("10ms 1ms 30% 5", "'5' is not expected"),
            ("10ms 1ms distribution file:x.dist", "no x.dist here"),
            ("", "delay is missing"),
        ] {
            let error = super::super::tests::refused(&format!("delay = '{delay}'"));
            assert!(error.contains(says), "{delay}: {error}");
        }
    }
}
