//! Drops of a full link's own, by the samples of the sender's socket.

use super::{SampleSpan, acked};
use crate::limit::decide::Features;
use crate::limit::decide::overflows::are_overflows;
use crate::limit::{Cause, Limit, PathHint, Verdict};
use fullpipe_model::units::{Bytes, Duration, Rate};

/// The highest rates of delivery but so many: now and then an ACK reports what came before it.
const EXCEPTIONS: usize = 2;

/// The verdict, unless it is loss that a full link made.
pub(super) fn overrule(verdict: Verdict, spans: &[SampleSpan<'_>], hint: PathHint) -> Verdict {
    let is_loss = verdict.limited_by().limit == Limit::CongestionWindow(Cause::Loss);
    let rtt = hint.rtt.or_else(|| least_rtt(spans)).filter(|_| is_loss);
    let rate = hint.rate.or_else(|| delivered_at_most(spans));
    let features: Vec<Features> = spans.iter().map(SampleSpan::features).collect();
    match rtt.zip(rate).filter(|(rtt, rate)| are_overflows(&features, *rtt, *rate)) {
        Some((_, rate)) => verdict.proven_to_be(Limit::Link).after_drops(rate),
        None => verdict,
    }
}

/// The least round trip that the kernel measured.
fn least_rtt(spans: &[SampleSpan<'_>]) -> Option<Duration> {
    let infos = spans.iter().flat_map(SampleSpan::infos);
    infos.filter_map(|(_, info)| info.min_rtt).filter(|rtt| *rtt > Duration::ZERO).min()
}

/// The rate at which the path delivered what waited for it, as the kernel measures it from ACK to
/// ACK.
fn delivered_at_most(spans: &[SampleSpan<'_>]) -> Option<Rate> {
    let infos = spans.iter().flat_map(SampleSpan::infos).map(|(_, info)| info);
    let busy = infos.filter(|info| !info.delivery_rate_app_limited);
    let mut rates: Vec<Rate> = busy.filter_map(|info| info.delivery_rate).collect();
    rates.sort_unstable();
    rates.dedup();
    rates.iter().rev().nth(EXCEPTIONS).copied()
}

impl SampleSpan<'_> {
    /// What a capture would show of it, as far as drops go.
    fn features(&self) -> Features {
        Features {
            start: self.start(),
            length: self.length(),
            delivered: acked(self.last).saturating_sub(acked(self.first)).get(),
            segment: self.last.snd_mss.get().try_into().unwrap_or(u16::MAX),
            retransmissions: self.retransmissions().try_into().unwrap_or(u32::MAX),
            in_flight_max: self
                .infos()
                .map(|(_, info)| info.in_flight())
                .max()
                .unwrap_or(Bytes::ZERO),
            ..Features::default()
        }
    }
}
