//! Intervals of which only means are known: what iperf3 prints.
//!
//! There are the rate, the round trip and the windows, and no counters of time. What is in flight is
//! the rate times the round trip; which window that fills is the question. Nobody has scored the
//! answers, so they are no more than guesses.

use super::around::{Around, group_ends};
use super::{MIN_INTERVAL, SampleSpan, active, ranked, spans_of};
use crate::limit::{Interval, Limit, SURE_FROM, Source, Verdict};
use fullpipe_model::law::send_buffer;
use fullpipe_model::observe::Sample;
use fullpipe_model::units::{Bytes, Rate};

/// A sender that is told its rate keeps to at least this part of it.
const AT_RATE: f64 = 0.9;
/// A send buffer is full where this part of what it holds by its law is in flight.
const OF_BUFFER: f64 = 0.6;

/// Decides what held the sender from the means of intervals. `rate` is what it was told to keep to,
/// `sndbuf` the send buffer that it asked for.
pub fn from_means(sender: &[Sample], rate: Option<Rate>, sndbuf: Option<Bytes>) -> Verdict {
    let spans = spans_of(sender, MIN_INTERVAL);
    let mut intervals: Vec<Interval> = Vec::with_capacity(spans.len());
    for end in group_ends(&spans) {
        let group = &spans[intervals.len()..end];
        let Some(around) = Around::new(group) else { break };
        intervals.extend(group.iter().map(|span| Interval {
            start: span.start(),
            length: span.length(),
            candidates: ranked(vec![(limit(span, &around, rate, sndbuf), 1.0)]),
            evidence: span.evidence(&[]),
        }));
    }
    let active = active(&intervals);
    let verdict = Verdict::new(Source::Samples, intervals.drain(active).collect());
    verdict.no_surer_than(SURE_FROM)
}

fn limit(
    span: &SampleSpan<'_>,
    around: &Around<'_>,
    rate: Option<Rate>,
    sndbuf: Option<Bytes>,
) -> Limit {
    if rate.is_some_and(|rate| span.goodput().as_f64() >= AT_RATE * rate.as_f64()) {
        return Limit::SenderApplication;
    }
    // The least round trip that iperf3 shows may have waited in a queue, too.
    if around.is_steady_and_queued() {
        return Limit::Link;
    }
    match around.waiting() {
        Limit::Unknown => {
            let holds = sndbuf.map(|sndbuf| send_buffer::window(sndbuf).bytes().as_f64());
            let is_full =
                holds.is_some_and(|holds| around.in_flight().as_f64() >= OF_BUFFER * holds);
            if is_full { Limit::SendBuffer } else { Limit::Unknown }
        }
        told => told,
    }
}
