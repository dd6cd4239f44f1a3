//! A reader that now and then does something else: it reads as fast as it can, and then nothing.

use crate::clock;
use fullpipe_model::units::{Duration, Instant};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::time::{Sleep, sleep};

/// When an application does not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadPauses {
    /// From the beginning of one pause to that of the next.
    pub every: Duration,
    /// The last part of that, in which it reads nothing; shorter than `every`.
    pub pause: Duration,
}

impl ReadPauses {
    /// How long a pause goes on, `elapsed` after the first read; zero where it reads.
    fn left(self, elapsed: Duration) -> Duration {
        let every = self.every.as_nanos().max(1);
        let into = elapsed.as_nanos() % every;
        let is_pause = into >= every.saturating_sub(self.pause.as_nanos());
        Duration::from_nanos(if is_pause { every - into } else { 0 })
    }
}

/// The pauses, for use inside `poll` functions.
#[derive(Debug)]
pub(super) struct Pausing {
    pauses: ReadPauses,
    began: Instant,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Pausing {
    pub(super) fn new(pauses: ReadPauses) -> Pausing {
        Pausing { pauses, began: clock::now(), timer: None }
    }

    /// Ready where the application reads; otherwise wakes the task at the end of the pause.
    pub(super) fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            if let Some(timer) = &mut self.timer {
                ready!(timer.as_mut().poll(cx));
                self.timer = None;
            }
            let left = self.pauses.left(clock::now().since(self.began));
            if left == Duration::ZERO {
                return Poll::Ready(());
            }
            self.timer = Some(Box::pin(sleep(left.into())));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_each_period_is_a_pause() {
        let ms = Duration::from_millis;
        let pauses = ReadPauses { every: ms(1000), pause: ms(150) };
        for (elapsed, left) in [(0, 0), (849, 0), (850, 150), (999, 1), (1000, 0), (2900, 100)] {
            assert_eq!(pauses.left(ms(elapsed)), ms(left), "{elapsed} ms");
        }
    }
}
