//! What a connection did between two looks, and the sum over all of them.

use fullpipe_flow::limit::{Candidate, Limit};
use fullpipe_model::units::{Duration, Instant, Rate};

/// The time between two looks.
#[derive(Debug, Clone, PartialEq)]
pub struct Moment {
    /// Its end.
    pub at: Instant,
    /// Its length.
    pub length: Duration,
    /// What moved in the direction that moved more, without retransmissions.
    pub rate: Rate,
    /// The limits with their shares of the moment, largest first; empty where nothing moved or
    /// waited.
    pub shares: Vec<Candidate>,
}

/// Time by limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LimitTimes([Duration; Limit::ALL.len()]);

impl LimitTimes {
    /// Adds a moment.
    pub(super) fn add(&mut self, moment: &Moment) {
        for candidate in &moment.shares {
            let part = moment.length.as_secs_f64() * candidate.share.clamp(0.0, 1.0);
            if let Some(at) = Limit::ALL.iter().position(|limit| *limit == candidate.limit) {
                self.0[at] = self.0[at].saturating_add(Duration::from_secs_f64(part));
            }
        }
    }

    /// The time that a limit held.
    pub fn of(&self, limit: Limit) -> Duration {
        let at = Limit::ALL.iter().position(|other| *other == limit);
        at.map_or(Duration::ZERO, |at| self.0[at])
    }

    /// Each limit with its time, in the order of the type.
    pub fn all(&self) -> impl Iterator<Item = (Limit, Duration)> {
        Limit::ALL.into_iter().zip(self.0)
    }

    /// The time of all limits.
    pub fn whole(&self) -> Duration {
        self.0.into_iter().fold(Duration::ZERO, Duration::saturating_add)
    }

    /// The limits with their shares, largest first.
    pub fn shares(&self) -> Vec<Candidate> {
        let whole = self.whole().as_secs_f64();
        let held = self.all().filter(|(_, time)| *time > Duration::ZERO);
        let mut shares: Vec<Candidate> = held
            .map(|(limit, time)| Candidate { limit, share: time.as_secs_f64() / whole })
            .collect();
        shares.sort_by(|a, b| b.share.total_cmp(&a.share));
        shares
    }

    /// The time lost: neither the path nor the sending application held the data.
    pub fn lost(&self) -> Duration {
        let losing = self.all().filter(|(limit, _)| limit.loses_time());
        losing.fold(Duration::ZERO, |sum, (_, time)| sum.saturating_add(time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_add_up_to_shares() {
        let moment = |limit, share| Moment {
            at: Instant::ZERO,
            length: Duration::from_secs(2),
            rate: Rate::ZERO,
            shares: vec![
                Candidate { limit, share },
                Candidate { limit: Limit::Link, share: 1.0 - share },
            ],
        };
        let mut times = LimitTimes::default();
        assert!(times.shares().is_empty());
        times.add(&moment(Limit::SendBuffer, 0.75));
        times.add(&moment(Limit::ReceiveWindow, 0.25));
        assert_eq!(times.whole(), Duration::from_secs(4));
        assert_eq!(times.of(Limit::SendBuffer), Duration::from_millis(1500));
        assert_eq!(times.lost(), Duration::from_secs(2), "the link loses nothing");
        let first = times.shares()[0];
        assert_eq!((first.limit, first.share), (Limit::Link, 0.5));
    }
}
