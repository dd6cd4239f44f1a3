//! What packets to a peer pass on their way out of this machine: the device, and the queueing
//! disciplines on it.
//!
//! Nothing is changed here. The rate of a discipline that shapes is known where one number says it:
//! of tbf and netem. Those of htb and hfsc belong to their classes
//! ([`fullpipe_model::observe::Class`]).
//!
//! Source: linux/rtnetlink.h, linux/pkt_sched.h (`struct tc_ratespec`, `TCA_TBF_*`), sch_tbf.c.

use std::io;
use std::net::IpAddr;

use fullpipe_model::link::LossModel;
use fullpipe_model::observe::{Egress, Qdisc};
use fullpipe_model::units::Rate;
use netlink_packet_core::{NLM_F_DUMP, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkMessage};
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMessage};
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcStats2};

use super::qdisc::raw_options;
use super::{Netlink, family};
use crate::{Refused, network::netem};

/// Disciplines that shape by class.
const CLASSFUL: [&str; 2] = ["htb", "hfsc"];

impl Netlink {
    /// What packets to `peer` pass; `None` without a route to it.
    ///
    /// # Errors
    /// The kernel refuses, or says what cannot be read.
    pub fn egress(&mut self, peer: IpAddr) -> Result<Option<Egress>, Refused> {
        let Some(route) = self.lookup(peer)? else { return Ok(None) };
        let Some(index) = device_of(&route) else { return Ok(None) };
        let device = self.device_name(index)?;
        let qdiscs = self.qdiscs(&device)?;
        Ok(Some(Egress { device, qdiscs }))
    }

    /// The queueing disciplines of `device` for packets that leave.
    ///
    /// # Errors
    /// The kernel refuses, or says what cannot be read.
    pub fn qdiscs(&mut self, device: &str) -> Result<Vec<Qdisc>, Refused> {
        let index = self.link_index(device)?;
        let subject = format!("of device {device} in {}", self.place);
        let request = RouteNetlinkMessage::GetQueueDiscipline(TcMessage::default());
        let mut qdiscs = Vec::new();
        self.dump("list queueing disciplines", &subject, request, &mut |answer| {
            if let RouteNetlinkMessage::NewQueueDiscipline(message) = answer {
                let is_meant = message.header.index == index as i32
                    && message.header.parent != TcHandle::INGRESS;
                let major = message.header.handle.major;
                qdiscs.extend(is_meant.then(|| (major, qdisc(&message))));
            }
        })?;
        if qdiscs.iter().any(|(_, qdisc): &(u16, Qdisc)| CLASSFUL.contains(&qdisc.kind.as_str())) {
            let classes = self.classes(device, index)?;
            for (major, qdisc) in &mut qdiscs {
                let own = classes.iter().filter(|(of, _)| of == major);
                qdisc.classes = own.map(|(_, class)| class.clone()).collect();
            }
        }
        Ok(qdiscs.into_iter().map(|(_, qdisc)| qdisc).collect())
    }

    /// The route that the kernel chooses for packets to `peer`.
    pub(super) fn lookup(&mut self, peer: IpAddr) -> Result<Option<RouteMessage>, Refused> {
        let mut message = RouteMessage::default();
        message.header.address_family = family(peer);
        message.header.destination_prefix_length = if peer.is_ipv4() { 32 } else { 128 };
        message.attributes = vec![RouteAttribute::Destination(match peer {
            IpAddr::V4(peer) => RouteAddress::Inet(peer),
            IpAddr::V6(peer) => RouteAddress::Inet6(peer),
        })];
        let subject = format!("to {peer} in {}", self.place);
        let answer = self.ask("find route", &subject, 0, RouteNetlinkMessage::GetRoute(message));
        let answer = match answer {
            Err(refused) if refused.errno() == Some(libc::ENETUNREACH) => return Ok(None),
            answer => answer?,
        };
        Ok(match answer {
            Some(RouteNetlinkMessage::NewRoute(route)) => Some(route),
            _ => None,
        })
    }

    pub(super) fn device_name(&mut self, index: u32) -> Result<String, Refused> {
        let subject = format!("device {index} in {}", self.place);
        let mut message = LinkMessage::default();
        message.header.index = index;
        let answer = self.ask("find device", &subject, 0, RouteNetlinkMessage::GetLink(message))?;
        let name = match answer {
            Some(RouteNetlinkMessage::NewLink(link)) => {
                link.attributes.into_iter().find_map(|attribute| match attribute {
                    LinkAttribute::IfName(name) => Some(name),
                    _ => None,
                })
            }
            _ => None,
        };
        let nameless =
            || Refused::new("find device", &subject, io::Error::from(io::ErrorKind::NotFound));
        name.ok_or_else(nameless)
    }

    /// Sends `request` and hands over every entry of the answer.
    pub(super) fn dump(
        &mut self,
        operation: &'static str,
        subject: &str,
        request: RouteNetlinkMessage,
        entry: &mut dyn FnMut(RouteNetlinkMessage),
    ) -> Result<(), Refused> {
        let refused = |cause: io::Error| Refused::new(operation, subject, cause);
        self.send(NLM_F_DUMP, request).map_err(refused)?;
        loop {
            let (bytes, _) = self.socket.recv_from_full().map_err(refused)?;
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let answer =
                    NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest).map_err(|error| {
                        refused(io::Error::new(io::ErrorKind::InvalidData, error.to_string()))
                    })?;
                let length = (answer.header.length as usize).next_multiple_of(4).max(16);
                rest = rest.get(length..).unwrap_or_default();
                if answer.header.sequence_number != self.sequence {
                    continue;
                }
                match answer.payload {
                    NetlinkPayload::Done(_) => return Ok(()),
                    NetlinkPayload::Error(error) => return Err(refused(error.to_io())),
                    NetlinkPayload::InnerMessage(message) => entry(message),
                    _ => {}
                }
            }
        }
    }
}

/// The index of the device of a route.
pub(super) fn device_of(route: &RouteMessage) -> Option<u32> {
    route.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Oif(index) => Some(*index),
        _ => None,
    })
}

fn qdisc(message: &TcMessage) -> Qdisc {
    let mut found = Qdisc {
        kind: String::new(),
        handle: format!("{:x}:", message.header.handle.major),
        rate: None,
        loses: false,
        drops: 0,
        overlimits: 0,
        classes: Vec::new(),
    };
    for attribute in &message.attributes {
        match attribute {
            TcAttribute::Kind(kind) => found.kind.clone_from(kind),
            TcAttribute::Stats2(stats) => {
                for stat in stats {
                    if let TcStats2::Queue(queue) = stat {
                        found.drops = queue.drops.into();
                        found.overlimits = queue.overlimits.into();
                    }
                }
            }
            _ => {}
        }
    }
    let options = raw_options(message);
    match (found.kind.as_str(), options) {
        ("tbf", Some(options)) => found.rate = tbf_rate(&options),
        ("netem", Some(options)) => {
            if let Ok(netem) = netem::decode(&options) {
                found.rate = netem.rate.map(|shaping| shaping.rate);
                found.loses = netem.loss != LossModel::default();
            }
        }
        _ => {}
    }
    found
}

/// The rate among the attributes of a tbf: `TCA_TBF_RATE64`, or the first `tc_ratespec` of
/// `TCA_TBF_PARMS`, whose last four bytes are the rate in bytes a second.
fn tbf_rate(mut rest: &[u8]) -> Option<Rate> {
    const TCA_TBF_PARMS: u16 = 1;
    const TCA_TBF_RATE64: u16 = 4;
    let mut small = None;
    while let [l0, l1, k0, k1, ..] = *rest {
        let length = usize::from(u16::from_ne_bytes([l0, l1]));
        let value = rest.get(4..length)?;
        match u16::from_ne_bytes([k0, k1]) & 0x3fff {
            TCA_TBF_RATE64 => {
                let bytes = u64::from_ne_bytes(value.get(..8)?.try_into().ok()?);
                return Some(Rate::from_bits_per_sec(bytes.checked_mul(8)?));
            }
            TCA_TBF_PARMS => {
                let bytes = u32::from_ne_bytes(value.get(8..12)?.try_into().ok()?);
                small = Some(Rate::from_bits_per_sec(u64::from(bytes) * 8));
            }
            _ => {}
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    small
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_tbf_of_20_mbit_is_read() {
        // `tc qdisc add .. tbf rate 20mbit burst 32kb latency 400ms`: 2,500,000 bytes a second.
        let mut parms = vec![0_u8; 36];
        parms[8..12].copy_from_slice(&2_500_000_u32.to_ne_bytes());
        let mut options = Vec::new();
        options.extend(40_u16.to_ne_bytes());
        options.extend(1_u16.to_ne_bytes());
        options.extend(&parms);
        assert_eq!(tbf_rate(&options), Some("20mbit".parse().unwrap()));
        // Above 34 Gbit/s the 32 bits are not enough.
        options.extend(12_u16.to_ne_bytes());
        options.extend(4_u16.to_ne_bytes());
        options.extend(5_000_000_000_u64.to_ne_bytes());
        assert_eq!(tbf_rate(&options), Some("40gbit".parse().unwrap()));
        assert_eq!(tbf_rate(&[]), None);
    }

    proptest! {
        #[test]
        fn any_attributes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = tbf_rate(&bytes);
        }
    }
}
