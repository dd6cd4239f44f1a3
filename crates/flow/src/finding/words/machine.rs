//! What the machine itself drops or holds back.

use crate::diagnosis::{CountedEvent, FlowCapRule, MachineCause};
use crate::finding::path_test::{MachineLimit, OwnLimit};

pub(super) fn claim(cause: &MachineCause) -> String {
    match cause {
        MachineCause::Counted { event, count, at: Some(at) } => {
            format!("{count} {} ({at})", counted(*event))
        }
        MachineCause::Counted { event, count, at: None } => {
            format!("{count} {}", counted(*event))
        }
        MachineCause::OffloadOff { device, offload } => {
            format!("{offload} is off on {device}: each segment passes the stack by itself")
        }
        MachineCause::TcpMemory { held, bound, holder } => {
            let who = holder.as_ref().map_or(String::new(), |(process, memory)| {
                format!("; {process} holds {memory:#} of it in busy sockets")
            });
            format!(
                "TCP holds {held:#}, and at {bound:#} (the second value of net.ipv4.tcp_mem) the \
                 kernel lets no window grow{who}"
            )
        }
        MachineCause::GroupMemory { group, used, bound, sockets } => format!(
            "control group {group} uses {used:#} of its {bound:#}, {sockets:#} of it in sockets: \
             its windows are kept small"
        ),
        MachineCause::FlowCap { rule, goodput } => {
            format!("{}, and this one carries {goodput}", cap(*rule))
        }
        MachineCause::ShapedHere { kind, class, device, rate, waited, drops } => {
            let of = class.as_ref().map_or(String::new(), |class| format!(" (class {class})"));
            let to = rate.map_or(String::new(), |rate| format!(" to {rate}"));
            let dropped = match drops {
                0 => String::new(),
                drops => format!(", and drops {drops} packets"),
            };
            format!(
                "{kind}{of} on {device} shapes what this host sends{to}: {waited} times packets \
                 had to wait{dropped} meanwhile"
            )
        }
        MachineCause::DroppedBeforeSending { kind, device, drops, on_purpose } => {
            let how = match on_purpose {
                true => "on purpose (it is set to lose packets)",
                false => "as it was full",
            };
            format!("{kind} on {device} dropped {drops} packets of this host meanwhile, {how}")
        }
    }
}

/// That a machine or this program was the limit of a path test, and not the path.
pub fn machine_limit(limit: &MachineLimit) -> String {
    let MachineLimit { end, cpu, by } = limit;
    let percent = 100.0 * cpu;
    let how = match by {
        OwnLimit::DidNotWrite => {
            format!("this program did not write fast enough ({percent:.0} % of a core)")
        }
        OwnLimit::DidNotRead => {
            format!("this program did not read fast enough ({percent:.0} % of a core)")
        }
        OwnLimit::BusyThread => {
            format!("a thread of this program took {percent:.0} % of a core")
        }
    };
    format!("the {end}'s machine was the limit, not the path: {how}")
}

const fn counted(event: CountedEvent) -> &'static str {
    match event {
        CountedEvent::MemoryPressure => "times all TCP sockets together came under memory pressure",
        CountedEvent::ReceiveQueuePruned => {
            "times a receive queue was compacted because its buffer was full"
        }
        CountedEvent::ReceiveQueueDropped => "times data was dropped from a full receive queue",
        CountedEvent::ReceiveQueueFull => {
            "segments dropped on arrival because a receive queue was full"
        }
        CountedEvent::BacklogFull => {
            "segments dropped because a socket's backlog was full while its application held the \
             lock"
        }
        CountedEvent::AbortedForMemory => "connections aborted because TCP had no memory left",
        CountedEvent::AcceptQueueFull => "connections refused because a listener's queue was full",
        CountedEvent::OutOfOrderDropped => "segments out of order dropped for want of buffer",
        CountedEvent::SoftnetDropped => "packets dropped because a CPU's backlog was full",
        CountedEvent::SoftnetSqueezed => "times the receive path stopped with packets left",
        CountedEvent::CloudAllowanceExceeded => {
            "packets that the cloud delayed or dropped because the instance was above its \
             allowance"
        }
        CountedEvent::RingFull => "packets dropped because the device's receive ring was full",
        CountedEvent::DeviceBufferFull => {
            "packets dropped because the device's receive buffer was full"
        }
        CountedEvent::DriverBufferMissing => {
            "packets dropped because the driver had no receive buffer"
        }
        CountedEvent::DamagedFrames => "frames arrived damaged",
        CountedEvent::DroppedOnSending => {
            "packets dropped on sending: by the device or the queueing discipline"
        }
    }
}

const fn cap(rule: FlowCapRule) -> &'static str {
    match rule {
        FlowCapRule::AmazonOutsideGroup => {
            "Amazon EC2 gives one connection 5 Gbit/s outside of a cluster placement group"
        }
        FlowCapRule::AmazonInGroup => {
            "Amazon EC2 gives one connection 10 Gbit/s within a cluster placement group"
        }
        FlowCapRule::AmazonEnaExpress => {
            "Amazon EC2 gives one connection 25 Gbit/s with ENA Express"
        }
    }
}
