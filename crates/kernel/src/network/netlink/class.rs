//! The classes of queueing disciplines that shape by class: htb and hfsc.
//!
//! Source: linux/pkt_sched.h (`TCA_HTB_*`, `struct tc_htb_opt`, `TCA_HFSC_*`,
//! `struct tc_service_curve`), sch_htb.c, sch_hfsc.c.

use fullpipe_model::observe::Class;
use fullpipe_model::units::{Bytes, Rate};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcStats2};

use super::Netlink;
use super::qdisc::raw_options;
use crate::Refused;

/// A class as the kernel lists it.
#[derive(Debug, Clone, Copy)]
struct ListedClass {
    handle: TcHandle,
    parent: TcHandle,
    most: Option<Rate>,
    sent: Bytes,
}

impl Netlink {
    /// The classes of all queueing disciplines of `device`, each with its discipline's handle.
    pub(super) fn classes(
        &mut self,
        device: &str,
        index: u32,
    ) -> Result<Vec<(u16, Class)>, Refused> {
        let subject = format!("of device {device} in {}", self.place);
        let request = RouteNetlinkMessage::GetTrafficClass(TcMessage::with_index(index as i32));
        let mut listed = Vec::new();
        self.dump("list classes", &subject, request, &mut |answer| {
            if let RouteNetlinkMessage::NewTrafficClass(message) = answer {
                listed.push(class(&message));
            }
        })?;
        Ok(leaves(&listed))
    }
}

fn class(message: &TcMessage) -> ListedClass {
    let (mut kind, mut sent) = (String::new(), Bytes::ZERO);
    for attribute in &message.attributes {
        match attribute {
            TcAttribute::Kind(name) => kind.clone_from(name),
            TcAttribute::Stats2(stats) => {
                for stat in stats {
                    if let TcStats2::Basic(basic) = stat {
                        sent = Bytes::new(basic.bytes);
                    }
                }
            }
            _ => {}
        }
    }
    let options = raw_options(message).unwrap_or_default();
    let most = match kind.as_str() {
        "htb" => htb_ceiling(&options),
        "hfsc" => hfsc_upper_limit(&options),
        _ => None,
    };
    ListedClass { handle: message.header.handle, parent: message.header.parent, most, sent }
}

/// Those that have no class below them.
fn leaves(listed: &[ListedClass]) -> Vec<(u16, Class)> {
    let leaves = listed.iter().filter(|one| listed.iter().all(|other| other.parent != one.handle));
    leaves.map(|one| (one.handle.major, told(one, listed))).collect()
}

/// What is told of a class: all those above it in `listed` bound it, too.
fn told(one: &ListedClass, listed: &[ListedClass]) -> Class {
    let (mut most, mut at) = (one.most, one.parent);
    // As many steps as there are classes: a list with a circle ends, too.
    for _ in listed {
        let Some(above) = listed.iter().find(|other| other.handle == at) else { break };
        most = most.into_iter().chain(above.most).min();
        at = above.parent;
    }
    let handle = format!("{:x}:{:x}", one.handle.major, one.handle.minor);
    Class { handle, most, sent: one.sent }
}

/// `TCA_HTB_CEIL64`, or the second `tc_ratespec` of `TCA_HTB_PARMS`, whose last four bytes are the
/// rate in bytes a second.
fn htb_ceiling(options: &[u8]) -> Option<Rate> {
    const TCA_HTB_PARMS: u16 = 1;
    const TCA_HTB_CEIL64: u16 = 7;
    let ceiling = attribute(options, TCA_HTB_CEIL64).and_then(|value| value.first_chunk());
    if let Some(bytes) = ceiling {
        return Some(Rate::from_bits_per_sec(u64::from_ne_bytes(*bytes).checked_mul(8)?));
    }
    let parms = attribute(options, TCA_HTB_PARMS)?;
    let bytes = u32::from_ne_bytes(parms.get(20..24)?.try_into().ok()?);
    Some(Rate::from_bits_per_sec(u64::from(bytes) * 8))
}

/// The lasting slope of `TCA_HFSC_USC`, in bytes a second; the curve's first part is a burst.
fn hfsc_upper_limit(options: &[u8]) -> Option<Rate> {
    const TCA_HFSC_USC: u16 = 3;
    let curve = attribute(options, TCA_HFSC_USC)?;
    let bytes = u32::from_ne_bytes(curve.get(8..12)?.try_into().ok()?);
    Some(Rate::from_bits_per_sec(u64::from(bytes) * 8))
}

/// The value of the first attribute of `kind`.
fn attribute(mut rest: &[u8], kind: u16) -> Option<&[u8]> {
    while let [l0, l1, k0, k1, ..] = *rest {
        let length = usize::from(u16::from_ne_bytes([l0, l1]));
        let value = rest.get(4..length)?;
        if u16::from_ne_bytes([k0, k1]) & 0x3fff == kind {
            return Some(value);
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn put(options: &mut Vec<u8>, kind: u16, value: &[u8]) {
        options.extend((4 + value.len() as u16).to_ne_bytes());
        options.extend(kind.to_ne_bytes());
        options.extend(value);
    }

    #[test]
    fn the_ceiling_of_an_htb_class_is_read() {
        // `tc class add .. htb rate 5mbit ceil 20mbit`: 625,000 and 2,500,000 bytes a second.
        let mut parms = vec![0_u8; 44];
        parms[8..12].copy_from_slice(&625_000_u32.to_ne_bytes());
        parms[20..24].copy_from_slice(&2_500_000_u32.to_ne_bytes());
        let mut options = Vec::new();
        put(&mut options, 1, &parms);
        assert_eq!(htb_ceiling(&options), Some("20mbit".parse().unwrap()));
        // Above 34 Gbit/s the 32 bits are not enough.
        put(&mut options, 7, &5_000_000_000_u64.to_ne_bytes());
        assert_eq!(htb_ceiling(&options), Some("40gbit".parse().unwrap()));
        assert_eq!(htb_ceiling(&[]), None);
    }

    #[test]
    fn the_upper_limit_of_an_hfsc_class_is_read() {
        let curve = [10_000_000_u32, 5_000, 1_250_000].map(u32::to_ne_bytes).concat();
        let mut options = Vec::new();
        put(&mut options, 2, &[0; 12]);
        assert_eq!(hfsc_upper_limit(&options), None, "a fair share is no bound");
        put(&mut options, 3, &curve);
        assert_eq!(hfsc_upper_limit(&options), Some("10mbit".parse().unwrap()));
    }

    #[test]
    fn a_class_is_bounded_by_those_above_it() {
        let handle = |minor| TcHandle { major: 1, minor };
        let class = |minor, parent, most: Option<&str>| ListedClass {
            handle: handle(minor),
            parent: handle(parent),
            most: most.map(|rate| rate.parse().unwrap()),
            sent: Bytes::new(minor.into()),
        };
        let listed = [
            class(1, 0, Some("20mbit")),
            class(0x10, 1, Some("50mbit")),
            class(0x20, 1, None),
            class(0x30, 0, None),
        ];
        let told = leaves(&listed);
        let told: Vec<_> = told
            .iter()
            .map(|(_, one)| (one.handle.as_str(), one.most.map(|m| m.to_string())))
            .collect();
        let twenty = Some("20mbit".parse::<Rate>().unwrap().to_string());
        assert_eq!(told, [("1:10", twenty.clone()), ("1:20", twenty), ("1:30", None)]);
        let circle = [class(1, 2, None), class(2, 1, None), class(3, 1, Some("1mbit"))];
        assert_eq!(leaves(&circle).len(), 1);
    }

    proptest! {
        #[test]
        fn any_attributes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = (htb_ceiling(&bytes), hfsc_upper_limit(&bytes));
        }
    }
}
