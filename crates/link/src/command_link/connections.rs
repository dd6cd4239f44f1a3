//! The table of the gateway's connections, for the code that does not carry their bytes.

use super::bounds::GatewayCounters;
use fullpipe_kernel::socket::transparent;
use fullpipe_model::units::Bytes;
use std::collections::HashMap;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// A connection of the command: its end at the gateway, and the onward connection.
#[derive(Debug, Default)]
pub(super) struct CarriedConnection {
    far: OnceLock<Arc<TcpStream>>,
    /// Bytes that were read from the command's side and not yet written to the other.
    carried: AtomicU64,
    upwards_ended: AtomicBool,
    /// Whether the handshake over the link is complete. Before that the command cannot have sent
    /// anything.
    accepted: AtomicBool,
    /// Where to send the command's end.
    expects: Mutex<Option<Sender<TcpStream>>>,
}

/// Identifies a connection: the command's end, and the end that it requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ConnectionEnds {
    /// The command's end.
    pub(super) near: SocketAddr,
    /// The requested end.
    pub(super) meant: SocketAddr,
}

impl CarriedConnection {
    /// Records the onward connection.
    pub(super) fn connected(&self, far: &Arc<TcpStream>) {
        let _ = self.far.set(Arc::clone(far));
    }

    /// Records that the handshake over the link is complete.
    pub(super) fn accepted(&self) {
        self.accepted.store(true, Ordering::Release);
    }

    /// The returned receiver gets the command's end once the handshake over the link is complete.
    pub(super) fn expect(&self) -> Receiver<TcpStream> {
        let (sender, receiver) = channel();
        *self.expects.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
        receiver
    }

    /// Records how many bytes from the command's side the gateway holds.
    pub(super) fn set_carried(&self, bytes: usize) {
        self.carried.store(bytes as u64, Ordering::Relaxed);
    }

    /// Records that nothing more comes from the command's side.
    pub(super) fn end_upwards(&self) {
        self.upwards_ended.store(true, Ordering::Release);
    }

    /// Bytes from the command's side that the gateway has read and the server's kernel has not
    /// acknowledged; the end of the stream counts as one. `None` if the server has everything and
    /// no more will come.
    pub(super) fn owed(&self) -> Option<Bytes> {
        if !self.accepted.load(Ordering::Acquire) {
            return None;
        }
        let ended = self.upwards_ended.load(Ordering::Acquire);
        let unsent =
            self.far.get().and_then(|far| transparent::unsent(far).ok()).unwrap_or_default();
        let owed = Bytes::new(self.carried.load(Ordering::Relaxed)) + unsent;
        (!ended || owed > Bytes::ZERO).then_some(owed)
    }
}

/// All connections; each has a slot.
#[derive(Debug)]
pub(super) struct ConnectionTable {
    all: Mutex<HashMap<ConnectionEnds, Arc<CarriedConnection>>>,
    max: usize,
    counters: Arc<GatewayCounters>,
}

impl ConnectionTable {
    /// An empty table for at most `max` connections; refused ones are counted.
    pub(super) fn new(max: usize, counters: &Arc<GatewayCounters>) -> ConnectionTable {
        ConnectionTable { all: Mutex::default(), max, counters: Arc::clone(counters) }
    }

    /// Takes a slot for a connection, which is freed when it is dropped; `None` if there is none,
    /// which is counted.
    pub(super) fn enter(self: &Arc<Self>, ends: ConnectionEnds) -> Option<Slot> {
        let mut all = self.lock();
        if all.len() >= self.max {
            self.counters.refuse_connection();
            return None;
        }
        let connection = Arc::new(CarriedConnection::default());
        all.insert(ends, Arc::clone(&connection));
        Some(Slot { ends, connection, connections: Arc::clone(self) })
    }

    /// Whether the onward connection exists already; `None` if there is no such connection.
    pub(super) fn is_connected(&self, ends: ConnectionEnds) -> Option<bool> {
        self.lock().get(&ends).map(|connection| connection.far.get().is_some())
    }

    /// Passes the command's end to the thread that expects it; returns it if nobody does.
    pub(super) fn hand_over(&self, ends: ConnectionEnds, near: TcpStream) -> Result<(), TcpStream> {
        let Some(connection) = self.lock().get(&ends).map(Arc::clone) else { return Err(near) };
        let expects = connection.expects.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(sender) = expects else { return Err(near) };
        connection.accepted();
        sender.send(near).map_err(|unsent| unsent.0)
    }

    /// Connections with data that a server has not received, and how much.
    pub(super) fn owed(&self) -> Vec<(ConnectionEnds, Bytes)> {
        self.lock()
            .iter()
            .filter_map(|(&ends, connection)| Some((ends, connection.owed()?)))
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ConnectionEnds, Arc<CarriedConnection>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection's place in the table.
#[derive(Debug)]
pub(super) struct Slot {
    ends: ConnectionEnds,
    /// The connection.
    pub(super) connection: Arc<CarriedConnection>,
    connections: Arc<ConnectionTable>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut all = self.connections.lock();
        // The port may have been reused in the meantime.
        if all.get(&self.ends).is_some_and(|there| Arc::ptr_eq(there, &self.connection)) {
            all.remove(&self.ends);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(port: u16) -> ConnectionEnds {
        ConnectionEnds {
            near: SocketAddr::from(([10, 77, 0, 2], port)),
            meant: SocketAddr::from(([192, 0, 2, 1], 80)),
        }
    }

    #[test]
    fn a_slot_is_given_back_when_it_is_dropped() {
        let counters = Arc::default();
        let connections = Arc::new(ConnectionTable::new(20, &counters));
        let mut slots: Vec<_> =
            (0..20).map(|port| connections.enter(ends(port)).unwrap()).collect();
        assert!(connections.enter(ends(60_000)).is_none());
        assert_eq!(counters.read().refused_connections, 1);
        slots.pop();
        assert!(connections.enter(ends(60_000)).is_some());
    }

    #[test]
    fn something_is_owed_until_the_end_has_come_and_all_is_written() {
        let connections = Arc::new(ConnectionTable::new(20, &Arc::default()));
        let slot = connections.enter(ends(1)).unwrap();
        assert_eq!(connections.owed(), [], "without a handshake nothing can have been sent");
        slot.connection.accepted();
        assert_eq!(connections.owed(), [(ends(1), Bytes::ZERO)]);
        slot.connection.set_carried(7);
        slot.connection.end_upwards();
        assert_eq!(connections.owed(), [(ends(1), Bytes::new(7))]);
        slot.connection.set_carried(0);
        assert_eq!(connections.owed(), []);
    }
}
