//! Linux's own network emulator, the queueing discipline `netem`, in its own terms.
//!
//! A [`Netem`] holds the options of `tc qdisc add .. netem ..` as types.
//! [`crate::network::netlink::Netlink::set_netem`] applies it to a device,
//! [`crate::network::netlink::Netlink::netem`] reads back what the kernel has. It acts on packets
//! that leave the device.
//!
//! How to think about it: every packet passes loss, duplication and corruption, in this order. Then
//! it gets the time at which it may leave: `delay` and jitter after now, or, with a `rate`, after
//! the packet before it. Then it waits in one queue until that time; `limit` counts every packet in
//! it, including those that are merely delayed. A packet is whatever the device is given: with
//! segmentation offload a super-packet of up to 64 KB, whose loss is the loss of 44 segments. To
//! make netem act on segments, set [`crate::network::netlink::LinkChange::gso_max_segs`] at the
//! sender's device.
//!
//! Not here: which options a path needs, and the use of two netems one behind the other; see the
//! `link` crate.
//!
//! Source: tc-netem(8), linux/pkt_sched.h, net/sched/sch_netem.c. A distribution table cannot be
//! read back. Kernels before 6.7 do not know the seed.

mod attributes;

pub use attributes::{NetemError, decode, encode};

use fullpipe_model::link::{Chance, LossModel, Overhead, Reorder};
use fullpipe_model::units::{Bytes, Duration, Probability, Rate};

/// The most entries that the kernel accepts in a distribution table.
pub(crate) const DISTRIBUTION_MAX: usize = 16_384;

/// All options of netem; the default lets everything pass at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Netem {
    /// Packets that it holds, delayed ones included; more are dropped.
    pub limit: u32,
    /// Delay of every packet.
    pub delay: Duration,
    /// Random part of the delay, in either direction: the standard deviation of its distribution.
    pub jitter: Duration,
    /// Correlation of a packet's random delay with that of the packet before it.
    pub delay_correlation: Probability,
    /// Table of the jitter's distribution (as in `/usr/lib/tc/normal.dist`: 8192 is one deviation);
    /// empty means uniform.
    ///
    /// Once set, a discipline keeps a table until the discipline is removed.
    pub distribution: Vec<i16>,
    /// Loss.
    pub loss: LossModel,
    /// Probability of a duplicate.
    pub duplicate: Chance,
    /// Probability of a flipped bit.
    pub corrupt: Chance,
    /// Packets that skip the delay.
    pub reorder: Option<Reorder>,
    /// Serialisation at a rate.
    pub rate: Option<Shaping>,
    /// Packets leave in bursts.
    pub slot: Option<Slot>,
    /// Marks (CE) instead of dropping, if the packet supports ECN.
    pub ecn: bool,
    /// Seed of all randomness; `None`: the kernel draws one. Needs Linux 6.7.
    pub seed: Option<u64>,
}

/// Serialisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shaping {
    /// Bits per second of packets with their link-layer header; the kernel keeps whole bytes per
    /// second.
    pub rate: Rate,
    /// Bytes to add to each packet, or to subtract: with -14 on Ethernet the rate is one of IP
    /// packets.
    pub overhead: Overhead,
}

/// Bursts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Time between two bursts.
    pub spacing: Spacing,
    /// Packets in a burst at most; 0 means any number.
    pub packets_max: u32,
    /// Bytes in a burst at most; 0 means any number.
    pub bytes_max: Bytes,
}

/// Time between two bursts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spacing {
    /// Drawn uniformly from a range.
    Between(Duration, Duration),
    /// Around a delay with a jitter; the distribution is uniform unless the kernel was given a
    /// table.
    Around(Duration, Duration),
}

impl Default for Netem {
    fn default() -> Self {
        Netem {
            limit: 1000,
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            delay_correlation: Probability::ZERO,
            distribution: Vec::new(),
            loss: LossModel::Random(Chance::NEVER),
            duplicate: Chance::NEVER,
            corrupt: Chance::NEVER,
            reorder: None,
            rate: None,
            slot: None,
            ecn: false,
            seed: None,
        }
    }
}
