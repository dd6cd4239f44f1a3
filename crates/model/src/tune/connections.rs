//! What many connections may take of a host's memory, and the `tcp_mem` that this needs.
//!
//! The kernel counts the buffers of all TCP sockets in pages. Above the second value of `tcp_mem`
//! it stops to grow buffers and shrinks windows; at the third it drops packets
//! (`tcp_under_memory_pressure`, `tcp_out_of_memory`). By default the second is a sixteenth of the
//! memory, the first three quarters of that, and the third twice the first (`tcp_init_mem`,
//! net/ipv4/tcp.c: 4.68 %, 6.25 %, 9.37 %).
//!
//! A buffer's bound is not its use: memory is taken for what is queued. A receiver that reads at
//! once queues little. So the totals here are what to be prepared for: every buffer full at once,
//! which happens when applications stop to read, or peers to acknowledge.

use super::{HostSettings, Path, plan};
use crate::law::{KernelVersion, send_buffer};
use crate::units::{Bytes, Window, column};

/// `tcp_mem` counts pages: 4096 bytes on x86-64 and most others.
const PAGE: u64 = 4096;

/// The kernel's default pressure mark is the memory over this.
const DEFAULT_SHARE: u64 = 16;

/// What many connections may take, by each host's settings.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct ConnectionsSheet {
    /// The connections.
    pub connections: u64,
    /// The memory of the machine, if one was given.
    #[serde(rename = "memory_bytes", with = "column::bytes_optional")]
    pub memory: Option<Bytes>,
    /// An entry for each host's settings.
    pub kernels: Vec<HostConnections>,
}

/// What the connections of one host may take.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct HostConnections {
    /// The host's kernel.
    pub kernel: KernelVersion,
    /// All of them receive.
    pub receive: SocketMemory,
    /// All of them send.
    pub send: SocketMemory,
}

/// The buffers of connections in one direction.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct SocketMemory {
    /// The bound of one connection's buffer with settings with which it fills the path by itself.
    #[serde(rename = "each_bytes", with = "column::bytes")]
    pub each: Bytes,
    /// That of all connections: the most that they take.
    #[serde(rename = "together_bytes", with = "column::bytes")]
    pub together: Bytes,
    /// The bound that suffices for each if all of them share the path.
    #[serde(rename = "shared_each_bytes", with = "column::bytes")]
    pub shared_each: Bytes,
    /// That of all connections.
    #[serde(rename = "shared_together_bytes", with = "column::bytes")]
    pub shared_together: Bytes,
    /// The `tcp_mem` that lets all of them take their most without pressure.
    pub tcp_mem: TcpMem,
    /// The memory of a machine whose default `tcp_mem` is that.
    #[serde(rename = "memory_for_default_tcp_mem_bytes", with = "column::bytes")]
    pub memory_for_default: Bytes,
    /// How many such connections the host's present `tcp_mem` lets take their most, where known.
    pub connections_before_pressure: Option<u64>,
    /// How it fits into the given memory.
    pub fit: Option<MemoryFit>,
}

/// The three values of `net.ipv4.tcp_mem`, in pages of 4096 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct TcpMem {
    /// Below it, pressure ends.
    pub low_pages: u64,
    /// Above it, buffers no longer grow.
    pub pressure_pages: u64,
    /// The most that TCP takes.
    pub high_pages: u64,
}

/// As the sysctl takes it.
impl std::fmt::Display for TcpMem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}", self.low_pages, self.pressure_pages, self.high_pages)
    }
}

/// How the most that connections take fits into a memory.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct MemoryFit {
    /// Their most over the memory.
    pub share: f64,
    /// Whether it fits.
    pub verdict: Fit,
    /// How many connections fit with `tcp_mem` raised to [half](Fit::WithTcpMem) of the memory.
    pub connections_that_fit: u64,
}

/// Whether connections fit into a memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fit {
    /// Within the kernel's default pressure mark, a sixteenth of the memory.
    WithDefaults,
    /// Within half of the memory, if `tcp_mem` is raised; the rest is for everything else.
    WithTcpMem,
    /// Beyond half of the memory.
    No,
}

impl TcpMem {
    /// The values whose pressure mark is `bytes`, in the kernel's own proportions.
    pub(super) fn with_pressure_at(bytes: Bytes) -> TcpMem {
        let pressure = bytes.get().div_ceil(PAGE);
        let low = pressure / 4 * 3;
        TcpMem {
            low_pages: low,
            pressure_pages: pressure,
            high_pages: (low * 2).max(pressure.saturating_add(1)),
        }
    }
}

impl ConnectionsSheet {
    /// What `connections` over `path` may take on each of `hosts`, with settings that let each
    /// connection fill the path; `memory` is judged if it is given.
    pub fn new(
        path: Path,
        hosts: &[HostSettings],
        connections: u64,
        memory: Option<Bytes>,
    ) -> Self {
        let kernels = hosts.iter().map(|host| of_host(path, host, connections, memory));
        ConnectionsSheet { connections, memory, kernels: kernels.collect() }
    }
}

fn of_host(
    path: Path,
    host: &HostSettings,
    connections: u64,
    memory: Option<Bytes>,
) -> HostConnections {
    let mut tuned = host.clone();
    for change in plan(path, host, host).changes {
        tuned.make(&change.knob, &change.to);
    }
    let target = path.in_flight_target().bytes();
    let share = Window::new(Bytes::new(target.get().div_ceil(connections.max(1))));
    let rcvbuf = host.window_law().cautious().rcvbuf_for(share).max(host.tcp_rmem.default);
    let sndbuf = send_buffer::sndbuf_for(share).max(host.tcp_wmem.default);
    let pressure = host.tcp_mem_pressure_pages;
    HostConnections {
        kernel: host.kernel,
        receive: SocketMemory::new(tuned.rcvbuf(), rcvbuf, connections, pressure, memory),
        send: SocketMemory::new(tuned.sndbuf(), sndbuf, connections, pressure, memory),
    }
}

impl SocketMemory {
    /// `for_share` is a buffer for each connection's share of the path.
    fn new(
        each: Bytes,
        for_share: Bytes,
        connections: u64,
        pressure_pages: Option<u64>,
        memory: Option<Bytes>,
    ) -> Self {
        let together = each.checked_mul(connections).unwrap_or(Bytes::MAX);
        let shared_each = for_share.min(each);
        let one = each.get().max(1);
        SocketMemory {
            each,
            together,
            shared_each,
            shared_together: shared_each.checked_mul(connections).unwrap_or(Bytes::MAX),
            tcp_mem: TcpMem::with_pressure_at(together),
            memory_for_default: together.checked_mul(DEFAULT_SHARE).unwrap_or(Bytes::MAX),
            connections_before_pressure: pressure_pages
                .map(|pages| pages.saturating_mul(PAGE) / one),
            fit: memory.map(|memory| MemoryFit {
                share: together.as_f64() / memory.as_f64().max(1.0),
                verdict: if together.get() <= memory.get() / DEFAULT_SHARE {
                    Fit::WithDefaults
                } else if together.get() <= memory.get() / 2 {
                    Fit::WithTcpMem
                } else {
                    Fit::No
                },
                connections_that_fit: memory.get() / 2 / one,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn asked(connections: u64, memory: Option<&str>) -> HostConnections {
        let path = Path::new("1gbit".parse().unwrap(), "146ms".parse().unwrap());
        let host = HostSettings::defaults(KernelVersion::new(6, 1));
        let memory = memory.map(|text| text.parse().unwrap());
        ConnectionsSheet::new(path, &[host], connections, memory).kernels[0]
    }

    /// What Linux 6.18 computed by itself at boot on a machine of 24684084 kB.
    #[test]
    fn the_proportions_are_the_kernels() {
        let kernel = "287898 383867 575796";
        let tcp_mem = TcpMem::with_pressure_at(Bytes::new(383_867 * PAGE));
        assert_eq!(tcp_mem.to_string(), kernel);
        let of_memory = 383_867.0 * PAGE as f64 * DEFAULT_SHARE as f64 / (24_684_084.0 * 1024.0);
        assert!((0.98..=1.0).contains(&of_memory), "{of_memory}");
    }

    #[test]
    fn five_hundred_connections() {
        let sheet = asked(500, Some("16GiB"));
        // `calc` plans tcp_rmem of 40 MiB and tcp_wmem of 30 MiB for this path.
        assert_eq!(sheet.receive.each, "40MiB".parse().unwrap());
        assert_eq!(sheet.send.each, "30MiB".parse().unwrap());
        assert_eq!(sheet.receive.together, "20000MiB".parse().unwrap());
        let fit = sheet.receive.fit.unwrap();
        assert_eq!((fit.verdict, fit.connections_that_fit), (Fit::No, 204));
        // Those that share one path need no more than it holds, or their initial buffers.
        assert_eq!(sheet.receive.shared_each, Bytes::new(131_072));
        assert_eq!(asked(1, Some("16GiB")).send.fit.unwrap().verdict, Fit::WithDefaults);
        assert_eq!(asked(100, Some("16GiB")).send.fit.unwrap().verdict, Fit::WithTcpMem);
    }

    proptest! {
        #[test]
        fn any_question_is_answered_and_more_never_needs_less(
            bits: u64, nanos: u64, connections: u64, more: u64, memory: Option<u64>,
        ) {
            let path = Path::new(
                crate::units::Rate::from_bits_per_sec(bits),
                crate::units::Duration::from_nanos(nanos),
            );
            let hosts = [HostSettings::defaults(KernelVersion::new(6, 18))];
            let at = |connections| {
                let memory = memory.map(Bytes::new);
                ConnectionsSheet::new(path, &hosts, connections, memory).kernels[0].receive
            };
            let (few, many) = (at(connections), at(connections.saturating_add(more)));
            prop_assert!(few.together <= many.together);
            prop_assert!(few.shared_each <= few.each && many.shared_each <= few.shared_each);
            let TcpMem { low_pages, pressure_pages, high_pages } = many.tcp_mem;
            prop_assert!(low_pages <= pressure_pages && pressure_pages < high_pages);
        }
    }
}
