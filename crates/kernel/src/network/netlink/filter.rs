//! BPF programs as filters at a device's hooks: `tc filter add dev D ingress bpf direct-action ..`.
//!
//! This is for kernels without `tcx` links ([`crate::bpf`]): a filter belongs to the device and
//! stays when the process that made it has ended.

use super::Netlink;
use crate::Refused;
use crate::bpf::Hook;
use netlink_packet_core::{DefaultNla, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage};
use std::os::fd::{AsRawFd, BorrowedFd};

const KIND: &str = "bpf";
const CLSACT: &str = "clsact";
// linux/pkt_cls.h
const TCA_OPTIONS: u16 = 2;
const TCA_BPF_FD: u16 = 6;
const TCA_BPF_NAME: u16 = 7;
const TCA_BPF_FLAGS: u16 = 8;
const TCA_BPF_FLAG_ACT_DIRECT: u32 = 1;
/// Priority of our filters: before those that others usually have, with a handle that nobody
/// chooses by chance.
const PRIORITY: u32 = 1;
const HANDLE: u16 = 0x6670;
const NAME: &[u8] = b"fullpipe\0";

impl Hook {
    fn parent(self) -> TcHandle {
        let minor = match self {
            Hook::Ingress => 0xfff2,
            Hook::Egress => 0xfff3,
        };
        TcHandle { major: 0xffff, minor }
    }
}

fn clsact(device: u32) -> TcMessage {
    let mut message = TcMessage::with_index(device as i32);
    message.header.handle = TcHandle { major: 0xffff, minor: 0 };
    message.header.parent = TcHandle::INGRESS;
    message.attributes = vec![TcAttribute::Kind(CLSACT.into())];
    message
}

fn filter(device: u32, hook: Hook) -> TcMessage {
    let mut message = TcMessage::with_index(device as i32);
    message.header.handle = TcHandle { major: 0, minor: HANDLE };
    message.header.parent = hook.parent();
    // The priority is in the upper half, the protocol in network byte order in the lower half.
    message.header.info = PRIORITY << 16 | u32::from((libc::ETH_P_ALL as u16).to_be());
    message.attributes = vec![TcAttribute::Kind(KIND.into())];
    message
}

/// A netlink attribute, padded.
fn attribute(out: &mut Vec<u8>, kind: u16, value: &[u8]) {
    out.extend_from_slice(&(value.len() as u16 + 4).to_ne_bytes());
    out.extend_from_slice(&kind.to_ne_bytes());
    out.extend_from_slice(value);
    out.resize(out.len().next_multiple_of(4), 0);
}

impl Netlink {
    /// Adds hooks for filters (the discipline `clsact`) to device number `device`; returns whether
    /// it had none before.
    ///
    /// # Errors
    /// The kernel does not have it. Another discipline (`ingress`) in its place shows only when a
    /// filter is added.
    pub fn add_clsact(&mut self, device: u32) -> Result<bool, Refused> {
        let request = RouteNetlinkMessage::NewQueueDiscipline(clsact(device));
        let subject = format!("to device number {device} in {}", self.place);
        match self.tell("add clsact", &subject, NLM_F_CREATE | NLM_F_EXCL, request) {
            Ok(()) => Ok(true),
            Err(refused) if refused.errno() == Some(libc::EEXIST) => Ok(false),
            Err(refused) if refused.errno() == Some(libc::ENOENT) => Err(refused.hint(
                "this kernel is built without it: load sch_ingress and cls_bpf (modprobe them)",
            )),
            Err(refused) => Err(refused),
        }
    }

    /// Removes the hooks, and every filter with them.
    pub fn delete_clsact(&mut self, device: u32) -> Result<(), Refused> {
        let subject = format!("of device number {device} in {}", self.place);
        self.tell(
            "delete clsact",
            &subject,
            0,
            RouteNetlinkMessage::DelQueueDiscipline(clsact(device)),
        )
    }

    /// Puts `program` at the hook and replaces a leftover filter of ours.
    pub fn set_filter(
        &mut self,
        device: u32,
        hook: Hook,
        program: BorrowedFd<'_>,
    ) -> Result<(), Refused> {
        let mut options = Vec::new();
        attribute(&mut options, TCA_BPF_FD, &(program.as_raw_fd() as u32).to_ne_bytes());
        attribute(&mut options, TCA_BPF_NAME, NAME);
        attribute(&mut options, TCA_BPF_FLAGS, &TCA_BPF_FLAG_ACT_DIRECT.to_ne_bytes());
        let mut message = filter(device, hook);
        message.attributes.push(TcAttribute::Other(DefaultNla::new(TCA_OPTIONS, options)));
        let subject = format!("at device number {device} in {} ({hook})", self.place);
        let request = RouteNetlinkMessage::NewTrafficFilter(message);
        let told = self.tell("set filter", &subject, NLM_F_CREATE | NLM_F_REPLACE, request);
        told.map_err(|refused| match refused.errno() {
            Some(libc::ENOENT) => refused.hint("this kernel is built without cls_bpf (modprobe it)"),
            _ => {
                refused.hint("does something else hold the device's ingress? `tc qdisc show` and `tc filter show` tell")
            }
        })
    }

    /// Removes our filter from the hook; returns whether there was one.
    pub fn delete_filter(&mut self, device: u32, hook: Hook) -> Result<bool, Refused> {
        let subject = format!("at device number {device} in {} ({hook})", self.place);
        let request = RouteNetlinkMessage::DelTrafficFilter(filter(device, hook));
        match self.tell("delete filter", &subject, 0, request) {
            Ok(()) => Ok(true),
            Err(refused) if matches!(refused.errno(), Some(libc::ENOENT | libc::EINVAL)) => {
                Ok(false)
            }
            Err(refused) => Err(refused),
        }
    }

    /// Whether the hook has any filter, ours or not.
    pub fn has_filter(&mut self, device: u32, hook: Hook) -> Result<bool, Refused> {
        let mut message = TcMessage::with_index(device as i32);
        message.header.parent = hook.parent();
        let subject = format!("at device number {device} in {} ({hook})", self.place);
        let request = RouteNetlinkMessage::GetTrafficFilter(message);
        Ok(self.ask("look for filters", &subject, NLM_F_DUMP, request)?.is_some())
    }
}
