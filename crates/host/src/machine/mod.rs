//! What the machine itself drops or holds back, whichever connection it was: memory of TCP, its
//! receive path, its devices, a memory limit of a control group, a cloud's allowance.
//!
//! [`Counters::read`] takes the kernel's counters at one instant; [`Counters::since`] says what
//! happened between two of them. Each [`MachineCause`] has the number behind it.
//!
//! Sources: Documentation/networking/snmp_counter.rst, net/core/net-procfs.c
//! (`softnet_seq_show`), Documentation/admin-guide/cgroup-v2.rst, and the names that the drivers of
//! Amazon's ena (Documentation/networking/device_drivers/ethernet/amazon/ena.rst), Intel's and
//! Mellanox's devices give their counters.

mod memory;

pub(crate) use memory::{group_is_short, group_shortage, holders, memory_pressure};

use fullpipe_flow::diagnosis::{CountedEvent, MachineCause};
use fullpipe_kernel::network::ethtool::{Ethtool, Offload};
use std::collections::BTreeMap;
use std::fs;

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

/// Counters of TCP that say something about transfers when they grow.
const TCP: [(&str, CountedEvent); 8] = [
    ("TCPMemoryPressures", CountedEvent::MemoryPressure),
    ("PruneCalled", CountedEvent::ReceiveQueuePruned),
    ("RcvPruned", CountedEvent::ReceiveQueueDropped),
    ("TCPRcvQDrop", CountedEvent::ReceiveQueueFull),
    ("TCPBacklogDrop", CountedEvent::BacklogFull),
    ("TCPAbortOnMemory", CountedEvent::AbortedForMemory),
    ("ListenOverflows", CountedEvent::AcceptQueueFull),
    ("TCPOFODrop", CountedEvent::OutOfOrderDropped),
];

/// The same of devices: how the names of their counters end.
const DEVICE: [(&str, CountedEvent); 6] = [
    ("_allowance_exceeded", CountedEvent::CloudAllowanceExceeded),
    ("rx_missed_errors", CountedEvent::RingFull),
    ("rx_fifo_errors", CountedEvent::DeviceBufferFull),
    ("rx_out_of_buffer", CountedEvent::DriverBufferMissing),
    ("rx_crc_errors", CountedEvent::DamagedFrames),
    ("tx_dropped", CountedEvent::DroppedOnSending),
];

impl Counters {
    /// The counters of the calling thread's network namespace, and of the machine.
    pub(crate) fn read() -> Counters {
        let [netstat, softnet_stat] = ["/proc/thread-self/net/netstat", "/proc/net/softnet_stat"]
            .map(|path| fs::read_to_string(path).unwrap_or_default());
        Counters {
            tcp: table(&netstat, "TcpExt"),
            softnet: softnet(&softnet_stat),
            devices: devices(),
        }
    }

    /// What happened since `before`, in no particular order.
    pub(crate) fn since(&self, before: &Counters) -> Vec<MachineCause> {
        let mut found = Vec::new();
        let mut add = |event, count: u64, at: Option<String>| {
            found.extend((count > 0).then_some(MachineCause::Counted { event, count, at }));
        };
        for (counter, event) in TCP {
            add(event, grown(&self.tcp, &before.tcp, counter), None);
        }
        let dropped = self.softnet.dropped.saturating_sub(before.softnet.dropped);
        add(CountedEvent::SoftnetDropped, dropped, None);
        // A few are usual on any busy machine.
        let squeezed = self.softnet.squeezed.saturating_sub(before.softnet.squeezed);
        add(CountedEvent::SoftnetSqueezed, squeezed.saturating_sub(SQUEEZED_USUAL), None);
        for (device, counters) in &self.devices {
            let none = Named::new();
            let then = before.devices.get(device).unwrap_or(&none);
            for name in counters.keys() {
                if let Some((_, event)) = DEVICE.iter().find(|(end, _)| name.ends_with(end)) {
                    add(*event, grown(counters, then, name), Some(format!("{device} {name}")));
                }
            }
        }
        found
    }
}

/// The names of counters in a recording.
const TCP_NAME: &str = "tcp ";
const SOFTNET_DROPPED: &str = "softnet dropped";
const SOFTNET_SQUEEZED: &str = "softnet squeezed";
const DEVICE_NAME: &str = "device ";

impl Counters {
    /// The counters that say something about transfers, by name, for a recording.
    pub(crate) fn named(&self) -> BTreeMap<String, u64> {
        let mut named = BTreeMap::new();
        for (name, _) in TCP {
            let value = self.tcp.get(name);
            named.extend(value.map(|value| (format!("{TCP_NAME}{name}"), *value)));
        }
        let Softnet { dropped, squeezed } = self.softnet;
        named.insert(SOFTNET_DROPPED.into(), dropped);
        named.insert(SOFTNET_SQUEEZED.into(), squeezed);
        for (device, counters) in &self.devices {
            for (name, value) in counters {
                if DEVICE.iter().any(|(end, _)| name.ends_with(end)) {
                    named.insert(format!("{DEVICE_NAME}{device} {name}"), *value);
                }
            }
        }
        named
    }

    /// The counters that a recording has.
    pub(crate) fn of_named(named: &BTreeMap<String, u64>) -> Counters {
        let mut counters = Counters::default();
        for (name, value) in named {
            if let Some(name) = name.strip_prefix(TCP_NAME) {
                counters.tcp.insert(name.into(), *value);
            } else if name == SOFTNET_DROPPED {
                counters.softnet.dropped = *value;
            } else if name == SOFTNET_SQUEEZED {
                counters.softnet.squeezed = *value;
            } else if let Some((device, name)) =
                name.strip_prefix(DEVICE_NAME).and_then(|rest| rest.split_once(' '))
            {
                counters.devices.entry(device.into()).or_default().insert(name.into(), *value);
            }
        }
        counters
    }
}

/// How much a counter has grown.
fn grown(now: &Named, then: &Named, name: &str) -> u64 {
    let [now, then] = [now, then].map(|counters| counters.get(name).copied().unwrap_or(0));
    now.saturating_sub(then)
}

/// Squeezes of the receive path in some seconds that mean nothing.
const SQUEEZED_USUAL: u64 = 100;

/// The offloads that are looked at, with their names by ethtool.
const OFFLOADS: [(Offload, &str); 2] =
    [(Offload::Tso, "tcp-segmentation-offload"), (Offload::Gro, "generic-receive-offload")];

/// The name of an offload that a recording has, if it is one of those that are looked at.
pub(crate) fn offload_named(name: &str) -> Option<&'static str> {
    OFFLOADS.iter().map(|(_, known)| *known).find(|known| *known == name)
}

/// Offloads that are off on a device that carries traffic: each packet then costs CPU.
pub(crate) fn offloads_off(devices: &[String]) -> Vec<MachineCause> {
    let Ok(ethtool) = Ethtool::open() else { return Vec::new() };
    let pairs =
        devices.iter().flat_map(|device| OFFLOADS.map(|(offload, name)| (device, offload, name)));
    let off = pairs.filter(|(device, offload, _)| ethtool.offload(device, *offload) == Some(false));
    off.map(|(device, _, offload)| MachineCause::OffloadOff { device: device.clone(), offload })
        .collect()
}

/// Whose machine it is, by its firmware; empty where it does not say.
pub(crate) fn vendor() -> String {
    fs::read_to_string("/sys/class/dmi/id/sys_vendor").unwrap_or_default()
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
        let counted = |event, count, at: Option<&str>| {
            let at = at.map(Into::into);
            MachineCause::Counted { event, count, at }
        };
        assert_eq!(
            found,
            [
                counted(CountedEvent::ReceiveQueueFull, 7, None),
                counted(CountedEvent::SoftnetDropped, 3, None),
                counted(
                    CountedEvent::CloudAllowanceExceeded,
                    9,
                    Some("ens5 bw_in_allowance_exceeded")
                ),
            ]
        );
        assert!(before.since(&before).is_empty());
        let [before, after] = [before, after].map(|one| Counters::of_named(&one.named()));
        assert_eq!(after.since(&before), found, "a recording tells the same");
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
