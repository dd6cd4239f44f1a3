//! What lies behind a live connection's limit: what its application asked of the socket, what a
//! setting caps, what the other end left out. Each cause is a function of what the host saw, and
//! names the numbers that it rests on.

use super::Observed;
use crate::capture::segment::ApplicationProtocol;
use crate::connection::is_taken_for_loss;
use crate::diagnosis::{Allowed, SSH_CHANNEL, SocketCause};
use crate::limit::{Cause, Limit, Verdict, is_overtaken};
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
/// Programs that speak SSH, by the names of their processes.
const SSH_PROGRAMS: [&str; 6] = ["ssh", "sshd", "sshd-session", "sftp", "scp", "sftp-server"];
/// So much of its window is under way where the window holds the data: the last grants have just
/// been used, or are on their way.
const OF_CHANNEL: std::ops::RangeInclusive<f64> = 0.8..=1.05;
/// The peer grants more so many times while it is watched.
const GRANTS_LEAST: u32 = 8;
/// A window of TCP has room if it is larger by this factor.
const ROOM: f64 = 1.25;
/// A limit that holds for less is not worth an explanation.
const LEAST_SHARE: f64 = 0.1;

/// The causes behind the limits of a connection, most important first.
pub(super) fn causes(seen: &Observed<'_>, first: Limit, verdict: &Verdict) -> Vec<SocketCause> {
    let holds = |limit| limit == first || verdict.share(limit) >= LEAST_SHARE;
    let mut found = Vec::new();
    if holds(Limit::ReceiveWindow) {
        found.extend(receive_window(seen));
    }
    if holds(Limit::ReceiverApplication) {
        found.extend(unread(seen));
    }
    if holds(Limit::ApplicationWindow) {
        found.extend(ssh_channel(seen, verdict));
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

/// This host's last known socket memory.
fn memory(seen: &Observed<'_>) -> Option<SocketMemory> {
    seen.samples.iter().rev().find_map(|sample| sample.memory)
}

/// What `amount` a round trip carries at most.
fn allows(seen: &Observed<'_>, amount: Bytes) -> Option<Allowed> {
    let rtt = seen.info()?.min_rtt.filter(|rtt| *rtt > Duration::ZERO)?;
    Some(Allowed { rate: amount.per(rtt)?, rtt })
}

/// Why the window that the receiver advertises is no larger.
fn receive_window(seen: &Observed<'_>) -> Option<SocketCause> {
    unscaled(seen).or_else(|| (seen.role == End::Receiver).then(|| own_window(seen)).flatten())
}

/// A SYN offered no window scale.
fn unscaled(seen: &Observed<'_>) -> Option<SocketCause> {
    let info = seen.info()?;
    // The receiver's own count may be above what it can say.
    let window = info.snd_wnd.filter(|_| seen.role == End::Sender);
    let is_small = window.is_none_or(|window| window.bytes() <= UNSCALED_MOST);
    let allowed = allows(seen, UNSCALED_MOST);
    (info.options & OPT_WSCALE == 0 && is_small)
        .then_some(SocketCause::WindowScaleMissing { allowed })
}

/// What keeps this receiver's own window small.
fn own_window(seen: &Observed<'_>) -> Option<SocketCause> {
    let settings = seen.settings?;
    let buffer = memory(seen)?.rcvbuf;
    let allowed = allows(seen, settings.window_law().window(buffer).bytes());
    if seen.asked.and_then(|asked| asked.sets_rcvbuf) == Some(true) {
        let max = settings.rmem_max;
        return Some(if is_capped(buffer, max) {
            SocketCause::ReceiveBufferCapped { max, buffer, allowed }
        } else {
            SocketCause::ReceiveBufferFrozen { buffer, allowed }
        });
    }
    let clamp = seen.asked.and_then(|asked| asked.window_clamp).map(|clamp| clamp.bytes());
    // The kernel sets a clamp itself, to what the buffer may advertise.
    if let Some(clamp) = clamp.filter(|clamp| clamp.get().saturating_mul(4) < buffer.get()) {
        return Some(SocketCause::WindowClamped { clamp, allowed: allows(seen, clamp) });
    }
    let largest = settings.tcp_rmem.max;
    (buffer >= largest).then_some(SocketCause::ReceiveBufferAtItsLargest {
        largest,
        buffer,
        allowed,
    })
}

/// Whether a buffer that an application set is as large as the machine's bound lets it be. The
/// kernel doubles what it allows (`sock_setsockopt`).
fn is_capped(buffer: Bytes, max: Bytes) -> bool {
    buffer.get() == max.get().saturating_mul(2)
}

/// How much the receiving application leaves unread.
fn unread(seen: &Observed<'_>) -> Option<SocketCause> {
    let samples = if seen.role == End::Receiver { seen.samples } else { seen.other };
    let most = samples.iter().map(|sample| sample.rqueue).max()?;
    (most > Bytes::ZERO).then_some(SocketCause::ApplicationDoesNotRead { most })
}

/// The window of SSH's channel holds the data: about as much is under way as software that speaks
/// SSH grants a channel, its peer keeps granting more, and TCP's own windows have room.
pub(super) fn ssh_channel(seen: &Observed<'_>, verdict: &Verdict) -> Option<SocketCause> {
    let (first, last) = seen.ends()?;
    let is_lossless = last.total_retrans == first.total_retrans;
    if !is_ssh(seen) || !is_lossless {
        return None;
    }
    let (under_way, window, grants) = match seen.role {
        End::Sender => {
            let mut flights: Vec<Bytes> = seen.infos().map(TcpInfo::in_flight).collect();
            flights.sort_unstable();
            let typical = *flights.get(flights.len() / 2)?;
            (typical, last.snd_wnd?, last.data_segs_in?.wrapping_sub(first.data_segs_in?))
        }
        End::Receiver => {
            let typical = super::mean_goodput(verdict).over(last.rcv_rtt);
            (typical, last.rcv_wnd?, last.data_segs_out?.wrapping_sub(first.data_segs_out?))
        }
    };
    let part = under_way.as_f64() / SSH_CHANNEL.as_f64();
    let has_room = window.bytes().as_f64() >= ROOM * under_way.as_f64();
    (OF_CHANNEL.contains(&part) && has_room && grants >= GRANTS_LEAST).then(|| {
        let allowed = allows(seen, SSH_CHANNEL);
        SocketCause::SshChannelWindow { under_way, grants, allowed }
    })
}

/// Whether the connection is one of SSH, by its port or by the program at this end.
fn is_ssh(seen: &Observed<'_>) -> bool {
    let sample = seen.samples.first();
    sample.is_some_and(|one| {
        ApplicationProtocol::of_ports([one.local, one.remote].map(|end| end.port()))
            == Some(ApplicationProtocol::Ssh)
    }) || SSH_PROGRAMS.contains(&seen.host.program)
}

/// Why the sender's buffer is no larger.
fn send_buffer(seen: &Observed<'_>) -> Option<SocketCause> {
    if seen.role != End::Sender {
        return None;
    }
    let settings = seen.settings?;
    let buffer = memory(seen)?.sndbuf;
    let mean = fullpipe_model::law::send_buffer::window(buffer).bytes();
    let allowed = allows(seen, mean);
    if seen.asked.and_then(|asked| asked.sets_sndbuf) == Some(true) {
        let max = settings.wmem_max;
        return Some(if is_capped(buffer, max) {
            SocketCause::SendBufferCapped { max, buffer, allowed }
        } else {
            SocketCause::SendBufferFrozen { buffer, allowed }
        });
    }
    let largest = settings.tcp_wmem.max;
    (buffer >= largest).then_some(SocketCause::SendBufferAtItsLargest { largest, buffer, allowed })
}

/// The application asked the socket to send no faster.
pub(super) fn paced(seen: &Observed<'_>) -> Option<SocketCause> {
    let bound = seen.asked?.max_pacing_rate?;
    let (first, last) = seen.ends()?;
    let time = seen.samples.last()?.at.since(seen.samples.first()?.at);
    let [first, last] = [first, last].map(|info| info.bytes_acked.unwrap_or(Bytes::ZERO));
    let rate: Rate = last.saturating_sub(first).per(time)?;
    (rate.as_f64() >= OF_PACING * bound.as_f64())
        .then_some(SocketCause::PacedByApplication { bound, rate })
}

/// A small write waits for an ACK that the receiver delays.
fn delayed_ack(seen: &Observed<'_>) -> Option<SocketCause> {
    let waiting: Vec<&TcpInfo> = seen.infos().filter(|info| awaits_ack(info)).collect();
    let info = waiting.last()?;
    let path_rtt = info.min_rtt.unwrap_or(info.rtt);
    (2 * waiting.len() > seen.infos().count())
        .then_some(SocketCause::DelayedAck { rtt: info.rtt, path_rtt })
}

/// Whether a small write waits for its ACK by as much longer than the path takes as a receiver
/// delays it.
fn awaits_ack(info: &TcpInfo) -> bool {
    let wait = info.rtt.saturating_sub(info.min_rtt.unwrap_or(info.rtt));
    let (least, most) = DELAYED_ACK;
    (1..=2).contains(&info.unacked) && (least..=most).contains(&wait)
}

/// The writer is woken late.
fn notsent_lowat(seen: &Observed<'_>) -> Option<SocketCause> {
    let lowat = seen.asked?.notsent_lowat?;
    let in_flight = seen.info()?.in_flight();
    (lowat < in_flight).then_some(SocketCause::NotsentLowat { lowat, in_flight })
}

/// Repairs that were not needed: packets overtook each other.
fn reordering(seen: &Observed<'_>) -> Option<SocketCause> {
    let (first, last) = seen.ends()?;
    let again = last.total_retrans.wrapping_sub(first.total_retrans);
    let needless = last.dsack_dups?.wrapping_sub(first.dsack_dups?);
    if is_taken_for_loss(needless.into(), again.into()) {
        return Some(SocketCause::Reordering { needless, again });
    }
    // Few repairs keep the window small for long: while the order is lost, all of its life counts.
    let (needless, again) = (last.dsack_dups?, last.total_retrans);
    (is_overtaken(seen.samples) && is_taken_for_loss(needless.into(), again.into()))
        .then_some(SocketCause::Reordering { needless, again })
}

/// The sender waits for its retransmission timer.
fn timeouts(seen: &Observed<'_>) -> Option<SocketCause> {
    let (first, last) = seen.ends()?;
    let counted = last.total_rto.zip(first.total_rto).map_or(0, |(l, f)| l.wrapping_sub(f));
    let count = counted.max(u16::from(last.backoff));
    (count > 0).then_some(SocketCause::Timeouts { count, rto: last.rto })
}

/// The congestion window starts anew after each pause.
fn idle_restart(seen: &Observed<'_>) -> Option<SocketCause> {
    if seen.settings.is_some_and(|settings| !settings.tcp_slow_start_after_idle) {
        return None;
    }
    let infos: Vec<&TcpInfo> = seen.infos().collect();
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
    (count > 0).then_some(SocketCause::IdleRestart { count, most })
}

/// Segments are small.
fn small_segments(seen: &Observed<'_>) -> Option<SocketCause> {
    let info = seen.info()?;
    let (mss, local) = (info.snd_mss, info.advmss);
    let (size, is_path) =
        if seen.role == End::Sender { (mss, mss < local) } else { (local, false) };
    (size > Bytes::ZERO && size < SMALL_SEGMENT)
        .then(|| SocketCause::SmallSegments { size, path_mtu: is_path.then_some(info.pmtu) })
}

/// The kernel dropped data that had arrived.
fn dropped(seen: &Observed<'_>) -> Option<SocketCause> {
    let mut drops = seen.samples.iter().filter_map(|sample| sample.memory?.drops);
    let first = drops.next()?;
    let count = drops.next_back()?.wrapping_sub(first);
    (count > 0).then_some(SocketCause::DroppedOnArrival { count })
}
