//! The path MTU of each direction, by probes (RFC 4821 and RFC 8899: packetization layer path MTU
//! discovery, which needs no ICMP).
//!
//! The kernel's own path MTU is what ICMP told it, or the device's: a router that drops what is too
//! large and says nothing leaves it wrong, and TCP sends into that hole. So the near end sends UDP
//! datagrams with the don't-fragment bit, padded to the size under test, to a socket of the far
//! end; a short answer says that the size was carried. For the other direction it asks for answers
//! of that size. [`Search`] chooses sizes. A random token, which only the control connection tells,
//! is in each datagram; the far end answers nobody else, never with more packets than it got, and
//! for a bounded time.

mod far;
mod probe;
mod search;
mod socket;

pub(super) use far::Answering;

use fullpipe_kernel::host::clock;
use fullpipe_model::units::{Bytes, Duration, column};
use probe::{Datagram, ProbeKind, Token};
use search::Search;
use socket::Sent;
use std::io;
use std::net::{SocketAddr, UdpSocket};

/// Beyond twice the round trip, for hosts that are busy (RFC 8899 waits a second at least, and for
/// any path; here the round trip is known, and a lost probe is tried again).
const SLACK: Duration = Duration::from_millis(100);

/// The largest packet that the path carries each way, IP header included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct PathMtu {
    /// To the far end; `None`: nothing was answered, so UDP does not pass.
    #[serde(rename = "forward_bytes", with = "column::bytes_optional")]
    pub forward: Option<Bytes>,
    /// From the far end.
    #[serde(rename = "reverse_bytes", with = "column::bytes_optional")]
    pub reverse: Option<Bytes>,
}

/// The near end of a search.
pub(super) struct Prober {
    socket: UdpSocket,
    far: SocketAddr,
    token: Token,
    patience: Duration,
    number: u32,
}

impl Prober {
    /// Searches from `local` to what answers at `far`, over a path with this round trip.
    pub fn new(
        local: SocketAddr,
        far: SocketAddr,
        token: Token,
        rtt: Duration,
    ) -> io::Result<Prober> {
        let patience = rtt.saturating_mul(2).saturating_add(SLACK);
        Ok(Prober { socket: socket::bind(local)?, far, token, patience, number: 0 })
    }

    /// Searches both ways; `goes_on` is asked between probes.
    pub fn measure(&mut self, goes_on: &dyn Fn() -> bool) -> io::Result<PathMtu> {
        let forward = self.search(ProbeKind::Probe, goes_on)?;
        // What UDP does not pass one way has no answer the other way either.
        let reverse = match forward {
            Some(_) => self.search(ProbeKind::Ask, goes_on)?,
            None => None,
        };
        Ok(PathMtu { forward, reverse })
    }

    fn search(&mut self, kind: ProbeKind, goes_on: &dyn Fn() -> bool) -> io::Result<Option<Bytes>> {
        let mut search = Search::new(socket::least(self.far), u16::MAX);
        while let Some(size) = search.next().filter(|_| goes_on()) {
            match self.try_size(kind, size)? {
                Some(ProbeKind::Answer) => search.answered(size),
                Some(_) => search.missed(size, true),
                None => search.missed(size, false),
            }
        }
        Ok(search.found().map(|size| Bytes::new(size.into())))
    }

    /// Sends a probe, and waits for its answer.
    fn try_size(&mut self, kind: ProbeKind, size: u16) -> io::Result<Option<ProbeKind>> {
        self.number += 1;
        let probe = Datagram { kind, size, number: self.number };
        let length = if kind == ProbeKind::Probe { socket::payload(size, self.far) } else { 0 };
        let bytes = probe.encode(&self.token, length);
        if socket::send(&self.socket, &bytes, self.far)? == Sent::TooLarge {
            return Ok(Some(ProbeKind::TooLarge));
        }
        let (sent, mut buffer) = (clock::now(), vec![0; 1 << 16]);
        loop {
            let left = self.patience.saturating_sub(clock::now().since(sent));
            if left == Duration::ZERO {
                return Ok(None);
            }
            let got = socket::receive(&self.socket, &mut buffer, left)?;
            let bytes = got.and_then(|(length, _)| buffer.get(..length));
            let answer = bytes.and_then(|bytes| Datagram::decode(bytes, &self.token));
            // An answer that comes late is one to an earlier probe.
            if let Some(answer) = answer.filter(|answer| answer.number == self.number) {
                return Ok(Some(answer.kind));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loopback(address: &str) -> PathMtu {
        let local: SocketAddr = address.parse().unwrap();
        let answering = Answering::start(local, local).unwrap();
        let far = SocketAddr::new(local.ip(), answering.port);
        let rtt = Duration::from_millis(200);
        let mut prober = Prober::new(local, far, answering.token, rtt).unwrap();
        prober.measure(&|| true).unwrap()
    }

    #[test]
    fn loopback_carries_what_ip_can_say() {
        let found = loopback("127.0.0.1:0");
        // Linux's loopback has an MTU of 65536, and IPv4 packets end at 65535.
        assert!(found.forward.unwrap() >= Bytes::new(16_384), "{found:?}");
        assert_eq!(found.forward, found.reverse);
    }

    #[test]
    fn who_does_not_know_the_token_hears_nothing() {
        let local: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let answering = Answering::start(local, local).unwrap();
        let far = SocketAddr::new(local.ip(), answering.port);
        let mut stranger = Prober::new(local, far, [7; 16], Duration::ZERO).unwrap();
        let found = stranger.measure(&|| true).unwrap();
        assert_eq!(found, PathMtu { forward: None, reverse: None });
    }
}
