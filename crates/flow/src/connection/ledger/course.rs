//! What the time was spent on, in the order of time.

use super::Spent;
use fullpipe_model::units::Duration;

/// More stretches than this are merged by two, so that a connection of days stays bounded.
const STRETCHES_MAX: usize = 1 << 14;

/// Stretches of time, one after another from the connection's first packet on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Course(Vec<(Spent, Duration)>);

impl Course {
    /// Adds time at the end.
    pub fn add(&mut self, what: Spent, time: Duration) {
        if time == Duration::ZERO {
            return;
        }
        match self.0.last_mut().filter(|(last, _)| *last == what) {
            Some((_, length)) => *length = length.saturating_add(time),
            None => self.0.push((what, time)),
        }
        if self.0.len() > STRETCHES_MAX {
            self.merge();
        }
    }

    /// Calls up to `most` of the time that was spent on `from` something else, the latest first.
    pub fn shift(&mut self, from: Spent, to: Spent, most: Duration) {
        let (mut left, mut at) = (most, self.0.len());
        while let Some(before) = at.checked_sub(1).filter(|_| left > Duration::ZERO) {
            at = before;
            let (what, time) = self.0[at];
            if what != from {
                continue;
            }
            let kept = time.saturating_sub(left);
            left = left.saturating_sub(time);
            self.0[at] = (to, time.saturating_sub(kept));
            if kept > Duration::ZERO {
                self.0.insert(at, (from, kept));
            }
        }
    }

    /// Takes the other end for the client.
    pub fn swap_ends(&mut self) {
        for (what, _) in &mut self.0 {
            *what = what.of_other_end();
        }
    }

    /// The stretches, each with what it was spent on.
    pub fn iter(&self) -> impl Iterator<Item = (Spent, Duration)> {
        self.0.iter().copied()
    }

    /// Makes one stretch of each two; the longer one says what it was spent on.
    fn merge(&mut self) {
        let merged = self.0.chunks(2).map(|pair| {
            let time = pair.iter().map(|(_, time)| *time);
            let time = time.fold(Duration::ZERO, Duration::saturating_add);
            let longer = pair.iter().max_by_key(|(_, time)| *time).map(|(what, _)| (*what, time));
            longer.unwrap_or((Spent::Idle, time))
        });
        self.0 = merged.collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn the_latest_time_is_called_something_else() {
        let mut course = Course::default();
        for (what, time) in [(Spent::Timeout, 2), (Spent::Idle, 5), (Spent::Timeout, 4)] {
            course.add(what, ms(time));
        }
        course.shift(Spent::Timeout, Spent::Gone(1), ms(5));
        let all: Vec<_> = course.iter().collect();
        assert_eq!(
            all,
            [
                (Spent::Timeout, ms(1)),
                (Spent::Gone(1), ms(1)),
                (Spent::Idle, ms(5)),
                (Spent::Gone(1), ms(4))
            ]
        );
        course.swap_ends();
        assert_eq!(course.iter().last(), Some((Spent::Gone(0), ms(4))));
    }

    #[test]
    fn a_connection_of_days_stays_bounded_and_no_time_is_lost() {
        let mut course = Course::default();
        for number in 0..100_000 {
            let what = if number % 2 == 0 { Spent::Thinks(0) } else { Spent::Transfer(1) };
            course.add(what, ms(1 + number % 3));
        }
        assert!(course.0.len() <= STRETCHES_MAX);
        let all = course.iter().fold(Duration::ZERO, |all, (_, time)| all.saturating_add(time));
        assert_eq!(all, ms((0..100_000).map(|number| 1 + number % 3).sum()));
    }
}
