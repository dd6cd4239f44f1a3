//! Looks at sockets that are far apart: a log of ss, taken each second or so.
//!
//! The kernel's counters of time hold for any distance between two looks, so the shares of the
//! receive window, the send buffer and the application follow from their growth as always. What
//! held the rest of the busy time shows in a socket's state. A look is one moment of that, so it
//! is told by several looks together ([`Around`]), by what is so at most of them and by what was
//! carried between the first and the last. The trained judge learnt from samples of every 10 ms,
//! and is not asked.

mod around;
mod means;

use super::{
    HeldShares, MIN_INTERVAL, SampleSpan, acked, active, fills, is_unread, nothing_to_send, ranked,
    receiver_at, spans_of,
};
use crate::limit::{Candidate, Evidence, Interval, SURE_FROM, Source, Verdict, thresholds};
use around::{Around, group_ends, is_below_threshold};
use fullpipe_model::limit::{Cause, Limit};
use fullpipe_model::observe::{Sample, TcpInfo};
use fullpipe_model::units::{Bytes, Duration, Rate};

/// How often a limit is right that states show and no counter. At the senders of `fullpipe lab
/// generate --seed 75`, which the thresholds were not chosen by, looks with `-m` every second and
/// every quarter of one named what samples of every 10 ms did in 123 of 140 runs (docs/src/ss.md).
const BY_STATES: f64 = 0.85;

/// Decides what held the sender from looks at its socket and, where there are any, at the
/// receiver's.
pub fn from_looks(sender: &[Sample], receiver: &[Sample]) -> Verdict {
    let spans = spans_of(sender, MIN_INTERVAL);
    let mut intervals: Vec<Interval> = Vec::with_capacity(spans.len());
    for end in group_ends(&spans) {
        let group = &spans[intervals.len()..end];
        let Some(around) = Around::new(group) else { break };
        intervals.extend(group.iter().map(|span| by_counters(span, &around, receiver, &spans)));
    }
    let counted = counted(&spans, &intervals);
    let active = active(&intervals);
    let named = Verdict::new(Source::Samples, intervals.drain(active).collect());
    let most = surest(&named, counted, sender);
    named.no_surer_than(most)
}

/// Decides what held the sender from the means of intervals, as iperf3 prints them. `rate` is what
/// it was told to keep to, `sndbuf` the send buffer that it asked for.
pub fn from_means(sender: &[Sample], rate: Option<Rate>, sndbuf: Option<Bytes>) -> Verdict {
    let spans = spans_of(sender, MIN_INTERVAL);
    let mut intervals: Vec<Interval> = Vec::with_capacity(spans.len());
    for end in group_ends(&spans) {
        let group = &spans[intervals.len()..end];
        let Some(around) = Around::new(group) else { break };
        intervals.extend(group.iter().map(|span| Interval {
            start: span.start(),
            length: span.length(),
            candidates: ranked(vec![(means::limit(span, &around, rate, sndbuf), 1.0)]),
            evidence: span.evidence(&[]),
        }));
    }
    let active = active(&intervals);
    let verdict = Verdict::new(Source::Samples, intervals.drain(active).collect());
    // Nobody has scored these answers.
    verdict.no_surer_than(SURE_FROM)
}

/// How sure a verdict can be. `counted` is for how long the kernel counted each limit.
fn surest(named: &Verdict, counted: Vec<(Limit, Duration)>, sender: &[Sample]) -> f64 {
    let Candidate { limit, share } = named.limited_by();
    let of_limit = counted.iter().filter(|(one, _)| *one == limit);
    let by_counters: Duration = of_limit.map(|(_, time)| *time).sum();
    if by_counters.as_secs_f64() >= thresholds::MOST * share * named.time.as_secs_f64() {
        return 1.0;
    }
    let has_counters =
        sender.iter().any(|one| one.info.as_ref().is_some_and(|info| info.busy_time.is_some()));
    // Without them a full send buffer and an application that pauses look alike.
    let has_memory = sender.iter().any(|one| one.memory.is_some());
    let is_told = match limit {
        Limit::SendBuffer | Limit::SenderApplication => has_memory,
        _ => true,
    };
    if has_counters && is_told { BY_STATES } else { SURE_FROM }
}

/// For how long the kernel counted the limits that it counts.
fn counted(spans: &[SampleSpan<'_>], intervals: &[Interval]) -> Vec<(Limit, Duration)> {
    let mut found = Vec::new();
    for (span, interval) in std::iter::zip(spans, intervals) {
        if span.first.busy_time.is_none() {
            continue;
        }
        let HeldShares { busy, rwnd, sndbuf } = busy_of(span);
        let of_window = interval.candidates.iter().map(|one| one.limit);
        let closed = of_window
            .filter(|limit| matches!(limit, Limit::ReceiveWindow | Limit::ReceiverApplication));
        let parts = closed.take(1).map(|limit| (limit, rwnd));
        let parts =
            parts.chain([(Limit::SendBuffer, sndbuf), (Limit::SenderApplication, 1.0 - busy)]);
        let length = span.length().as_secs_f64();
        found.extend(parts.map(|(limit, part)| (limit, Duration::from_secs_f64(part * length))));
    }
    found
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

/// What the counters say of the time between two looks, and those around it of the rest.
fn by_counters(
    span: &SampleSpan<'_>,
    around: &Around<'_>,
    receiver: &[Sample],
    all: &[SampleSpan<'_>],
) -> Interval {
    let near = receiver_at(receiver, span);
    let evidence = span.evidence(near);
    let HeldShares { busy, rwnd, sndbuf } = busy_of(span);
    // A segment that was sent again says nothing of the rest of a second.
    let repairs = false;
    let closed = match span.closed(near, all, repairs) {
        Limit::ReceiveWindow if near.is_empty() && around.is_closed_by_reader() => {
            Limit::ReceiverApplication
        }
        Limit::ReceiveWindow if around.is_queued_at_window() => Limit::Link,
        closed => closed,
    };
    let candidates = vec![
        (closed, rwnd),
        (Limit::SendBuffer, sndbuf),
        (rest(span, around), busy - rwnd - sndbuf),
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
fn rest(span: &SampleSpan<'_>, around: &Around<'_>) -> Limit {
    // A single look stands for the whole life of its socket, whose beginning has no state.
    if span.first.rtt == Duration::ZERO {
        return Limit::Unknown;
    }
    if around.is_full_link() {
        return Limit::Link;
    }
    // Whatever was sent again meanwhile: a sender that has nothing to send waits for no window.
    if both(span, nothing_to_send) || around.is_empty() {
        return around.unsent();
    }
    let grew = span.last.snd_cwnd > span.first.snd_cwnd;
    let starts = both(span, is_below_threshold);
    if grew && starts && both(span, fills) && span.retransmissions() == 0 {
        return Limit::CongestionWindow(Cause::SlowStart);
    }
    around.waiting()
}

#[cfg(test)]
mod tests;
