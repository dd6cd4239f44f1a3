//! Reordering: some packets are sent without delay, and so overtake those that wait for theirs.
//!
//! netem's rule decides which packets overtake (`netem_enqueue` in net/sched/sch_netem.c): the
//! counter since the last one that did has reached `gap - 1`, and a draw succeeds. What they
//! overtake differs: netem puts them before everything that waits, past rate and slot, so that a
//! share `p` of such packets makes `rate / (1 - p)` pass. Here they skip only the delay.

use super::chance::Chance;
use super::grammar::{Reader, WordsError, words_serde};
use crate::units::Probability;
use std::num::NonZeroU32;

/// Which packets skip the delay. With a rate they still wait for their turn at the transmitter.
///
/// Text: `PROBABILITY [CORRELATION] [gap N]`, or `gap N` for every N-th packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reorder {
    /// How often an eligible packet is sent at once.
    pub chance: Chance,
    /// After such a packet, the next `gap - 1` packets are not eligible.
    pub gap: NonZeroU32,
}

impl std::fmt::Display for Reorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.chance)?;
        if self.gap.get() > 1 { write!(f, " gap {}", self.gap) } else { Ok(()) }
    }
}

impl std::str::FromStr for Reorder {
    type Err = WordsError;

    fn from_str(text: &str) -> Result<Self, WordsError> {
        let mut words = Reader::new("reorder", "25% 50%, gap 5, or 25% 50% gap 5", text);
        // tc(8): a gap without a probability is every gap-th packet.
        let chance = if words.peek() == Some("gap") {
            Probability::ONE.into()
        } else {
            Chance::read(&mut words)?
        };
        let gap = words.after("gap")?.unwrap_or(NonZeroU32::MIN);
        words.end()?;
        Ok(Reorder { chance, gap })
    }
}

words_serde!(Reorder);

#[cfg(test)]
mod tests {
    use super::super::tests::{binomial, evenly, link, run};
    use crate::units::Duration;

    const COUNT: usize = 50_000;

    /// Which packets were sent at once: their delay is none.
    fn overtaking(words: &str, seed: u64) -> Vec<usize> {
        let gap = Duration::from_millis(1);
        let outcome = run(&mut link(words, seed), evenly(COUNT, gap));
        let at_once = |at: u64, item: usize| at == gap.saturating_mul(item as u64 + 1).as_nanos();
        let mut sent: Vec<usize> = outcome
            .departures
            .iter()
            .filter(|one| at_once(one.at.as_nanos(), one.item))
            .map(|one| one.item)
            .collect();
        sent.sort_unstable();
        assert_eq!(outcome.counters.reordered_packets as usize, sent.len());
        sent
    }

    #[test]
    fn a_gap_of_five_sends_every_fifth_at_once() {
        let sent = overtaking("delay = '10ms'\nreorder = 'gap 5'", 1);
        assert_eq!(sent[..4], [4, 9, 14, 19]);
        assert_eq!(sent.len(), COUNT / 5);
    }

    #[test]
    fn without_a_gap_as_many_are_sent_at_once_as_asked() {
        for seed in 1..=5 {
            let sent = overtaking("delay = '10ms'\nreorder = '25%'", seed);
            assert!(binomial(sent.len(), COUNT, 0.25), "{} sent at once, seed {seed}", sent.len());
        }
    }

    /// After gap - 1 packets each is drawn until one is: of g - 1 + 1/p packets one is sent at
    /// once.
    #[test]
    fn with_a_gap_the_draws_begin_after_it() {
        let sent = overtaking("delay = '10ms'\nreorder = '25% gap 5'", 2);
        let asked = COUNT as f64 / 8.0;
        assert!((sent.len() as f64 / asked - 1.0).abs() < 0.05, "{} against {asked}", sent.len());
        assert!(sent.windows(2).all(|pair| pair[1] - pair[0] >= 5));
    }

    /// netem lets a third more pass at 25 %.
    #[test]
    fn no_more_passes_than_the_rate() {
        // Packets of 1500 bytes take 1.2 ms each, and arrive every millisecond.
        let mut slow =
            link("rate = '10mbit'\ndelay = '10ms'\nreorder = '25%'\nqueue = '20packets'", 1);
        let outcome = run(&mut slow, evenly(COUNT, Duration::from_millis(1)));
        assert!(outcome.counters.reordered_packets > 1000);
        let times = || outcome.departures.iter().map(|one| one.at.as_nanos());
        let (first, last) = (times().min().unwrap(), times().max().unwrap());
        let served = (last - first) as f64 / 1.2e6;
        let carried = outcome.departures.len() as f64;
        // The first and the last may have been delayed or not.
        assert!((carried - 1.0 - served).abs() <= 10.0 / 1.2, "{carried} in the time of {served}");
    }

    #[test]
    fn reordering_without_a_delay_is_refused() {
        let error = super::super::tests::refused("reorder = '25%'");
        assert!(error.contains("overtakes those that wait"), "{error}");
        assert!(
            super::super::tests::refused("delay = '1ms'\nreorder = '25% gap 0'").contains("gap")
        );
    }
}
