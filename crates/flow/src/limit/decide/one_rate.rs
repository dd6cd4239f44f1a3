//! What drops by one rate.

use super::Features;
use crate::limit::percentiles::Sorted;
use crate::limit::thresholds::{UNDELAYED, UNDELAYED_SEGMENTS};
use crate::limit::{CongestionCause, Limit, Policed, Verdict};
use fullpipe_model::units::Duration;

/// The verdict, unless `law` explains what was lost and so holds the data.
pub(super) fn one_rate(
    verdict: Verdict,
    law: Policed,
    features: &[Features],
    is_at_sender: bool,
) -> Verdict {
    if !holds(&verdict, law) {
        return verdict;
    }
    // What decided for a link stays told.
    let is_named = verdict.limited_by().limit == Limit::Link;
    let mut verdict =
        if is_named { verdict.with_proof() } else { verdict.proven_to_be(Limit::Link) };
    verdict.policed = (is_at_sender && delays_nothing(features, law)).then_some(law);
    verdict
}

/// Whether what drops by one rate holds the data: a policer, or behind a queue that is full the
/// link. What that does to a sender is loss, and looks like a link that is hardly ever full. An
/// application that writes no more than passes may lose the ends of its blocks, too.
fn holds(verdict: &Verdict, law: Policed) -> bool {
    let loss = Limit::CongestionWindow(CongestionCause::Loss);
    match verdict.limited_by().limit {
        Limit::SenderApplication => false,
        limit if limit == loss || limit == Limit::Link => law.is_usual(),
        _ => law.is_nearly_always(),
    }
}

/// Whether data is not delayed before it is dropped, by the round trips of data at its sender:
/// behind the path nobody sees what its queue does. A policer delays nothing, and a full queue by
/// all that it holds.
fn delays_nothing(features: &[Features], law: Policed) -> bool {
    let rtts = features.iter().filter_map(|f| f.rtt.get());
    let rtts = Sorted::new(rtts.map(Duration::as_secs_f64));
    let segment = features.iter().map(|f| f.segment).max().unwrap_or_default();
    let few = UNDELAYED_SEGMENTS * 8.0 * f64::from(segment) / law.rate.as_f64();
    rtts.percentile(50) - rtts.percentile(0) < few.min(UNDELAYED.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_model::units::Rate;

    /// Two segments take 232 us at 100 Mbit/s: what delays by more is a queue, which drops by its
    /// link's rate, too.
    #[test]
    fn a_policer_delays_nothing_and_a_full_queue_does() {
        let law = Policed { rate: Rate::from_bits_per_sec(100_000_000), part: 0.9 };
        let after = |queued: u64| {
            let of = |at: u64| {
                let mut f = Features { segment: 1448, ..<_>::default() };
                f.rtt.note(Duration::from_micros(20_000 + if at == 0 { 0 } else { queued }));
                f
            };
            delays_nothing(&(0..20).map(of).collect::<Vec<_>>(), law)
        };
        assert!(after(30) && after(200));
        assert!(!after(300), "more than two segments");
        assert!(!delays_nothing(&[Features::default()], law), "no round trip");
    }
}
