//! Small BPF programs at a device's hooks, each tied to the descriptor that holds it.
//!
//! A program is attached by a *link* (`tcx`, Linux 6.6): the kernel detaches it when the last
//! descriptor of the link is closed, so when its process ends, however it ends. Nothing is left
//! behind. Programs and `clsact` filters that others have at the same hook run beside ours.
//!
//! [`Assembler`] builds the programs instruction by instruction: they are a page long at most, and
//! an object file would need a compiler to make it and a loader to read it.
//!
//! Source: bpf(2), Documentation/bpf/standardization/instruction-set.rst, linux/bpf.h.

use std::ffi::CString;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::Refused;

const BPF_MAP_CREATE: libc::c_int = 0;
const BPF_MAP_UPDATE_ELEM: libc::c_int = 2;
const BPF_PROG_LOAD: libc::c_int = 5;
const BPF_LINK_CREATE: libc::c_int = 28;
const BPF_PROG_TYPE_SCHED_CLS: u32 = 3;
const BPF_MAP_TYPE_PROG_ARRAY: u32 = 3;
/// Marks a 64-bit load whose value is a map's descriptor.
const BPF_PSEUDO_MAP_FD: u8 = 1;
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

/// A register. `R1` to `R5` are arguments and are lost in a call, `R6` to `R9` keep their values,
/// `R10` is the end of the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "a register is its number")]
pub enum Register {
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    R9,
    R10,
}

/// The size of a memory access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// 1 byte.
    Byte = 0x10,
    /// 2 bytes.
    Half = 0x08,
    /// 4 bytes.
    Word = 0x00,
}

/// A comparison of the lower 32 bits, unsigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Test {
    /// Equal.
    Equal = 0x10,
    /// Above.
    Above = 0x20,
    /// Different.
    Different = 0x50,
    /// Below.
    Below = 0xa0,
}

/// A place in the program to jump to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label(usize);

/// A program under construction. Jumps go forwards only, to labels that are set later.
#[derive(Debug, Default)]
pub struct Assembler {
    code: Vec<u64>,
    /// Position of each label.
    labels: Vec<Option<usize>>,
    /// Jumps: index of the instruction, and its label.
    jumps: Vec<(usize, Label)>,
}

impl Assembler {
    fn emit(&mut self, opcode: u8, to: Register, from: Register, offset: i16, immediate: i32) {
        let registers = to as u8 | (from as u8) << 4;
        let [o0, o1] = offset.to_ne_bytes();
        let [i0, i1, i2, i3] = immediate.to_ne_bytes();
        self.code.push(u64::from_ne_bytes([opcode, registers, o0, o1, i0, i1, i2, i3]));
    }

    /// `to = value`.
    pub fn set(&mut self, to: Register, value: i32) {
        self.emit(0xb7, to, Register::R0, 0, value);
    }

    /// `to = from`.
    pub fn copy(&mut self, to: Register, from: Register) {
        self.emit(0xbf, to, from, 0, 0);
    }

    /// `to += value`.
    pub fn add(&mut self, to: Register, value: i32) {
        self.emit(0x07, to, Register::R0, 0, value);
    }

    /// `to &= mask`, and its upper half becomes zero.
    pub fn and(&mut self, to: Register, mask: u32) {
        self.emit(0x54, to, Register::R0, 0, mask as i32);
    }

    /// `to <<= bits`.
    pub(crate) fn shift_left(&mut self, to: Register, bits: i32) {
        self.emit(0x67, to, Register::R0, 0, bits);
    }

    /// Converts `to` from network byte order.
    pub(crate) fn swap_from_network(&mut self, to: Register, size: Size) {
        let bits = match size {
            Size::Byte => return,
            Size::Half => 16,
            Size::Word => 32,
        };
        self.emit(0xdc, to, Register::R0, 0, bits);
    }

    /// `to = *(base + offset)`.
    pub fn load(&mut self, size: Size, to: Register, base: Register, offset: i16) {
        self.emit(0x61 | size as u8, to, base, offset, 0);
    }

    /// `*(base + offset) = from`.
    pub fn store(&mut self, size: Size, base: Register, offset: i16, from: Register) {
        self.emit(0x63 | size as u8, base, from, offset, 0);
    }

    /// `to` = the map with this descriptor.
    fn map(&mut self, to: Register, map: &OwnedFd) {
        // This takes two instructions; the second one has the upper half of the value.
        let registers = to as u8 | BPF_PSEUDO_MAP_FD << 4;
        let [i0, i1, i2, i3] = map.as_raw_fd().to_ne_bytes();
        self.code.push(u64::from_ne_bytes([0x18, registers, 0, 0, i0, i1, i2, i3]));
        self.code.push(0);
    }

    /// Calls helper function number `helper`.
    pub fn call(&mut self, helper: i32) {
        self.emit(0x85, Register::R0, Register::R0, 0, helper);
    }

    /// Ends the program; `R0` is its result.
    pub fn exit(&mut self) {
        self.emit(0x95, Register::R0, Register::R0, 0, 0);
    }

    /// Makes a label, to be set later.
    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// Sets a label here.
    pub fn here(&mut self, label: Label) {
        self.labels[label.0] = Some(self.code.len());
    }

    /// Continues at `label`.
    pub fn jump(&mut self, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.emit(0x05, Register::R0, Register::R0, 0, 0);
    }

    /// Continues at `label` if the test of the register against `value` holds.
    pub(crate) fn jump_if(&mut self, register: Register, test: Test, value: u32, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.emit(0x06 | test as u8, register, Register::R0, 0, value as i32);
    }

    /// The instructions; `None` if a label was not set or is too far away.
    pub fn finish(mut self) -> Option<Vec<u64>> {
        for (at, label) in self.jumps {
            let target = self.labels[label.0]?;
            let offset = i16::try_from(target.checked_sub(at + 1)?).ok()?;
            let mut bytes = self.code[at].to_ne_bytes();
            bytes[2..4].copy_from_slice(&offset.to_ne_bytes());
            self.code[at] = u64::from_ne_bytes(bytes);
        }
        Some(self.code)
    }
}

/// A program that stays attached as long as this value lives.
#[derive(Debug)]
pub struct AttachedProgram {
    _link: OwnedFd,
}

/// What `bpf(BPF_PROG_LOAD)` reads.
#[repr(C)]
#[derive(Default)]
struct Load {
    prog_type: u32,
    insn_cnt: u32,
    insns: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buf: u64,
    kern_version: u32,
    prog_flags: u32,
    prog_name: [u8; 16],
    prog_ifindex: u32,
    expected_attach_type: u32,
}

/// What `bpf(BPF_LINK_CREATE)` reads for a `tcx` link.
#[repr(C)]
#[derive(Default)]
struct Link {
    prog_fd: u32,
    target_ifindex: u32,
    attach_type: u32,
    flags: u32,
    relative_fd: u32,
    padding: u32,
    expected_revision: u64,
}

/// Loads `program` and attaches it to the device with `index` in the calling thread's network
/// namespace. `subject` names both in messages.
///
/// # Errors
/// Before Linux 6.6 with errno `EINVAL`: use [`crate::filters`] then.
pub fn attach(
    program: &[u64],
    index: u32,
    hook: Hook,
    subject: &str,
) -> Result<AttachedProgram, Refused> {
    let program = load(program, hook.attach_type(), subject)?;
    let mut request = Link {
        prog_fd: program.as_raw_fd() as u32,
        target_ifindex: index,
        attach_type: hook.attach_type(),
        ..Link::default()
    };
    // SAFETY: `Link` is laid out as the kernel's union is for this command, and holds no pointers.
    let link = unsafe { bpf(BPF_LINK_CREATE, &mut request) };
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
pub(crate) fn behind_a_slot(program: &[u64], subject: &str) -> Result<(OwnedFd, OwnedFd), Refused> {
    let wrong = |cause| {
        Refused::new("make program table for", subject, cause).hint("run as root of the machine")
    };
    let program = load(program, 0, subject)?;
    let mut request = Table {
        map_type: BPF_MAP_TYPE_PROG_ARRAY,
        key_size: 4,
        value_size: 4,
        max_entries: 1,
        map_flags: 0,
    };
    // SAFETY: `Table` is laid out as the kernel's union is for this command, and holds no pointers.
    let table = unsafe { bpf(BPF_MAP_CREATE, &mut request) }.map_err(wrong)?;
    let (key, value) = (0u32, program.as_raw_fd() as u32);
    let mut request = Update {
        map_fd: table.as_raw_fd() as u32,
        padding: 0,
        key: std::ptr::from_ref(&key) as u64,
        value: std::ptr::from_ref(&value) as u64,
        flags: 0,
    };
    // SAFETY: `Update` is laid out as the kernel's union is for this command; its pointers are to a
    // key and a value of the sizes that the table was made with, which live through the call.
    unsafe { command(BPF_MAP_UPDATE_ELEM, &mut request) }.map_err(wrong)?;
    let mut stub = Assembler::default();
    stub.map(Register::R2, &table);
    stub.set(Register::R3, 0);
    stub.call(BPF_TAIL_CALL);
    stub.set(Register::R0, TC_ACT_UNSPEC);
    stub.exit();
    let stub = stub.finish().ok_or_else(|| wrong(std::io::Error::other("no program")))?;
    Ok((table, load(&stub, 0, subject)?))
}

/// What `bpf(BPF_MAP_CREATE)` reads.
#[repr(C)]
struct Table {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    map_flags: u32,
}

/// What `bpf(BPF_MAP_UPDATE_ELEM)` reads.
#[repr(C)]
struct Update {
    map_fd: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

fn load(program: &[u64], attach_type: u32, subject: &str) -> Result<OwnedFd, Refused> {
    let license = CString::from(c"GPL");
    let mut log = vec![0u8; 16 << 10];
    let mut request = Load {
        prog_type: BPF_PROG_TYPE_SCHED_CLS,
        insn_cnt: program.len() as u32,
        insns: program.as_ptr() as u64,
        license: license.as_ptr() as u64,
        log_level: 1,
        log_size: log.len() as u32,
        log_buf: log.as_mut_ptr() as u64,
        expected_attach_type: attach_type,
        ..Load::default()
    };
    request.prog_name[..8].copy_from_slice(b"fullpipe");
    // SAFETY: `Load` is laid out as the kernel's union is for this command; its pointers are to
    // memory of the lengths said, which lives through the call, and only the log is written.
    unsafe { bpf(BPF_PROG_LOAD, &mut request) }.map_err(|cause| {
        let said = String::from_utf8_lossy(&log);
        let mut lines = said.trim_end_matches('\0').lines().rev();
        let said = lines
            .find(|line| !line.starts_with("processed ") && !line.is_empty())
            .unwrap_or("no reason given");
        let hint = match cause.raw_os_error() {
            Some(libc::EPERM) => {
                "it needs CAP_BPF and CAP_NET_ADMIN on the machine itself: run as root".into()
            }
            Some(libc::ENOSYS) => "this kernel is built without BPF (CONFIG_BPF_SYSCALL)".into(),
            _ => format!("the kernel says: {said}"),
        };
        Refused::new("load program for", subject, cause).hint(hint)
    })
}

/// The system call for commands that open something.
///
/// # Safety
/// As for [`command`]; and `number` must be a command that returns a new descriptor.
unsafe fn bpf<T>(number: libc::c_int, request: &mut T) -> std::io::Result<OwnedFd> {
    // SAFETY: the caller's promise.
    let raw = unsafe { command(number, request) }?;
    // SAFETY: `raw` was just opened and belongs to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// The system call.
///
/// # Safety
/// `T` must be laid out as the kernel's `union bpf_attr` is for this command, its pointers valid
/// for it.
unsafe fn command<T>(number: libc::c_int, request: &mut T) -> std::io::Result<i32> {
    // SAFETY: `request` is valid for its size; the rest is the caller's promise.
    let raw = unsafe {
        libc::syscall(libc::SYS_bpf, number, std::ptr::from_mut(request), size_of::<T>())
    };
    i32::try_from(raw).ok().filter(|raw| *raw >= 0).ok_or_else(std::io::Error::last_os_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_reach_their_labels() {
        let mut assembler = Assembler::default();
        let end = assembler.label();
        assembler.jump_if(Register::R0, Test::Equal, 7, end);
        assembler.set(Register::R0, 1);
        assembler.jump(end);
        assembler.here(end);
        assembler.exit();
        let code = assembler.finish().unwrap();
        let offset =
            |at: usize| i16::from_ne_bytes(code[at].to_ne_bytes()[2..4].try_into().unwrap());
        assert_eq!((offset(0), offset(2), code.len()), (2, 0, 4));
    }

    #[test]
    fn a_label_that_is_nowhere_is_no_program() {
        let mut assembler = Assembler::default();
        let nowhere = assembler.label();
        assembler.jump(nowhere);
        assert!(assembler.finish().is_none());
    }
}
