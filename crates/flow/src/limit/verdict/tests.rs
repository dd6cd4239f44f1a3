use super::*;

fn interval(millis: u64, mbit: u64, retransmissions: u64) -> Interval {
    Interval {
        start: Instant::ZERO,
        length: Duration::from_millis(millis),
        candidates: vec![Candidate { limit: Limit::Link, share: 1.0 }],
        evidence: Evidence {
            goodput: Rate::from_bits_per_sec(mbit * 1_000_000),
            retransmissions,
            ..Evidence::default()
        },
    }
}

fn peak(intervals: &[(u64, u64, u64)]) -> Option<u64> {
    let intervals =
        intervals.iter().map(|(millis, mbit, again)| interval(*millis, *mbit, *again)).collect();
    let verdict = Verdict::new(Source::Capture, intervals);
    verdict.peak_goodput().map(|rate| rate.bits_per_sec() / 1_000_000)
}

/// A reader that starves beside a busy program: what it lets through makes a queue, and then
/// its window is shut for seconds.
#[test]
fn no_opinion_moves_the_time_in_which_the_window_was_shut() {
    let mut carrying = interval(400, 80, 0);
    carrying.evidence.in_flight = Bytes::new(100_000);
    let mut shut = interval(600, 0, 0);
    shut.candidates = vec![Candidate { limit: Limit::ReceiverApplication, share: 1.0 }];
    shut.evidence.window_full = 1.0;
    let mut full = shut.clone();
    full.evidence.in_flight = Bytes::new(100_000);
    let mut verdict = Verdict::new(Source::Capture, vec![carrying, shut, full]);
    verdict.turn_to(Limit::Link, 0..3, |_| true);
    let limits: Vec<Limit> = verdict.intervals.iter().map(Interval::limit).collect();
    assert_eq!(limits, [Limit::Link, Limit::ReceiverApplication, Limit::Link]);
    assert_eq!(verdict.proven(LinkEvidence::None), 0.0, "the link is named first");
    verdict.intervals.pop();
    let verdict = Verdict::new(Source::Capture, verdict.intervals);
    assert_eq!(verdict.limited_by().limit, Limit::ReceiverApplication);
    assert!((verdict.proven(LinkEvidence::None) - 0.6).abs() < 1e-9);
}

#[test]
fn the_peak_is_what_the_path_carried_and_not_what_one_ack_told_of() {
    assert_eq!(peak(&[(10, 5, 0), (10, 7, 0), (10, 6, 0)]), Some(7));
    let hole = [
        (10, 5, 0),
        (10, 5, 0),
        (10, 0, 1),
        (10, 0, 0),
        (10, 18, 0),
        (10, 6, 0),
        (10, 6, 0),
        (10, 6, 0),
        (10, 6, 0),
    ];
    assert_eq!(peak(&hole), Some(6), "a filled hole");
    assert_eq!(peak(&[(10, 5, 0), (10, 7, 0), (1, 90, 0)]), Some(7), "the last one is cut short");
    assert_eq!(peak(&[(10, 5, 1), (10, 7, 1)]), Some(6), "both together");
    assert_eq!(peak(&[(10, 0, 0)]), None);
    assert_eq!(peak(&[]), None);
}

/// Ten seconds that the rules give to a window that is small after loss, and a judge who gives
/// `link` of them to the link.
fn judged(link: f64, evidence: LinkEvidence) -> (Limit, f64) {
    let loss = Limit::CongestionWindow(Cause::Loss);
    let mut one = interval(100, 80, 1);
    one.candidates = vec![Candidate { limit: loss, share: 1.0 }];
    let mut verdict = Verdict::new(Source::Capture, vec![one; 100]);
    let likely = LIMITS.map(|limit| match limit {
        Limit::Link => link,
        limit if limit == loss => 1.0 - link,
        _ => 0.0,
    });
    verdict.adopt(&Opinion { likely, policer: 0.0, ruled_out: 0.0 }, evidence);
    (verdict.limited_by().limit, verdict.confidence)
}

#[test]
fn what_is_wrong_six_times_of_seven_is_not_named_first() {
    let loss = Limit::CongestionWindow(Cause::Loss);
    // The judge must be surer than this to say that losses are a policer's, but 12 % are no answer.
    assert_eq!(judged(0.88, LinkEvidence::None), (Limit::Link, 0.88));
    let (limit, confidence) = judged(0.7, LinkEvidence::None);
    assert!(limit == loss && (confidence - 0.3).abs() < 1e-9, "{limit} {confidence}");
    // Nor do 60 % overrule them where a queue stood.
    assert_eq!(judged(0.6, LinkEvidence::Queue).0, loss);
}

/// Blocks that a policer cuts look like a link with a queue; the drops deny the queue, and what is
/// left of the opinion names the writer, who hardly pauses.
#[test]
fn what_is_left_of_an_opinion_blames_no_writer_who_hardly_pauses() {
    let judged = |idle: f64, ruled_out: f64, dropped: u64| {
        let mut one = interval(100, 80, dropped);
        one.evidence.idle = idle;
        let mut verdict = Verdict::new(Source::Capture, vec![one; 100]);
        let likely = LIMITS.map(|one| f64::from(u8::from(one == Limit::SenderApplication)));
        verdict.adopt(&Opinion { likely, policer: 0.0, ruled_out }, LinkEvidence::None);
        (verdict.limited_by().limit, verdict.confidence)
    };
    assert_eq!(judged(0.05, 0.99, 1), (Limit::Link, OVERRULED));
    assert_eq!(judged(0.3, 0.99, 1).0, Limit::SenderApplication, "it pauses");
    assert_eq!(judged(0.05, 0.1, 1).0, Limit::SenderApplication, "it was weighed by itself");
    assert_eq!(judged(0.05, 0.99, 0).0, Limit::SenderApplication, "nothing was dropped");
}
