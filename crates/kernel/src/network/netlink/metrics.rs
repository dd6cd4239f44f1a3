//! What TCP reads from a device and from a route: the queue's length, and a route's metrics.
//!
//! The kernel has no request that changes one metric of a route. The route is read, its metrics are
//! changed, and it is written again as a whole (`ip route change`); a route that cannot be told
//! from another of the same destination and device is left alone.

use std::io;
use std::net::IpAddr;

use fullpipe_model::change::{RouteMetric as Metric, RouteName};
use netlink_packet_core::NLM_F_REPLACE;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::LinkAttribute;
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteMetric,
};

use super::egress::device_of;
use super::{LinkChange, Netlink, family};
use crate::Refused;

impl Netlink {
    /// How many packets the queue of `device` holds (`txqueuelen`); `None` without such a device.
    pub fn queue_length(&mut self, device: &str) -> Result<Option<u32>, Refused> {
        let link = match self.link(device) {
            Ok(link) => link,
            Err(refused) if refused.errno() == Some(libc::ENODEV) => return Ok(None),
            Err(refused) => return Err(refused),
        };
        Ok(link.attributes.iter().find_map(|attribute| match attribute {
            LinkAttribute::TxQueueLen(packets) => Some(*packets),
            _ => None,
        }))
    }

    /// Sets it.
    pub fn set_queue_length(&mut self, device: &str, packets: u32) -> Result<(), Refused> {
        let change = LinkChange { txqueuelen: Some(packets), ..LinkChange::default() };
        self.change_link(device, &change)
    }

    /// A metric of `route`, 0 where it has none; `None` without such a route.
    ///
    /// # Errors
    /// The kernel refuses, or there are several such routes.
    pub fn route_metric(
        &mut self,
        route: &RouteName,
        metric: Metric,
    ) -> Result<Option<u32>, Refused> {
        let found = self.route(route)?;
        Ok(found.map(|message| {
            let mut values = metrics(&message).iter().filter_map(|one| value_of(one, metric));
            values.next_back().unwrap_or(0)
        }))
    }

    /// The device through which packets to `peer` leave, and a metric of the route that the kernel
    /// chooses for them, 0 where it has none; `None` without a route.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn chosen_metric(
        &mut self,
        peer: IpAddr,
        metric: Metric,
    ) -> Result<Option<(String, u32)>, Refused> {
        let Some(route) = self.lookup(peer)? else { return Ok(None) };
        let Some(index) = device_of(&route) else { return Ok(None) };
        let mut values = metrics(&route).iter().filter_map(|one| value_of(one, metric));
        let value = values.next_back().unwrap_or(0);
        Ok(Some((self.device_name(index)?, value)))
    }

    /// Sets it; 0 takes it away.
    pub fn set_route_metric(
        &mut self,
        route: &RouteName,
        metric: Metric,
        value: u32,
    ) -> Result<(), Refused> {
        let subject = format!("{route} in {}: {} {value}", self.place, metric.name());
        let mut message = self.route(route)?.ok_or_else(|| {
            Refused::new("change route", &subject, io::Error::from_raw_os_error(libc::ESRCH))
                .hint("there is no such route: see `ip route`")
        })?;
        let mut kept: Vec<RouteMetric> = metrics(&message)
            .iter()
            .filter(|one| value_of(one, metric).is_none())
            .cloned()
            .collect();
        kept.extend((value > 0).then_some(match metric {
            Metric::InitCwnd => RouteMetric::InitCwnd(value),
            Metric::InitRwnd => RouteMetric::InitRwnd(value),
            Metric::QuickAck => RouteMetric::QuickAck(value),
        }));
        message.attributes.retain(|attribute| {
            // The kernel's own counters, and the metrics as they were.
            !matches!(attribute, RouteAttribute::CacheInfo(_) | RouteAttribute::Metrics(_))
        });
        if !kept.is_empty() {
            message.attributes.push(RouteAttribute::Metrics(kept));
        }
        // What is left of the flags describes the device's state.
        message.header.flags &= RouteFlags::Onlink;
        let request = RouteNetlinkMessage::NewRoute(message);
        self.tell("change route", &subject, NLM_F_REPLACE, request)
    }

    /// The one route of the main table with this destination and device.
    fn route(&mut self, route: &RouteName) -> Result<Option<RouteMessage>, Refused> {
        let device = match self.link_index(&route.device) {
            Ok(index) => index,
            Err(refused) if refused.errno() == Some(libc::ENODEV) => return Ok(None),
            Err(refused) => return Err(refused),
        };
        let mut found: Vec<RouteMessage> = self
            .routes(route.destination)?
            .into_iter()
            .filter(|message| is_route(message, route, device))
            .collect();
        if found.len() > 1 {
            let cause = io::Error::other("there are several, which differ in their priority");
            let subject = format!("{route} in {}", self.place);
            return Err(Refused::new("find route", subject, cause)
                .hint("set it with `ip route change`, which can tell them apart"));
        }
        Ok(found.pop())
    }

    /// Every route of the family.
    fn routes(&mut self, family_of: IpAddr) -> Result<Vec<RouteMessage>, Refused> {
        let subject = format!("of {}", self.place);
        let mut message = RouteMessage::default();
        message.header.address_family = family(family_of);
        let mut routes = Vec::new();
        let request = RouteNetlinkMessage::GetRoute(message);
        self.dump("list routes", &subject, request, &mut |answer| {
            if let RouteNetlinkMessage::NewRoute(route) = answer {
                routes.push(route);
            }
        })?;
        Ok(routes)
    }
}

fn is_route(message: &RouteMessage, route: &RouteName, device: u32) -> bool {
    let destination = message.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Destination(RouteAddress::Inet(address)) => Some(IpAddr::V4(*address)),
        RouteAttribute::Destination(RouteAddress::Inet6(address)) => Some(IpAddr::V6(*address)),
        _ => None,
    });
    message.header.table == RouteHeader::RT_TABLE_MAIN
        && message.header.destination_prefix_length == route.prefix_len
        && (route.prefix_len == 0 || destination == Some(route.destination))
        && message.attributes.contains(&RouteAttribute::Oif(device))
}

fn metrics(message: &RouteMessage) -> &[RouteMetric] {
    let found = message.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Metrics(metrics) => Some(metrics.as_slice()),
        _ => None,
    });
    found.unwrap_or_default()
}

fn value_of(one: &RouteMetric, metric: Metric) -> Option<u32> {
    match (one, metric) {
        (RouteMetric::InitCwnd(value), Metric::InitCwnd)
        | (RouteMetric::InitRwnd(value), Metric::InitRwnd)
        | (RouteMetric::QuickAck(value), Metric::QuickAck) => Some(*value),
        _ => None,
    }
}
