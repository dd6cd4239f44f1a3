//! The points of a connection's graphs from samples of one of its sockets.
//!
//! A sample is no packet: it says how far the data was when it was taken. A "segment" here is what
//! was sent since the sample before, and its number is the sample's. Silences, labels and SACK take
//! packets and are absent.

use super::bounds::TraceBounds;
use super::differences::number;
use super::direction::DirectionTrace;
use super::{Trace, WIRE_HEADERS};
use crate::connection::Direction;
use fullpipe_model::limit::End;
use fullpipe_model::observe::{Sample, TcpInfo};
use fullpipe_model::units::{Bytes, Duration, Window};

impl Trace {
    /// The graphs of the data in `direction`, by samples of the socket of its end `role`. Times
    /// count from the first sample, sequence numbers from the first byte after it.
    pub(crate) fn from_samples(
        samples: &[Sample],
        role: End,
        direction: Direction,
        bounds: TraceBounds,
    ) -> Trace {
        let mut points = DirectionTrace::new(bounds);
        let seen = samples.iter().zip(1..).filter_map(|(sample, packet)| {
            Some(SeenSample {
                at: sample.at.since(samples[0].at),
                packet,
                info: sample.info.as_ref()?,
            })
        });
        let mut place: Option<SamplePlace> = None;
        for seen in seen {
            place = Some(match role {
                End::Sender => sent(&mut points, seen, place),
                End::Receiver => received(&mut points, seen, place),
            });
        }
        Trace::of_direction(direction, points)
    }
}

/// More bytes between two samples are a counter that jumped: no sum of these runs over.
const STEP_MAX: u64 = 1 << 40;

/// What a sample says, and when.
#[derive(Clone, Copy)]
struct SeenSample<'a> {
    at: Duration,
    /// The number of the sample, from 1.
    packet: u64,
    info: &'a TcpInfo,
}

/// How far the data was at a sample.
#[derive(Clone, Copy)]
struct SamplePlace {
    /// What was acknowledged, or received, before the first sample.
    origin: u64,
    /// The highest byte that was sent.
    end: i64,
    /// Bytes sent, and segments, those sent again included.
    carried: (u64, u64),
}

fn count(bytes: Option<Bytes>) -> Option<u64> {
    bytes.map(Bytes::get)
}

fn place_of(bytes: u64, origin: u64) -> i64 {
    number(bytes.saturating_sub(origin))
}

/// Adds what a sender's sample shows.
fn sent(
    points: &mut DirectionTrace,
    seen: SeenSample<'_>,
    before: Option<SamplePlace>,
) -> SamplePlace {
    let SeenSample { at, packet, info } = seen;
    let at = at.as_micros();
    let acked = count(info.bytes_acked).unwrap_or(0);
    let origin = before.map_or(acked, |before| before.origin);
    let here = place_of(acked, origin);
    // New data alone: what was sent again is in `bytes_sent` twice.
    let new = count(info.bytes_sent).zip(count(info.bytes_retrans));
    let new = new.map(|(sent, again)| sent.saturating_sub(again));
    let end = match new {
        Some(sent) => place_of(sent, origin),
        None => here.saturating_add(number(info.in_flight().get())),
    };
    let carried = (
        count(info.bytes_sent).unwrap_or(acked),
        u64::from(info.data_segs_out.unwrap_or_default()),
    );
    points.set_ack(at, here);
    if let Some(window) = info.snd_wnd {
        points.set_window(at, here, of_window(window));
    }
    points.set_in_flight(at, number(info.in_flight().get()));
    if info.rtt > Duration::ZERO {
        points.add_rtt(at, number(info.rtt.as_micros()), here);
    }
    step(points, at, packet, before, SamplePlace { origin, end, carried })
}

/// Adds what a receiver's sample shows.
fn received(
    points: &mut DirectionTrace,
    seen: SeenSample<'_>,
    before: Option<SamplePlace>,
) -> SamplePlace {
    let SeenSample { at, packet, info } = seen;
    let at = at.as_micros();
    let received = count(info.bytes_received).unwrap_or(0);
    let origin = before.map_or(received, |before| before.origin);
    let here = place_of(received, origin);
    points.set_ack(at, here);
    if let Some(window) = info.rcv_wnd {
        points.set_window(at, here, of_window(window));
    }
    if info.rcv_rtt > Duration::ZERO {
        points.add_rtt(at, number(info.rcv_rtt.as_micros()), here);
    }
    let carried = (received, u64::from(info.data_segs_in.unwrap_or_default()));
    step(points, at, packet, before, SamplePlace { origin, end: here, carried })
}

/// Adds what was carried since the sample before.
fn step(
    points: &mut DirectionTrace,
    at: u64,
    packet: u64,
    before: Option<SamplePlace>,
    now: SamplePlace,
) -> SamplePlace {
    let Some(before) = before else { return now };
    if now.end > before.end {
        points.add_segment(at, before.end, now.end, packet);
    }
    let payload = now.carried.0.saturating_sub(before.carried.0).min(STEP_MAX);
    let segments = now.carried.1.saturating_sub(before.carried.1);
    let headers = segments.saturating_mul(WIRE_HEADERS.get()).min(STEP_MAX);
    if payload > 0 {
        points.add_bytes(at, payload, payload.saturating_add(headers));
    }
    now
}

fn of_window(window: Window) -> i64 {
    number(window.bytes().get())
}
