//! A path carried by the kernel's own netem instead of our link: which disciplines it takes, and
//! running them.
//!
//! A [`Wire`] joins both hosts. In front of each host are up to two netems, one behind the other:
//!
//! ```text
//! from the other host ──► root: loss, delay ──► behind: rate, queue ──► the host
//! ```
//!
//! Two, because netem's `limit` counts every packet that it holds: a single discipline with delay
//! and rate would count packets on their way as queued. In this order the queue contains exactly
//! what the rate has not carried yet. Putting the delay first shifts everything in the queue by a
//! constant and changes no departure. Three things differ from our link:
//!
//! * netem's queue counts packets. A size in bytes becomes that many packets of the size that is
//!   usual in that direction.
//! * The random numbers differ: the same seed loses other packets than on our link.
//! * Below some gigabits per second, and on a path that treats packets individually, super-packets
//!   are cut before the wire, so that netem's packet is a segment. Where they are not
//!   ([`gso_max_segs`]), a packet in the queue is a super-packet that takes no longer than
//!   [`GRAIN`] at the rate, and checksums in captures are incomplete, as before a device completes
//!   them.
//!
//! Captures are taken at both edges without a system call for each packet
//! ([`fullpipe_kernel::network::packet_ring`]); drops are the disciplines' counters. There is no
//! lateness, because no program of ours is in the path.

mod watch;

use super::{CaptureOptions, DirectionReport, LinkReport};
use fullpipe_kernel::Refused;
use fullpipe_kernel::network::netem::{self, Netem, Shaping};
use fullpipe_kernel::network::netlink::{QdiscCounters, QdiscPlace};
use fullpipe_kernel::network::wire::{L2_LEN, Side, Wire};
use fullpipe_model::link::{
    Capacity, Config, Counters, Discipline, Distribution, Overhead, Slot, Spacing,
};
use fullpipe_model::scenario::Path as LinkPath;
use fullpipe_model::units::{Bytes, Duration};
pub use watch::EDGES;
use watch::{EdgeCapture, WatchError};

/// The longest time that a super-packet may take at the rate.
pub const GRAIN: Duration = Duration::from_micros(20);
/// The largest super-packet, by IP's length field.
const SUPER_PACKET_MAX: Bytes = Bytes::new(65_535);
/// A queue holds at least this many super-packets.
const QUEUE_GRAINS: u64 = 32;
/// IP and TCP header of an acknowledgement with timestamps.
const ACKNOWLEDGEMENT: Bytes = Bytes::new(52);
/// More than is ever held: the root's queue is the path itself.
const NO_LIMIT: u32 = 1 << 30;

/// Why netem cannot carry a path.
#[derive(Debug, thiserror::Error)]
pub enum NetemLinkError {
    /// The kernel refused a request, above all netem.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// Parts of the path that netem does not have.
    #[error("emulate link with netem: {0}; leave it out, or use our own link (engine \"own\")")]
    Foreign(String),
    /// The captures failed.
    #[error(transparent)]
    Watch(#[from] WatchError),
}

/// The disciplines in front of one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// At the device: everything except rate and queue.
    pub root: Netem,
    /// Behind it: rate and queue; `None` without a rate.
    pub behind: Option<Netem>,
}

impl Plan {
    /// The disciplines for one direction: `rtt` is the whole path's, `packet` the usual packet
    /// size, `segments` the number of them in a super-packet.
    ///
    /// # Errors
    /// Parts of the path that netem does not have.
    pub fn new(
        config: &Config,
        rtt: Duration,
        packet: Bytes,
        segments: u32,
        seed: u64,
    ) -> Result<Plan, NetemLinkError> {
        if let Some(word) = foreign(config) {
            return Err(NetemLinkError::Foreign(word));
        }
        let root = Netem {
            limit: NO_LIMIT,
            delay: config.delay.base,
            jitter: config.delay.jitter,
            delay_correlation: config.delay.correlation,
            distribution: config.delay.distribution.table().unwrap_or_default().to_vec(),
            loss: config.loss.model,
            duplicate: config.duplicate,
            corrupt: config.corrupt,
            reorder: config.reorder,
            slot: config.slot.as_ref().map(slot),
            ecn: config.loss.ecn,
            // Spread, because the kernel uses seeds as they are, and similar seeds would begin with
            // similar numbers.
            seed: Some(spread(seed)),
            rate: None,
        };
        let behind = config.rate.map(|rate| {
            let room = match config.capacity(rtt) {
                Capacity::Bytes(bytes) => bytes.get() / packet.get().max(1) / u64::from(segments),
                Capacity::Packets(packets) => packets / u64::from(segments),
                Capacity::Unlimited => NO_LIMIT.into(),
            };
            let limit = u32::try_from(room).unwrap_or(NO_LIMIT).clamp(1, NO_LIMIT);
            // Devices have Ethernet headers here; our rates are of IP packets.
            let packet = config.overhead.packet.saturating_sub(L2_LEN as i32);
            let shaping = Shaping { rate, overhead: Overhead { packet, ..config.overhead } };
            Netem { limit, rate: Some(shaping), seed: Some(spread(!seed)), ..Netem::default() }
        });
        Ok(Plan { root, behind })
    }
}

/// What netem cannot do of `path`; `None` if it can do everything.
pub fn lacks(path: &LinkPath) -> Option<String> {
    let rules = (!path.rules.is_empty()).then(|| "it has no rules".to_string());
    rules.or_else(|| foreign(&path.to_client)).or_else(|| foreign(&path.to_server))
}

/// What netem cannot do of one direction.
fn foreign(config: &Config) -> Option<String> {
    if config.discipline != Discipline::DropTail {
        return Some(format!("it has no discipline {}", config.discipline));
    }
    if config.changes.is_some() {
        return Some("it has no changes over time".into());
    }
    match &config.slot {
        Some(Slot { spacing: Spacing::Distributed { distribution, .. }, .. })
            if *distribution != Distribution::Uniform =>
        {
            Some(format!("its slots here have no distribution {distribution}"))
        }
        _ => None,
    }
}

fn slot(slot: &Slot) -> netem::Slot {
    let spacing = match &slot.spacing {
        Spacing::Between { min, max } => netem::Spacing::Between(*min, *max),
        Spacing::Distributed { delay, jitter, .. } => netem::Spacing::Around(*delay, *jitter),
    };
    let packets_max = slot.packets.map_or(0, std::num::NonZeroU32::get);
    netem::Slot { spacing, packets_max, bytes_max: slot.bytes.unwrap_or_default() }
}

/// splitmix64.
fn spread(seed: u64) -> u64 {
    let z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// How many MTU segments a super-packet on the wire may have on `path`: as many as the rate carries
/// within `GRAIN`; one if packets are lost individually, or if the queue would hold only a few
/// super-packets.
pub fn gso_max_segs(path: &LinkPath) -> u32 {
    let mtu = path.mtu.get().max(1);
    let ways = [&path.to_client, &path.to_server];
    let segments = ways.map(|config| segments_max(config, mtu, path.rtt()));
    u32::try_from(segments[0].min(segments[1])).unwrap_or(1).max(1)
}

/// The same for one direction of a path.
fn segments_max(config: &Config, mtu: u64, rtt: Duration) -> u64 {
    if one_by_one(config) {
        return 1;
    }
    let most = SUPER_PACKET_MAX.get() / mtu;
    let Some(rate) = config.rate else { return most };
    let room = match config.capacity(rtt) {
        Capacity::Bytes(bytes) => bytes.get() / mtu,
        Capacity::Packets(packets) => packets,
        Capacity::Unlimited => u64::MAX,
    };
    most.min(rate.over(GRAIN).get() / mtu).min(room / QUEUE_GRAINS)
}

/// Whether packets may have different fates on purpose.
fn one_by_one(config: &Config) -> bool {
    let alike = config.loss.is_never()
        && config.duplicate.is_never()
        && config.corrupt.is_never()
        && config.reorder.is_none()
        && config.slot.is_none()
        && config.delay.is_constant();
    !alike
}

/// A path that netem carries, from start to [`NetemLink::stop`].
#[derive(Debug)]
pub struct NetemLink {
    wire: Wire,
    watch: Option<EdgeCapture>,
    queued: [bool; 2],
    /// Notes for readers of the results.
    pub notes: Vec<String>,
}

const SIDES: [Side; 2] = [Side::B, Side::A];

impl NetemLink {
    /// Puts the disciplines of `path`, which [`lacks`] nothing, on `wire`, whose `A` is the server
    /// and which carries super-packets of up to `segments`, and begins to capture at both edges.
    ///
    /// # Errors
    /// The kernel lacks netem or what the wire needs, or a capture file cannot be made.
    pub fn start(
        mut wire: Wire,
        path: &LinkPath,
        segments: u32,
        capture: Option<CaptureOptions<'_>>,
    ) -> Result<NetemLink, NetemLinkError> {
        // The directions have different random streams: otherwise the same seed would lose the ACK
        // of every packet that it loses.
        let seeds = [path.seed.wrapping_mul(2), path.seed.wrapping_mul(2).wrapping_add(1)];
        let plans = [
            Plan::new(&path.to_client, path.rtt(), path.mtu, segments, seeds[0])?,
            Plan::new(&path.to_server, path.rtt(), ACKNOWLEDGEMENT, 1, seeds[1])?,
        ];
        let mut notes = Vec::new();
        for (side, plan) in SIDES.iter().zip(&plans) {
            for (place, netem) in
                [(QdiscPlace::Root, Some(&plan.root)), (QdiscPlace::Behind, plan.behind.as_ref())]
            {
                let Some(netem) = netem else { continue };
                wire.set_netem(*side, place, netem)?;
                let (found, _) = wire.netem(*side, place)?;
                if found.seed != netem.seed && notes.is_empty() {
                    notes.push(
                        "this kernel's netem takes no seed (Linux 6.7 has it): losses differ from run to run".into(),
                    );
                }
            }
        }
        let watch = match capture {
            Some(options) => {
                let server = wire.watch(Side::A, options.snaplen)?;
                let client = wire.watch(Side::B, options.snaplen)?;
                Some(EdgeCapture::start(server, client, options)?)
            }
            None => None,
        };
        let queued = plans.map(|plan| plan.behind.is_some());
        Ok(NetemLink { wire, watch, queued, notes })
    }

    /// Ends it. Captures are complete when this returns.
    ///
    /// # Errors
    /// A capture could not be written, or counters could not be read.
    pub fn stop(mut self) -> Result<LinkReport, NetemLinkError> {
        let capture_dropped = self.watch.map(EdgeCapture::stop).transpose()?.unwrap_or(0);
        let mut directions = Vec::with_capacity(2);
        for (side, queued) in SIDES.into_iter().zip(self.queued) {
            let (_, root) = self.wire.netem(side, QdiscPlace::Root)?;
            let behind = queued.then(|| self.wire.netem(side, QdiscPlace::Behind)).transpose()?;
            directions.push(counters(root, behind.map(|(_, counters)| counters)));
        }
        let mut directions = directions.into_iter().map(|link| DirectionReport {
            link,
            real_time: true,
            ..DirectionReport::default()
        });
        Ok(LinkReport {
            to_client: directions.next().unwrap_or_default(),
            to_server: directions.next().unwrap_or_default(),
            capture_dropped,
            port_kind: "netem".into(),
            ..LinkReport::default()
        })
    }
}

/// The root includes the drops of the one behind in its own counter, because it passes packets on
/// to it.
fn counters(root: QdiscCounters, behind: Option<QdiscCounters>) -> Counters {
    let queue_dropped = behind.map_or(0, |behind| behind.drops);
    Counters {
        arrived_packets: root.packets + root.held + root.drops,
        departed_packets: root.packets,
        departed_bytes: root.bytes.saturating_sub(root.packets * L2_LEN as u64),
        lost_packets: root.drops.saturating_sub(queue_dropped),
        queue_dropped_packets: queue_dropped,
        ..Counters::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_model::scenario::File;

    fn path(text: &str) -> LinkPath {
        File::parse(text).unwrap().scenarios("test").unwrap().remove(0).path
    }

    #[test]
    fn the_queue_is_what_the_rate_has_not_carried() {
        let path =
            path("[link]\nrate = \"100mbit\"\nrtt = \"40ms\"\nqueue = \"150kB\"\nloss = \"1%\"");
        let plan = Plan::new(&path.to_client, path.rtt(), path.mtu, 1, 1).unwrap();
        assert_eq!(
            (plan.root.delay, plan.root.rate, plan.root.limit),
            (Duration::from_millis(20), None, NO_LIMIT)
        );
        let behind = plan.behind.unwrap();
        assert_eq!(
            (behind.limit, behind.delay, behind.duplicate.is_never()),
            (100, Duration::ZERO, true)
        );
        assert_eq!(behind.rate.unwrap().overhead.packet, -14);
        let free = self::path("[link]\nrtt = \"40ms\"");
        assert_eq!(Plan::new(&free.to_client, free.rtt(), free.mtu, 1, 1).unwrap().behind, None);
    }

    #[test]
    fn super_packets_are_for_fast_paths_that_treat_all_packets_alike() {
        for (text, segments) in [
            ("rate = \"100mbit\"\nrtt = \"10ms\"", 1),
            ("rate = \"1gbit\"\nrtt = \"50ms\"", 1),
            ("rate = \"10gbit\"\nrtt = \"40ms\"", 16),
            ("rate = \"25gbit\"\nrtt = \"40ms\"", 41),
            ("rate = \"25gbit\"\nrtt = \"40ms\"\nloss = \"0.1%\"", 1),
            ("rate = \"25gbit\"\nrtt = \"40ms\"\nqueue = \"64packets\"", 2),
            ("rtt = \"40ms\"", 43),
        ] {
            assert_eq!(gso_max_segs(&path(&format!("[link]\n{text}"))), segments, "{text}");
        }
    }

    #[test]
    fn neighbouring_seeds_are_far_apart() {
        // 32 of 64 bits differ on average, with a deviation of 4: 5 deviations.
        for seed in 0..1000u64 {
            let apart = (spread(seed) ^ spread(seed + 1)).count_ones();
            assert!((12..=52).contains(&apart), "{seed}: {apart}");
        }
    }

    #[test]
    fn drops_behind_are_not_losses() {
        let root = QdiscCounters { packets: 90, bytes: 90 * 1514, drops: 8, held: 2 };
        let behind = QdiscCounters { drops: 5, ..QdiscCounters::default() };
        let counted = counters(root, Some(behind));
        assert_eq!(
            (counted.arrived_packets, counted.lost_packets, counted.queue_dropped_packets),
            (100, 3, 5)
        );
        assert_eq!(counted.departed_bytes, 90 * 1500);
    }
}
