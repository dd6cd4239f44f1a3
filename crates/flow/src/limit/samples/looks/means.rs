//! Intervals of which only means are known: what iperf3 prints.
//!
//! There are the rate, the round trip and the windows, and no counters of time. What is in flight
//! is the rate times the round trip; which window that fills is the question.

use super::around::Around;
use crate::limit::samples::SampleSpan;
use fullpipe_model::law::send_buffer;
use fullpipe_model::limit::Limit;
use fullpipe_model::units::{Bytes, Rate};

/// A sender that is told its rate keeps to at least this part of it.
const AT_RATE: f64 = 0.9;
/// A send buffer is full where this part of what it holds by its law is in flight.
const OF_BUFFER: f64 = 0.6;

/// What held the sender in an interval, with those around it.
pub(super) fn limit(
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
        // iperf3 reads all the time.
        Limit::ReceiverApplication => Limit::ReceiveWindow,
        told => told,
    }
}
