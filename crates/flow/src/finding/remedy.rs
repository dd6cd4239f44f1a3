//! What would change a limit: in words, and as entries of a tuning plan.
//!
//! A capture shows the path (its round trip, what it carried) and what bounded the transfer. It
//! does not show the settings of the hosts. The plan therefore assumes hosts whose buffers are just
//! as large as was seen, and a path as fast as in other intervals. Where the limit held throughout,
//! nothing is known of the path beyond it. The plan is then for twice what was allowed, and the
//! next capture shows more.

use super::Typical;
use crate::limit::{Cause, Limit};
use fullpipe_model::change::Change;
use fullpipe_model::law::KernelVersion;
use fullpipe_model::limit::End;
use fullpipe_model::tune::{HostSettings, Path, plan};
use fullpipe_model::units::{Bytes, Duration, Rate, Window};
use std::ops::RangeInclusive;

/// The rate of the plan where nothing is known of the path beyond the limit, as a multiple of what
/// was allowed.
const BEYOND: f64 = 2.0;
/// The kernel whose laws turn buffers into windows: the current one. The plan uses their cautious
/// form.
const KERNEL: KernelVersion = KernelVersion::new(6, 18);

/// The sysctls to set against `limit`. There are none if it is not a buffer or its numbers are not
/// known.
pub(super) fn changes(limit: Limit, typical: &Typical, rtt: Option<Duration>) -> Vec<Change> {
    let Some(rtt) = rtt.filter(|rtt| *rtt > Duration::ZERO) else { return Vec::new() };
    let mut receiver = HostSettings::defaults(KERNEL);
    let mut sender = HostSettings::defaults(KERNEL);
    let (end, bound) = match limit {
        Limit::ReceiveWindow => {
            let Some(window) = typical.window else { return Vec::new() };
            receiver.tcp_rmem.max = receiver.window_law().cautious().rcvbuf_for(window);
            sender.tcp_wmem.max = ENOUGH;
            (End::Receiver, window.bytes())
        }
        Limit::SendBuffer => {
            sender.tcp_wmem.max = typical.in_flight;
            receiver.tcp_rmem.max = ENOUGH;
            (End::Sender, typical.in_flight)
        }
        _ => return Vec::new(),
    };
    // A maximum below the default means that the application asked for a smaller buffer (SO_RCVBUF,
    // SO_SNDBUF), and no sysctl helps.
    if receiver.tcp_rmem.max < receiver.tcp_rmem.default
        || sender.tcp_wmem.max < sender.tcp_wmem.default
    {
        return Vec::new();
    }
    let allowed = bound.per(rtt).unwrap_or(Rate::ZERO).as_f64();
    let rate = typical.elsewhere.map_or(0.0, Rate::as_f64).max(BEYOND * allowed);
    if rate < 1.0 {
        return Vec::new();
    }
    let planned = plan(Path::new(Rate::from_bits_per_sec(rate as u64), rtt), &sender, &receiver);
    planned.changes.into_iter().filter(|change| change.end == Some(end)).collect()
}

/// More than any plan asks for.
const ENOUGH: Bytes = Bytes::new(i32::MAX as u64);

/// The largest windows that fit into 16 bits, down to one segment less: a receiver rounds them to
/// whole segments (`__tcp_select_window`, net/ipv4/tcp_output.c).
const UNSCALED: RangeInclusive<Window> =
    Window::new(Bytes::new(65_535 - 1460))..=Window::new(Bytes::new(65_535));

/// What would change a link that drops from bursts and has no queue.
pub(super) const PACE: &str = "send evenly, not in bursts: try bbr, or pacing (tc fq with maxrate, \
    SO_MAX_PACING_RATE); what drops without a queue is a policer or a very short queue, and may carry more than this; \
    whoever runs it knows its rate and its burst";

/// What would make a short transfer faster that nothing held.
pub(super) const FEWER_ROUND_TRIPS: &str = "nothing at TCP: pay fewer round trips before it (keep the connection open, \
    TLS 1.3, fewer requests), or fetch it from nearer";

/// What would change `limit`, in words. `window` is the receive window that was seen.
pub(super) fn words(limit: Limit, window: Option<Window>) -> &'static str {
    match limit {
        Limit::ReceiveWindow if window.is_some_and(|window| UNSCALED.contains(&window)) => {
            "see that window scaling is on at both ends (net.ipv4.tcp_window_scaling): without it no window is above \
             65535 bytes, which is where this one stands; if it is on, raise the third value of net.ipv4.tcp_rmem on the \
             receiver, and remove or raise SO_RCVBUF in its application"
        }
        Limit::ReceiveWindow => {
            "let the receiver's buffer grow: raise the third value of net.ipv4.tcp_rmem on the receiver, and remove or \
             raise SO_RCVBUF in its application"
        }
        Limit::ReceiverApplication => {
            "read faster: more CPU, a faster disk or a larger read on the receiver; larger buffers would only fill"
        }
        Limit::SendBuffer => {
            "let the sender's buffer grow: raise the third value of net.ipv4.tcp_wmem on the sender, and remove or raise \
             SO_SNDBUF in its application"
        }
        Limit::SenderApplication => {
            "make the sending application produce data faster, or in larger writes"
        }
        Limit::CongestionWindow(Cause::SlowStart) => {
            "keep connections open between transfers, or raise the route's initcwnd; longer transfers suffer less"
        }
        Limit::CongestionWindow(Cause::Loss) => {
            "remove the loss, or use a congestion control that does not take each loss for congestion (bbr)"
        }
        Limit::Link => "nothing at the hosts: this is what the path carries",
        Limit::Unknown => {
            "capture at the sender, from the connection's start, and sample its socket"
        }
    }
}
