//! A bound for lines of a log that peers cause: whoever reaches a port could fill the disk with
//! them.
//!
//! A few pass as they come, and then one each [`EACH`]. What was left out is counted, and the next
//! line that passes says how many there were. Call [`LogBound::catch_up`] now and then, so that the
//! count is written when no more lines come.

use fullpipe_model::units::{Duration, Instant};
use std::sync::{Mutex, PoisonError};

/// How many lines pass one after the other.
const BURST: u64 = 20;
/// How often one passes in the long run.
pub(crate) const EACH: Duration = Duration::from_secs(3);

/// The bound of one log.
#[derive(Debug, Default)]
pub(crate) struct LogBound(Mutex<LogState>);

#[derive(Debug, Default)]
struct LogState {
    /// Up to when the lines that passed have used the log's time; it may be ahead by a burst.
    used: Instant,
    left_out: u64,
}

impl LogState {
    /// Whether a line may pass.
    fn passes(&mut self, now: Instant) -> bool {
        let since = self.used.max(now) + EACH;
        if since.since(now).as_nanos() > BURST * EACH.as_nanos() {
            return false;
        }
        self.used = since;
        true
    }

    /// Writes how many lines were left out, if some were.
    fn settle(&mut self, log: impl Fn(&str)) {
        match std::mem::take(&mut self.left_out) {
            0 => {}
            1 => log("one more line like these was left out"),
            count => log(&format!("{count} more lines like these were left out")),
        }
    }
}

impl LogBound {
    fn state(&self) -> std::sync::MutexGuard<'_, LogState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a line, or counts it.
    pub fn line(&self, now: Instant, line: &str, log: impl Fn(&str)) {
        let mut state = self.state();
        if state.passes(now) {
            state.settle(&log);
            log(line);
        } else {
            state.left_out += 1;
        }
    }

    /// Writes how many lines were left out, if it is time for a line.
    pub fn catch_up(&self, now: Instant, log: impl Fn(&str)) {
        let mut state = self.state();
        if state.left_out > 0 && state.passes(now) {
            state.settle(log);
        }
    }

    /// Writes how many lines were left out, for the last time.
    pub fn end(&self, log: impl Fn(&str)) {
        self.state().settle(log);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cell::RefCell;

    proptest! {
        /// Whatever comes when: in any span no more lines than a burst and one each, and every line
        /// is written or counted.
        #[test]
        fn lines_are_bounded_and_none_is_forgotten(
            steps in proptest::collection::vec((0u64..5_000, 0u32..60), 1..60),
        ) {
            let (bound, said) = (LogBound::default(), RefCell::new(Vec::new()));
            let (mut now, mut came, mut written) = (Instant::ZERO, 0, Vec::new());
            for (millis, count) in steps {
                now = now + Duration::from_millis(millis);
                bound.catch_up(now, |line| said.borrow_mut().push(line.to_owned()));
                for _ in 0..count {
                    came += 1;
                    bound.line(now, "x", |line| said.borrow_mut().push(line.to_owned()));
                }
                written.extend(std::iter::repeat_n(now, said.borrow().len() - written.len()));
            }
            bound.end(|line| said.borrow_mut().push(line.to_owned()));
            let mut told = 0;
            for line in said.borrow().iter() {
                told += match line.split(' ').next() {
                    Some("x" | "one") => 1,
                    Some(count) => count.parse::<u64>().unwrap(),
                    None => 0,
                };
            }
            prop_assert_eq!(told, came);
            for (index, from) in written.iter().enumerate() {
                for (to_index, to) in written.iter().enumerate().skip(index) {
                    // A line that passes may bring the count with it.
                    let most = 2.0 * (BURST as f64 + to.since(*from).as_secs_f64() / 3.0 + 1.0);
                    prop_assert!(((to_index - index + 1) as f64) <= most);
                }
            }
        }
    }
}
