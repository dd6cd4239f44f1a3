//! What an `AF_PACKET` socket has dropped.
//!
//! Source: packet(7), linux/if_packet.h.

use crate::Refused;
use std::os::fd::{AsRawFd, BorrowedFd};

/// From linux/if_packet.h; the libc crate does not have it.
const PACKET_STATISTICS: libc::c_int = 6;

/// Packets that an `AF_PACKET` socket, named `subject` in errors, dropped since the last call
/// because its ring or its buffer was full.
pub(crate) fn packet_drops(fd: BorrowedFd<'_>, subject: &'static str) -> Result<u64, Refused> {
    // struct tpacket_stats_v3: packets, drops, freeze_q_cnt. Without TPACKET_V3 the kernel writes
    // only the first two.
    let mut stats = [0 as libc::c_uint; 3];
    let mut length = size_of_val(&stats) as libc::socklen_t;
    let fd = fd.as_raw_fd();
    // SAFETY: the kernel writes at most `length` bytes into `stats`, which is as long, and any bits
    // are valid in it.
    let code = unsafe {
        libc::getsockopt(
            fd,
            libc::SOL_PACKET,
            PACKET_STATISTICS,
            (&raw mut stats).cast(),
            &mut length,
        )
    };
    if code != 0 {
        return Err(Refused::last("read PACKET_STATISTICS", subject));
    }
    Ok(stats[1].into())
}
