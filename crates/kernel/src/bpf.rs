//! Small BPF programs, each tied to the descriptor that holds it: here those at a device's hooks;
//! [`crate::bpf::constant_window`] has another use.
//!
//! A program is attached by a *link* (`tcx`, Linux 6.6): the kernel detaches it when the last
//! descriptor of the link is closed, so when its process ends, however it ends. Nothing is left
//! behind. Programs and `clsact` filters that others have at the same hook run beside ours.
//!
//! Source: bpf(2), linux/bpf.h.

mod assembler;
mod btf;
mod call;
pub mod constant_window;
pub(crate) mod packet_drops;

pub use assembler::{Assembler, Label, Register, Size, Test};
pub(crate) use call::{AttachPoint, Link, Map, Shape, load, load_types};

use std::os::fd::{AsRawFd, OwnedFd};

use crate::Refused;

const BPF_PROG_TYPE_SCHED_CLS: u32 = 3;
const BPF_MAP_TYPE_PROG_ARRAY: u32 = 3;
const BPF_TAIL_CALL: i32 = 12;
/// The programs after this one at the hook decide.
const TC_ACT_UNSPEC: i32 = -1;

/// A hook of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    /// Arriving packets, before anybody else sees them.
    Ingress,
    /// Packets to send, before the queueing discipline.
    Egress,
}

impl std::fmt::Display for Hook {
    /// The name that tc(8) uses.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Hook::Ingress => "ingress",
            Hook::Egress => "egress",
        })
    }
}

impl Hook {
    fn attach_type(self) -> u32 {
        match self {
            Hook::Ingress => 46,
            Hook::Egress => 47,
        }
    }
}

/// A program that stays attached as long as this value lives.
#[derive(Debug)]
pub struct AttachedProgram {
    _link: OwnedFd,
}

/// Loads `program` and attaches it to the device with `index` in the calling thread's network
/// namespace. `subject` names both in messages.
///
/// # Errors
/// Before Linux 6.6 with errno `EINVAL`: use [`crate::network::filters`] then.
pub fn attach(
    program: &[u64],
    index: u32,
    hook: Hook,
    subject: &str,
) -> Result<AttachedProgram, Refused> {
    let program = load(program, at_device(hook.attach_type()), subject)?;
    let link = Link { what: &program, target: index, attach_type: hook.attach_type() }.create();
    let link = link.map_err(|cause| {
        let hint = match cause.raw_os_error() {
            Some(libc::EINVAL) => "it needs Linux 6.6 or later (tcx)",
            _ => "run as root of the machine",
        };
        Refused::new("attach program to", subject, cause).hint(hint)
    })?;
    Ok(AttachedProgram { _link: link })
}

/// Loads `program`, and a second program that calls it through slot 0 of a table. Returns the table
/// and the second program. The second one reaches the first as long as the table's last descriptor
/// is open.
pub(crate) fn behind_a_slot(program: &[u64], subject: &str) -> Result<(Map, OwnedFd), Refused> {
    let wrong = |cause| {
        Refused::new("make program table for", subject, cause).hint("run as root of the machine")
    };
    let program = load(program, at_device(0), subject)?;
    let shape = Shape { map_type: BPF_MAP_TYPE_PROG_ARRAY, value_size: 4, ..Shape::default() };
    let table = Map::new(shape).map_err(wrong)?;
    table.set(&program.as_raw_fd().to_ne_bytes()).map_err(wrong)?;
    let mut stub = Assembler::default();
    stub.map(Register::R2, &table);
    stub.set(Register::R3, 0);
    stub.call(BPF_TAIL_CALL);
    stub.set(Register::R0, TC_ACT_UNSPEC);
    stub.exit();
    let stub = stub.finish().ok_or_else(|| wrong(std::io::Error::other("no program")))?;
    Ok((table, load(&stub, at_device(0), subject)?))
}

fn at_device(attach_type: u32) -> AttachPoint {
    AttachPoint { program_type: BPF_PROG_TYPE_SCHED_CLS, attach_type, structure: 0 }
}
