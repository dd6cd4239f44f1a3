//! The real destinations of addresses beyond the gateway, and the threads that carry data there.

use fullpipe_kernel::Refused;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Pause after a kernel error, which may repeat at once.
pub(super) const PAUSE: std::time::Duration = std::time::Duration::from_millis(10);
/// Stack of the gateway's threads; their buffers are on the heap.
pub(super) const THREAD_STACK: usize = 256 << 10;

/// The real destinations of addresses beyond the gateway.
#[derive(Debug, Clone, Copy)]
pub struct Destinations {
    /// The gateway's own addresses, which mean the machine's loopback.
    pub gateway: (Ipv4Addr, Ipv6Addr),
    /// The resolver that gets what arrives at the gateway's port 53.
    pub resolver: Option<IpAddr>,
}

impl Destinations {
    /// The address to connect to in the machine's own network.
    pub(super) fn target(&self, meant: SocketAddr) -> SocketAddr {
        let of_gateway = meant.ip() == self.gateway.0 || meant.ip() == self.gateway.1;
        match (of_gateway, self.resolver, meant.ip()) {
            (false, ..) => meant,
            (true, Some(resolver), _) if meant.port() == 53 => SocketAddr::new(resolver, 53),
            (true, _, IpAddr::V4(_)) => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), meant.port()),
            (true, _, IpAddr::V6(_)) => SocketAddr::new(Ipv6Addr::LOCALHOST.into(), meant.port()),
        }
    }
}

/// Starts a thread of the gateway, which ends with its work or with the process.
pub(super) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Refused> {
    let thread = std::thread::Builder::new().name(name.into()).stack_size(THREAD_STACK).spawn(work);
    thread.map(drop).map_err(|cause| Refused::new("start thread", name, cause))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gateway_stands_for_the_loopback_and_its_port_53_for_the_resolver() {
        let gateway = (Ipv4Addr::new(10, 77, 0, 1), Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1));
        let destinations = Destinations { gateway, resolver: Some(IpAddr::from([127, 0, 0, 53])) };
        let target = |text: &str| destinations.target(text.parse().unwrap()).to_string();
        assert_eq!(target("10.77.0.1:80"), "127.0.0.1:80");
        assert_eq!(target("[fd00::1]:80"), "[::1]:80");
        assert_eq!(target("10.77.0.1:53"), "127.0.0.53:53");
        assert_eq!(target("192.0.2.1:53"), "192.0.2.1:53");
        assert_eq!(
            Destinations { resolver: None, ..destinations }
                .target("10.77.0.1:53".parse().unwrap())
                .port(),
            53
        );
    }
}
