//! How early to wake up: a thread asks the kernel for an earlier wake-up and spins for the rest
//! (pure).
//!
//! A wait ends some 15 to 50 us late even in SCHED_FIFO, mostly because the CPU leaves its idle
//! state. How late depends on the machine and on how long the CPU could sleep, and hardly varies.
//! So the lateness is learned, separately for each range of wait lengths, and each wait asks for a
//! correspondingly earlier end. A fixed allowance would spin for the difference on every packet.

use fullpipe_model::units::Duration;

/// The most that a wait is shortened: a machine with more lateness is busy, and spinning makes it
/// busier.
const EARLY_MAX: Duration = Duration::from_micros(60);
/// The initial value.
const EARLY_FIRST: Duration = Duration::from_micros(20);
/// Three steps up for each step down: three of four waits end early enough.
const UP: Duration = Duration::from_nanos(1500);
const DOWN: Duration = Duration::from_nanos(500);
/// Ranges of wait lengths, each four times as long as the one before, from 64 us on.
const LENGTHS: usize = 6;

/// The learned lateness of waits.
#[derive(Debug)]
pub(super) struct Foresight {
    early: [Duration; LENGTHS],
}

impl Default for Foresight {
    fn default() -> Self {
        Foresight { early: [EARLY_FIRST; LENGTHS] }
    }
}

impl Foresight {
    /// How much earlier than after `span` a wait should end.
    pub fn early(&self, span: Duration) -> Duration {
        self.early[length(span)]
    }

    /// Learns from a shortened wait for something that was `span` away, and that ended `late`.
    pub fn learn(&mut self, span: Duration, late: Duration) {
        let early = &mut self.early[length(span)];
        *early = if late > *early {
            early.saturating_add(UP).min(EARLY_MAX)
        } else {
            early.saturating_sub(DOWN)
        };
    }
}

fn length(span: Duration) -> usize {
    let octaves = (span.as_micros() >> 6).checked_ilog2().map_or(0, |octaves| octaves / 2 + 1);
    (octaves as usize).min(LENGTHS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(count: u64) -> Duration {
        Duration::from_micros(count)
    }

    #[test]
    fn it_settles_where_three_waits_of_four_end_early_enough() {
        let mut foresight = Foresight::default();
        // Lateness of 30 to 39 us, in no order.
        for wait in 0..2000u64 {
            foresight.learn(micros(1000), micros(30 + wait * 7 % 10));
        }
        let early = foresight.early(micros(1000));
        assert!((micros(36)..=micros(39)).contains(&early), "{early}");
        assert_eq!(
            foresight.early(micros(10)),
            EARLY_FIRST,
            "waits of another length are not touched"
        );
    }

    #[test]
    fn a_busy_machine_is_not_made_busier() {
        let mut foresight = Foresight::default();
        (0..1000).for_each(|_| foresight.learn(micros(1000), micros(5000)));
        assert_eq!(foresight.early(micros(1000)), EARLY_MAX);
        (0..1000).for_each(|_| foresight.learn(micros(1000), Duration::ZERO));
        assert_eq!(foresight.early(micros(1000)), Duration::ZERO);
    }

    #[test]
    fn lengths_are_told_apart_by_factors_of_four() {
        let lengths = [0, 63, 64, 255, 256, 1023, 1024, 4096, 50_000, u64::MAX / 1000];
        assert_eq!(lengths.map(|span| length(micros(span))), [0, 0, 1, 1, 2, 2, 3, 4, 5, 5]);
    }
}
