//! Infers the window scale from the movement of data and ACKs, where the handshake was not
//! captured.
//!
//! Only the SYNs carry the shift (RFC 7323, section 2.2). Without them, two observations show it:
//!
//! * *The window closes as data arrives.* While the receiving application does not read, each ACK
//!   moves the left edge by some bytes, and the window shrinks by as many. These bytes divided by
//!   the change of the header's window field give the scale.
//! * *Data comes up to an edge and never passes it.* No sender passes the window. A shift is
//!   therefore too small if data passed the window that it implies. Of the remaining shifts, one
//!   whose edge the data touches again and again is the one that limits the sender.
//!
//! Where neither is observed often, the scale stays unknown. The window is then evidence of nothing
//! except that it is closed.

use crate::capture::segment::SequenceNumber;

/// RFC 7323, section 2.3: shifts are at most 14.
const SHIFTS: usize = 15;
/// How often evidence must occur before it is accepted.
const SEEN_LEAST: u32 = 8;
/// Away from the sender, an edge is known to within this fraction of the window: 1/8.
const DOUBT: u32 = 8;
/// The quotient is only as precise as the step of the window is large. A smaller step fits two
/// shifts.
const STEP_LEAST: u32 = 4;

/// The counts for each shift.
#[derive(Debug, Clone, Default)]
pub(super) struct ScaleGuess {
    /// The highest number that each shift allows to be sent; meaningful where there is a last ACK.
    edges: [SequenceNumber; SHIFTS],
    /// The smallest shift whose window data never passed.
    least: u8,
    /// How often data came up to the edge of `least`, and how many segments were sent, both since
    /// `least` last changed.
    touched: u32,
    sent: u32,
    /// How often the window closed as data arrived, and how often each shift explains that.
    closing: u32,
    votes: [u32; SHIFTS],
    /// The last ACK and its window.
    last: Option<(SequenceNumber, u32)>,
}

impl ScaleGuess {
    /// Notes an ACK with the unscaled window of its header.
    pub fn acknowledged(&mut self, ack: SequenceNumber, window: u16) {
        let window = u32::from(window);
        for (shift, edge) in (0..).zip(&mut self.edges) {
            let new = ack + (window << shift);
            *edge = if self.last.is_some() { (*edge).max(new) } else { new };
        }
        if let Some((before, was)) = self.last.replace((ack, window)) {
            self.compare(ack.distance(before), was.saturating_sub(window));
        }
    }

    /// Compares one ACK's progress: it moved the edge by `moved` and took `taken` units from the
    /// window.
    fn compare(&mut self, moved: u32, taken: u32) {
        if moved == 0 || taken < STEP_LEAST {
            return;
        }
        self.closing += 1;
        for (shift, votes) in (0..).zip(&mut self.votes) {
            *votes += u32::from(moved.abs_diff(taken << shift) < 1 << shift);
        }
    }

    /// Notes data up to `end`, sent in segments of up to `segment` bytes. `is_exact` means that the
    /// capture was taken at the sender, so that the sender knew the ACKs seen so far. Elsewhere the
    /// edge is only as precise as the lag.
    pub fn sent(&mut self, end: SequenceNumber, segment: u32, is_exact: bool) {
        let Some((_, window)) = self.last else { return };
        let doubt = |shift: u8| if is_exact { 0 } else { (window << shift) / DOUBT };
        while usize::from(self.least) < SHIFTS - 1 {
            let edge = self.edges[usize::from(self.least)] + doubt(self.least);
            if !edge.is_before(end) {
                break;
            }
            self.least += 1;
            (self.touched, self.sent) = (0, 0);
        }
        self.sent += 1;
        let free = self.edges[usize::from(self.least)].distance(end);
        self.touched += u32::from(free < segment.max(doubt(self.least)));
    }

    /// The shift, once there is enough evidence.
    pub fn shift(&self) -> Option<u8> {
        let by_votes =
            (0..).zip(&self.votes).max_by_key(|(shift, votes)| (**votes, u8::MAX - *shift));
        let agreed =
            by_votes.filter(|(_, votes)| **votes >= SEEN_LEAST && **votes * 5 >= self.closing * 4);
        if let Some((shift, _)) = agreed {
            return Some(shift).filter(|shift| *shift >= self.least);
        }
        // If one segment in ten comes up to the window, the window limits the sender most of the
        // time: of the segments that one ACK releases, only the last touches the edge.
        (self.touched >= SEEN_LEAST && self.touched * 10 >= self.sent).then_some(self.least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: u32 = 1448;

    const fn seq(number: u32) -> SequenceNumber {
        SequenceNumber(number)
    }

    /// A sender with at most `bound` in flight against a constant window of `window << shift`.
    fn guess(bound: u32, window: u16) -> ScaleGuess {
        let mut guess = ScaleGuess::default();
        let mut next = 0;
        for round in 0..200 {
            let una = round * SEGMENT;
            guess.acknowledged(seq(una), window);
            while next + SEGMENT <= una + bound {
                next += SEGMENT;
                guess.sent(seq(next), SEGMENT, true);
            }
        }
        guess
    }

    #[test]
    fn an_edge_that_data_touches_and_never_passes_tells_the_scale() {
        assert_eq!(guess(501 << 7, 501).shift(), Some(7));
        assert_eq!(guess(60_000, 60_000).shift(), Some(0));
    }

    #[test]
    fn near_miss_a_bound_below_the_edge_tells_nothing() {
        // 100 kB in flight: shift 8 allows 128 kB, and shift 7 was passed.
        assert_eq!(guess(100_000, 501).shift(), None);
    }

    #[test]
    fn a_window_that_closes_as_data_arrives_tells_the_scale() {
        let mut guess = ScaleGuess::default();
        for ack in 0..20 {
            let read = 400_000 - ack * 10 * SEGMENT;
            guess.acknowledged(seq(ack * 10 * SEGMENT), (read >> 6) as u16);
        }
        assert_eq!(guess.shift(), Some(6));
    }

    #[test]
    fn near_miss_windows_that_change_without_data_tell_nothing() {
        let mut guess = ScaleGuess::default();
        for ack in 0..40 {
            guess.acknowledged(
                seq(ack * SEGMENT),
                if ack % 2 == 0 { 700 } else { 500 + (ack * 7 % 90) as u16 },
            );
        }
        assert_eq!(guess.shift(), None);
    }
}
