//! The path of a live connection as its sockets measured it.

use super::{Observed, cause};
use crate::diagnosis::{Losses, SSH_CHANNEL};
use crate::limit::{Limit, Verdict};
use fullpipe_model::law::Framing;
use fullpipe_model::limit::End;
use fullpipe_model::observe::Sample;
use fullpipe_model::tune::{MeasuredEnd, MeasuredGrants, MeasuredPath};
use fullpipe_model::units::{Bytes, Duration, Rate, Window};

/// The path is as fast as it was seen to carry, where it was the limit for at least this share of
/// the time.
const LINK_LEAST: f64 = 0.2;

pub(super) fn measured(
    seen: &Observed<'_>,
    verdict: &Verdict,
    goodput: Rate,
) -> Option<MeasuredPath> {
    let rtts = seen.infos().flat_map(|info| [info.min_rtt, Some(info.rtt), Some(info.rcv_rtt)]);
    let rtt = rtts.flatten().filter(|rtt| *rtt > Duration::ZERO).min()?;
    if goodput == Rate::ZERO {
        return None;
    }
    let application_window = window_above(seen, verdict);
    let limited_by = match application_window {
        Some(_) => Limit::ApplicationWindow,
        None => verdict.limited_by().limit,
    };
    let framing = Framing::IP_1500;
    let peak = verdict.peak_goodput().filter(|_| verdict.share(Limit::Link) >= LINK_LEAST);
    let rate = peak.map(|peak| on_the_link(framing, peak));
    let slowest = seen.infos().map(|info| info.rtt).max().unwrap_or(rtt);
    let queue = peak.map(|peak| peak.over(slowest.saturating_sub(rtt)));
    // A receiver does not know what was sent again.
    let losses = (seen.role == End::Sender).then(|| Losses::of(verdict, framing.mss(), 1.0));
    let (here, there) = (end(seen, limited_by, goodput), other_end(seen, limited_by, goodput));
    let (sender, receiver) = match seen.role {
        End::Sender => (here, there),
        End::Receiver => (there, here),
    };
    Some(MeasuredPath {
        rate,
        peak: verdict.peak_goodput(),
        queue,
        loss: losses.and_then(|losses| losses.path),
        lost_segments: losses.map(|losses| losses.path_segments),
        overflow: losses.and_then(|losses| losses.overflow),
        application_window,
        framing,
        sender,
        receiver,
        ..MeasuredPath::new(rtt, goodput, limited_by)
    })
}

/// The window above TCP's, where it is what held the data.
fn window_above(seen: &Observed<'_>, verdict: &Verdict) -> Option<MeasuredGrants> {
    let limit = verdict.limited_by().limit;
    if limit != Limit::ApplicationWindow {
        return None;
    }
    cause::ssh_channel(seen, verdict)?;
    Some(MeasuredGrants { window: SSH_CHANNEL, step: None, host: End::Receiver })
}

/// The rate of a link that carries `goodput`.
fn on_the_link(framing: Framing, goodput: Rate) -> Rate {
    const ANY: Rate = Rate::from_bits_per_sec(1_000_000_000);
    let share = framing.goodput(ANY).fraction_of(ANY);
    Rate::from_bits_per_sec_f64(goodput.as_f64() / share)
}

/// This host's end.
fn end(seen: &Observed<'_>, limit: Limit, goodput: Rate) -> MeasuredEnd {
    let settings = seen.settings;
    let of_socket = socket(seen.samples, seen.role);
    let (largest, asked, application) = match seen.role {
        End::Sender => (
            settings.map(|settings| settings.tcp_wmem.max),
            seen.asked.and_then(|asked| asked.sets_sndbuf),
            Limit::SenderApplication,
        ),
        End::Receiver => (
            settings.map(|settings| settings.tcp_rmem.max),
            seen.asked.and_then(|asked| asked.sets_rcvbuf),
            Limit::ReceiverApplication,
        ),
    };
    MeasuredEnd {
        kernel: settings.map(|settings| settings.kernel),
        largest,
        frozen_by_application: asked,
        application_rate: (limit == application).then_some(goodput),
        window_scaling: settings.map(|settings| settings.tcp_window_scaling),
        ..of_socket
    }
}

/// The other end: what its own socket shows, or what this one knows of it.
fn other_end(seen: &Observed<'_>, limit: Limit, goodput: Rate) -> MeasuredEnd {
    let (role, application) = match seen.role {
        End::Sender => (End::Receiver, Limit::ReceiverApplication),
        End::Receiver => (End::Sender, Limit::SenderApplication),
    };
    let application_rate = (limit == application).then_some(goodput);
    if !seen.other.is_empty() {
        let kernel = seen.settings.map(|settings| settings.kernel);
        return MeasuredEnd { kernel, application_rate, ..socket(seen.other, role) };
    }
    let window = match role {
        End::Receiver => seen.infos().filter_map(|info| info.snd_wnd).max(),
        End::Sender => None,
    };
    MeasuredEnd { window, application_rate, ..MeasuredEnd::default() }
}

/// What samples of a socket show of its end.
fn socket(samples: &[Sample], role: End) -> MeasuredEnd {
    let memories = samples.iter().filter_map(|sample| sample.memory);
    let infos = samples.iter().filter_map(|sample| sample.info.as_ref());
    let (buffer, window) = match role {
        End::Sender => {
            let in_flight = infos.map(|info| info.in_flight()).max();
            (memories.map(|memory| memory.sndbuf).max(), in_flight.map(Window::new))
        }
        End::Receiver => {
            let window = infos.filter_map(|info| info.rcv_wnd).max();
            (memories.map(|memory| memory.rcvbuf).max(), window)
        }
    };
    let name = samples.iter().find_map(|sample| sample.congestion_control.clone());
    MeasuredEnd {
        buffer: buffer.filter(|buffer| *buffer > Bytes::ZERO),
        window,
        congestion_control: name,
        ..MeasuredEnd::default()
    }
}
