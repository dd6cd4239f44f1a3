//! Packets seen on a device, in memory that the kernel writes and this program reads, without a
//! system call for each packet.
//!
//! The kernel (`AF_PACKET` with `PACKET_RX_RING`, TPACKET_V3) fills blocks one after another with
//! packets and their times while there is room. It releases a block when it is full or
//! [`RETIRE_AFTER`] old. So: wait ([`crate::process::wait`]) until the ring is readable, read
//! everything with [`PacketRing::read`], wait again. Before you stop, wait [`RETIRE_AFTER`] once
//! more, or you miss the last block.
//!
//! Of each packet a [`PacketFilter`] says whether it is kept and up to which length. The `vnet_hdr`
//! of [`crate::network::port`] is before it, which marks super-packets. Source:
//! Documentation/networking/packet_mmap.rst, linux/if_packet.h, net/packet/af_packet.c.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use fullpipe_model::units::{Bytes, Duration};

use crate::Refused;
use crate::bpf::packet_drops::packet_drops;
use crate::network::netns::NetNs;
use crate::network::packet_filter::PacketFilter;
use crate::network::port::VNET_HDR_LEN;

/// The kernel releases a block that is not full after this time.
pub const RETIRE_AFTER: Duration = Duration::from_millis(20);
/// The memory of a ring whose reader seldom waits.
pub const MEMORY: Bytes = Bytes::new(4 << 20);
const BLOCK_SIZE: usize = 256 << 10;
/// Space of the smallest packet: the kernel needs to know the largest possible number.
const FRAME_SIZE: usize = 256;

// From linux/if_packet.h; the libc crate does not have all of them.
const PACKET_RX_RING: libc::c_int = 5;
const PACKET_VERSION: libc::c_int = 10;
const PACKET_VNET_HDR: libc::c_int = 15;
const TPACKET_V3: libc::c_int = 2;
const TP_STATUS_KERNEL: u32 = 0;
const TP_STATUS_USER: u32 = 1;
const PACKET_OUTGOING: u8 = 4;
// Where fields are: struct tpacket_block_desc, struct tpacket3_hdr and the sockaddr_ll behind it.
const BLOCK_STATUS: usize = 8;
const BLOCK_PACKETS: usize = 12;
const BLOCK_FIRST: usize = 16;
const HEADER_LEN: usize = 48;
const SLL_IFINDEX: usize = 4;
const SLL_HATYPE: usize = 8;
const SLL_PKTTYPE: usize = 10;
// From linux/if_arp.h.
const ARPHRD_ETHER: u16 = 1;
const ARPHRD_LOOPBACK: u16 = 772;

/// `struct tpacket_req3`.
#[repr(C)]
struct RingRequest {
    block_size: libc::c_uint,
    block_nr: libc::c_uint,
    frame_size: libc::c_uint,
    frame_nr: libc::c_uint,
    retire_blk_tov: libc::c_uint,
    sizeof_priv: libc::c_uint,
    feature_req_word: libc::c_uint,
}

/// What kind of device a packet passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hardware {
    /// Its frames have Ethernet headers.
    Ethernet,
    /// They have, and each passes twice: on its way out and on its way in.
    Loopback,
    /// Another one, such as a tunnel's, whose frames usually begin with their IP header.
    Other,
}

/// A packet that has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenPacket<'a> {
    /// When it passed, since 1970.
    pub at: Duration,
    /// The device's index.
    pub device: u32,
    /// The device's kind.
    pub hardware: Hardware,
    /// Whether it left through the device rather than arrived.
    pub outgoing: bool,
    /// `vnet_hdr`, link header and packet, up to the kept length.
    pub frame: &'a [u8],
    /// Length of the whole frame.
    pub len: usize,
}

/// The mapped memory, and its socket.
#[derive(Debug)]
pub struct PacketRing {
    fd: OwnedFd,
    memory: NonNull<u8>,
    blocks: usize,
    next: usize,
}

// SAFETY: the memory is this value's own until it is dropped, and what the kernel does to it is
// ordered by the atomics of the blocks' status, from whichever thread they are read.
unsafe impl Send for PacketRing {}

impl PacketRing {
    /// Records what arrives on and leaves through `device` of `ns` from now on, as far as `filter`
    /// keeps it. The device must be up. With `index` 0 it records on every device. The kernel has
    /// so much `memory` for what is not read yet.
    pub fn open(
        ns: &NetNs,
        device: &str,
        index: u32,
        filter: &PacketFilter,
        memory: Bytes,
    ) -> Result<PacketRing, Refused> {
        ns.run(|| PacketRing::open_own(device, index, filter, memory))?
    }

    /// The same in the calling thread's network namespace, for which CAP_NET_RAW is enough.
    pub fn open_own(
        device: &str,
        index: u32,
        filter: &PacketFilter,
        memory: Bytes,
    ) -> Result<PacketRing, Refused> {
        open(device, index, filter, (memory.get() as usize / BLOCK_SIZE).max(2))
    }

    /// Passes every available packet to `each`, in order of time; returns their number.
    pub fn read(&mut self, mut each: impl FnMut(SeenPacket<'_>)) -> usize {
        let mut count = 0;
        loop {
            // SAFETY: the block begins within the mapping, page-aligned, and its status is an
            // aligned u32 that this process and the kernel change by atomic operations only.
            let (block, status) = unsafe {
                let block = self.memory.as_ptr().add(self.next * BLOCK_SIZE);
                (block, AtomicU32::from_ptr(block.add(BLOCK_STATUS).cast()))
            };
            if status.load(Ordering::Acquire) & TP_STATUS_USER == 0 {
                return count;
            }
            // SAFETY: a block that is the user's is not written by the kernel until its status is
            // given back below, and the slice does not live that long.
            count += packets(unsafe { std::slice::from_raw_parts(block, BLOCK_SIZE) }, &mut each);
            status.store(TP_STATUS_KERNEL, Ordering::Release);
            self.next = (self.next + 1) % self.blocks;
        }
    }

    /// Packets dropped because the ring was full, since the last call.
    pub fn drops(&self) -> Result<u64, Refused> {
        packet_drops(self.fd.as_fd(), "packet ring")
    }
}

impl AsFd for PacketRing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for PacketRing {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `open` with this length and nothing refers to it any
        // more.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.blocks * BLOCK_SIZE) };
    }
}

fn open(
    device: &str,
    index: u32,
    filter: &PacketFilter,
    blocks: usize,
) -> Result<PacketRing, Refused> {
    let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // Protocol 0: nothing is received before the socket is bound to the one device.
    // SAFETY: no memory is passed.
    let raw = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
    if raw < 0 {
        return Err(Refused::last("open packet socket", device)
            .hint("it needs CAP_NET_RAW in the namespace"));
    }
    // SAFETY: `raw` was just opened and belongs to nobody else.
    let fd = unsafe { OwnedFd::from_raw_fd(raw) };
    set(&fd, libc::SOL_PACKET, PACKET_VERSION, &TPACKET_V3).map_err(|e| {
        Refused::new("set PACKET_VERSION", device, e).hint("it needs Linux 3.2 or later")
    })?;
    set(&fd, libc::SOL_PACKET, PACKET_VNET_HDR, &1)
        .map_err(|e| Refused::new("set PACKET_VNET_HDR", device, e))?;
    let mut code = filter.program();
    let program = libc::sock_fprog { len: code.len() as u16, filter: code.as_mut_ptr() };
    set(&fd, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
        .map_err(|e| Refused::new("attach packet filter", device, e))?;
    let request = RingRequest {
        block_size: BLOCK_SIZE as libc::c_uint,
        block_nr: blocks as libc::c_uint,
        frame_size: FRAME_SIZE as libc::c_uint,
        frame_nr: (BLOCK_SIZE / FRAME_SIZE * blocks) as libc::c_uint,
        retire_blk_tov: (RETIRE_AFTER.as_micros() / 1000) as libc::c_uint,
        sizeof_priv: 0,
        feature_req_word: 0,
    };
    set(&fd, libc::SOL_PACKET, PACKET_RX_RING, &request).map_err(|e| {
        Refused::new("set PACKET_RX_RING", device, e)
            .hint("it takes some megabytes of memory of the kernel")
    })?;
    let (length, access) = (blocks * BLOCK_SIZE, libc::PROT_READ | libc::PROT_WRITE);
    // SAFETY: a new mapping of a socket of ours, at an address of the kernel's choice; it has the
    // length of the ring.
    let memory = unsafe {
        libc::mmap(std::ptr::null_mut(), length, access, libc::MAP_SHARED, fd.as_raw_fd(), 0)
    };
    let memory = match NonNull::new(memory.cast::<u8>()) {
        Some(memory) if memory.as_ptr().cast() != libc::MAP_FAILED => memory,
        _ => return Err(Refused::last("map packet ring", device)),
    };
    let ring = PacketRing { fd, memory, blocks, next: 0 };
    // A child made by fork has no use for the ring, and user-mode Linux fails over its shared pages
    // in a child. SAFETY: the whole of the mapping made above, which nothing else has a reference
    // into yet; its content stays.
    if unsafe { libc::madvise(memory.as_ptr().cast(), length, libc::MADV_DONTFORK) } != 0 {
        return Err(Refused::last("keep packet ring from children", device));
    }
    bind(&ring.fd, index).map_err(|e| Refused::new("bind packet socket", device, e))?;
    Ok(ring)
}

/// The name of the device with this index in the calling thread's network namespace, if there is
/// one.
pub fn device_name(index: u32) -> Option<String> {
    nix::net::if_::if_indextoname(index).ok()?.into_string().ok()
}

fn bind(fd: &OwnedFd, index: u32) -> io::Result<()> {
    // SAFETY: sockaddr_ll is plain data, for which zeros are valid.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = index as libc::c_int;
    let length = size_of_val(&address) as libc::socklen_t;
    // SAFETY: `address` is a sockaddr_ll of the length given and lives through the call.
    match unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), length) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn set<T>(fd: &OwnedFd, level: libc::c_int, option: libc::c_int, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes, which `value` has, and where it is a filter's
    // program, that of `open`.
    match unsafe {
        libc::setsockopt(fd.as_raw_fd(), level, option, (&raw const *value).cast(), length)
    } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Walks a block; stops at anything that does not lie within it.
fn packets(block: &[u8], each: &mut impl FnMut(SeenPacket<'_>)) -> usize {
    let word = |at: usize| {
        block.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_ne_bytes)
    };
    let half = |at: usize| {
        block.get(at..at + 2).and_then(|bytes| bytes.try_into().ok()).map_or(0, u16::from_ne_bytes)
    };
    let mut at = word(BLOCK_FIRST) as usize;
    for number in 0..word(BLOCK_PACKETS) as usize {
        // struct tpacket3_hdr: next_offset, sec, nsec, snaplen, len, status, mac, net.
        let [next, sec, nsec, snaplen, len] = [0, 4, 8, 12, 16].map(|offset| word(at + offset));
        let start = at + usize::from(half(at + 24));
        let frame = start
            .checked_sub(VNET_HDR_LEN)
            .and_then(|from| block.get(from..start + snaplen as usize));
        let address = at + HEADER_LEN;
        let Some((frame, kind)) = frame.zip(block.get(address + SLL_PKTTYPE)) else {
            return number;
        };
        each(SeenPacket {
            at: Duration::from_nanos(u64::from(sec) * 1_000_000_000 + u64::from(nsec)),
            device: word(address + SLL_IFINDEX),
            hardware: match half(address + SLL_HATYPE) {
                ARPHRD_ETHER => Hardware::Ethernet,
                ARPHRD_LOOPBACK => Hardware::Loopback,
                _ => Hardware::Other,
            },
            outgoing: *kind == PACKET_OUTGOING,
            frame,
            len: VNET_HDR_LEN + len as usize,
        });
        at += next as usize;
    }
    word(BLOCK_PACKETS) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whatever_is_in_a_block_stays_in_it(block in prop::collection::vec(any::<u8>(), 0..600), first in 0u32..64, count in 0u32..8) {
            let mut block = block;
            if block.len() >= 24 {
                block[BLOCK_PACKETS..BLOCK_PACKETS + 4].copy_from_slice(&count.to_ne_bytes());
                block[BLOCK_FIRST..BLOCK_FIRST + 4].copy_from_slice(&first.to_ne_bytes());
            }
            let told = packets(&block, &mut |seen| assert!(seen.frame.len() >= VNET_HDR_LEN));
            prop_assert!(told <= count as usize);
        }
    }
}
