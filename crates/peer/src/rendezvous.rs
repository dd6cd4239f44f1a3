//! Where data connections meet the test that expects them.

use crate::Ticket;
use crate::ticket::Secret;
use fullpipe_kernel::host::clock;
use fullpipe_model::units::Duration;
use std::collections::HashMap;
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

/// A test that waits for its data connections.
struct Waiting {
    secret: Secret,
    /// Which have come.
    taken: Vec<bool>,
    streams: Sender<(u16, TcpStream)>,
}

/// All tests that wait.
#[derive(Default, Clone)]
pub(super) struct Rendezvous(Arc<Mutex<HashMap<[u8; 16], Waiting>>>);

/// The data connections that a test expects. Dropped, no more are let in.
pub struct Expected {
    meet: Rendezvous,
    secret: Secret,
    /// The connections that have come, at their places.
    found: Vec<Option<TcpStream>>,
    streams: Receiver<(u16, TcpStream)>,
}

impl std::fmt::Debug for Expected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Expected").field("count", &self.found.len()).finish_non_exhaustive()
    }
}

impl Rendezvous {
    /// Expects `count` data connections; `None` without randomness.
    pub fn expect(&self, count: u16) -> Option<Expected> {
        let secret = Secret::generate()?;
        let (sender, streams) = channel();
        let taken = vec![false; count.into()];
        let waiting = Waiting { secret: secret.clone(), taken, streams: sender };
        self.lock().insert(secret.id(), waiting);
        let found = (0..count).map(|_| None).collect();
        Some(Expected { meet: self.clone(), secret, found, streams })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<[u8; 16], Waiting>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a test expects this ticket; from then on it does not any more.
    pub fn admits(&self, ticket: &Ticket) -> bool {
        let mut all = self.lock();
        let Some(waiting) = all.get_mut(&ticket.id()) else { return false };
        let index = usize::from(ticket.index());
        match waiting.taken.get_mut(index) {
            Some(taken) if !*taken && waiting.secret.made(ticket) => {
                *taken = true;
                true
            }
            _ => false,
        }
    }

    /// Hands an admitted connection over.
    pub fn hand_over(&self, ticket: &Ticket, stream: TcpStream) {
        if let Some(waiting) = self.lock().get(&ticket.id()) {
            // The test may have ended meanwhile.
            let _ = waiting.streams.send((ticket.index(), stream));
        }
    }
}

impl Expected {
    /// The two texts of the secret, for the control connection.
    pub fn secret(&self) -> (String, String) {
        self.secret.to_texts()
    }

    /// Waits up to `patience` for connections; whether all have come.
    pub fn have_come(&mut self, patience: Duration) -> bool {
        let start = clock::now();
        while self.found.iter().any(Option::is_none) {
            let left = patience.saturating_sub(clock::now().since(start));
            let Ok((index, stream)) = self.streams.recv_timeout(left.into()) else { return false };
            if let Some(place) = self.found.get_mut(usize::from(index)) {
                *place = Some(stream);
            }
        }
        true
    }

    /// The connections that have come, in their order.
    pub fn into_streams(mut self) -> Vec<TcpStream> {
        self.found.drain(..).flatten().collect()
    }
}

impl Drop for Expected {
    fn drop(&mut self) {
        self.meet.lock().remove(&self.secret.id());
    }
}
