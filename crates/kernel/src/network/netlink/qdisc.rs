//! Queueing disciplines: netem on a device, its counters, and redirecting arrivals from one device
//! to another.

use super::Netlink;
use crate::Refused;
use crate::network::netem::{self, Netem};
use netlink_packet_core::{
    DefaultNla, NLM_F_ACK, NLM_F_CREATE, NLM_F_ECHO, NLM_F_EXCL, NLM_F_REPLACE, Nla,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{
    TcAction, TcActionAttribute, TcActionMirror, TcActionMirrorOption, TcActionOption,
    TcActionType, TcAttribute, TcFilterMatchAll, TcFilterMatchAllOption, TcHandle, TcMessage,
    TcMirror, TcMirrorActionType, TcOption, TcStats2, TcStatsQueue,
};
use std::io;

const TCA_OPTIONS: u16 = 2;
const KIND: &str = "netem";
/// The only class of a netem, to which another discipline can be attached.
const CLASS: u16 = 1;
const ETH_P_ALL: u16 = libc::ETH_P_ALL as u16;

/// The position of a discipline on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QdiscPlace {
    /// At the device itself.
    Root,
    /// Behind the netem at the root: it receives what that lets pass.
    Behind,
}

impl QdiscPlace {
    fn handle(self) -> TcHandle {
        let major = match self {
            QdiscPlace::Root => 1,
            QdiscPlace::Behind => 2,
        };
        TcHandle { major, minor: 0 }
    }

    fn parent(self) -> TcHandle {
        match self {
            QdiscPlace::Root => TcHandle::ROOT,
            QdiscPlace::Behind => TcHandle { major: QdiscPlace::Root.handle().major, minor: CLASS },
        }
    }
}

/// The counters of a discipline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QdiscCounters {
    /// Packets that left it.
    pub packets: u64,
    /// Their bytes, with link-layer headers.
    pub bytes: u64,
    /// Packets dropped, on purpose or because it was full; netem does not distinguish these. With
    /// ECN it also counts marked packets.
    pub drops: u64,
    /// Packets that it holds now.
    pub held: u64,
}

impl Netlink {
    /// Puts a netem on `device`, or changes the existing one to match.
    ///
    /// # Errors
    /// netem has no fields for a value, the device does not exist, or the kernel has no netem.
    pub fn set_netem(
        &mut self,
        device: &str,
        place: QdiscPlace,
        netem: &Netem,
    ) -> Result<(), Refused> {
        let subject = format!("on device {device} in {}", self.place);
        let options = netem::encode(netem).map_err(|error| {
            Refused::new("set netem", &subject, io::Error::new(io::ErrorKind::InvalidInput, error))
        })?;
        let mut message = self.qdisc_message(device, place)?;
        message.attributes = vec![
            TcAttribute::Kind(KIND.into()),
            TcAttribute::Other(DefaultNla::new(TCA_OPTIONS, options)),
        ];
        let flags = NLM_F_CREATE | NLM_F_REPLACE;
        let request = RouteNetlinkMessage::NewQueueDiscipline(message);
        self.tell("set netem", &subject, flags, request).map_err(|refused| match refused.errno() {
            // "Specified qdisc kind is unknown"
            Some(libc::ENOENT) => refused.hint(
                "this kernel has no netem: load it (modprobe sch_netem; on RHEL it is in \
                 kernel-modules-extra), or use our own link, which needs none (`--engine own` of \
                 `link`, `--link-engine own` of `lab`); `lab run --engine virtual` has a kernel with \
                 netem",
            ),
            _ => refused,
        })
    }

    /// The netem on `device` as the kernel has it, without its distribution, and its counters.
    pub fn netem(
        &mut self,
        device: &str,
        place: QdiscPlace,
    ) -> Result<(Netem, QdiscCounters), Refused> {
        let subject = format!("on device {device} in {}", self.place);
        let wrong = |what: &str| {
            Refused::new("read netem", &subject, io::Error::new(io::ErrorKind::InvalidData, what))
        };
        let message = self.qdisc_message(device, place)?;
        // Without ECHO the kernel sends the answer to those who monitor changes, not to the
        // requester.
        let flags = NLM_F_ECHO | NLM_F_ACK;
        let answer = self.ask(
            "read netem",
            &subject,
            flags,
            RouteNetlinkMessage::GetQueueDiscipline(message),
        )?;
        let Some(RouteNetlinkMessage::NewQueueDiscipline(found)) = answer else {
            return Err(wrong("the kernel answered with something else"));
        };
        if !found
            .attributes
            .iter()
            .any(|attribute| matches!(attribute, TcAttribute::Kind(kind) if kind == KIND))
        {
            return Err(wrong("another discipline is there"));
        }
        let options = raw_options(&found).ok_or_else(|| wrong("it has no options"))?;
        let netem = netem::decode(&options).map_err(|error| wrong(&error.to_string()))?;
        Ok((netem, counters(&found)))
    }

    /// Sends everything that arrives on `device` out through the device `to` of the same namespace,
    /// so no IP stack sees it. It ends with either device.
    pub fn redirect_arrivals(&mut self, device: &str, to: &str) -> Result<(), Refused> {
        let subject = format!("from device {device} to {to} in {}", self.place);
        let (index, target) = (self.link_index(device)? as i32, self.link_index(to)?);
        let mut message = TcMessage::with_index(index);
        message.header.handle = TcHandle { major: 0xffff, minor: 0 };
        message.header.parent = TcHandle::INGRESS;
        message.attributes = vec![TcAttribute::Kind("ingress".into())];
        let request = RouteNetlinkMessage::NewQueueDiscipline(message);
        self.tell("add ingress discipline", &subject, NLM_F_CREATE | NLM_F_EXCL, request)
            .map_err(unknown_kind)?;
        let mut mirror = TcMirror::default();
        mirror.generic.action = TcActionType::Stolen;
        mirror.eaction = TcMirrorActionType::EgressRedir;
        mirror.ifindex = target;
        let mut action = TcAction::default();
        action.attributes = vec![
            TcActionAttribute::Kind(TcActionMirror::KIND.into()),
            TcActionAttribute::Options(vec![TcActionOption::Mirror(TcActionMirrorOption::Parms(
                mirror,
            ))]),
        ];
        let mut message = TcMessage::with_index(index);
        message.header.parent = TcHandle { major: 0xffff, minor: 0 };
        // The priority is in the upper half, the protocol in network byte order in the lower half.
        message.header.info = 1 << 16 | u32::from(ETH_P_ALL.to_be());
        message.attributes = vec![
            TcAttribute::Kind(TcFilterMatchAll::KIND.into()),
            TcAttribute::Options(vec![TcOption::MatchAll(TcFilterMatchAllOption::Action(vec![
                action,
            ]))]),
        ];
        let request = RouteNetlinkMessage::NewTrafficFilter(message);
        self.tell("redirect packets", &subject, NLM_F_CREATE | NLM_F_EXCL, request)
            .map_err(unknown_kind)
    }

    fn qdisc_message(&mut self, device: &str, place: QdiscPlace) -> Result<TcMessage, Refused> {
        let mut message = TcMessage::with_index(self.link_index(device)? as i32);
        message.header.handle = place.handle();
        message.header.parent = place.parent();
        Ok(message)
    }
}

/// The options of a discipline as the kernel wrote them, where the netlink crate has no words for
/// them.
pub(super) fn raw_options(message: &TcMessage) -> Option<Vec<u8>> {
    message.attributes.iter().find_map(|attribute| {
        let TcAttribute::Options(options) = attribute else { return None };
        options.iter().find_map(|option| {
            let TcOption::Other(nla) = option else { return None };
            let mut bytes = vec![0; nla.value_len()];
            nla.emit_value(&mut bytes);
            Some(bytes)
        })
    })
}

fn unknown_kind(refused: Refused) -> Refused {
    match refused.errno() {
        Some(libc::ENOENT) => refused
            .hint("this kernel is built without it: it takes sch_ingress, cls_matchall and act_mirred (modprobe them)"),
        _ => refused,
    }
}

fn counters(message: &TcMessage) -> QdiscCounters {
    let mut counters = QdiscCounters::default();
    for attribute in &message.attributes {
        let TcAttribute::Stats2(stats) = attribute else { continue };
        for stat in stats {
            match stat {
                TcStats2::Basic(basic) => {
                    (counters.packets, counters.bytes) = (basic.packets.into(), basic.bytes);
                }
                TcStats2::Queue(TcStatsQueue { qlen, drops, .. }) => {
                    (counters.held, counters.drops) = ((*qlen).into(), (*drops).into());
                }
                _ => {}
            }
        }
    }
    counters
}
