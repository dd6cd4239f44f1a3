//! How the segments of a flight follow each other, which tells where the next flight begins.

/// Linux delays an ACK by at least so many seconds (TCP_DELACK_MIN): a pause, and not a slow path.
const DELAYED_ACK: f32 = 0.04;
/// Segments that follow each other this much later than others did begin a flight.
const PAUSE: f32 = 1.5;
/// So much of a spacing is remembered after a segment that followed sooner: a small one does, and
/// the full one behind it begins no flight.
const REMEMBERED: f32 = 0.7;

/// About how many seconds lie between the segments of a flight. Each open connection has two, so it
/// is one number: a state that has no seconds is not finite, and an open one has a minus.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spacing(f32);

#[derive(Debug, Clone, Copy, PartialEq)]
enum SpacingState {
    /// Nothing was sent.
    Begun,
    /// One segment, or one ACK, came.
    First,
    /// The second came so much later, and the sender knew by then that the first had arrived. It
    /// began a flight, or a segment takes longer to pass than the way and back: the third tells.
    Open(f32),
    Known(f32),
}

/// What a segment adds to its interval.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Paced {
    pub flights: u16,
    /// Seconds in which bytes passed, one after the other.
    pub passing: f32,
}

impl Default for Spacing {
    fn default() -> Self {
        Spacing::of(SpacingState::Begun)
    }
}

impl Spacing {
    fn of(state: SpacingState) -> Self {
        Spacing(match state {
            SpacingState::Begun => f32::INFINITY,
            SpacingState::First => f32::NEG_INFINITY,
            SpacingState::Open(seconds) => -seconds,
            SpacingState::Known(seconds) => seconds,
        })
    }

    fn state(self) -> SpacingState {
        match self.0 {
            f32::INFINITY => SpacingState::Begun,
            f32::NEG_INFINITY => SpacingState::First,
            seconds if seconds.is_sign_negative() => SpacingState::Open(-seconds),
            seconds => SpacingState::Known(seconds),
        }
    }

    /// Notes a segment `gap` seconds after the one before.
    pub fn pace(&mut self, gap: f32, may_begin: bool) -> Paced {
        let passes = gap < DELAYED_ACK;
        let flight = Paced { flights: 1, passing: 0.0 };
        match self.state() {
            SpacingState::Begun if may_begin => {
                *self = Spacing::of(SpacingState::First);
                flight
            }
            SpacingState::First if may_begin && passes => {
                *self = Spacing::of(SpacingState::Open(gap));
                Paced::default()
            }
            SpacingState::Open(before) => {
                let is_even = gap < PAUSE * before && before < PAUSE * gap;
                *self = Spacing::of(SpacingState::Known(gap.min(before)));
                if is_even && passes {
                    Paced { flights: 0, passing: before + gap }
                } else {
                    let paced = self.pace(gap, may_begin);
                    Paced { flights: paced.flights + 1, ..paced }
                }
            }
            SpacingState::Begun | SpacingState::First => self.follow(0.0, gap, may_begin),
            SpacingState::Known(spacing) => self.follow(spacing, gap, may_begin),
        }
    }

    fn follow(&mut self, spacing: f32, gap: f32, may_begin: bool) -> Paced {
        if may_begin && gap >= PAUSE * spacing {
            return Paced { flights: 1, passing: 0.0 };
        }
        if gap >= DELAYED_ACK {
            return Paced::default();
        }
        *self = Spacing::of(SpacingState::Known(gap.max(REMEMBERED * spacing)));
        Paced { flights: 0, passing: gap }
    }

    /// How many flights are not counted at the end.
    pub fn open_flights(self) -> u16 {
        u16::from(matches!(self.state(), SpacingState::Open(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Flights and passing time of segments with these gaps, each of which might begin a flight.
    fn paced(gaps: &[(f32, bool)]) -> (u16, f32) {
        let mut spacing = Spacing::default();
        let (mut flights, mut passing) = (0, 0.0);
        for (gap, may_begin) in gaps {
            let one = spacing.pace(*gap, *may_begin);
            flights += one.flights;
            passing += one.passing;
        }
        (flights + spacing.open_flights(), passing)
    }

    #[test]
    fn a_state_is_one_number() {
        for state in [
            SpacingState::Begun,
            SpacingState::First,
            SpacingState::Open(0.0),
            SpacingState::Open(0.02),
        ] {
            assert_eq!(Spacing::of(state).state(), state);
        }
        for seconds in [0.0, 0.001, 5.0] {
            let known = SpacingState::Known(seconds);
            assert_eq!(Spacing::of(known).state(), known);
        }
    }

    #[test]
    fn segments_that_take_longer_than_the_round_trip_are_one_flight() {
        // 9000 bytes at 7 Mbit/s over 1.5 ms; the last two are smaller.
        let gaps = [0.0105, 0.0105, 0.0105, 0.0034, 0.0105, 0.0072];
        let all: Vec<_> = [0.002].iter().chain(&gaps).map(|gap| (*gap, true)).collect();
        let (flights, passing) = paced(&all);
        assert_eq!(flights, 1);
        assert!((passing - gaps.iter().sum::<f32>()).abs() < 1e-6, "{passing}");
    }

    #[test]
    fn a_window_that_grows_has_a_flight_a_round_trip() {
        // One segment, two, four, a round trip of 10 ms apart, at a high rate.
        let (wait, follow) = ((0.010, true), (0.0001, false));
        let all = [wait, wait, follow, wait, follow, follow, follow];
        let (flights, passing) = paced(&all);
        assert_eq!(flights, 3);
        assert!((passing - 0.0004).abs() < 1e-6, "{passing}");
        assert_eq!(paced(&[wait, wait]).0, 2, "nothing tells that it was a spacing");
        assert_eq!(paced(&[(0.1, true); 4]).0, 4, "longer than a delayed ACK");
    }
}
