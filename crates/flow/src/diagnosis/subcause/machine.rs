//! What the machine itself drops or holds back, whichever connection it was: memory of TCP, its
//! receive path, its devices and their queueing disciplines, a control group, a cloud's allowance.

use super::{Numbers, Site};
use crate::finding::{MachineRemedy, Remedy};
use crate::limit::Limit;
use fullpipe_model::limit::End;
use fullpipe_model::units::{Bytes, Rate};

/// What a machine shows, with its numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MachineCause {
    /// A counter grew that says something about transfers.
    Counted {
        /// What it counts.
        event: CountedEvent,
        /// By how much it grew.
        count: u64,
        /// The device and its counter, of a device's.
        at: Option<String>,
    },
    /// An offload is off on a device that carries traffic.
    OffloadOff {
        /// The device.
        device: String,
        /// Its name by ethtool.
        offload: &'static str,
    },
    /// All TCP sockets together are near the bound at which the kernel saves memory.
    TcpMemory {
        /// What they hold.
        held: Bytes,
        /// The bound: the second value of `net.ipv4.tcp_mem`.
        bound: Bytes,
        /// The process whose busy sockets hold most, and how much.
        holder: Option<(String, Bytes)>,
    },
    /// A control group is at its memory limit, and sockets hold a good part of that.
    GroupMemory {
        /// The group's path.
        group: String,
        /// What it uses.
        used: Bytes,
        /// Its limit.
        bound: Bytes,
        /// What of it sockets hold.
        sockets: Bytes,
    },
    /// A cloud gives one connection no more.
    FlowCap {
        /// Whose rule that is.
        rule: FlowCapRule,
        /// What this connection carries.
        goodput: Rate,
    },
    /// A queueing discipline of this host lets packets wait on purpose.
    ShapedHere {
        /// The kind of discipline.
        kind: String,
        /// Its class that the connection is in, where it has any.
        class: Option<String>,
        /// The device.
        device: String,
        /// To what rate.
        rate: Option<Rate>,
        /// How many times packets had to wait.
        waited: u64,
        /// How many packets it dropped.
        drops: u64,
    },
    /// A queueing discipline of this host dropped packets.
    DroppedBeforeSending {
        /// The kind of discipline.
        kind: String,
        /// The device.
        device: String,
        /// How many packets.
        drops: u64,
        /// It is set to lose packets.
        on_purpose: bool,
    },
}

/// An event that a machine counts: each is a loss or a stall that the host made itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountedEvent {
    /// All TCP sockets together came under memory pressure.
    MemoryPressure,
    /// A receive queue was compacted, because its buffer was full.
    ReceiveQueuePruned,
    /// Data was dropped from a full receive queue.
    ReceiveQueueDropped,
    /// A segment was dropped on arrival, because a receive queue was full.
    ReceiveQueueFull,
    /// A segment was dropped because a socket's backlog was full.
    BacklogFull,
    /// A connection was aborted for want of memory.
    AbortedForMemory,
    /// A connection was refused, because a listener's queue was full.
    AcceptQueueFull,
    /// A segment out of order was dropped for want of buffer.
    OutOfOrderDropped,
    /// A packet was dropped because a CPU's backlog was full.
    SoftnetDropped,
    /// The receive path stopped with packets left.
    SoftnetSqueezed,
    /// The cloud delayed or dropped a packet above the instance's allowance.
    CloudAllowanceExceeded,
    /// A packet was dropped because a device's receive ring was full.
    RingFull,
    /// The same, its receive buffer.
    DeviceBufferFull,
    /// The same, for want of a buffer of the driver.
    DriverBufferMissing,
    /// A frame arrived damaged.
    DamagedFrames,
    /// A packet was dropped on sending.
    DroppedOnSending,
}

/// A published bound on one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowCapRule {
    /// Amazon EC2, outside of a cluster placement group.
    AmazonOutsideGroup,
    /// Amazon EC2, within a cluster placement group.
    AmazonInGroup,
    /// Amazon EC2 with ENA Express.
    AmazonEnaExpress,
}

impl FlowCapRule {
    /// Every rule, the lowest first. Source: Amazon EC2 User Guide, "Amazon EC2 instance network
    /// bandwidth", section on single-flow traffic (read 2026-11).
    pub(crate) const ALL: [Self; 3] =
        [Self::AmazonOutsideGroup, Self::AmazonInGroup, Self::AmazonEnaExpress];

    /// The bound.
    pub const fn rate(self) -> Rate {
        Rate::from_bits_per_sec(match self {
            FlowCapRule::AmazonOutsideGroup => 5_000_000_000,
            FlowCapRule::AmazonInGroup => 10_000_000_000,
            FlowCapRule::AmazonEnaExpress => 25_000_000_000,
        })
    }
}

impl CountedEvent {
    const fn name(self) -> &'static str {
        match self {
            CountedEvent::MemoryPressure => "memory_pressure",
            CountedEvent::ReceiveQueuePruned => "receive_queue_pruned",
            CountedEvent::ReceiveQueueDropped => "receive_queue_dropped",
            CountedEvent::ReceiveQueueFull => "receive_queue_full",
            CountedEvent::BacklogFull => "backlog_full",
            CountedEvent::AbortedForMemory => "aborted_for_memory",
            CountedEvent::AcceptQueueFull => "accept_queue_full",
            CountedEvent::OutOfOrderDropped => "out_of_order_dropped",
            CountedEvent::SoftnetDropped => "softnet_dropped",
            CountedEvent::SoftnetSqueezed => "softnet_squeezed",
            CountedEvent::CloudAllowanceExceeded => "cloud_allowance_exceeded",
            CountedEvent::RingFull
            | CountedEvent::DeviceBufferFull
            | CountedEvent::DriverBufferMissing => "ring_overrun",
            CountedEvent::DamagedFrames => "damaged_frames",
            CountedEvent::DroppedOnSending => "dropped_on_sending",
        }
    }

    const fn remedy(self) -> MachineRemedy {
        match self {
            CountedEvent::MemoryPressure => MachineRemedy::RaiseTcpMemoryOrFindHolder,
            CountedEvent::ReceiveQueuePruned
            | CountedEvent::ReceiveQueueDropped
            | CountedEvent::ReceiveQueueFull => MachineRemedy::ReadOrRaiseReceiveMax,
            CountedEvent::BacklogFull => MachineRemedy::ReadSmallerPieces,
            CountedEvent::AbortedForMemory => MachineRemedy::RaiseTcpMemory,
            CountedEvent::AcceptQueueFull => MachineRemedy::AcceptFaster,
            CountedEvent::OutOfOrderDropped => MachineRemedy::RaiseReceiveMaxOrKeepOrder,
            CountedEvent::SoftnetDropped => MachineRemedy::RaiseBacklog,
            CountedEvent::SoftnetSqueezed => MachineRemedy::RaiseBudget,
            CountedEvent::CloudAllowanceExceeded => MachineRemedy::LargerInstance,
            CountedEvent::RingFull
            | CountedEvent::DeviceBufferFull
            | CountedEvent::DriverBufferMissing => MachineRemedy::LargerRing,
            CountedEvent::DamagedFrames => MachineRemedy::ChangeCable,
            CountedEvent::DroppedOnSending => MachineRemedy::LookAtQdisc,
        }
    }
}

impl MachineCause {
    /// The stable name in results.
    pub const fn name(&self) -> &'static str {
        match self {
            MachineCause::Counted { event, .. } => event.name(),
            MachineCause::OffloadOff { .. } => "offload_off",
            MachineCause::TcpMemory { .. } => "memory_pressure",
            MachineCause::GroupMemory { .. } => "cgroup_memory",
            MachineCause::FlowCap { .. } => "cloud_flow_cap",
            MachineCause::ShapedHere { .. } => "shaped_here",
            MachineCause::DroppedBeforeSending { .. } => "dropped_before_sending",
        }
    }

    pub(super) fn numbers(&self) -> Numbers {
        let none = Numbers::default();
        match self {
            MachineCause::Counted { count, .. } => Numbers { count: Some(*count), ..none },
            MachineCause::OffloadOff { .. } => none,
            MachineCause::TcpMemory { held, .. } => Numbers { amount: Some(*held), ..none },
            MachineCause::GroupMemory { sockets, .. } => Numbers { amount: Some(*sockets), ..none },
            MachineCause::FlowCap { rule, .. } => Numbers { rate: Some(rule.rate()), ..none },
            MachineCause::ShapedHere { waited, rate, .. } => {
                Numbers { count: Some(*waited), rate: *rate, ..none }
            }
            MachineCause::DroppedBeforeSending { drops, .. } => {
                Numbers { count: Some(*drops), ..none }
            }
        }
    }

    pub(super) const fn remedy(&self) -> Remedy {
        Remedy::Machine(match self {
            MachineCause::Counted { event, .. } => event.remedy(),
            MachineCause::OffloadOff { .. } => MachineRemedy::SwitchOffloadOn,
            MachineCause::TcpMemory { .. } => MachineRemedy::FreeTcpMemory,
            MachineCause::GroupMemory { .. } => MachineRemedy::RaiseGroupMemory,
            MachineCause::FlowCap { .. } => MachineRemedy::SeveralConnections,
            MachineCause::ShapedHere { .. } => MachineRemedy::ChangeShaper,
            MachineCause::DroppedBeforeSending { .. } => MachineRemedy::LargerQueue,
        })
    }

    /// Where its remedy has to be applied, if it explains `limit`. A queueing discipline is the
    /// sender's; a window that is full or shut is not its doing, however busy it is.
    pub(super) const fn site(&self, limit: Limit) -> Option<Site> {
        let is_receivers = matches!(limit, Limit::ReceiveWindow | Limit::ReceiverApplication);
        match self {
            MachineCause::ShapedHere { .. } | MachineCause::DroppedBeforeSending { .. }
                if !is_receivers =>
            {
                Some(Site::End(End::Sender))
            }
            _ => None,
        }
    }
}
