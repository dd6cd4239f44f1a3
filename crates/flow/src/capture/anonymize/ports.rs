//! Ports under a key.

use super::addresses::AddressMap;
use crate::capture::segment::ApplicationProtocol;
use fullpipe_model::observe::is_server_port;

/// Where the choice of ports begins among the numbers that a key decides.
const LABEL: u64 = 1 << 32;

/// Replaces the ports that systems give to clients by each other, and those above the well-known
/// ones by each other; what says which end is the server stays: the well-known ones, those that are
/// registered for a protocol that the analysis names, and on which side of the border a port is.
#[derive(Clone)]
pub(super) struct PortMap(Box<[u16; 1 << 16]>);

impl std::fmt::Debug for PortMap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PortMap")
    }
}

impl PortMap {
    pub fn new(addresses: &AddressMap) -> PortMap {
        let mut map: Box<[u16; 1 << 16]> = Box::new(std::array::from_fn(|port| port as u16));
        let (servers, clients): (Vec<u16>, Vec<u16>) = (1024..=u16::MAX)
            .filter(|port| !is_kept(*port))
            .partition(|port| is_server_port(*port));
        for ports in [servers, clients] {
            let mut left = ports.clone();
            // Each takes one of those that are left (Fisher and Yates). Of 64 bits, the remainder
            // is even enough.
            for port in ports {
                let drawn = addresses.number(LABEL + u64::from(port)) % left.len().max(1) as u64;
                map[usize::from(port)] = left.swap_remove(drawn as usize);
            }
        }
        PortMap(map)
    }

    pub fn port(&self, port: u16) -> u16 {
        self.0[usize::from(port)]
    }
}

/// Whether the analysis reads more from a port than that it is one.
fn is_kept(port: u16) -> bool {
    ApplicationProtocol::of_port(port).is_some()
}

#[cfg(test)]
mod tests {
    use super::super::addresses::Key;
    use super::*;

    #[test]
    fn no_two_become_one_and_what_tells_the_server_stays() {
        let map = PortMap::new(&AddressMap::new(&Key([3; 32])));
        let mut reached = vec![false; 1 << 16];
        let mut same = 0;
        for port in 0..=u16::MAX {
            let replaced = map.port(port);
            assert!(!std::mem::replace(&mut reached[usize::from(replaced)], true));
            assert_eq!(is_server_port(port), is_server_port(replaced));
            assert!(replaced == port || port >= 1024 && !is_kept(port));
            same += u32::from(port >= 1024 && replaced == port && !is_kept(port));
        }
        // One of each set stays on average, by chance.
        assert!(same < 20, "{same}");
        assert_eq!([22, 443, 3306, 5432].map(|port| map.port(port)), [22, 443, 3306, 5432]);
    }
}
