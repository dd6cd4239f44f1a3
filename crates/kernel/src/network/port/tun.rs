//! Ports that are TUN devices: the kernel passes each packet that the host sends to the reader of a
//! descriptor.
//!
//! Source: Documentation/networking/tuntap.rst, drivers/net/tun.c. With `IFF_VNET_HDR` and offloads
//! the host's TCP passes unsegmented super-packets; without them the descriptor carries about
//! 170,000 packets a second at best, which is 2 Gbit/s and a whole CPU.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use super::{Port, PortConfig, PortKind, VNET_HDR_LEN};
use crate::Refused;
use crate::network::netlink::Netlink;

const DEVICE: &str = "/dev/net/tun";

/// `struct ifreq`, as far as TUNSETIFF reads it.
#[repr(C)]
struct IfReq {
    name: [u8; libc::IFNAMSIZ],
    flags: libc::c_short,
    /// The rest of the union, whose largest member is `struct ifmap`.
    rest: [u8; 22],
}

/// Makes the device in the host's namespace; it is removed when the port is dropped.
pub(super) fn open(kind: PortKind, config: &PortConfig<'_>) -> Result<Port, Refused> {
    let mode = if kind == PortKind::Tap { libc::IFF_TAP } else { libc::IFF_TUN };
    let fd = config.ns.run(|| attach(config.device, mode))??;
    Ok(Port::new(kind, fd, Netlink::open(config.ns)?, config.device))
}

fn attach(device: &str, mode: libc::c_int) -> Result<OwnedFd, Refused> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_NONBLOCK);
    let file = options.open(DEVICE).map_err(|cause| {
        let hint = match cause.kind() {
            io::ErrorKind::PermissionDenied => {
                "let ordinary users open it (chmod 0666, the usual mode), or run as root"
            }
            _ => {
                "load the module (modprobe tun), or give the container the device (--device \
                 /dev/net/tun)"
            }
        };
        Refused::new("open TUN", DEVICE, cause).hint(hint)
    })?;
    let mut request = IfReq {
        name: [0; libc::IFNAMSIZ],
        flags: (mode | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as libc::c_short,
        rest: [0; 22],
    };
    if device.is_empty() || device.len() >= libc::IFNAMSIZ || device.contains(['/', ' ', '%']) {
        return Err(Refused::new(
            "make TUN device",
            device,
            io::Error::from(io::ErrorKind::InvalidInput),
        )
        .hint("a device name has 1 to 15 bytes, without '/', '%' and blanks"));
    }
    request.name[..device.len()].copy_from_slice(device.as_bytes());
    let header_size = VNET_HDR_LEN as libc::c_int;
    let offloads = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
    let udp_offloads = libc::TUN_F_USO4 | libc::TUN_F_USO6;
    let fd = file.as_raw_fd();
    // SAFETY: TUNSETIFF reads and writes a `struct ifreq`, which `request` is by layout, and
    // TUNSETVNETHDRSZ reads an int; both live through the calls. TUNSETOFFLOAD takes its flags by
    // value.
    unsafe {
        if libc::ioctl(fd, libc::TUNSETIFF, &mut request) != 0 {
            return Err(Refused::last("make TUN device", device).hint(
                "choose a name that is not taken; it needs CAP_NET_ADMIN in the host's namespace",
            ));
        }
        if libc::ioctl(fd, libc::TUNSETVNETHDRSZ, &header_size) != 0 {
            return Err(Refused::last("set header size of TUN device", device));
        }
        // UDP segmentation came with Linux 6.2; TCP's is as old as IFF_VNET_HDR.
        let with_udp =
            libc::ioctl(fd, libc::TUNSETOFFLOAD, libc::c_ulong::from(offloads | udp_offloads)) == 0;
        if !with_udp && libc::ioctl(fd, libc::TUNSETOFFLOAD, libc::c_ulong::from(offloads)) != 0 {
            return Err(Refused::last("set offloads of TUN device", device));
        }
    }
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_is_as_long_as_the_kernels() {
        assert_eq!(size_of::<IfReq>(), size_of::<libc::ifreq>());
    }
}
