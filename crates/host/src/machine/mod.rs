//! What the machine itself drops or holds back, whichever connection it was: memory of TCP, its
//! receive path, its devices, a memory limit of a control group, a cloud's allowance.
//!
//! [`Counters::read`] takes the kernel's counters at one instant; [`Counters::since`] says what
//! happened between two of them. Each [`Explanation`] has the number behind it and what to try.
//!
//! Sources: Documentation/networking/snmp_counter.rst, net/core/net-procfs.c
//! (`softnet_seq_show`), Documentation/admin-guide/cgroup-v2.rst, and the names that the drivers of
//! Amazon's ena (Documentation/networking/device_drivers/ethernet/amazon/ena.rst), Intel's and
//! Mellanox's devices give their counters.

mod cloud;
mod egress;
mod memory;

pub(crate) use egress::add_egress;
pub(crate) use memory::{Holder, group_is_short, memory_pressure};

use fullpipe_flow::diagnosis::Explanation;
use fullpipe_kernel::ethtool::{Ethtool, Offload};
use std::collections::BTreeMap;
use std::fs;

pub(crate) use cloud::flow_cap;

/// Counters by name.
type Named = BTreeMap<String, u64>;

/// The machine's counters at an instant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Counters {
    /// `TcpExt` of /proc/net/netstat.
    tcp: Named,
    softnet: Softnet,
    /// Each device's own counters and its driver's, as `device name`.
    devices: BTreeMap<String, Named>,
}

/// The sum over all CPUs of /proc/net/softnet_stat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Softnet {
    /// Packets dropped because a CPU's backlog was full.
    dropped: u64,
    /// Times that the receive path gave up its CPU with work left.
    squeezed: u64,
}

/// A counter that says something about transfers when it grows.
struct Sign {
    counter: &'static str,
    name: &'static str,
    what: &'static str,
    remedy: &'static str,
}

/// Counters of TCP: each growth is a loss or a stall that the host made itself.
const TCP: [Sign; 8] = [
    Sign {
        counter: "TCPMemoryPressures",
        name: "memory_pressure",
        what: "times all TCP sockets together came under memory pressure",
        remedy: "raise net.ipv4.tcp_mem, or find who holds the memory; windows shrink meanwhile",
    },
    Sign {
        counter: "PruneCalled",
        name: "receive_queue_pruned",
        what: "times a receive queue was compacted because its buffer was full",
        remedy: "let the application read, or raise the third value of net.ipv4.tcp_rmem",
    },
    Sign {
        counter: "RcvPruned",
        name: "receive_queue_dropped",
        what: "times data was dropped from a full receive queue",
        remedy: "let the application read, or raise the third value of net.ipv4.tcp_rmem",
    },
    Sign {
        counter: "TCPRcvQDrop",
        name: "receive_queue_full",
        what: "segments dropped on arrival because a receive queue was full",
        remedy: "let the application read, or raise the third value of net.ipv4.tcp_rmem",
    },
    Sign {
        counter: "TCPBacklogDrop",
        name: "backlog_full",
        what: "segments dropped because a socket's backlog was full while its application held the lock",
        remedy: "raise net.ipv4.tcp_rmem; read in smaller pieces",
    },
    Sign {
        counter: "TCPAbortOnMemory",
        name: "aborted_for_memory",
        what: "connections aborted because TCP had no memory left",
        remedy: "raise net.ipv4.tcp_mem, or find who holds the memory",
    },
    Sign {
        counter: "ListenOverflows",
        name: "accept_queue_full",
        what: "connections refused because a listener's queue was full",
        remedy: "let the server accept faster, or raise its backlog and net.core.somaxconn",
    },
    Sign {
        counter: "TCPOFODrop",
        name: "out_of_order_dropped",
        what: "segments out of order dropped for want of buffer",
        remedy: "raise the third value of net.ipv4.tcp_rmem; remove the loss or the reordering",
    },
];

/// Parts of the names of devices' counters.
const DEVICE: [Sign; 6] = [
    Sign {
        counter: "_allowance_exceeded",
        name: "cloud_allowance_exceeded",
        what: "packets that the cloud delayed or dropped because the instance was above its allowance",
        remedy: "use a larger instance or spread the load: the allowance belongs to the instance's type",
    },
    Sign {
        counter: "rx_missed_errors",
        name: "ring_overrun",
        what: "packets dropped because the device's receive ring was full",
        remedy: "enlarge the ring (`ethtool -G DEVICE rx N`), and spread interrupts over more CPUs",
    },
    Sign {
        counter: "rx_fifo_errors",
        name: "ring_overrun",
        what: "packets dropped because the device's receive buffer was full",
        remedy: "enlarge the ring (`ethtool -G DEVICE rx N`), and spread interrupts over more CPUs",
    },
    Sign {
        counter: "rx_out_of_buffer",
        name: "ring_overrun",
        what: "packets dropped because the driver had no receive buffer",
        remedy: "enlarge the ring (`ethtool -G DEVICE rx N`), and spread interrupts over more CPUs",
    },
    Sign {
        counter: "rx_crc_errors",
        name: "damaged_frames",
        what: "frames arrived damaged",
        remedy: "change the cable, the optic or the port",
    },
    Sign {
        counter: "tx_dropped",
        name: "dropped_on_sending",
        what: "packets dropped on sending: by the device or the queueing discipline",
        remedy: "look at `tc -s qdisc show`; a shaper or a short queue there drops",
    },
];

impl Counters {
    /// The counters of the calling thread's network namespace, and of the machine.
    pub(crate) fn read() -> Counters {
        let file = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Counters {
            tcp: table(&file("/proc/thread-self/net/netstat"), "TcpExt"),
            softnet: softnet(&file("/proc/net/softnet_stat")),
            devices: devices(),
        }
    }

    /// What happened since `before`, in no particular order.
    pub(crate) fn since(&self, before: &Counters) -> Vec<Explanation> {
        let mut found = Vec::new();
        let grown = |now: &Named, then: &Named, name: &str| {
            let count = |of: &Named| of.get(name).copied().unwrap_or(0);
            count(now).saturating_sub(count(then))
        };
        for sign in &TCP {
            let count = grown(&self.tcp, &before.tcp, sign.counter);
            found.extend(sign.explain(count, ""));
        }
        let dropped = self.softnet.dropped.saturating_sub(before.softnet.dropped);
        found.extend(SOFTNET_DROPPED.explain(dropped, ""));
        // A few are usual on any busy machine.
        let squeezed = self.softnet.squeezed.saturating_sub(before.softnet.squeezed);
        found.extend(SOFTNET_SQUEEZED.explain(squeezed.saturating_sub(SQUEEZED_USUAL), ""));
        for (device, counters) in &self.devices {
            let none = Named::new();
            let then = before.devices.get(device).unwrap_or(&none);
            for name in counters.keys() {
                let sign = DEVICE.iter().find(|sign| name.ends_with(sign.counter));
                let count = grown(counters, then, name);
                found.extend(
                    sign.and_then(|sign| sign.explain(count, &format!(" ({device} {name})"))),
                );
            }
        }
        found
    }
}

/// Squeezes of the receive path in some seconds that mean nothing.
const SQUEEZED_USUAL: u64 = 100;
const SOFTNET_DROPPED: Sign = Sign {
    counter: "softnet_dropped",
    name: "softnet_dropped",
    what: "packets dropped because a CPU's backlog was full",
    remedy: "raise net.core.netdev_max_backlog, and spread packets over more CPUs (RSS, RPS)",
};
const SOFTNET_SQUEEZED: Sign = Sign {
    counter: "softnet_squeezed",
    name: "softnet_squeezed",
    what: "times the receive path stopped with packets left",
    remedy: "raise net.core.netdev_budget, or spread packets over more CPUs (RSS, RPS)",
};

impl Sign {
    fn explain(&self, count: u64, place: &str) -> Option<Explanation> {
        (count > 0).then(|| Explanation {
            name: self.name,
            claim: format!("{count} {}{place}", self.what),
            remedy: self.remedy,
            count: Some(count),
            time: None,
            rate: None,
            amount: None,
        })
    }
}

/// Offloads that are off on a device that carries traffic: each packet then costs CPU.
pub(crate) fn offloads_off(devices: &[String]) -> Vec<Explanation> {
    let Ok(ethtool) = Ethtool::open() else { return Vec::new() };
    let mut found = Vec::new();
    for device in devices {
        for (offload, name) in
            [(Offload::Tso, "tcp-segmentation-offload"), (Offload::Gro, "generic-receive-offload")]
        {
            if ethtool.offload(device, offload) == Some(false) {
                found.push(Explanation {
                    name: "offload_off",
                    claim: format!("{name} is off on {device}: each segment passes the stack by itself"),
                    remedy: "switch it on (`ethtool -K DEVICE tso on gro on`), unless a driver's fault made \
                             somebody switch it off",
                    count: None,
                    time: None,
                    rate: None,
                    amount: None,
                });
            }
        }
    }
    found
}

/// The physical devices of this namespace.
pub(crate) fn physical_devices() -> Vec<String> {
    let entries = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    let physical = entries.filter(|entry| entry.path().join("device").exists());
    let mut names: Vec<String> =
        physical.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// A table of /proc/net/netstat: a line of names and a line of values.
fn table(text: &str, name: &str) -> Named {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let (names, values) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let values = values.split_whitespace().filter_map(|value| value.parse().ok());
    names.split_whitespace().map(Into::into).zip(values).collect()
}

/// Hexadecimal columns, one line a CPU: processed, dropped, squeezed, ...
fn softnet(text: &str) -> Softnet {
    let mut sum = Softnet::default();
    for line in text.lines() {
        let mut columns =
            line.split_whitespace().map(|column| u64::from_str_radix(column, 16).unwrap_or(0));
        sum.dropped = sum.dropped.saturating_add(columns.nth(1).unwrap_or(0));
        sum.squeezed = sum.squeezed.saturating_add(columns.next().unwrap_or(0));
    }
    sum
}

/// Every device's counters: those in sysfs, and those of its driver.
fn devices() -> BTreeMap<String, Named> {
    let ethtool = Ethtool::open().ok();
    let mut found = BTreeMap::new();
    for device in physical_devices() {
        let folder = format!("/sys/class/net/{device}/statistics");
        let mut counters = Named::new();
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let value = fs::read_to_string(entry.path()).ok();
            let value = value.and_then(|text| text.trim().parse().ok());
            if let (Ok(name), Some(value)) = (entry.file_name().into_string(), value) {
                counters.insert(name, value);
            }
        }
        if let Some(ethtool) = &ethtool {
            let own = ethtool.counters(&device);
            counters.extend(
                own.into_iter().filter(|(name, _)| {
                    name.contains("allowance") || name.contains("out_of_buffer")
                }),
            );
        }
        found.insert(device, counters);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_grew_is_told_with_its_number() {
        let before =
            "TcpExt: SyncookiesSent PruneCalled TCPRcvQDrop\nTcpExt: 1 5 0\nIpExt: A\nIpExt: 2\n";
        let after = "TcpExt: SyncookiesSent PruneCalled TCPRcvQDrop\nTcpExt: 9 5 7\n";
        let counters = |text: &str, softnet: Softnet| Counters {
            tcp: table(text, "TcpExt"),
            softnet,
            devices: BTreeMap::from([(
                "ens5".to_string(),
                Named::from([("bw_in_allowance_exceeded".to_string(), softnet.dropped * 3)]),
            )]),
        };
        let before = counters(before, Softnet { dropped: 1, squeezed: 10 });
        let after = counters(after, Softnet { dropped: 4, squeezed: 60 });
        let found = after.since(&before);
        let names: Vec<_> = found.iter().map(|one| (one.name, one.count)).collect();
        assert_eq!(
            names,
            [
                ("receive_queue_full", Some(7)),
                ("softnet_dropped", Some(3)),
                ("cloud_allowance_exceeded", Some(9))
            ]
        );
        assert!(found[2].claim.contains("ens5 bw_in_allowance_exceeded"), "{}", found[2].claim);
        assert!(before.since(&before).is_empty());
    }

    #[test]
    fn softnet_is_hexadecimal_and_summed() {
        let text = "0000ffff 0000000a 00000001 0 0\n00000001 00000001 00000010 0 0\n";
        assert_eq!(softnet(text), Softnet { dropped: 11, squeezed: 17 });
    }

    #[test]
    fn this_machine_has_counters() {
        let counters = Counters::read();
        assert!(counters.tcp.contains_key("PruneCalled"), "{:?}", counters.tcp.keys());
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "\\PC{0,200}(\n\\PC{0,40}){0,3}") {
            let _ = (table(&text, "TcpExt"), softnet(&text));
        }
    }
}
