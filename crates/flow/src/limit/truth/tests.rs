use super::*;
use crate::limit::Cause;
use fullpipe_model::observe::{Phase, Reason, TcpInfo, TcpState};
use fullpipe_model::units::Bytes;
use proptest::prelude::*;

/// The end of a `tcp_info` whose `slots` hold these nanoseconds.
fn counted(unread: u64, slots: &[(usize, u64)]) -> Reasons {
    let mut words = vec![0_u64; 46];
    (words[0], words[45]) = (unread, u64::from_be_bytes(*b"fullpipe"));
    slots.iter().for_each(|(slot, time)| words[1 + slot] += time);
    let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_ne_bytes).collect();
    Reasons::split(&bytes).1.unwrap()
}

fn sample(at: u64, reasons: Option<Reasons>) -> Sample {
    Sample {
        at: Instant::from_nanos(at),
        local: "192.0.2.1:80".parse().unwrap(),
        remote: "192.0.2.2:4000".parse().unwrap(),
        state: TcpState::Established,
        rqueue: Bytes::ZERO,
        wqueue: Bytes::ZERO,
        congestion_control: Some("cubic".into()),
        info: None,
        memory: None,
        reasons,
    }
}

fn slot(reason: Reason, phase: Phase) -> usize {
    reason as usize * 4 + phase as usize
}

/// The limits of one interval of 10 ms that was spent entirely on `reason` in `phase`.
fn limits(reason: Reason, phase: Phase, unread: u64, busy: Option<Duration>) -> Vec<Limit> {
    let all = 10_000_000;
    let sender = [
        sample(0, Some(counted(0, &[]))),
        sample(all, Some(counted(0, &[(slot(reason, phase), all)]))),
    ];
    let receiver = [sample(0, Some(counted(0, &[]))), sample(all, Some(counted(unread, &[])))];
    let mut link = LinkUse::default();
    busy.into_iter().for_each(|time| link.push(Instant::from_nanos(all), time));
    let known = Knowledge {
        sender: &sender,
        receiver: &receiver,
        link: Some(&link),
        rtt: Duration::from_millis(10),
        is_policed: false,
        epoch: Duration::from_secs(5),
    };
    let intervals = intervals(&known);
    assert_eq!((intervals.len(), intervals[0].length), (1, Duration::from_millis(10)));
    assert_eq!(intervals[0].start, Instant::from_nanos(5_000_000_000));
    intervals[0].limits.iter().map(|candidate| candidate.limit).collect()
}

#[test]
fn the_kernels_reason_is_a_limit_where_nothing_else_can_be() {
    use Phase as P;
    use Reason as R;
    let (full, half) = (Some(Duration::from_millis(10)), Some(Duration::from_millis(5)));
    let slow_start = Limit::CongestionWindow(Cause::SlowStart);
    let loss = Limit::CongestionWindow(Cause::Loss);
    let late = Some(Duration::from_micros(9_500));
    for (reason, phase, unread, busy, limit) in [
        (R::Application, P::Growing, 0, half, Limit::SenderApplication),
        (R::Application, P::Growing, 0, full, Limit::Unknown),
        (R::SendBuffer, P::Settled, 0, half, Limit::SendBuffer),
        (R::SendBuffer, P::Settled, 0, full, Limit::Link),
        (R::SendBuffer, P::Repair, 0, half, Limit::Unknown),
        (R::ReceiveWindow, P::Settled, 0, half, Limit::ReceiveWindow),
        (R::ReceiveWindow, P::Settled, 9_000_000, half, Limit::ReceiverApplication),
        (R::ReceiveWindow, P::Settled, 3_000_000, half, Limit::Unknown),
        (R::CongestionWindow, P::Growing, 0, half, slow_start),
        (R::CongestionWindow, P::AfterLoss, 0, half, loss),
        (R::CongestionWindow, P::AfterLoss, 9_000_000, half, Limit::Unknown),
        (R::CongestionWindow, P::AfterLoss, 0, late, Limit::Unknown),
        (R::CongestionWindow, P::Repair, 0, full, Limit::Link),
        (R::Pacing, P::Settled, 0, half, Limit::Unknown),
        (R::Tail, P::Settled, 0, full, Limit::Unknown),
    ] {
        assert_eq!(limits(reason, phase, unread, busy), [limit], "{reason:?} {phase:?} {busy:?}");
    }
}

#[test]
fn an_application_that_has_written_everything_is_not_slow() {
    let idle = slot(Reason::Application, Phase::Growing);
    let sender: Vec<Sample> = [0, 5_000, 5_000]
        .into_iter()
        .zip(0..)
        .map(|(sent, index)| {
            let at = index * 10_000_000;
            let info = TcpInfo { bytes_sent: Some(Bytes::new(sent)), ..TcpInfo::default() };
            Sample { info: Some(info), ..sample(at, Some(counted(0, &[(idle, at)]))) }
        })
        .collect();
    let known = Knowledge {
        sender: &sender,
        receiver: &[],
        link: None,
        rtt: Duration::ZERO,
        is_policed: false,
        epoch: Duration::ZERO,
    };
    let limits: Vec<Limit> =
        intervals(&known).iter().map(|interval| interval.limits[0].limit).collect();
    assert_eq!(limits, [Limit::SenderApplication, Limit::Unknown]);
}

#[test]
fn a_kernel_that_does_not_count_gives_no_intervals() {
    let samples = [sample(0, None), sample(1, None), sample(2, Some(counted(0, &[])))];
    let known = Knowledge {
        sender: &samples,
        receiver: &samples,
        link: None,
        rtt: Duration::ZERO,
        is_policed: false,
        epoch: Duration::ZERO,
    };
    assert_eq!(intervals(&known), []);
}

proptest! {
    /// Whatever the kernels count, shares add up to the whole and fractions are fractions.
    #[test]
    fn shares_are_of_the_counted_time(
        counts in prop::collection::vec(prop::collection::vec((0..44_usize, any::<u32>()), 0..6), 1..12),
        unread in prop::collection::vec(any::<u64>(), 1..12),
        step in 0..30_000_000_u64,
    ) {
        let mut slots: Vec<(usize, u64)> = Vec::new();
        let mut at = 0;
        let sender: Vec<Sample> = counts.iter().map(|more| {
            slots.extend(more.iter().map(|(slot, time)| (*slot, u64::from(*time))));
            at += step;
            sample(at, Some(counted(0, &slots)))
        }).collect();
        let at = |index: usize| index as u64 * step;
        let receiver: Vec<Sample> =
            unread.iter().enumerate().map(|(index, time)| sample(at(index), Some(counted(*time, &[])))).collect();
        let known = Knowledge {
            sender: &sender,
            receiver: &receiver,
            link: None,
            rtt: Duration::from_millis(20),
            is_policed: true,
            epoch: Duration::ZERO,
        };
        for interval in intervals(&known) {
            let sum: f64 = interval.limits.iter().map(|candidate| candidate.share).sum();
            prop_assert!((sum - 1.0).abs() < 1e-9, "{interval:?}");
            prop_assert!(interval.limits.is_sorted_by(|a, b| a.share >= b.share));
            prop_assert!(interval.unread.is_none_or(|part| (0.0..=1.0).contains(&part)));
            let text = serde_json::to_string(&interval).unwrap();
            let back: TruthInterval = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(back.waits, interval.waits);
        }
    }
}
