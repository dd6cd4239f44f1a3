//! Whether a device's queue and a route's metric do what an apply has set them for.
//!
//! A number that reads back is not enough here either. `txqueuelen` is the length of a queue only
//! where the device's queueing discipline takes it: `fq_codel`, the usual one, has a limit of its
//! own. And a route's metric counts only for packets for which the kernel chooses that route.
//!
//! Source: net/sched/sch_generic.c (`pfifo_fast_init`, `dev_qdisc_change_tx_queue_len`),
//! net/sched/sch_fifo.c, sch_htb.c (`htb_init`), sch_plug.c, sch_sfb.c, sch_gred.c.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fullpipe_kernel::network::netlink::Netlink;
use fullpipe_model::change::{Knob, RouteMetric, RouteName};

use super::judge::{Check, Seen};
use super::sign::Sign;
use crate::tune::{Item, Machine, MachineError, Phase, Standing, ThisMachine, standing};

/// Disciplines whose length is the device's `txqueuelen`.
const LENGTH_OF_DEVICE: [&str; 7] = ["pfifo_fast", "pfifo", "bfifo", "htb", "plug", "sfb", "gred"];

/// What the kernel says of each queue and route that was set and still stands.
pub(super) fn checks(machine: &mut ThisMachine) -> Result<Vec<Check>, MachineError> {
    let (records, _) = machine.records()?;
    let mut netlink = Netlink::open_own()?;
    let (mut checks, mut seen) = (Vec::new(), BTreeSet::new());
    for record in records.into_values().rev().filter(|record| record.phase != Phase::PutBack) {
        for set in record.sets {
            let (Item::Knob(knob), Some(value)) = (&set.item, set.to.clone()) else { continue };
            let now = machine.read(&set.item)?;
            if standing(&set, &now, true) != Standing::Applied || !seen.insert(knob.to_string()) {
                continue;
            }
            let (seen, how) = match knob {
                Knob::Sysctl(_) => continue,
                Knob::QueueLength(device) => queue(&mut netlink, device)?,
                Knob::Route(route, metric) => of_route(&mut netlink, route, *metric, &value)?,
            };
            checks.push(Check { setting: knob.to_string(), value, seen, how });
        }
    }
    Ok(checks)
}

fn queue(netlink: &mut Netlink, device: &str) -> Result<(Seen, Sign), MachineError> {
    let qdiscs = netlink.qdiscs(device)?;
    let kinds: BTreeSet<&str> = qdiscs.iter().map(|qdisc| qdisc.kind.as_str()).collect();
    Ok(of_kinds(device, &kinds))
}

/// What a queue's length means to these disciplines.
fn of_kinds(device: &str, kinds: &BTreeSet<&str>) -> (Seen, Sign) {
    match kinds.iter().find(|kind| LENGTH_OF_DEVICE.contains(kind)) {
        Some(kind) => (Seen::InForce, Sign::QueueTaken(device.into(), (*kind).into())),
        None => {
            let kinds = kinds.iter().map(|kind| (*kind).to_string()).collect();
            (Seen::NotInForce, Sign::QueueIgnored(device.into(), kinds))
        }
    }
}

fn of_route(
    netlink: &mut Netlink,
    route: &RouteName,
    metric: RouteMetric,
    value: &str,
) -> Result<(Seen, Sign), MachineError> {
    let peer = first_host(route.destination, route.prefix_len);
    Ok(match netlink.chosen_metric(peer, metric)? {
        None => (Seen::NotInForce, Sign::NoRoute(peer)),
        Some((device, got)) => {
            let is = device == route.device && got.to_string() == value;
            let seen = if is { Seen::InForce } else { Seen::NotInForce };
            (seen, Sign::Route(peer, device, metric, got))
        }
    })
}

/// An address within a prefix; for a default route one that belongs to nobody (RFC 5737, RFC 3849).
fn first_host(destination: IpAddr, prefix_len: u8) -> IpAddr {
    match destination {
        IpAddr::V4(_) if prefix_len == 0 => Ipv4Addr::new(198, 51, 100, 1).into(),
        IpAddr::V6(_) if prefix_len == 0 => Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(),
        IpAddr::V4(address) if prefix_len < 31 => {
            Ipv4Addr::from(u32::from(address).saturating_add(1)).into()
        }
        IpAddr::V6(address) if prefix_len < 127 => {
            Ipv6Addr::from(u128::from(address).saturating_add(1)).into()
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queues_length_counts_only_where_a_discipline_takes_it() {
        let seen = |kinds: &[&'static str]| of_kinds("eth0", &kinds.iter().copied().collect()).0;
        assert_eq!(seen(&["pfifo_fast"]), Seen::InForce);
        assert_eq!(seen(&["mq", "pfifo_fast"]), Seen::InForce);
        assert_eq!(seen(&["mq", "fq_codel"]), Seen::NotInForce);
        assert_eq!(seen(&["noqueue"]), Seen::NotInForce);
        assert_eq!(seen(&[]), Seen::NotInForce);
    }

    #[test]
    fn an_address_is_within_its_prefix() {
        let first = |text: &str, length| first_host(text.parse().unwrap(), length).to_string();
        assert_eq!(first("10.1.0.0", 16), "10.1.0.1");
        assert_eq!(first("10.1.0.7", 32), "10.1.0.7");
        assert_eq!(first("10.1.0.6", 31), "10.1.0.6");
        assert_eq!(first("0.0.0.0", 0), "198.51.100.1");
        assert_eq!(first("2001:db8:7::", 48), "2001:db8:7::1");
        assert_eq!(first("::", 0), "2001:db8::1");
    }
}
