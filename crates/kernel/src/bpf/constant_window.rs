//! A congestion window that stays the same: a congestion control for experiments that take
//! congestion control out.
//!
//! How to think about it: a congestion control is a structure of functions in the kernel
//! (`tcp_congestion_ops`), and a BPF program can be each of them. Ours set the window to one number
//! at the start, at every acknowledgement and at every change of state, so neither loss nor a
//! timeout nor a pause changes it; nothing is paced. A program on a control group gives it to each
//! TCP connection that is established there.
//!
//! Both are held by descriptors: when this value is dropped, or its process ends however it ends,
//! the kernel no longer has that congestion control for new connections. A connection that has it
//! keeps it to its own end, as the kernel counts its users. The machine's settings are not changed.
//! Other congestion controls of this kind live beside it, each with a name of its own.
//!
//! Source: kernel/bpf/bpf_struct_ops.c and net/ipv4/bpf_tcp_ca.c of Linux, linux/bpf.h.

mod programs;

use crate::Refused;
use crate::bpf::btf::{Structure, Types, nothing};
use crate::bpf::{AttachPoint, Link, Map, Shape, load, load_types};
use programs::{Fields, NAME};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::str::FromStr;

const BPF_MAP_TYPE_ARRAY: u32 = 2;
const BPF_MAP_TYPE_STRUCT_OPS: u32 = 26;
const BPF_PROG_TYPE_SOCK_OPS: u32 = 13;
const BPF_PROG_TYPE_STRUCT_OPS: u32 = 27;
const BPF_CGROUP_SOCK_OPS: u32 = 3;
const BPF_STRUCT_OPS: u32 = 44;
/// The structure is registered by a link, and so as long as that lives.
const BPF_F_LINK: u32 = 1 << 13;
/// In messages.
const SUBJECT: &str = "a constant congestion window";

/// A window in segments, 1 to 1,000,000.
///
/// 1,000,000 segments of 1,448 bytes are more than the largest window that TCP has (1 GiB, RFC 7323
/// section 2.3), so a larger number could change nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segments(i32);

impl Segments {
    /// The number.
    pub fn get(self) -> u32 {
        self.0.unsigned_abs()
    }
}

impl FromStr for Segments {
    type Err = String;

    fn from_str(text: &str) -> Result<Segments, String> {
        let number = text.parse().map_err(|_| format!("{text:?} is not a number of segments"))?;
        if (1..=1_000_000).contains(&number) {
            return Ok(Segments(number));
        }
        Err(format!("{number} is not within 1 and 1000000"))
    }
}

/// How many connections took the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// They have it.
    pub taken: u64,
    /// The kernel refused it.
    pub refused: u64,
}

/// A constant window for the connections of a control group. Dropping it ends that for new ones.
#[derive(Debug)]
pub struct ConstantWindow {
    name: String,
    counts: Map,
    /// What chooses it is detached first.
    _group: OwnedFd,
    _congestion_control: OwnedFd,
}

impl ConstantWindow {
    /// Registers a congestion control with a name of its own, and gives it to the connections that
    /// are established in `cgroup`, a folder of cgroup v2, and below it from now on.
    ///
    /// # Errors
    /// Nothing is registered then. The control group cannot be opened, a privilege is missing, or
    /// the kernel is too old.
    pub fn attach(cgroup: &Path, segments: Segments) -> Result<ConstantWindow, Refused> {
        // Only folders of version 2 have this file.
        let folder = std::fs::metadata(cgroup.join("cgroup.controllers"))
            .and_then(|_| File::open(cgroup))
            .map_err(|cause| {
                let advice = "name a folder of cgroup v2, such as \
                              /sys/fs/cgroup/system.slice/nginx.service";
                Refused::new("open control group", cgroup.display().to_string(), cause).hint(advice)
            })?;
        let kernel = Kernel::read()?;
        let (name, link) = kernel.register(segments)?;
        let shape = Shape { map_type: BPF_MAP_TYPE_ARRAY, value_size: 16, ..Shape::default() };
        let counts = Map::new(shape).map_err(|cause| refused("make a map for", cause))?;
        let program = programs::choose(&padded(&name), &counts).ok_or_else(unwritable)?;
        let place = AttachPoint {
            program_type: BPF_PROG_TYPE_SOCK_OPS,
            attach_type: BPF_CGROUP_SOCK_OPS,
            structure: 0,
        };
        let program = load(&program, place, SUBJECT)?;
        let target = folder.as_raw_fd() as u32;
        let group = Link { what: &program, target, attach_type: BPF_CGROUP_SOCK_OPS }.create();
        let group = group.map_err(|cause| refused("attach to the control group", cause))?;
        Ok(ConstantWindow { name, counts, _group: group, _congestion_control: link })
    }

    /// The congestion control's name, as `ss -ti` shows it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many connections were given it so far.
    pub fn taken(&self) -> Result<Taken, Refused> {
        let bytes = self.counts.get().map_err(|cause| refused("read the number of", cause))?;
        let number =
            |at: usize| bytes[at..].first_chunk().map_or(0, |one| u64::from_ne_bytes(*one));
        Ok(Taken { taken: number(0), refused: number(8) })
    }
}

/// What the running kernel's structures look like.
struct Kernel {
    functions: Structure,
    /// The value of a map of them: the same with the kernel's bookkeeping before it.
    value: Structure,
    data: usize,
    fields: Fields,
}

impl Kernel {
    fn read() -> Result<Kernel, Refused> {
        let types = Types::of_kernel()?;
        Kernel::of(&types).ok_or_else(|| {
            let cause = io::Error::from_raw_os_error(libc::EOPNOTSUPP);
            refused("find the congestion control's functions for", cause)
        })
    }

    fn of(types: &Types) -> Option<Kernel> {
        let value = types.structure("bpf_struct_ops_tcp_congestion_ops")?;
        let data = value.member("data")?.offset as usize;
        let functions = types.structure("tcp_congestion_ops")?;
        Some(Kernel { functions, value, data, fields: Fields::of(types)? })
    }

    /// The congestion control's name, and what keeps it registered.
    fn register(&self, segments: Segments) -> Result<(String, OwnedFd), Refused> {
        let set = programs::set(segments.0, &self.fields).ok_or_else(unwritable)?;
        let answer = programs::answer(segments.0).ok_or_else(unwritable)?;
        let functions = [
            ("init", &set),
            ("set_state", &set),
            ("cong_control", &set),
            ("ssthresh", &answer),
            ("undo_cwnd", &answer),
        ];
        let mut value = vec![0; self.value.size as usize];
        // The kernel holds a program as long as its map needs it.
        let mut programs = Vec::new();
        for (name, program) in functions {
            let member = self.functions.member(name).ok_or_else(unwritable)?;
            let place = AttachPoint {
                program_type: BPF_PROG_TYPE_STRUCT_OPS,
                attach_type: member.number,
                structure: self.functions.id,
            };
            let program = load(program, place, SUBJECT)?;
            let pointer = (program.as_raw_fd() as usize).to_ne_bytes();
            write(&mut value, self.data + member.offset as usize, &pointer)?;
            programs.push(program);
        }
        let place =
            self.data + self.functions.member("name").ok_or_else(unwritable)?.offset as usize;
        // Processes of other PID namespaces may have our number.
        for letter in b'a'..=b'z' {
            let name = format!("fp_pin_{}{}", std::process::id(), char::from(letter));
            write(&mut value, place, &padded(&name))?;
            match self.registered(&value) {
                Err(cause) if cause.raw_os_error() == Some(libc::EEXIST) => {}
                other => {
                    let link = other.map_err(|cause| refused("register", cause))?;
                    return Ok((name, link));
                }
            }
        }
        Err(refused("register", io::Error::from_raw_os_error(libc::EEXIST)))
    }

    fn registered(&self, value: &[u8]) -> io::Result<OwnedFd> {
        let types = load_types(&nothing())?;
        let map = Map::new(Shape {
            map_type: BPF_MAP_TYPE_STRUCT_OPS,
            value_size: self.value.size,
            flags: BPF_F_LINK,
            types: types.as_raw_fd(),
            structure: self.value.id,
        })?;
        map.set(value)?;
        Link { what: &map, target: 0, attach_type: BPF_STRUCT_OPS }.create()
    }
}

fn write(value: &mut [u8], at: usize, bytes: &[u8]) -> Result<(), Refused> {
    let place = value.get_mut(at..at + bytes.len()).ok_or_else(unwritable)?;
    place.copy_from_slice(bytes);
    Ok(())
}

/// A name as the kernel keeps it: at most 15 bytes, and a zero.
fn padded(name: &str) -> [u8; NAME] {
    let mut bytes = [0; NAME];
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    bytes
}

fn refused(operation: &'static str, cause: io::Error) -> Refused {
    let hint = match cause.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            "it needs root, or CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON, and a kernel whose lockdown \
             allows BPF (/sys/kernel/security/lockdown)"
        }
        _ => "it needs Linux 6.4 or later with BPF as congestion control (CONFIG_BPF_JIT)",
    };
    Refused::new(operation, SUBJECT, cause).hint(hint)
}

/// This kernel's structures are other ones than those that the programs are written for.
fn unwritable() -> Refused {
    refused("write the programs of", io::Error::from_raw_os_error(libc::EOPNOTSUPP))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_has_bounds() {
        assert_eq!("1".parse::<Segments>().unwrap().get(), 1);
        assert_eq!("1000000".parse::<Segments>().unwrap().get(), 1_000_000);
        for text in ["0", "1000001", "-3", "ten", ""] {
            assert!(text.parse::<Segments>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_longest_name_fits() {
        assert_eq!(padded("fp_pin_4194304z")[14..], [b'z', 0]);
    }
}
