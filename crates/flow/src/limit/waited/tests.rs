use super::*;
use proptest::prelude::*;

/// What a writer does after a block.
#[derive(Debug, Clone, Copy)]
enum Writer {
    /// It begins the next one at the next full second.
    OfAClock,
    /// It begins the next one after half a second.
    OfAPause,
}

/// Pauses of a writer whose blocks take so many seconds.
fn pauses(blocks: &[f64], writer: Writer) -> (Vec<Pause>, f64) {
    let (mut at, mut pauses) = (0.0_f64, Vec::new());
    for block in blocks {
        let begin = at + block;
        let end = match writer {
            Writer::OfAClock => begin.floor() + 1.0,
            Writer::OfAPause => begin + 0.5,
        };
        pauses.push(Pause { begin, end });
        at = end;
    }
    (pauses, at)
}

fn waited(blocks: &[f64], writer: Writer) -> Waited {
    let (pauses, time) = pauses(blocks, writer);
    Waited::new(&pauses, time)
}

proptest! {
    /// A clock's writer carries what it writes, however long its blocks take; of one that pauses as
    /// long after each block, the blocks decide.
    #[test]
    fn a_writer_by_a_clock_is_told_from_one_that_pauses_as_long(
        blocks in prop::collection::vec(0.5_f64..0.95, 10..60),
    ) {
        let spread = blocks.iter().copied().fold(0.0, f64::max)
            - blocks.iter().copied().fold(1.0, f64::min);
        prop_assume!(spread > 0.25);
        let period = waited(&blocks, Writer::OfAClock).period;
        prop_assert!(period.is_some_and(|period| (period - 1.0).abs() < 1e-6), "{period:?}");
        prop_assert_eq!(waited(&blocks, Writer::OfAPause).period, None);
    }

    /// What the application outweighs gives at most twice as much as the application does, by what
    /// each can give at most: the law is checked on a transfer of known bytes.
    #[test]
    fn what_is_outweighed_gives_at_most_twice_as_much(
        pause in 0.01_f64..10.0, block in 0.01_f64..10.0,
    ) {
        let part = pause / (pause + block);
        let waited = Waited { halves: [part, part], period: None };
        let application = (pause + block) / block - 1.0;
        let faster_link = (pause + block) / (pause + block / 2.0) - 1.0;
        let no_block = (pause + block) / pause - 1.0;
        if waited.outweighs(Limit::Link) {
            prop_assert!(2.01 * application >= faster_link);
        }
        if waited.outweighs(Limit::SendBuffer) {
            prop_assert!(2.01 * application >= no_block);
        }
    }
}

#[test]
fn blocks_that_are_all_alike_do_not_tell_what_begins_them() {
    for writer in [Writer::OfAClock, Writer::OfAPause] {
        assert_eq!(waited(&[0.9; 30], writer).period, None, "{writer:?}");
    }
}

#[test]
fn a_clock_that_a_long_block_misses_is_still_one() {
    let blocks = [0.8, 0.9, 0.6, 1.7, 0.9, 0.7, 0.8, 2.6, 0.6, 0.9, 0.8, 0.7];
    assert!(waited(&blocks, Writer::OfAClock).period.is_some());
}

#[test]
fn few_periods_and_a_clock_that_is_not_there_most_of_the_time_prove_nothing() {
    let blocks = [0.8, 0.9, 0.6, 0.7, 0.95, 0.7, 0.8, 0.6];
    let (pauses, time) = pauses(&blocks, Writer::OfAClock);
    assert!(Waited::new(&pauses, time).period.is_some());
    assert_eq!(Waited::new(&pauses[..5], time).period, None);
    assert_eq!(Waited::new(&pauses, 3.0 * time).period, None);
    assert_eq!(Waited::new(&[], 1.0), Waited::default());
}

#[test]
fn where_tcp_itself_may_pause_only_a_clock_counts() {
    let (alike, time) = pauses(&[0.5; 30], Writer::OfAPause);
    assert!(Waited::new(&alike, time).outweighs(Limit::SendBuffer));
    assert!(!Waited::by_clock(&alike, time).outweighs(Limit::Link));
    let (timed, time) = pauses(&[0.8, 0.9, 0.6, 0.7, 0.95, 0.7, 0.8, 0.6], Writer::OfAClock);
    assert!(Waited::by_clock(&timed, time).outweighs(Limit::SendBuffer));
}
