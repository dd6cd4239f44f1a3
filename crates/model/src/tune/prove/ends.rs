//! The two hosts: their buffers as they were seen, or as large as their effect tells.

use super::assume::Assumed;
use super::remedy::host_of;
use super::{Assumption, Lab};
use crate::change::{MemTriple, Sysctl};
use crate::law::burst::SteadyPath;
use crate::law::{KernelVersion, ScalingRatio, WindowLaw};
use crate::limit::{End, Limit};
use crate::scenario::{Host, LinkEngine, Scenario, SysctlText};
use crate::tune::{HostSettings, MeasuredEnd, MeasuredPath};
use crate::units::{Bytes, Rate, Window};

/// What a packet of netem takes beside its data: an `sk_buff` (256) and a head (576).
const NETEM_OVERHEAD: Bytes = Bytes::new(832);
/// What applications write at a time: a pipe's or a file's 64 KiB first, then what servers with
/// large buffers and small ones write.
const WRITES: [Bytes; 5] = [
    Bytes::new(64 << 10),
    Bytes::new(16 << 10),
    Bytes::new(128 << 10),
    Bytes::new(256 << 10),
    Bytes::new(4 << 10),
];
/// Prefer the usual write to another one that comes nearer by less than this.
const NEARER: f64 = 0.02;
/// The rate of an application that writes in blocks and never waits: a tenth of a block is sent
/// before the next one is due even on the fastest path of the lab.
const UNPACED: Rate = Rate::from_bits_per_sec(100_000_000_000);
/// The least that a sysctl for a buffer may be.
const BUFFER_LEAST: Bytes = Bytes::new(4096);
/// The most that a sysctl of C's type int holds.
const BUFFER_MOST: Bytes = Bytes::new(i32::MAX as u64);
/// The largest socket buffer that an application gets where nobody raised `rmem_max` and
/// `wmem_max`: twice their default on most kernels, those of the lab included.
const SET_MOST: Bytes = Bytes::new(2 * 212_992);

/// Both hosts in the lab.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LabHosts {
    pub sender: HostSettings,
    pub receiver: HostSettings,
    /// What the sending application writes at once, where that matters.
    write: Option<Bytes>,
    /// The ends whose applications set their buffers, with the buffer.
    frozen: [Option<Bytes>; 2],
    /// How large autotuning could make the buffers of the sender and of the receiver.
    autotuned: [Bytes; 2],
    timestamps: bool,
    /// Whether each end permits selective acknowledgements.
    sack: [bool; 2],
}

impl LabHosts {
    pub fn of(
        measured: &MeasuredPath,
        assumed: &Assumed,
        lab: Lab,
        assumptions: &mut Vec<Assumption>,
    ) -> LabHosts {
        let defaults = HostSettings::defaults(lab.kernel);
        let mut ends = LabHosts {
            sender: defaults.clone(),
            receiver: defaults.clone(),
            write: None,
            frozen: [frozen(&measured.sender), frozen(&measured.receiver)],
            autotuned: [
                measured.sender.largest.unwrap_or(defaults.tcp_wmem.max),
                measured.receiver.largest.unwrap_or(defaults.tcp_rmem.max),
            ],
            timestamps: measured.framing.timestamps,
            sack: [&measured.sender, &measured.receiver].map(|end| end.sack.unwrap_or(true)),
        };
        if lab.link_engine == LinkEngine::Netem {
            let mss = assumed.framing.mss();
            let ratio = ScalingRatio::measured(mss, mss.saturating_add(NETEM_OVERHEAD));
            ends.receiver.scaling_ratio = Some(ratio);
        }
        for (settings, end) in
            [(&mut ends.sender, &measured.sender), (&mut ends.receiver, &measured.receiver)]
        {
            settings.tcp_window_scaling = end.window_scaling.unwrap_or(true);
        }
        let path = SteadyPath { rate: assumed.rate, rtt: assumed.rtt, framing: assumed.framing };
        ends.say_what_capture_hides(measured, assumptions);
        ends.send_buffer(measured, assumed, path, assumptions);
        ends.receive_buffer(measured, assumed, lab, assumptions);
        ends
    }

    /// Whether the application of an end set its buffer.
    pub fn is_frozen(&self, end: End) -> bool {
        self.frozen[index(end)].is_some()
    }

    /// How large autotuning could make the buffer of an end.
    pub fn autotuned(&self, end: End) -> Bytes {
        self.autotuned[index(end)]
    }

    /// Says that an application may have set the buffer that limited.
    fn say_what_capture_hides(&self, measured: &MeasuredPath, assumptions: &mut Vec<Assumption>) {
        let end = match measured.limited_by {
            Limit::SendBuffer => End::Sender,
            Limit::ReceiveWindow => End::Receiver,
            _ => return,
        };
        if measured.end(end).frozen_by_application.is_none() {
            assumptions.push(Assumption::BufferAsked(end));
        }
    }

    /// The send buffer: the one that was seen, if it may matter.
    fn send_buffer(
        &mut self,
        measured: &MeasuredPath,
        assumed: &Assumed,
        path: SteadyPath,
        assumptions: &mut Vec<Assumption>,
    ) {
        let held = measured.limited_by == Limit::SendBuffer;
        let end = &measured.sender;
        let seen = if held || self.is_frozen(End::Sender) { end.buffer } else { end.largest };
        let buffer = match seen {
            Some(buffer) => buffer,
            None if held => {
                let buffer = buffer_with(path, measured.goodput, WRITES[0]);
                assumptions.push(Assumption::SendBuffer(buffer));
                buffer
            }
            None => {
                assumptions.push(Assumption::LargeBuffer(End::Sender));
                assumed.room()
            }
        };
        let buffer = buffer.clamp(BUFFER_LEAST, BUFFER_MOST);
        if held {
            let write = write_with(path, measured.goodput, buffer);
            assumptions.push(Assumption::Write(write));
            self.write = Some(write);
            self.sender.write = write;
        }
        self.sender.tcp_wmem = triple(self.sender.tcp_wmem, buffer);
        if let Some(set) = self.frozen[0].filter(|set| *set <= SET_MOST) {
            self.sender.so_sndbuf = Some(Bytes::new(set.get() / 2));
        }
    }

    /// The receive buffer: one that advertises the window that was seen.
    fn receive_buffer(
        &mut self,
        measured: &MeasuredPath,
        assumed: &Assumed,
        lab: Lab,
        assumptions: &mut Vec<Assumption>,
    ) {
        let end = &measured.receiver;
        let held = matches!(measured.limited_by, Limit::ReceiveWindow | Limit::ReceiverApplication);
        let window = match (end.window, end.buffer) {
            (Some(window), _) if held => Some(window),
            (None, Some(buffer)) if held => Some(window_of(end, buffer)),
            (None, None) if measured.limited_by == Limit::ReceiveWindow => {
                let window = Window::new(measured.goodput.over(measured.rtt));
                assumptions.push(Assumption::ReceiveWindow(window));
                Some(window)
            }
            _ => end.largest.map(|largest| window_of(end, largest)),
        };
        // Without a scale the window is bounded whatever the buffer.
        let is_unscaled = !(self.sender.tcp_window_scaling && self.receiver.tcp_window_scaling);
        let buffer = match window {
            Some(window) if !(is_unscaled && window.bytes() <= Bytes::new(65_535)) => {
                self.rcvbuf_for(window, assumed)
            }
            Some(_) => assumed.room(),
            None => {
                assumptions.push(Assumption::LargeBuffer(End::Receiver));
                assumed.room()
            }
        };
        let buffer = buffer.clamp(BUFFER_LEAST, BUFFER_MOST);
        let differs = end.kernel.is_some_and(|kernel| family(kernel) != family(lab.kernel));
        if differs && end.buffer.is_some() && held {
            assumptions.push(Assumption::OtherWindow { kernel: lab.kernel, buffer });
        }
        self.receiver.tcp_rmem = triple(self.receiver.tcp_rmem, buffer);
        if self.frozen[1].is_some() {
            if buffer <= SET_MOST {
                self.receiver.so_rcvbuf = Some(Bytes::new(buffer.get() / 2));
            } else {
                self.receiver.tcp_moderate_rcvbuf = false;
                self.receiver.tcp_rmem.default = buffer;
            }
        }
    }

    /// The buffer for which the lab's receiver advertises `window` to a steady sender.
    fn rcvbuf_for(&self, window: Window, assumed: &Assumed) -> Bytes {
        let mss = assumed.framing.mss();
        let queued = mss.saturating_add(NETEM_OVERHEAD);
        self.receiver.window_law().rcvbuf_for(window).saturating_add(queued)
    }

    /// Puts the hosts' settings into a scenario.
    pub fn apply(&self, scenario: &mut Scenario) {
        for (end, settings, buffer) in [
            (End::Sender, &self.sender, Sysctl::TcpWmem),
            (End::Receiver, &self.receiver, Sysctl::TcpRmem),
        ] {
            let host = host_of(scenario, end);
            let defaults = HostSettings::defaults(settings.kernel);
            for sysctl in [buffer, Sysctl::TcpWindowScaling, Sysctl::TcpModerateRcvbuf] {
                let value = settings.get(sysctl).filter(|value| {
                    sysctl == buffer || defaults.get(sysctl).as_ref() != Some(value)
                });
                if let Some(value) = value {
                    set(host, sysctl, value.to_string());
                }
            }
            if !self.timestamps {
                set(host, Sysctl::TcpTimestamps, "0".into());
            }
            if !self.sack[index(end)] {
                set(host, Sysctl::TcpSack, "0".into());
            }
        }
        // Our ends of an upload leave their buffers to the kernel; they did not limit it.
        if !scenario.transfer.upload {
            scenario.transfer.send_buffer = self.sender.so_sndbuf;
            scenario.transfer.receive_buffer = self.receiver.so_rcvbuf;
        }
        if let Some(write) = self.write {
            scenario.transfer.write_block = Some(write);
            scenario.transfer.write_rate = Some(UNPACED);
        }
    }
}

fn index(end: End) -> usize {
    match end {
        End::Sender => 0,
        End::Receiver => 1,
    }
}

/// The buffer that the application set, as far as it was seen.
fn frozen(end: &MeasuredEnd) -> Option<Bytes> {
    end.buffer.filter(|_| end.frozen_by_application == Some(true))
}

/// A bound of autotuning: a smaller buffer is also the initial one.
fn triple(defaults: MemTriple, max: Bytes) -> MemTriple {
    MemTriple { max, default: defaults.default.min(max), min: defaults.min.min(max) }
}

/// Kernels with the same law from a buffer to a window.
fn family(kernel: KernelVersion) -> bool {
    kernel < KernelVersion::SCALING_RATIO
}

/// The window that a buffer of this end advertises, by the law of its own kernel, if that is known.
fn window_of(end: &MeasuredEnd, buffer: Bytes) -> Window {
    let kernel = end.kernel.unwrap_or(KernelVersion::SCALING_RATIO);
    WindowLaw::of(kernel, crate::law::AdvWinScale::DEFAULT).window(buffer)
}

/// The smallest send buffer that carries `goodput` over `path`.
fn buffer_with(path: SteadyPath, goodput: Rate, write: Bytes) -> Bytes {
    let (mut below, mut enough) = (BUFFER_LEAST.get(), BUFFER_MOST.get());
    while enough - below > enough / 256 + 1 {
        let middle = below + (enough - below) / 2;
        if path.rate_of_send_buffer(Bytes::new(middle), write) < goodput {
            below = middle;
        } else {
            enough = middle;
        }
    }
    Bytes::new(enough)
}

/// Gives the host a value of a sysctl.
fn set(host: &mut Host, sysctl: Sysctl, text: String) {
    host.sysctl.insert(sysctl.name().into(), SysctlText(text));
}

/// The write with which a send buffer carries a goodput as near as possible to `goodput`.
fn write_with(path: SteadyPath, goodput: Rate, buffer: Bytes) -> Bytes {
    let mut best = (WRITES[0], f64::INFINITY);
    for write in WRITES {
        let carried = path.rate_of_send_buffer(buffer, write).as_f64();
        let off = (carried / goodput.as_f64().max(1.0)).max(1e-9).ln().abs();
        if off + NEARER < best.1 {
            best = (write, off);
        }
    }
    best.0
}
