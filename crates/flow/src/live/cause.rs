//! What lies behind a live connection's limit: what its application asked of the socket, what a
//! setting caps, what the other end left out. Each cause is a function of what the host saw, and
//! names the numbers that it rests on.

use super::Observed;
use crate::diagnosis::Explanation;
use crate::limit::{Cause, Limit, Verdict};
use fullpipe_model::limit::End;
use fullpipe_model::observe::{SocketMemory, TcpInfo};
use fullpipe_model::units::{Bytes, Duration, Rate};

/// `TCPI_OPT_WSCALE` of include/uapi/linux/tcp.h: both SYNs offered a window scale.
const OPT_WSCALE: u8 = 4;
/// The largest window without a scale.
const UNSCALED_MOST: Bytes = Bytes::new(65_535);
/// A socket paces at the rate that its application asked for from this fraction of it on: the rate
/// counts headers and retransmissions.
const OF_PACING: f64 = 0.85;
/// Segments below this size carry so much overhead that it shows: a tunnel, or a path MTU that a
/// broken discovery lowered.
const SMALL_SEGMENT: Bytes = Bytes::new(1000);
/// Bounds of the wait that a delayed ACK adds (RFC 9293 section 3.8.6.3; Linux: 40 to 200 ms).
const DELAYED_ACK: (Duration, Duration) = (Duration::from_millis(30), Duration::from_millis(220));
/// A limit that holds for less is not worth an explanation.
const LEAST_SHARE: f64 = 0.1;
/// Repairs of which at least this fraction was not needed are the work of reordering.
const OF_SPURIOUS: f64 = 0.5;

/// Where a cause's remedy has to be applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// At this end of the data.
    End(End),
    /// On the path.
    Path,
}

/// Where the remedy of the cause `name` has to be applied, if the cause explains `limit`.
pub(super) fn place(name: &str, limit: Limit) -> Option<Place> {
    const LOSS: Limit = Limit::CongestionWindow(Cause::Loss);
    let (place, of): (Place, &[Limit]) = match name {
        // Which SYN lacks the option is not known: the window is the receiver's.
        "window_scale_missing" => (Place::End(End::Receiver), &[Limit::ReceiveWindow]),
        "receive_buffer_at_its_largest"
        | "receive_buffer_capped"
        | "receive_buffer_frozen"
        | "window_clamped" => (Place::End(End::Receiver), &[Limit::ReceiveWindow]),
        "application_does_not_read" => (Place::End(End::Receiver), &[Limit::ReceiverApplication]),
        "send_buffer_at_its_largest" | "send_buffer_capped" | "send_buffer_frozen" => {
            (Place::End(End::Sender), &[Limit::SendBuffer])
        }
        "paced_by_application" => {
            (Place::End(End::Sender), &[Limit::SenderApplication, Limit::Link])
        }
        "delayed_ack" => (Place::End(End::Sender), &[Limit::SenderApplication]),
        "notsent_lowat" => {
            (Place::End(End::Sender), &[Limit::SendBuffer, Limit::SenderApplication])
        }
        "idle_restart" => (Place::End(End::Sender), &[Limit::CongestionWindow(Cause::SlowStart)]),
        "reordering" | "timeouts" | "small_segments" => (Place::Path, &[LOSS]),
        _ => return None,
    };
    of.contains(&limit).then_some(place)
}

/// The causes behind the limits of a connection, most important first.
pub(super) fn causes(seen: &Observed<'_>, first: Limit, verdict: &Verdict) -> Vec<Explanation> {
    let holds = |limit| limit == first || verdict.share(limit) >= LEAST_SHARE;
    let mut found = Vec::new();
    if holds(Limit::ReceiveWindow) {
        found.extend(receive_window(seen));
    }
    if holds(Limit::ReceiverApplication) {
        found.extend(unread(seen));
    }
    if holds(Limit::SendBuffer) {
        found.extend(send_buffer(seen));
    }
    if seen.role == End::Sender {
        if holds(Limit::SenderApplication) || holds(Limit::Link) {
            found.extend(paced(seen));
        }
        if holds(Limit::SenderApplication) {
            found.extend(delayed_ack(seen));
        }
        if holds(Limit::SendBuffer) || holds(Limit::SenderApplication) {
            found.extend(notsent_lowat(seen));
        }
        if holds(Limit::CongestionWindow(Cause::Loss)) {
            found.extend(reordering(seen));
        }
        found.extend(timeouts(seen));
        found.extend(idle_restart(seen));
    }
    found.extend(small_segments(seen));
    found.extend(dropped(seen));
    found
}

/// An explanation without numbers of its own.
fn explain(name: &'static str, claim: String, remedy: &'static str) -> Explanation {
    Explanation { name, claim, remedy, count: None, time: None, rate: None, amount: None }
}

/// An explanation with an amount of data.
fn of_amount(
    name: &'static str,
    claim: String,
    remedy: &'static str,
    amount: Bytes,
) -> Explanation {
    Explanation { amount: Some(amount), ..explain(name, claim, remedy) }
}

/// This host's last known socket memory.
fn memory(seen: &Observed<'_>) -> Option<SocketMemory> {
    seen.samples.iter().rev().find_map(|sample| sample.memory)
}

/// What `amount` a round trip carries at most.
fn allows(seen: &Observed<'_>, amount: Bytes) -> String {
    let rtt = seen.info().and_then(|info| info.min_rtt).filter(|rtt| *rtt > Duration::ZERO);
    match rtt.and_then(|rtt| Some((rtt, amount.per(rtt)?))) {
        Some((rtt, rate)) => format!(", at most {rate} over {rtt}"),
        None => String::new(),
    }
}

/// Why the window that the receiver advertises is no larger.
fn receive_window(seen: &Observed<'_>) -> Option<Explanation> {
    let here = || (seen.role == End::Receiver).then(|| own_window(seen)).flatten();
    unscaled(seen).or_else(here)
}

/// A SYN offered no window scale.
fn unscaled(seen: &Observed<'_>) -> Option<Explanation> {
    let info = seen.info()?;
    // The receiver's own count may be above what it can say.
    let window = info.snd_wnd.filter(|_| seen.role == End::Sender);
    let is_small = window.is_none_or(|window| window.bytes() <= UNSCALED_MOST);
    (info.options & OPT_WSCALE == 0 && is_small).then(|| {
        let allowed = allows(seen, UNSCALED_MOST);
        explain(
            "window_scale_missing",
            format!("one of the SYNs offered no window scale, so no window is above 65,535 bytes{allowed}"),
            "set net.ipv4.tcp_window_scaling=1 at the end where it is off, or find the middlebox that removes the \
             option; only new connections gain",
        )
    })
}

/// What keeps this receiver's own window small.
fn own_window(seen: &Observed<'_>) -> Option<Explanation> {
    let settings = seen.settings?;
    let rcvbuf = memory(seen)?.rcvbuf;
    let allowed = allows(seen, settings.window_law().window(rcvbuf).bytes());
    if seen.asked.and_then(|asked| asked.sets_rcvbuf) == Some(true) {
        return Some(set_rcvbuf(rcvbuf, settings.rmem_max, &allowed));
    }
    let clamp = seen.asked.and_then(|asked| asked.window_clamp).map(|clamp| clamp.bytes());
    // The kernel sets a clamp itself, to what the buffer may advertise.
    if let Some(clamp) = clamp.filter(|clamp| clamp.get().saturating_mul(4) < rcvbuf.get()) {
        let claim =
            format!("TCP_WINDOW_CLAMP keeps the window at {clamp:#}{}", allows(seen, clamp));
        let remedy = "remove TCP_WINDOW_CLAMP from the application";
        return Some(of_amount("window_clamped", claim, remedy, clamp));
    }
    let largest = settings.tcp_rmem.max;
    (rcvbuf >= largest).then(|| {
        let claim = format!(
            "autotuning reached the third value of net.ipv4.tcp_rmem ({largest:#}){allowed}"
        );
        let remedy = "raise the third value of net.ipv4.tcp_rmem on the receiver (`fullpipe tune plan` there says \
                      to what); new connections gain immediately";
        of_amount("receive_buffer_at_its_largest", claim, remedy, rcvbuf)
    })
}

/// The application set SO_RCVBUF, within the machine's bound or up to it.
fn set_rcvbuf(rcvbuf: Bytes, rmem_max: Bytes, allowed: &str) -> Explanation {
    // The kernel doubles what it allows (`sock_setsockopt`).
    if rcvbuf.get() == rmem_max.get().saturating_mul(2) {
        let claim = format!(
            "the application set SO_RCVBUF, and net.core.rmem_max ({rmem_max}) capped it at {rcvbuf:#}{allowed}"
        );
        let remedy = "remove SO_RCVBUF from the application, so that the buffer grows by itself, or raise \
                      net.core.rmem_max and restart it";
        return of_amount("receive_buffer_capped", claim, remedy, rcvbuf);
    }
    let claim = format!("the application set SO_RCVBUF: its buffer stays at {rcvbuf:#}{allowed}");
    let remedy = "remove SO_RCVBUF from the application, so that the buffer grows by itself (up to the third value \
                  of net.ipv4.tcp_rmem), or ask for more there";
    of_amount("receive_buffer_frozen", claim, remedy, rcvbuf)
}

/// How much the receiving application leaves unread.
fn unread(seen: &Observed<'_>) -> Option<Explanation> {
    let samples = if seen.role == End::Receiver { seen.samples } else { seen.other };
    let most =
        samples.iter().map(|sample| sample.rqueue).max().filter(|most| *most > Bytes::ZERO)?;
    let claim = format!("the application does not read: up to {most:#} wait in its socket");
    let remedy = "give the reading process more CPU, a faster disk or larger reads; larger buffers would only fill";
    Some(of_amount("application_does_not_read", claim, remedy, most))
}

/// Why the sender's buffer is no larger.
fn send_buffer(seen: &Observed<'_>) -> Option<Explanation> {
    if seen.role != End::Sender {
        return None;
    }
    let settings = seen.settings?;
    let sndbuf = memory(seen)?.sndbuf;
    let mean = fullpipe_model::law::send_buffer::window(sndbuf).bytes();
    let allowed = allows(seen, mean);
    if seen.asked.and_then(|asked| asked.sets_sndbuf) == Some(true) {
        return Some(set_sndbuf(sndbuf, settings.wmem_max, &allowed));
    }
    let largest = settings.tcp_wmem.max;
    (sndbuf >= largest).then(|| {
        let claim = format!(
            "autotuning reached the third value of net.ipv4.tcp_wmem ({largest:#}){allowed}"
        );
        let remedy =
            "raise the third value of net.ipv4.tcp_wmem on the sender (`fullpipe tune plan` there says to what)";
        of_amount("send_buffer_at_its_largest", claim, remedy, sndbuf)
    })
}

/// The application set SO_SNDBUF, within the machine's bound or up to it.
fn set_sndbuf(sndbuf: Bytes, wmem_max: Bytes, allowed: &str) -> Explanation {
    if sndbuf.get() == wmem_max.get().saturating_mul(2) {
        let claim = format!(
            "the application set SO_SNDBUF, and net.core.wmem_max ({wmem_max}) capped it at {sndbuf:#}{allowed}"
        );
        let remedy = "remove SO_SNDBUF from the application, so that the buffer grows by itself, or raise \
                      net.core.wmem_max and restart it";
        return of_amount("send_buffer_capped", claim, remedy, sndbuf);
    }
    let claim = format!("the application set SO_SNDBUF: its buffer stays at {sndbuf:#}{allowed}");
    let remedy = "remove SO_SNDBUF from the application, so that the buffer grows by itself (up to the third value \
                  of net.ipv4.tcp_wmem), or ask for more there";
    of_amount("send_buffer_frozen", claim, remedy, sndbuf)
}

/// The application asked the socket to send no faster.
fn paced(seen: &Observed<'_>) -> Option<Explanation> {
    let bound = seen.asked?.max_pacing_rate?;
    let (first, last) = seen.ends()?;
    let time = seen.samples.last()?.at.since(seen.samples.first()?.at);
    let acked = |info: &TcpInfo| info.bytes_acked.unwrap_or(Bytes::ZERO);
    let rate: Rate = acked(last).saturating_sub(acked(first)).per(time)?;
    (rate.as_f64() >= OF_PACING * bound.as_f64()).then(|| Explanation {
        rate: Some(bound),
        ..explain(
            "paced_by_application",
            format!(
                "the application set SO_MAX_PACING_RATE to {bound}, and the socket sends {rate}"
            ),
            "raise or remove SO_MAX_PACING_RATE in the application",
        )
    })
}

/// A small write waits for an ACK that the receiver delays.
fn delayed_ack(seen: &Observed<'_>) -> Option<Explanation> {
    let waits = |info: &&TcpInfo| {
        let wait = info.rtt.saturating_sub(info.min_rtt.unwrap_or(info.rtt));
        let (least, most) = DELAYED_ACK;
        (1..=2).contains(&info.unacked) && (least..=most).contains(&wait)
    };
    let infos = || seen.samples.iter().filter_map(|sample| sample.info.as_ref());
    let (waiting, all) = (infos().filter(waits).count(), infos().count());
    let info = infos().rfind(waits)?;
    (2 * waiting > all).then(|| Explanation {
        time: Some(info.rtt.saturating_sub(info.min_rtt.unwrap_or(info.rtt))),
        ..explain(
            "delayed_ack",
            format!(
                "small writes wait for ACKs that the receiver delays: the round trip is {}, the path's {}",
                info.rtt,
                info.min_rtt.unwrap_or(info.rtt)
            ),
            "write a whole message at once (writev, MSG_MORE, TCP_CORK, a buffered stream), or set TCP_NODELAY on \
             the sender's socket",
        )
    })
}

/// The writer is woken late.
fn notsent_lowat(seen: &Observed<'_>) -> Option<Explanation> {
    let lowat = seen.asked?.notsent_lowat?;
    let info = seen.info()?;
    let is_small = lowat < info.in_flight();
    is_small.then(|| Explanation {
        amount: Some(lowat),
        ..explain(
            "notsent_lowat",
            format!(
                "TCP_NOTSENT_LOWAT lets {lowat:#} wait unsent, less than is in flight ({})",
                info.in_flight()
            ),
            "raise TCP_NOTSENT_LOWAT in the application, or let it write as soon as poll says so",
        )
    })
}

/// Repairs that were not needed: packets overtook each other.
fn reordering(seen: &Observed<'_>) -> Option<Explanation> {
    let (first, last) = seen.ends()?;
    let again = last.total_retrans.wrapping_sub(first.total_retrans);
    let needless = last.dsack_dups?.wrapping_sub(first.dsack_dups?);
    (again > 4 && f64::from(needless) >= OF_SPURIOUS * f64::from(again)).then(|| Explanation {
        count: Some(needless.into()),
        ..explain(
            "reordering",
            format!("{needless} of {again} retransmissions were not needed: the path reorders packets"),
            "find the device that spreads one connection's packets over several links (per-packet balancing, \
             bonding in round-robin mode)",
        )
    })
}

/// The sender waits for its retransmission timer.
fn timeouts(seen: &Observed<'_>) -> Option<Explanation> {
    let (first, last) = seen.ends()?;
    let counted = last.total_rto.zip(first.total_rto).map_or(0, |(l, f)| l.wrapping_sub(f));
    let count = counted.max(u16::from(last.backoff));
    (count > 0).then(|| Explanation {
        count: Some(count.into()),
        time: Some(last.rto),
        ..explain(
            "timeouts",
            format!("{count} retransmission timeouts; the timer is at {}", last.rto),
            "remove the loss; where SACK is off at one end, switch it on (net.ipv4.tcp_sack)",
        )
    })
}

/// The congestion window starts anew after each pause.
fn idle_restart(seen: &Observed<'_>) -> Option<Explanation> {
    if seen.settings.is_some_and(|settings| !settings.tcp_slow_start_after_idle) {
        return None;
    }
    let infos: Vec<&TcpInfo> =
        seen.samples.iter().filter_map(|sample| sample.info.as_ref()).collect();
    let restarts = infos.windows(2).filter(|pair| {
        let [before, after] = pair else { return false };
        // `tcp_cwnd_restart` halves it for each timeout that passed without sending; nothing else
        // lowers it without a repair.
        let is_lower = after.snd_cwnd < before.snd_cwnd;
        is_lower
            && after.total_retrans == before.total_retrans
            && before.last_data_sent >= before.rto
    });
    let count = restarts.count() as u64;
    let most = infos.iter().map(|info| info.snd_cwnd).max()?;
    (count > 0).then(|| Explanation {
        count: Some(count),
        ..explain(
            "idle_restart",
            format!(
                "{count} times the congestion window fell after a pause (from up to {most} segments) and had to grow \
                 again"
            ),
            "set net.ipv4.tcp_slow_start_after_idle=0 on the sender, if the connection is used in bursts",
        )
    })
}

/// Segments are small.
fn small_segments(seen: &Observed<'_>) -> Option<Explanation> {
    let info = seen.info()?;
    let (mss, local) = (info.snd_mss, info.advmss);
    let (size, is_path) =
        if seen.role == End::Sender { (mss, mss < local) } else { (local, false) };
    (size > Bytes::ZERO && size < SMALL_SEGMENT).then(|| Explanation {
        amount: Some(size),
        ..explain(
            "small_segments",
            format!(
                "segments carry {size:#} at most ({})",
                if is_path { format!("the path's MTU is taken to be {}", info.pmtu) } else { "that is what this end announced".into() }
            ),
            "find the tunnel or the device with the small MTU (`tracepath`); where ICMP is filtered, \
             net.ipv4.tcp_mtu_probing=1 finds the largest that passes",
        )
    })
}

/// The kernel dropped data that had arrived.
fn dropped(seen: &Observed<'_>) -> Option<Explanation> {
    let mut drops = seen.samples.iter().filter_map(|sample| sample.memory?.drops);
    let first = drops.next()?;
    let count = drops.next_back()?.wrapping_sub(first);
    (count > 0).then(|| Explanation {
        count: Some(count.into()),
        ..explain(
            "dropped_on_arrival",
            format!("the host of this socket dropped {count} segments on arrival, because the socket's memory was full"),
            "let the application read, or raise net.ipv4.tcp_rmem; under memory pressure (net.ipv4.tcp_mem) the \
             whole host drops",
        )
    })
}
