//! Linux's own network emulator, the queueing discipline `netem`, by its own words.
//!
//! A [`Netem`] is what `tc qdisc add .. netem ..` would be told, with types;
//! [`crate::netlink::Netlink::set_netem`] puts it on a device, [`crate::netlink::Netlink::netem`]
//! reads back what the kernel has. It acts on what leaves the device.
//!
//! How to think about it: every packet meets loss, duplication and corruption, in this order; then
//! it gets the time at which it may leave, `delay` and jitter after now or behind the packet before
//! it where there is a `rate`; then it waits for that time in one queue, of which `limit` counts
//! every packet, those that are merely delayed too. Its packet is what the device is given: with
//! segmentation offload that is a super-packet of up to 64 KB, whose loss is the loss of 44
//! segments. Who wants it to act on segments sets [`crate::netlink::LinkChange::gso_max_segs`] at
//! the sender's device.
//!
//! Not here: which words a path needs, and two of them one behind the other, which is the lab's.
//!
//! Source: tc-netem(8), linux/pkt_sched.h, net/sched/sch_netem.c. What cannot be read back: a
//! distribution table. What kernels before 6.7 do not know: the seed.

mod attributes;

pub use attributes::{NetemError, decode, encode};

use fullpipe_model::link::{Chance, LossModel, Overhead, Reorder};
use fullpipe_model::units::{Bytes, Duration, Probability, Rate};

/// The most entries that the kernel takes for a table of a distribution.
pub(crate) const DISTRIBUTION_MAX: usize = 16_384;

/// All words of netem; the default lets everything pass at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Netem {
    /// Packets that it holds, delayed ones included; what comes on top is dropped.
    pub limit: u32,
    /// Time that every packet waits.
    pub delay: Duration,
    /// Random part of the delay, either way: the deviation of its distribution.
    pub jitter: Duration,
    /// How much a packet's random delay depends on that of the one before.
    pub delay_correlation: Probability,
    /// Table of the jitter's distribution (as in `/usr/lib/tc/normal.dist`: 8192 is one deviation);
    /// empty: uniform.
    ///
    /// Once given, a table stays with a discipline until that is removed.
    pub distribution: Vec<i16>,
    /// Loss.
    pub loss: LossModel,
    /// Sent twice.
    pub duplicate: Chance,
    /// A bit flipped.
    pub corrupt: Chance,
    /// Sent at once, while others wait for their delay.
    pub reorder: Option<Reorder>,
    /// One packet after another.
    pub rate: Option<Shaping>,
    /// Packets leave in bursts.
    pub slot: Option<Slot>,
    /// Marks (CE) in place of losing, where the packet allows it.
    pub ecn: bool,
    /// Seed of everything random; `None`: the kernel draws one. Linux 6.7 and later.
    pub seed: Option<u64>,
}

/// Serialisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shaping {
    /// Bits a second, of packets with their link-layer header; whole bytes a second are kept of it.
    pub rate: Rate,
    /// What to add to each packet, or to leave out: -14 on Ethernet makes the rate one of IP
    /// packets.
    pub overhead: Overhead,
}

/// Bursts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Time between two of them.
    pub spacing: Spacing,
    /// Packets in one at most; zero: any number.
    pub packets_max: u32,
    /// Bytes in one at most; zero: any number.
    pub bytes_max: Bytes,
}

/// Time between two bursts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spacing {
    /// Evenly drawn from a range.
    Between(Duration, Duration),
    /// Around a delay with a jitter; the kernel's distribution is uniform unless it was given a
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
