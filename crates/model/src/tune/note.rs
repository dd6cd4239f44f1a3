//! Notes beside the changes: their costs, and problems that no sysctl of a plan solves.

use super::{HostSettings, Path, PlanNote};
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
    /// What is to be known.
    #[serde(rename = "text")]
    pub note: PlanNote,
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
    let mut note = |end, note| notes.push(Note { end, note });
    let (bdp, largest) = (path.bdp(), MAX_WINDOW.bytes());
    if bdp > largest {
        let connections = bdp.get().div_ceil(largest.get());
        note(None, PlanNote::SeveralConnections { bdp, largest, connections });
    }
    if receiver.window_scale() != offered {
        let (from, to) = (offered.get(), receiver.window_scale().get());
        note(Some(End::Receiver), PlanNote::NewConnections { from, to });
    }
    for (end, host, buffer) in
        [(End::Receiver, receiver, receiver.rcvbuf()), (End::Sender, sender, sender.sndbuf())]
    {
        let pages = host.tcp_mem_pressure_pages;
        let pressure = pages.map(|pages| Bytes::new(pages.saturating_mul(PAGE)));
        note(Some(end), PlanNote::Memory { end, buffer, pressure });
    }
    let frozen =
        [(End::Sender, frozen_send(path, sender)), (End::Receiver, frozen_receive(path, receiver))];
    for (end, frozen) in frozen {
        frozen.into_iter().for_each(|frozen| note(Some(end), frozen));
    }
    let round_trips = slow_start::round_trips(path.framing.mss(), Window::new(path.bdp()));
    if sender.tcp_slow_start_after_idle && round_trips > 0 {
        let time = slow_start::time_to(path.framing.mss(), Window::new(path.bdp()), path.rtt);
        note(Some(End::Sender), PlanNote::SlowStartAfterIdle { round_trips, time });
    }
    notes
}

/// The commonest cause in practice: the application set a buffer and so ended autotuning.
fn frozen_receive(path: Path, host: &HostSettings) -> Option<PlanNote> {
    let law = host.window_law().cautious();
    let needed = Window::new(path.bdp()).min(MAX_WINDOW);
    let Some(asked) = host.so_rcvbuf else {
        let most = law.window(receive_buffer::so_rcvbuf(Bytes::MAX, host.rmem_max));
        let max = host.rmem_max;
        return (most < needed).then_some(PlanNote::WouldFreeze { end: End::Receiver, most, max });
    };
    let (end, window) = (End::Receiver, host.receive_window());
    let ask = Bytes::new(law.rcvbuf_for(needed).get().div_ceil(2));
    let is_short = law.window(host.rcvbuf()) < needed;
    is_short.then_some(PlanNote::Frozen { end, asked, window, ask })
}

fn frozen_send(path: Path, host: &HostSettings) -> Option<PlanNote> {
    let needed = Window::new(path.bdp()).min(MAX_WINDOW);
    let Some(asked) = host.so_sndbuf else {
        let most = send_buffer::window(send_buffer::so_sndbuf(Bytes::MAX, host.wmem_max));
        let max = host.wmem_max;
        return (most < needed).then_some(PlanNote::WouldFreeze { end: End::Sender, most, max });
    };
    let (end, window) = (End::Sender, host.send_window());
    let ask = Bytes::new(send_buffer::sndbuf_for(needed).get().div_ceil(2));
    (window < needed).then_some(PlanNote::Frozen { end, asked, window, ask })
}
