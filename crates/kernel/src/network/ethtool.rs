//! What a network device's driver counts and which offloads are on: the ioctl of `ethtool -S` and
//! `ethtool -k`.
//!
//! Drivers name their counters themselves. They include packets that no other counter has: those
//! that a full ring dropped, and those that a cloud delayed or dropped above an allowance
//! (`bw_in_allowance_exceeded` and the like of Amazon's `ena`). No privilege is needed.
//!
//! Sources: include/uapi/linux/ethtool.h, netdevice(7).

use std::ffi::c_void;
use std::os::fd::AsRawFd;

use nix::errno::Errno;

use crate::Refused;

// include/uapi/linux/sockios.h and ethtool.h
const SIOCETHTOOL: libc::c_ulong = 0x8946;
const ETHTOOL_GDRVINFO: u32 = 0x03;
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSTATS: u32 = 0x1d;
const ETHTOOL_GTSO: u32 = 0x1e;
const ETHTOOL_GGRO: u32 = 0x2b;
const ETH_SS_STATS: u32 = 1;
const ETH_GSTRING_LEN: usize = 32;
/// `struct ethtool_drvinfo`, and where its `n_stats` is.
const DRVINFO_LEN: usize = 196;
const N_STATS_AT: usize = 180;
/// More counters than any driver has.
const COUNTERS_MAX: usize = 100_000;
/// Room for counters that a driver gains between two questions, as it does when somebody gives it
/// more queues.
const COUNTERS_SPARE: usize = 4096;

/// An offload that makes long streams cheap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offload {
    /// TCP segmentation offload: the device cuts segments.
    Tso,
    /// Generic receive offload: arriving segments are merged before the stack sees them.
    Gro,
}

/// Asks about the devices of the calling thread's network namespace.
#[derive(Debug)]
pub struct Ethtool {
    socket: std::net::UdpSocket,
}

impl Ethtool {
    /// Opens a socket to ask with.
    pub fn open() -> Result<Ethtool, Refused> {
        // Any socket will do, and it sends nothing.
        let socket = std::net::UdpSocket::bind("127.0.0.1:0")
            .map_err(|cause| Refused::new("open socket for", "ethtool", cause))?;
        Ok(Ethtool { socket })
    }

    /// The counters of `device` by the names that its driver gives them; none where it has none.
    pub fn counters(&self, device: &str) -> Vec<(String, u64)> {
        let mut info = vec![0u8; DRVINFO_LEN];
        info[..4].copy_from_slice(&ETHTOOL_GDRVINFO.to_ne_bytes());
        if self.ask(device, &mut info).is_err() {
            return Vec::new();
        }
        let count = word(&info, N_STATS_AT) as usize;
        if count == 0 || count > COUNTERS_MAX {
            return Vec::new();
        }
        // The kernel writes as many as the driver has at that moment, whatever was asked for.
        let room = 2 * count + COUNTERS_SPARE;
        // struct ethtool_gstrings: command, set, length, then the names.
        let words = [ETH_SS_STATS, count as u32];
        let mut names = request(ETHTOOL_GSTRINGS, &words, room * ETH_GSTRING_LEN);
        // struct ethtool_stats: command, length, then the values.
        let mut values = request(ETHTOOL_GSTATS, &[count as u32], room * 8);
        if self.ask(device, &mut names).is_err() || self.ask(device, &mut values).is_err() {
            return Vec::new();
        }
        let (named, valued) = (word(&names, 8) as usize, word(&values, 4) as usize);
        let names = names[12..].chunks_exact(ETH_GSTRING_LEN).take(named).map(text);
        let value =
            |bytes: &[u8]| bytes.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
        names.zip(values[8..].chunks_exact(8).take(valued).map(value)).collect()
    }

    /// Whether an offload is on; `None` where the device does not say.
    pub fn offload(&self, device: &str, offload: Offload) -> Option<bool> {
        let command = match offload {
            Offload::Tso => ETHTOOL_GTSO,
            Offload::Gro => ETHTOOL_GGRO,
        };
        let mut value = request(command, &[0], 0);
        self.ask(device, &mut value).ok()?;
        Some(word(&value, 4) != 0)
    }

    /// Lets the kernel fill `data`, which begins with the command and is as long as its answer.
    fn ask(&self, device: &str, data: &mut [u8]) -> Result<(), Errno> {
        /// `struct ifreq` with its pointer.
        #[repr(C)]
        struct InterfaceRequest {
            name: [libc::c_char; libc::IFNAMSIZ],
            data: *mut c_void,
            rest: [u8; 16],
        }
        if device.len() >= libc::IFNAMSIZ {
            return Err(Errno::ENAMETOOLONG);
        }
        let mut name = [0; libc::IFNAMSIZ];
        for (to, from) in name.iter_mut().zip(device.bytes()) {
            *to = from as libc::c_char;
        }
        let mut request = InterfaceRequest { name, data: data.as_mut_ptr().cast(), rest: [0; 16] };
        // SAFETY: the kernel reads and writes `request`, and behind `data` at most the answer to
        // its command, for which there is more than room; both live through the call.
        let done = unsafe {
            let request = std::ptr::from_mut(&mut request);
            libc::ioctl(self.socket.as_raw_fd(), SIOCETHTOOL as _, request)
        };
        Errno::result(done).map(drop)
    }
}

/// A command with its first words and room for an answer of `room` bytes.
fn request(command: u32, words: &[u32], room: usize) -> Vec<u8> {
    let mut bytes = command.to_ne_bytes().to_vec();
    bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
    bytes.resize(bytes.len() + room, 0);
    bytes
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u32::from_ne_bytes(*word))
}

/// A name, which ends with a NUL byte or with its field.
fn text(field: &[u8]) -> String {
    let name = field.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name).trim().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_is_not_there_has_no_counters() {
        let ethtool = Ethtool::open().unwrap();
        assert_eq!(ethtool.counters("no-such-device"), []);
        assert_eq!(ethtool.counters("a-name-that-is-too-long"), []);
        assert_eq!(ethtool.offload("no-such-device", Offload::Gro), None);
    }

    #[test]
    fn loopback_has_its_offloads() {
        let ethtool = Ethtool::open().unwrap();
        assert_eq!(ethtool.offload("lo", Offload::Tso), Some(true));
        for (name, _) in ethtool.counters("lo") {
            assert!(!name.is_empty());
        }
    }
}
