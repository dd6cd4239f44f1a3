//! Looks at sockets that are far apart: a log of ss, taken each second or so.
//!
//! The kernel's counters of time hold for any distance between two looks, so the shares of the
//! receive window, the send buffer and the application follow from their growth as always. What
//! held the rest of the busy time shows in a socket's state, and a look is one moment of it. A
//! state counts here only if both looks, before and after, agree in it; otherwise the rest is not
//! known. The trained judge learnt from samples of every 10 ms, and is not asked.

use super::{
    HeldShares, MIN_INTERVAL, SampleSpan, acked, active, fills, is_unread, nothing_to_send, ranked,
    receiver_at, spans_of,
};
use crate::limit::{Cause, Evidence, Interval, Limit, SURE_FROM, Source, Verdict, thresholds};
use fullpipe_model::observe::{Sample, TcpInfo};
use fullpipe_model::units::{Bytes, Duration, Rate};

/// Decides what held the sender from looks at its socket and, where there are any, at the
/// receiver's.
pub fn from_looks(sender: &[Sample], receiver: &[Sample]) -> Verdict {
    let spans = spans_of(sender, MIN_INTERVAL);
    let mut intervals: Vec<Interval> =
        spans.iter().map(|span| by_counters(span, receiver, &spans)).collect();
    let active = active(&intervals);
    let named = Verdict::new(Source::Samples, intervals.drain(active).collect());
    let is_counted = matches!(
        named.limited_by().limit,
        Limit::ReceiveWindow
            | Limit::ReceiverApplication
            | Limit::SendBuffer
            | Limit::SenderApplication
    );
    let has_counters =
        sender.iter().any(|one| one.info.as_ref().is_some_and(|info| info.busy_time.is_some()));
    // Nobody has scored answers of moments.
    let most = if is_counted && has_counters { 1.0 } else { SURE_FROM };
    named.no_surer_than(most)
}

/// Decides what held the sender from looks at the receiver's socket alone: its application, where
/// what it has not read fills its window at each look. Nothing else shows there.
pub fn from_receiver_looks(receiver: &[Sample]) -> Verdict {
    let spans = spans_of(receiver, MIN_INTERVAL);
    let intervals: Vec<Interval> = spans
        .iter()
        .map(|span| {
            let ends = [&span.samples[0], &span.samples[span.samples.len() - 1]];
            let is_slow = ends.iter().all(|sample| is_unread(sample));
            let limit = if is_slow { Limit::ReceiverApplication } else { Limit::Unknown };
            let arrived = received(span.last).saturating_sub(received(span.first));
            let evidence = Evidence {
                goodput: arrived.per(span.length()).unwrap_or(Rate::ZERO),
                unread: span.samples.iter().map(|sample| sample.rqueue).max(),
                ..Evidence::default()
            };
            Interval {
                start: span.start(),
                length: span.length(),
                candidates: ranked(vec![(limit, 1.0)]),
                evidence,
            }
        })
        .collect();
    let verdict = Verdict::new(Source::ReceiverSamples, intervals);
    verdict.no_surer_than(SURE_FROM)
}

fn received(info: &TcpInfo) -> Bytes {
    info.bytes_received.unwrap_or(Bytes::ZERO)
}

/// What the counters say of the time between two looks, and the two looks of the rest.
fn by_counters(span: &SampleSpan<'_>, receiver: &[Sample], all: &[SampleSpan<'_>]) -> Interval {
    let near = receiver_at(receiver, span);
    let evidence = span.evidence(near);
    let HeldShares { busy, rwnd, sndbuf } = busy_of(span);
    // A segment that was sent again says nothing of the rest of a second.
    let repairs = false;
    let candidates = vec![
        (span.closed(near, all, repairs), rwnd),
        (Limit::SendBuffer, sndbuf),
        (rest(span), busy - rwnd - sndbuf),
        (Limit::SenderApplication, 1.0 - busy),
    ];
    Interval {
        start: span.start(),
        length: span.length(),
        candidates: ranked(candidates),
        evidence: Evidence { idle: 1.0 - busy, ..evidence },
    }
}

/// The parts of the time that the kernel counted. Without its counters all of it is busy, but where
/// nothing was acknowledged and nothing was in flight at either look.
fn busy_of(span: &SampleSpan<'_>) -> HeldShares {
    if span.first.busy_time.is_some() && span.last.busy_time.is_some() {
        return span.held();
    }
    let moved = acked(span.last) > acked(span.first);
    let flies = both(span, |info| info.unacked > 0);
    HeldShares { busy: f64::from(u8::from(moved || flies)), rwnd: 0.0, sndbuf: 0.0 }
}

/// Whether `is` holds at both looks.
fn both(span: &SampleSpan<'_>, is: impl Fn(&TcpInfo) -> bool) -> bool {
    is(span.first) && is(span.last)
}

/// What held the sender while the kernel counted neither window nor buffer.
fn rest(span: &SampleSpan<'_>) -> Limit {
    // A single look stands for the whole life of its socket, whose beginning has no state.
    if span.first.rtt == Duration::ZERO {
        return Limit::Unknown;
    }
    if span.retransmissions() > 0 {
        return Limit::CongestionWindow(Cause::Loss);
    }
    if both(span, nothing_to_send) {
        // What is in flight then is the last of what was written.
        let ends = [&span.samples[0], &span.samples[span.samples.len() - 1]];
        let is_blocked = ends.into_iter().all(is_buffer_full);
        return if is_blocked { Limit::SendBuffer } else { Limit::SenderApplication };
    }
    // Where the kernel counts the window's time, this is not it.
    if span.last.busy_time.is_none() && both(span, is_window_full) {
        return Limit::ReceiveWindow;
    }
    let goodput = span.goodput();
    if both(span, |info| queues(info, goodput)) {
        return Limit::Link;
    }
    let grew = span.last.snd_cwnd > span.first.snd_cwnd;
    // ss prints no threshold while there is none.
    let starts = both(span, |info| info.snd_ssthresh == 0 || info.snd_cwnd < info.snd_ssthresh);
    if grew && starts && both(span, fills) {
        return Limit::CongestionWindow(Cause::SlowStart);
    }
    Limit::Unknown
}

fn is_buffer_full(sample: &Sample) -> bool {
    let most = thresholds::FULL_BUFFER;
    sample.memory.is_some_and(|m| m.wmem_queued.as_f64() >= most * m.sndbuf.as_f64())
}

fn is_window_full(info: &TcpInfo) -> bool {
    let window = info.snd_wnd.map(|window| window.bytes());
    window.is_some_and(|window| info.in_flight() + info.snd_mss > window)
}

/// Whether more is in flight than the path itself holds at this rate, and round trips are longer
/// than its own by more than chance.
fn queues(info: &TcpInfo, goodput: Rate) -> bool {
    const FEW: u32 = 4;
    let Some(base) = info.min_rtt else { return false };
    let part = Duration::from_secs_f64(base.as_secs_f64() * thresholds::QUEUE_PART);
    let is_long = info.rtt.saturating_sub(base) >= thresholds::QUEUE_LEAST_SAMPLED.max(part);
    is_long && info.unacked > FEW && info.in_flight() >= goodput.over(base)
}

#[cfg(test)]
mod tests;
