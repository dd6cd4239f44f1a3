//! An authenticated connection whose bytes belong to another protocol than messages: a relay's
//! carrier.

use super::PublicKey;
use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

/// What a carrier over loopback begins with, where no TLS says what it is. No ticket, no TLS record
/// and no control frame begins with it.
pub(super) const CARRIER: u8 = b'R';

/// Who a connection counts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Who {
    Key(PublicKey),
    Address(IpAddr),
}

impl Who {
    /// The key, or over loopback without keys the address.
    pub fn of(key: Option<PublicKey>, remote: SocketAddr) -> Who {
        key.map_or(Who::Address(remote.ip()), Who::Key)
    }
}

/// A connection that is authenticated, or over loopback. What follows is its holder's.
pub(crate) struct Connection {
    pub stream: TcpStream,
    /// TLS with its handshake done; `None` over loopback without keys. It may hold bytes that came
    /// behind the handshake.
    pub tls: Option<rustls::Connection>,
    pub remote: SocketAddr,
    /// The other end's key.
    pub key: Option<PublicKey>,
    /// At a daemon: what the connection counts as.
    pub place: Option<Place>,
}

/// Where a daemon puts the carriers that it accepts. It must not block.
pub struct CarrierSink(Box<dyn Fn(Connection) + Send + Sync>);

impl std::fmt::Debug for CarrierSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CarrierSink(..)")
    }
}

impl CarrierSink {
    pub(crate) fn new(take: impl Fn(Connection) + Send + Sync + 'static) -> CarrierSink {
        CarrierSink(Box::new(take))
    }

    pub(super) fn take(&self, connection: Connection) {
        (self.0)(connection);
    }
}

/// Whether a connection over loopback that begins with this byte is a carrier.
pub(super) fn is_carrier(first: u8) -> bool {
    first == CARRIER
}

/// The carriers that there are.
#[derive(Debug, Clone, Default)]
pub(super) struct Places(Arc<Mutex<HashMap<Who, usize>>>);

/// A carrier's place; given back when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Places,
    who: Who,
}

impl Places {
    /// A place for one more of `who`, who may have `each` of `all`; `None` if there is none.
    pub fn take(&self, who: Who, all: usize, each: usize) -> Option<Place> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = counts.get(&who).copied().unwrap_or(0);
        if own >= each || counts.values().sum::<usize>() >= all {
            return None;
        }
        *counts.entry(who).or_default() += 1;
        Some(Place { places: self.clone(), who })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = self.places.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.who) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.who);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_bounded_for_each_and_for_all_and_given_back() {
        let places = Places::default();
        let who = |last| Who::Address(IpAddr::from([127, 0, 0, last]));
        let first = places.take(who(1), 3, 2);
        let second = places.take(who(1), 3, 2);
        assert!(first.is_some() && second.is_some() && places.take(who(1), 3, 2).is_none());
        let other = places.take(who(2), 3, 2);
        assert!(other.is_some() && places.take(who(3), 3, 2).is_none());
        drop(first);
        assert!(places.take(who(3), 3, 2).is_some());
        drop((second, other));
        assert!(places.0.lock().unwrap().is_empty());
    }
}
