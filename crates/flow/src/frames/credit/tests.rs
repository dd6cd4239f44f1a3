use super::*;
use proptest::prelude::*;

const RTT: Duration = Duration::from_millis(100);
const FRAME: u32 = 16_384;

fn at(millis: u64) -> Instant {
    Instant::from_nanos(1_000_000_000) + Duration::from_millis(millis)
}

/// At the sender, or at the receiver.
fn distance(at_sender: bool) -> Distance {
    Distance { to_sender: if at_sender { Duration::ZERO } else { RTT }, whole: RTT }
}

fn data(stream: u32, length: u32) -> FlowFrame {
    FlowFrame::Data { stream, length, ends: false }
}

fn update(stream: u32, by: u32) -> FlowFrame {
    FlowFrame::WindowUpdate { stream, by }
}

/// A transfer through a window, as a capture point sees it: the sender sends what it may in no
/// time, and the receiver grants all of it again when it has come. Gives the facts.
fn transfer(window: u32, rounds: u64, at_sender: bool, frame: u32) -> FlowControl {
    let mut credit = Credit::new(None);
    let distance = distance(at_sender);
    credit.hears(at(0), FlowFrame::Headers { stream: 1, ends: true }, distance);
    credit.hears(at(0), FlowFrame::InitialWindow(window), distance);
    credit.hears(at(0), update(0, 1 << 30), distance);
    // When data passes, and the grant that answers it.
    let (sent, granted) = if at_sender { (0, 100) } else { (100, 0) };
    for round in 0..rounds {
        let begins = 100 * round + sent;
        let mut left = window;
        while left > 0 {
            let length = left.min(frame);
            credit.sends(at(begins), data(1, length), distance).unwrap();
            left -= length;
        }
        let grants = if at_sender { begins + granted } else { begins };
        credit.hears(at(grants), update(1, window), distance);
    }
    credit.finish(true)
}

#[test]
fn a_window_that_is_always_used_up_holds_all_of_the_time_at_either_end() {
    for at_sender in [true, false] {
        for window in [65_535, 1 << 20] {
            let facts = transfer(window, 11, at_sender, FRAME);
            let most = facts.most_waited().unwrap();
            assert_eq!((most.stream, most.waits), (1, 10), "{at_sender}");
            assert_eq!(most.window, Bytes::new(window.into()));
            assert_eq!(most.waited, Duration::from_millis(1000));
            assert!((most.part() - 1.0).abs() < 1e-9);
            assert_eq!(facts.held, Duration::from_millis(1000));
            assert_eq!(facts.held_in(at(250), RTT), RTT);
            assert_eq!(facts.connection.waits, 0);
            assert!(!facts.never_bound());
            assert_eq!((facts.streams, facts.data.get()), (1, u64::from(window) * 11));
        }
    }
}

#[test]
fn a_sender_of_whole_frames_waits_although_something_is_left() {
    // 65,535 bytes hold three whole frames, and no fourth.
    let mut credit = Credit::new(None);
    let distance = distance(true);
    credit.hears(at(0), update(0, 1 << 20), distance);
    for round in 0..5 {
        (0..3).for_each(|_| credit.sends(at(100 * round), data(1, FRAME), distance).unwrap());
        credit.hears(at(100 * round + 100), update(1, 3 * FRAME), distance);
    }
    let facts = credit.finish(true);
    assert_eq!(facts.most_waited().map(|one| (one.stream, one.waits)), Some((1, 4)));
    assert_eq!(facts.most_waited().unwrap().window.get(), 65_535);
}

#[test]
fn the_connections_window_is_told_from_a_streams() {
    let mut credit = Credit::new(None);
    let distance = distance(true);
    credit.hears(at(0), FlowFrame::InitialWindow(1 << 20), distance);
    for round in 0..4 {
        for stream in [1, 3] {
            credit.sends(at(100 * round), data(stream, FRAME), distance).unwrap();
        }
        for stream in [1, 3] {
            let rest = if stream == 1 { FRAME } else { FRAME - 1 };
            credit.sends(at(100 * round + 1), data(stream, rest), distance).unwrap();
        }
        credit.hears(at(100 * round + 100), update(0, 4 * FRAME - 1), distance);
    }
    let facts = credit.finish(true);
    let most = facts.most_waited().unwrap();
    assert_eq!((most.stream, most.waits, most.window.get()), (0, 3, 65_535));
    assert!(facts.worst.iter().all(|stream| stream.waits == 0));
    assert_eq!(facts.held, Duration::from_millis(297));
}

#[test]
fn who_goes_on_later_or_ends_there_waited_for_nothing() {
    let mut credit = Credit::new(None);
    let distance = distance(true);
    credit.sends(at(0), data(1, 65_535), distance).unwrap();
    credit.hears(at(100), update(0, 65_535), distance);
    credit.hears(at(100), update(1, 65_535), distance);
    // A second later: it had nothing to send.
    credit
        .sends(at(1100), FlowFrame::Data { stream: 1, length: 65_535, ends: true }, distance)
        .unwrap();
    credit.hears(at(1200), update(0, 65_535), distance);
    let facts = credit.finish(true);
    assert!(facts.never_bound(), "{facts:?}");
    assert_eq!(facts.held, Duration::ZERO);
}

#[test]
fn settings_change_streams_that_are_open_and_what_exceeds_a_window_is_told() {
    let mut credit = Credit::new(None);
    let distance = distance(true);
    credit.sends(at(0), data(1, 60_000), distance).unwrap();
    credit.hears(at(10), FlowFrame::InitialWindow(10_000), distance);
    assert_eq!(credit.sends(at(20), data(1, 6000), distance), Err(Exceeded));
    let mut credit = Credit::new(None);
    credit.sends(at(0), data(1, 60_000), distance).unwrap();
    credit.hears(at(10), FlowFrame::InitialWindow(70_000), distance);
    credit.hears(at(10), update(0, 100_000), distance);
    credit.sends(at(20), data(1, 10_000), distance).unwrap();
    assert_eq!(credit.sends(at(20), data(1, 1), distance), Err(Exceeded));
}

#[test]
fn streams_are_bounded_and_the_worst_are_told() {
    let mut credit = Credit::new(None);
    let distance = distance(true);
    credit.hears(at(0), update(0, 1 << 30), distance);
    for stream in (1..20_000).step_by(2) {
        credit.sends(at(1), data(stream, 1), distance).unwrap();
    }
    assert_eq!(credit.streams.len(), STREAMS_MOST);
    let facts = credit.finish(true);
    assert_eq!((facts.worst.len(), facts.streams), (TOLD_MOST, STREAMS_MOST as u64));
    assert_eq!(facts.data.get(), 9_999 + 1);
}

proptest! {
    /// What is held is never longer than the time, and whatever frames come, in whatever order,
    /// nothing panics.
    #[test]
    fn any_frames_are_counted(
        frames in proptest::collection::vec((0_u64..50, 0_u8..7, 0_u32..6, any::<u32>(), any::<bool>()), 0..300),
        at_sender: bool,
    ) {
        let mut credit = Credit::new(None);
        let distance = distance(at_sender);
        let mut now = 0;
        for (later, kind, stream, number, flag) in frames {
            now += later;
            match kind {
                0 => credit.hears(at(now), FlowFrame::InitialWindow(number & LARGEST_WINDOW), distance),
                1 => credit.hears(at(now), update(stream, number & LARGEST_WINDOW), distance),
                2 => credit.hears(at(now), FlowFrame::Headers { stream, ends: flag }, distance),
                3 => credit.hears(at(now), FlowFrame::Reset { stream }, distance),
                4 => _ = credit.sends(at(now), FlowFrame::Headers { stream, ends: flag }, distance),
                _ => {
                    let length = number % 20_000;
                    _ = credit.sends(at(now), FlowFrame::Data { stream, length, ends: flag }, distance);
                }
            }
        }
        let facts = credit.finish(true);
        prop_assert!(facts.held <= facts.time);
        prop_assert!(facts.connection.waited <= facts.connection.time);
        prop_assert!(facts.worst.iter().all(|one| one.waited <= one.time));
        prop_assert!(facts.worst.windows(2).all(|pair| pair[0].waited >= pair[1].waited));
        prop_assert_eq!(facts.held_in(at(0), Duration::from_secs(100)), facts.held);
    }

    /// However large the window and the frames: the exact window is told.
    #[test]
    fn the_window_is_exact(window in 1_u32..10_000_000, at_sender: bool, frame in 1_000_u32..FRAME) {
        let facts = transfer(window, 5, at_sender, frame);
        let most = facts.most_waited().unwrap();
        prop_assert_eq!(most.window, Bytes::new(window.into()));
        prop_assert_eq!(most.waits, 4);
    }
}
