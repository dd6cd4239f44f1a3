//! The system call bpf(2): programs are loaded, maps made, both attached.
//!
//! Whatever it opens is a descriptor, and ends with it.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::Refused;

const BPF_MAP_CREATE: libc::c_int = 0;
const BPF_MAP_LOOKUP_ELEM: libc::c_int = 1;
const BPF_MAP_UPDATE_ELEM: libc::c_int = 2;
const BPF_PROG_LOAD: libc::c_int = 5;
const BPF_BTF_LOAD: libc::c_int = 18;
const BPF_LINK_CREATE: libc::c_int = 28;

/// Where a program runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AttachPoint {
    /// `enum bpf_prog_type`.
    pub(crate) program_type: u32,
    /// `enum bpf_attach_type`, or a member's number in `structure`.
    pub(crate) attach_type: u32,
    /// The kernel's number of the structure whose function it is; 0 for none.
    pub(crate) structure: u32,
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
    prog_btf_fd: u32,
    func_info_rec_size: u32,
    func_info: u64,
    func_info_cnt: u32,
    line_info_rec_size: u32,
    line_info: u64,
    line_info_cnt: u32,
    attach_btf_id: u32,
    attach_prog_fd: u64,
}

/// Loads a program. `subject` names it in messages.
pub(crate) fn load(program: &[u64], place: AttachPoint, subject: &str) -> Result<OwnedFd, Refused> {
    let license = CString::from(c"GPL");
    let mut log = vec![0u8; 16 << 10];
    let mut request = Load {
        prog_type: place.program_type,
        insn_cnt: program.len() as u32,
        insns: program.as_ptr() as u64,
        license: license.as_ptr() as u64,
        log_level: 1,
        log_size: log.len() as u32,
        log_buf: log.as_mut_ptr() as u64,
        expected_attach_type: place.attach_type,
        attach_btf_id: place.structure,
        ..Load::default()
    };
    request.prog_name[..8].copy_from_slice(b"fullpipe");
    // SAFETY: `Load` is laid out as the kernel's union is for this command; its pointers are to
    // memory of the lengths said, which lives through the call, and only the log is written.
    unsafe { open(BPF_PROG_LOAD, &mut request) }.map_err(|cause| {
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

/// What a map with one entry is like; what is 0 does not apply.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Shape {
    /// `enum bpf_map_type`.
    pub(crate) map_type: u32,
    /// The length of its value in bytes.
    pub(crate) value_size: u32,
    /// `BPF_F_*`.
    pub(crate) flags: u32,
    /// Descriptor of a description of types, for one whose value is the kernel's structure.
    pub(crate) types: RawFd,
    /// The kernel's number of that structure.
    pub(crate) structure: u32,
}

/// What `bpf(BPF_MAP_CREATE)` reads.
#[repr(C)]
#[derive(Default)]
struct MapAttributes {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    map_flags: u32,
    inner_map_fd: u32,
    numa_node: u32,
    map_name: [u8; 16],
    map_ifindex: u32,
    btf_fd: u32,
    btf_key_type_id: u32,
    btf_value_type_id: u32,
    btf_vmlinux_value_type_id: u32,
}

/// What `bpf(BPF_MAP_UPDATE_ELEM)` and `bpf(BPF_MAP_LOOKUP_ELEM)` read.
#[repr(C)]
struct Element {
    map_fd: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// A map with one entry, whose key is 0.
#[derive(Debug)]
pub(crate) struct Map {
    descriptor: OwnedFd,
    value_size: usize,
}

impl Map {
    /// Makes a map.
    pub(crate) fn new(shape: Shape) -> io::Result<Map> {
        let mut request = MapAttributes {
            map_type: shape.map_type,
            key_size: 4,
            value_size: shape.value_size,
            max_entries: 1,
            map_flags: shape.flags,
            btf_fd: shape.types as u32,
            btf_vmlinux_value_type_id: shape.structure,
            ..MapAttributes::default()
        };
        // SAFETY: `Table` is laid out as the kernel's union is for this command, and holds no
        // pointers.
        let descriptor = unsafe { open(BPF_MAP_CREATE, &mut request) }?;
        Ok(Map { descriptor, value_size: shape.value_size as usize })
    }

    /// Sets its value, which has the map's length.
    pub(crate) fn set(&self, value: &[u8]) -> io::Result<()> {
        assert_eq!(value.len(), self.value_size, "the length that the map was made with");
        self.element(BPF_MAP_UPDATE_ELEM, value.as_ptr())
    }

    /// Its value.
    pub(crate) fn get(&self) -> io::Result<Vec<u8>> {
        let mut value = vec![0; self.value_size];
        self.element(BPF_MAP_LOOKUP_ELEM, value.as_mut_ptr())?;
        Ok(value)
    }

    /// `value` is as long as the map's, and may be written where the command does that.
    fn element(&self, number: libc::c_int, value: *const u8) -> io::Result<()> {
        let key = 0u32;
        let mut request = Element {
            map_fd: self.as_raw_fd() as u32,
            padding: 0,
            key: std::ptr::from_ref(&key) as u64,
            value: value as u64,
            flags: 0,
        };
        // SAFETY: `Element` is laid out as the kernel's union is for both commands; its pointers
        // are to a key and a value of the sizes that the map was made with, which live through the
        // call.
        unsafe { command(number, &mut request) }.map(drop)
    }
}

impl AsRawFd for Map {
    fn as_raw_fd(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }
}

impl AsFd for Map {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// What is attached, and to what; it stays as long as the descriptor that comes of it.
pub(crate) struct Link<'a, F> {
    /// A program, or a map of functions.
    pub(crate) what: &'a F,
    /// A device's number, or a control group's descriptor; 0 for the kernel as a whole.
    pub(crate) target: u32,
    /// `enum bpf_attach_type`.
    pub(crate) attach_type: u32,
}

/// What `bpf(BPF_LINK_CREATE)` reads.
#[repr(C)]
#[derive(Default)]
struct LinkRequest {
    fd: u32,
    target: u32,
    attach_type: u32,
    flags: u32,
    relative_fd: u32,
    padding: u32,
    expected_revision: u64,
}

impl<F: AsRawFd> Link<'_, F> {
    /// Attaches it.
    pub(crate) fn create(&self) -> io::Result<OwnedFd> {
        let mut request = LinkRequest {
            fd: self.what.as_raw_fd() as u32,
            target: self.target,
            attach_type: self.attach_type,
            ..LinkRequest::default()
        };
        // SAFETY: `LinkRequest` is laid out as the kernel's union is for this command, and holds no
        // pointers.
        unsafe { open(BPF_LINK_CREATE, &mut request) }
    }
}

/// What `bpf(BPF_BTF_LOAD)` reads.
#[repr(C)]
#[derive(Default)]
struct Types {
    btf: u64,
    btf_log_buf: u64,
    btf_size: u32,
    btf_log_size: u32,
    btf_log_level: u32,
    padding: u32,
}

/// Gives the kernel a description of types (BTF).
pub(crate) fn load_types(description: &[u8]) -> io::Result<OwnedFd> {
    let mut request = Types {
        btf: description.as_ptr() as u64,
        btf_size: description.len() as u32,
        ..Types::default()
    };
    // SAFETY: `Types` is laid out as the kernel's union is for this command; its one pointer is to
    // memory of the length said, which lives through the call and is not written.
    unsafe { open(BPF_BTF_LOAD, &mut request) }
}

/// The system call for commands that open something.
///
/// # Safety
/// As for [`command`]; and `number` must be a command that returns a new descriptor.
unsafe fn open<T>(number: libc::c_int, request: &mut T) -> io::Result<OwnedFd> {
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
unsafe fn command<T>(number: libc::c_int, request: &mut T) -> io::Result<i32> {
    // SAFETY: `request` is valid for its size; the rest is the caller's promise.
    let raw = unsafe {
        libc::syscall(libc::SYS_bpf, number, std::ptr::from_mut(request), size_of::<T>())
    };
    i32::try_from(raw).ok().filter(|raw| *raw >= 0).ok_or_else(io::Error::last_os_error)
}
