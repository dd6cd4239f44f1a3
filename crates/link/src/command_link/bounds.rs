//! How much the gateway carries at once, and what it could not carry.
//!
//! A connection takes two descriptors (its end over the link, and the onward one), and so does a
//! UDP flow. If the machine grants fewer descriptors than both bounds need, both are reduced, so
//! that neither starves the other.

use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering};

/// The most TCP connections at once; more are refused. Each also takes two threads.
const CONNECTIONS_MAX: usize = 2048;
/// The most UDP flows (pairs of addresses) at once for each IP version; each takes a socket and a
/// thread.
const FLOWS_MAX: usize = 512;
/// Descriptors of the link itself: devices, listeners, control socket and its clients, captures,
/// logs.
const OWN: u64 = 128;
const OF_A_CONNECTION: u64 = 2;
const OF_A_FLOW: u64 = 2;
/// IPv4 and IPv6 have separate flows.
const FAMILIES: u64 = 2;

/// How much the gateway carries at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bounds {
    /// TCP connections.
    pub connections: usize,
    /// UDP flows of each IP version.
    pub flows: usize,
}

impl Bounds {
    /// The bounds for a process that may have this many descriptors. If they are scarce, a quarter
    /// is for UDP, but never less than a flow of each IP version takes: what both have at least is
    /// set aside first, or they would take it twice. With fewer than 134 descriptors there is not
    /// enough for that, and what cannot be opened is refused.
    pub fn within(descriptors: u64) -> Bounds {
        let available = descriptors.saturating_sub(OWN);
        let a_flow_each = OF_A_FLOW * FAMILIES;
        let of_flows = (available / 4).clamp(a_flow_each, FLOWS_MAX as u64 * a_flow_each);
        Bounds {
            connections: count(
                available.saturating_sub(of_flows),
                OF_A_CONNECTION,
                CONNECTIONS_MAX,
            ),
            flows: count(of_flows / FAMILIES, OF_A_FLOW, FLOWS_MAX),
        }
    }
}

/// How many this number of descriptors is enough for: at least one, and `most` at most.
fn count(descriptors: u64, of_each: u64, most: usize) -> usize {
    usize::try_from(descriptors / of_each).map_or(most, |count| count.clamp(1, most))
}

/// What the gateway could not carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GatewayCounts {
    /// TCP connections that were refused because the maximum was reached.
    pub refused_connections: u64,
    /// UDP flows that were given up for newer ones, longest silent first.
    pub evicted_flows: u64,
    /// Datagrams from or to the command that could not be passed on.
    pub dropped_datagrams: u64,
}

/// The live counters of [`GatewayCounts`].
#[derive(Debug, Default)]
pub struct GatewayCounters {
    refused_connections: AtomicU64,
    evicted_flows: AtomicU64,
    dropped_datagrams: AtomicU64,
}

impl GatewayCounters {
    /// The present counts.
    pub fn read(&self) -> GatewayCounts {
        GatewayCounts {
            refused_connections: self.refused_connections.load(Ordering::Relaxed),
            evicted_flows: self.evicted_flows.load(Ordering::Relaxed),
            dropped_datagrams: self.dropped_datagrams.load(Ordering::Relaxed),
        }
    }

    pub(super) fn refuse_connection(&self) {
        self.refused_connections.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn evict_flow(&self) {
        self.evicted_flows.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn drop_datagram(&self) {
        self.dropped_datagrams.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn where_descriptors_are_plenty_the_bounds_are_those_of_the_guide() {
        assert_eq!(Bounds::within(1 << 20), Bounds { connections: 2048, flows: 512 });
        assert_eq!(Bounds::within(u64::MAX), Bounds { connections: 2048, flows: 512 });
        assert_eq!(Bounds::within(1024), Bounds { connections: 336, flows: 56 });
    }

    /// What the bounds take altogether.
    fn taken(descriptors: u64) -> u64 {
        let Bounds { connections, flows } = Bounds::within(descriptors);
        connections as u64 * OF_A_CONNECTION + flows as u64 * OF_A_FLOW * FAMILIES + OWN
    }

    /// 141 was found by a run of the property below: a quarter of 13 is 3, too few for a flow of
    /// each IP version, which was taken nevertheless.
    #[test]
    fn where_descriptors_are_scarce_a_connection_and_a_flow_of_each_version_have_theirs() {
        for descriptors in 134..160 {
            assert!(taken(descriptors) <= descriptors, "{} of {descriptors}", taken(descriptors));
        }
        assert_eq!(Bounds::within(134), Bounds { connections: 1, flows: 1 });
        assert_eq!(Bounds::within(141), Bounds { connections: 4, flows: 1 });
        assert_eq!(Bounds::within(0), Bounds { connections: 1, flows: 1 });
    }

    proptest! {
        #[test]
        fn all_together_never_take_more_descriptors_than_there_are(
            descriptors in 134u64..20_000,
        ) {
            let taken = taken(descriptors);
            prop_assert!(taken <= descriptors, "{taken} of {descriptors}");
        }
    }
}
