//! Notes beside the changes: their costs, and problems that no sysctl of a plan solves.

use super::{HostSettings, Path};
use crate::law::window_scale::{MAX_WINDOW, WindowScale};
use crate::law::{receive_buffer, send_buffer, slow_start};
use crate::limit::End;
use crate::units::{Bytes, Window};

/// A note that is not a change of a sysctl.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Note {
    /// The host; `None`: the path, or both ends.
    #[serde(rename = "host")]
    pub end: Option<End>,
    /// The text, with its numbers.
    pub text: String,
}

/// `tcp_mem` counts pages: 4096 bytes on x86-64 and most others.
const PAGE: u64 = 4096;

/// The notes for hosts after the changes; `offered` is the receiver's window scale before.
pub(super) fn notes(
    path: Path,
    sender: &HostSettings,
    receiver: &HostSettings,
    offered: WindowScale,
) -> Vec<Note> {
    let mut notes = Vec::new();
    let mut note = |end, text| notes.push(Note { end, text });
    if let Some(text) = several_connections(path) {
        note(None, text);
    }
    if receiver.window_scale() != offered {
        let (from, to) = (offered.get(), receiver.window_scale().get());
        note(
            Some(End::Receiver),
            format!(
                "new connections only: the window scale ({from}, then {to}) is chosen in the handshake"
            ),
        );
    }
    note(
        Some(End::Receiver),
        memory("receive", receiver.rcvbuf(), receiver.tcp_mem_pressure_pages),
    );
    note(Some(End::Sender), memory("send", sender.sndbuf(), sender.tcp_mem_pressure_pages));
    for (end, text) in
        [(End::Sender, frozen_send(path, sender)), (End::Receiver, frozen_receive(path, receiver))]
    {
        if let Some(text) = text {
            note(Some(end), text);
        }
    }
    let round_trips = slow_start::round_trips(path.framing.mss(), Window::new(path.bdp()));
    if sender.tcp_slow_start_after_idle && round_trips > 0 {
        let text = format!(
            "net.ipv4.tcp_slow_start_after_idle is 1: a connection that pauses begins again with {} segments and needs \
             {round_trips} round trips ({}) to fill the path; set it to 0 for long-lived connections that pause",
            slow_start::INITIAL_WINDOW_SEGMENTS,
            slow_start::time_to(path.framing.mss(), Window::new(path.bdp()), path.rtt),
        );
        note(Some(End::Sender), text);
    }
    notes
}

fn several_connections(path: Path) -> Option<String> {
    let (bdp, largest) = (path.bdp(), MAX_WINDOW.bytes());
    (bdp > largest).then(|| {
        let connections = bdp.get().div_ceil(largest.get());
        format!(
            "the path holds {bdp}, above the {largest:#} that one connection can have in flight: {connections} fill it"
        )
    })
}

fn memory(direction: &str, buffer: Bytes, pressure_pages: Option<u64>) -> String {
    let each = format!("each connection may use {buffer:#} of memory to {direction}");
    match pressure_pages {
        Some(pages) => {
            let total = Bytes::new(pages.saturating_mul(PAGE));
            let connections = total.get() / buffer.get().max(1);
            format!(
                "{each}; net.ipv4.tcp_mem allows {total:#} before pressure, so {connections} such connections"
            )
        }
        None => each,
    }
}

/// The commonest cause in practice: the application set a buffer and so ended autotuning.
fn frozen_receive(path: Path, host: &HostSettings) -> Option<String> {
    let law = host.window_law().cautious();
    let needed = Window::new(path.bdp()).min(MAX_WINDOW);
    match host.so_rcvbuf {
        Some(asked) if law.window(host.rcvbuf()) < needed => Some(format!(
            "the application sets SO_RCVBUF to {asked:#}, which ends autotuning and leaves a window of {}; let it not \
             set SO_RCVBUF, or ask for {} bytes",
            host.receive_window(),
            law.rcvbuf_for(needed).get().div_ceil(2)
        )),
        Some(_) => None,
        None => {
            let most = law.window(receive_buffer::so_rcvbuf(Bytes::MAX, host.rmem_max));
            (most < needed).then(|| {
                format!(
                    "an application that sets SO_RCVBUF ends autotuning and gets a window of at most {most}, as \
                     net.core.rmem_max is {:#}",
                    host.rmem_max
                )
            })
        }
    }
}

fn frozen_send(path: Path, host: &HostSettings) -> Option<String> {
    let needed = Window::new(path.bdp()).min(MAX_WINDOW);
    match host.so_sndbuf {
        Some(asked) if host.send_window() < needed => Some(format!(
            "the application sets SO_SNDBUF to {asked:#}, which ends autotuning and keeps {} in flight; let it not set \
             SO_SNDBUF, or ask for {} bytes",
            host.send_window(),
            send_buffer::sndbuf_for(needed).get().div_ceil(2)
        )),
        Some(_) => None,
        None => {
            let most = send_buffer::window(send_buffer::so_sndbuf(Bytes::MAX, host.wmem_max));
            (most < needed).then(|| {
                format!(
                    "an application that sets SO_SNDBUF ends autotuning and keeps at most {most} in flight, as \
                     net.core.wmem_max is {:#}",
                    host.wmem_max
                )
            })
        }
    }
}
