//! The series of one direction, cut into intervals once for the verdict and, if requested, a second
//! time to be shown.
//!
//! The verdict rests on intervals of about a round trip. Another length would change what the rules
//! and the trained judge find, so a length that is asked for applies to a series of its own, which
//! sees the same packets.

use super::series::{AckWindow, Data, Series, SeriesStart};
use crate::capture::segment::SequenceNumber;
use crate::limit::{Features, Path, Verdict, decide, recut};
use fullpipe_model::units::{Duration, Instant};

/// The series of one direction. It takes no more room than the verdict's series, because many
/// connections are open at once.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "the large one is the usual one, and is boxed")]
pub(super) enum Cuts {
    /// Only the verdict's.
    Judged(Series),
    /// The verdict's, and the one that is shown.
    AndShown(Box<[Series; 2]>),
}

/// The intervals of a [`Cuts`].
struct CutFeatures {
    /// Those of the verdict.
    judged: Vec<Features>,
    /// Those of the requested length.
    shown: Option<Vec<Features>>,
}

impl Cuts {
    /// Starts with the first data. `shown` is the requested length of intervals.
    pub fn new(start: SeriesStart, shown: Option<Duration>) -> Self {
        match shown {
            None => Cuts::Judged(Series::new(start)),
            Some(length) => {
                let shown = SeriesStart { interval: Some(length), ..start };
                Cuts::AndShown(Box::new([Series::new(start), Series::new(shown)]))
            }
        }
    }

    /// Notes data that passed the capture point.
    pub fn sent(&mut self, at: Instant, data: Data) {
        self.each(|series| series.sent(at, data));
    }

    /// Notes an ACK, as [`Series::acknowledged`] does.
    pub fn acknowledged(
        &mut self,
        at: Instant,
        ack: SequenceNumber,
        window: AckWindow,
        sacked: u32,
    ) {
        self.each(|series| series.acknowledged(at, ack, window, sacked));
    }

    /// Notes the TSval of an ACK.
    pub fn stamped(&mut self, at: Instant, value: u32) {
        self.each(|series| series.stamped(at, value));
    }

    /// Notes a round trip from data to its ACK, measured at the capture point.
    pub fn measured(&mut self, rtt: Duration) {
        self.each(|series| series.measured(rtt));
    }

    /// The series of the verdict.
    pub fn judged(&self) -> &Series {
        match self {
            Cuts::Judged(judged) => judged,
            Cuts::AndShown(both) => &both[0],
        }
    }

    /// Ends the series, and decides by the features of all intervals.
    pub fn judge(self, path: Path) -> Verdict {
        let clocked = self.judged().clocked();
        let CutFeatures { judged, shown } = self.finish();
        let verdict = decide(&judged, path, clocked);
        let Some(shown) = shown else { return verdict };
        let spans = shown.iter().map(|f| f.interval(Vec::new())).collect();
        let shown = recut(&verdict.intervals, spans);
        verdict.shown_as(shown)
    }

    fn finish(self) -> CutFeatures {
        match self {
            Cuts::Judged(judged) => CutFeatures { judged: judged.finish(), shown: None },
            Cuts::AndShown(both) => {
                let [judged, shown] = *both;
                CutFeatures { judged: judged.finish(), shown: Some(shown.finish()) }
            }
        }
    }

    fn each(&mut self, note: impl Fn(&mut Series)) {
        match self {
            Cuts::Judged(judged) => note(judged),
            Cuts::AndShown(both) => both.iter_mut().for_each(note),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_series_takes_no_room_where_it_was_not_asked_for() {
        assert_eq!(size_of::<Cuts>(), size_of::<Series>());
    }
}
