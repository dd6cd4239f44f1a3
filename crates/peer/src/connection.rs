//! An authenticated connection whose bytes belong to another protocol than messages: a relay's
//! carrier.

use crate::PublicKey;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr, Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a carrier over loopback begins with, where no TLS says what it is. No ticket, no TLS record
/// and no control frame begins with it.
pub(super) const CARRIER: u8 = b'R';

/// Who a connection counts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Who {
    Key(PublicKey),
    Network(IpAddr),
}

impl Who {
    /// The key, or without one the address. Of IPv6 that is the network of 64 bits: whoever has one
    /// address of it has all of them.
    pub fn of(key: Option<PublicKey>, remote: SocketAddr) -> Who {
        let network = match remote.ip().to_canonical() {
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
            address @ IpAddr::V4(_) => address,
        };
        key.map_or(Who::Network(network), Who::Key)
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
    pub place: Option<ConnectionSlot>,
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

/// The places of connections: bounded for all of them together, and for each [`Who`]. A connection
/// that has not shown yet what it is can lose its place to a newer one, so silence keeps nobody
/// out.
#[derive(Debug, Clone, Default)]
pub(super) struct Places(Arc<Mutex<Taken>>);

#[derive(Debug, Default)]
struct Taken {
    next: u64,
    /// By their numbers, so the oldest is the first.
    held: BTreeMap<u64, HeldPlace>,
}

/// A place that somebody has.
#[derive(Debug)]
struct HeldPlace {
    who: Who,
    /// The connection, for as long as it may lose its place.
    stream: Option<TcpStream>,
    is_silent: bool,
}

/// A connection's place; given back when dropped.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    places: Places,
    number: u64,
}

impl Places {
    /// A place for one more connection of `who`, who may have `each` of `all`. Where none is free,
    /// a connection that has not settled is closed; `None` if all have settled.
    pub fn take(
        &self,
        who: Who,
        stream: &TcpStream,
        all: usize,
        each: usize,
    ) -> Option<ConnectionSlot> {
        let mut taken = self.lock();
        let is_own_full = taken.held.values().filter(|held| held.who == who).count() >= each;
        if is_own_full || taken.held.len() >= all {
            let number = taken.first_to_go(is_own_full.then_some(who))?;
            // What is gone by itself needs no closing.
            if let Some(stream) = taken.held.remove(&number).and_then(|held| held.stream) {
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
        let number = taken.next;
        taken.next += 1;
        // Without a descriptor to spare, it keeps its place.
        let stream = stream.try_clone().ok();
        taken.held.insert(number, HeldPlace { who, stream, is_silent: true });
        Some(ConnectionSlot { places: self.clone(), number })
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    /// The place to lose: of `who`, or of whoever has most of those that may be lost, so that a
    /// crowd loses its own. There the silent go first, and among them the oldest.
    fn first_to_go(&self, who: Option<Who>) -> Option<u64> {
        let open = self.held.iter().filter(|(_, held)| held.stream.is_some());
        let mut crowds: HashMap<Who, usize> = HashMap::new();
        open.clone().for_each(|(_, held)| *crowds.entry(held.who).or_default() += 1);
        open.filter(|(_, held)| who.is_none_or(|who| held.who == who))
            .min_by_key(|(number, held)| {
                let crowd = crowds.get(&held.who).copied().unwrap_or(0);
                (Reverse(crowd), !held.is_silent, **number)
            })
            .map(|(number, _)| *number)
    }
}

impl ConnectionSlot {
    /// The connection has said something, though not yet enough.
    pub fn has_spoken(&self) {
        if let Some(held) = self.places.lock().held.get_mut(&self.number) {
            held.is_silent = false;
        }
    }

    /// The connection is what it should be: it keeps its place.
    pub fn settle(&self) {
        if let Some(held) = self.places.lock().held.get_mut(&self.number) {
            held.stream = None;
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.places.lock().held.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::TcpListener;

    const ALL: usize = 5;
    const EACH: usize = 3;

    fn who(last: u8) -> Who {
        Who::of(None, SocketAddr::from(([192, 0, 2, last], 1)))
    }

    /// Places with the connections that wait for them.
    struct Door(Places, TcpListener);

    impl Door {
        fn new() -> Door {
            Door(Places::default(), TcpListener::bind("127.0.0.1:0").unwrap())
        }

        /// A client, and its place.
        fn knock(&self, who: Who) -> (TcpStream, Option<ConnectionSlot>) {
            let client = TcpStream::connect(self.1.local_addr().unwrap()).unwrap();
            client.set_read_timeout(Some(std::time::Duration::from_secs(30))).unwrap();
            let (stream, _) = self.1.accept().unwrap();
            let place = self.0.take(who, &stream, ALL, EACH);
            // It stays open by the place's own descriptor alone.
            (client, place)
        }
    }

    /// Whether its other end has closed it.
    fn is_closed(client: &mut TcpStream) -> bool {
        client.read(&mut [0]).is_ok_and(|count| count == 0)
    }

    #[test]
    fn places_are_bounded_for_each_and_for_all_and_given_back() {
        let door = Door::new();
        let settled = |who| {
            let (_, place) = door.knock(who);
            place.inspect(ConnectionSlot::settle)
        };
        let mut all: Vec<ConnectionSlot> = (0..EACH).filter_map(|_| settled(who(1))).collect();
        assert!(all.len() == EACH && settled(who(1)).is_none());
        all.extend((EACH..ALL).filter_map(|_| settled(who(2))));
        assert!(all.len() == ALL && settled(who(3)).is_none());
        all.pop();
        assert!(settled(who(3)).is_some());
        drop(all);
        assert!(door.0.lock().held.is_empty());
    }

    #[test]
    fn the_oldest_silent_one_of_the_largest_crowd_goes() {
        let door = Door::new();
        let (mut lone, lone_place) = door.knock(who(9));
        let mut crowd: Vec<_> = (0..EACH).map(|_| door.knock(who(1))).collect();
        // The first of the crowd has spoken, so the second goes for one more of the same.
        crowd[0].1.as_ref().unwrap().has_spoken();
        let one_more = door.knock(who(1));
        assert!(one_more.1.is_some() && is_closed(&mut crowd[1].0));
        // All places are taken: another one's newcomer takes one of the crowd's.
        let other = door.knock(who(2));
        let newcomer = door.knock(who(3));
        assert!(other.1.is_some() && newcomer.1.is_some() && is_closed(&mut crowd[2].0));
        // When nobody of the crowd is silent any more, one that has spoken goes.
        one_more.1.as_ref().unwrap().has_spoken();
        let last = door.knock(who(4));
        assert!(last.1.is_some() && is_closed(&mut crowd[0].0));
        assert_eq!(door.0.lock().held.len(), ALL);
        lone_place.unwrap().settle();
        drop((crowd, one_more, other, newcomer, last));
        assert!(is_closed(&mut lone), "its place holds it no more");
        assert!(door.0.lock().held.is_empty());
    }

    #[test]
    fn an_address_of_ipv6_counts_as_its_network() {
        let of = |text: &str| Who::of(None, SocketAddr::new(text.parse().unwrap(), 1));
        assert_eq!(of("2001:db8:0:1::1"), of("2001:db8:0:1:ffff::2"));
        assert_ne!(of("2001:db8:0:1::1"), of("2001:db8:0:2::1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
        assert_eq!(of("192.0.2.1"), of("::ffff:192.0.2.1"));
        assert_ne!(of("::ffff:192.0.2.1"), of("::ffff:192.0.2.2"));
    }
}
