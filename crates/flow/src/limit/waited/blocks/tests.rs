use super::*;
use crate::limit::Limit;
use proptest::prelude::*;

const RTT: Duration = Duration::from_millis(100);

/// What a writer's blocks say, each of so many bytes, that begin at `times` and take 4 of 10 parts
/// of the time until the next.
fn clocked(times: &[f64], bytes: impl Fn(usize) -> u32, is_prompted: bool) -> (Clocked, f64) {
    let mut pauses = BlockPauses::default();
    let mut seq = SequenceNumber(7);
    for (at, two) in times.windows(2).enumerate() {
        seq = seq + bytes(at);
        let pause = Pause { begin: two[0] + 0.4 * (two[1] - two[0]), end: two[1] };
        pauses.add(seq, pause, is_prompted, Some(RTT));
    }
    (pauses.finish(Some(RTT)), times[times.len() - 1])
}

fn even(period: f64, count: usize) -> Vec<f64> {
    (0..count).map(|at| at as f64 * period).collect()
}

proptest! {
    /// A clock's writer is found by its period, whatever it writes and whatever the round trip is,
    /// where ACKs are not what ends its pauses. As the path is idle in between, nothing outweighs
    /// it.
    #[test]
    fn a_clock_that_no_ack_explains_is_found(
        period in 0.004_f64..0.5, count in 10_usize..200, sizes in prop::collection::vec(900_u32..90_000, 200),
    ) {
        let (found, time) = clocked(&even(period, count), |at| sizes[at], false);
        let waited = found.waited(time).expect("a clock");
        prop_assert!(waited.outweighs(Limit::SendBuffer) && waited.outweighs(Limit::Link));
        prop_assert!((waited.period.unwrap() / period - 1.0).abs() < 1e-6);
        prop_assert!((waited.idle() - 0.6).abs() < 1e-6, "{waited:?}");
    }

    /// What ACKs end is not a clock's, however even: a window's flights follow each other by the
    /// round trip, or a part of it.
    #[test]
    fn what_acks_end_is_no_clock(parts in 1_u32..8, block in prop::sample::select(vec![16_384_u32, 65_536, 250_000])) {
        let times = even(0.1 / f64::from(parts), 100);
        prop_assert_eq!(clocked(&times, |_| block, true).0, Clocked::default());
        prop_assert_eq!(clocked(&times, |at| block + at as u32, true).0, Clocked::default());
    }

    /// Without a clock, blocks prove nothing.
    #[test]
    fn uneven_times_are_no_clock(steps in prop::collection::vec(0.01_f64..0.2, 40..120)) {
        let mut times = vec![0.0];
        for step in &steps {
            times.push(times[times.len() - 1] + step);
        }
        let (found, time) = clocked(&times, |_| 65_536, false);
        prop_assert_eq!(found.waited(time), None);
    }
}

/// Equal blocks of a round number that come off the round trip's beat are a program's, also where
/// each begins with an ACK of an earlier one by chance.
#[test]
fn round_blocks_off_the_beat_are_a_clock_s() {
    for (period, bytes, is_clock) in [
        (0.0654, 65_536, true),
        (0.0654, 100_000, true),
        (0.0654, 65_537, false),
        // Two, and one, in a round trip; less than one; too many to tell.
        (0.05, 65_536, false),
        (0.1, 65_536, false),
        (0.13, 65_536, false),
        (0.0101, 65_536, false),
    ] {
        let (found, time) = clocked(&even(period, 100), |_| bytes, true);
        assert_eq!(found.waited(time).is_some(), is_clock, "{bytes} bytes every {period} s");
    }
}

/// Pictures are not equally long, and their times are even: no part of a block ends a pause.
#[test]
fn blocks_that_differ_off_the_beat_are_a_clock_s() {
    let picture = |at: usize| 40_000 + 1_711 * (at as u32 * 7 % 20);
    for (period, is_clock) in [(0.0654, true), (0.05, false), (0.13, false)] {
        let (found, time) = clocked(&even(period, 100), picture, true);
        assert_eq!(found.waited(time).is_some(), is_clock, "every {period} s");
    }
    let late = even(0.0654, 100).into_iter().enumerate();
    let uneven: Vec<f64> =
        late.map(|(at, time)| time + 0.005 * (at * 7 % 20) as f64 / 20.0).collect();
    assert_eq!(clocked(&uneven, picture, true).0, Clocked::default(), "later after longer ones");
}

/// A program that asks for whole milliseconds is woken by them.
#[test]
fn a_clock_may_be_read_in_whole_milliseconds() {
    let times: Vec<f64> = even(0.0098, 200).into_iter().map(|at| (at * 1e3).ceil() / 1e3).collect();
    let (found, time) = clocked(&times, |_| 30_000, false);
    assert!(found.waited(time).is_some());
    let coarse: Vec<f64> =
        even(0.0033, 200).into_iter().map(|at| (at * 1e3).ceil() / 1e3).collect();
    assert_eq!(clocked(&coarse, |_| 30_000, false).0, Clocked::default());
}

/// It is to be there for most of the time, and to leave pauses.
#[test]
fn a_clock_for_a_while_is_not_one_for_the_whole() {
    let (found, time) = clocked(&even(0.03, 100), |_| 30_000, false);
    assert!(found.waited(1.9 * time).is_some());
    assert_eq!(found.waited(2.1 * time), None);
}
