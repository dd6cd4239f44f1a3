//! Looking up names: a call that blocks a thread for as long as a resolver lets it wait.
//!
//! A far end has a bounded number of such threads, so names that no resolver answers for could take
//! all of them. Each session may therefore have [`SESSION_MOST`] of them, and each key
//! [`KEY_MOST`]; what is beyond that waits for its own. A call cannot be ended, so it holds its
//! places until it returns, also when nobody waits for it any more.

use crate::PublicKey;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use tokio::sync::Semaphore;

/// Threads of a far end: at least 16 keys have to work together to take all of them.
pub(super) const THREADS: usize = 512;
/// Lookups of one session at the same time.
const SESSION_MOST: usize = 8;
/// Lookups of one key at the same time, or of all sessions without keys over loopback.
const KEY_MOST: usize = 32;

/// The lookups of all keys.
#[derive(Debug, Default)]
pub(super) struct Lookups(RefCell<HashMap<Option<PublicKey>, Weak<Semaphore>>>);

/// The lookups of one session.
#[derive(Debug, Clone)]
pub(super) struct SessionLookups {
    session: Arc<Semaphore>,
    key: Arc<Semaphore>,
}

impl Lookups {
    /// The lookups of a new session of `key`.
    pub fn of_session(&self, key: Option<PublicKey>) -> SessionLookups {
        let mut keys = self.0.borrow_mut();
        keys.retain(|_, known| known.strong_count() > 0);
        let known = keys.get(&key).and_then(Weak::upgrade);
        let key_places = known.unwrap_or_else(|| Arc::new(Semaphore::new(KEY_MOST)));
        keys.insert(key, Arc::downgrade(&key_places));
        SessionLookups { session: Arc::new(Semaphore::new(SESSION_MOST)), key: key_places }
    }
}

impl SessionLookups {
    /// Does `lookup`, which may block, on a thread, when it is this session's turn. `None` if it
    /// panicked.
    pub async fn run<T: Send + 'static>(
        &self,
        lookup: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        // The session's own place first: one that waits here holds nothing of its key's.
        let session = Arc::clone(&self.session).acquire_owned().await.ok()?;
        let key = Arc::clone(&self.key).acquire_owned().await.ok()?;
        let places = (session, key);
        let looked_up = tokio::task::spawn_blocking(move || {
            let found = lookup();
            drop(places);
            found
        });
        looked_up.await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PrivateKey;
    use std::sync::RwLock;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// A resolver that does not answer before it may.
    #[derive(Default)]
    struct Mute {
        lock: RwLock<()>,
        asked: AtomicUsize,
    }

    /// Runs `trial` as a far end runs.
    fn as_far_end(trial: impl Future<Output = ()>) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().max_blocking_threads(THREADS).build().unwrap();
        tokio::task::LocalSet::new().block_on(&runtime, async {
            tokio::time::timeout(PATIENCE, trial).await.expect("it ends in time");
        });
    }

    /// Begins as many lookups as fit into a burst of streams, and lets them wait for `mute`.
    fn burst(session: &SessionLookups, mute: &Arc<Mute>) -> tokio::task::JoinSet<()> {
        let mut waiting = tokio::task::JoinSet::new();
        for _ in 0..2 * THREADS {
            let (session, mute) = (session.clone(), Arc::clone(mute));
            waiting.spawn_local(async move {
                let looked_up = session.run(move || {
                    mute.asked.fetch_add(1, Ordering::SeqCst);
                    drop(mute.lock.read());
                });
                looked_up.await.unwrap();
            });
        }
        waiting
    }

    #[test]
    fn slow_names_of_a_session_stop_no_other_one() {
        let key = || PrivateKey::generate().unwrap().public();
        let (one, other) = (key(), key());
        for (slow, quick) in [(None, None), (one, one), (one, other), (one, None)] {
            let mute = Arc::new(Mute::default());
            let held = mute.lock.write().unwrap();
            as_far_end(async {
                let lookups = Lookups::default();
                let (first, second) = (lookups.of_session(slow), lookups.of_session(quick));
                let mut waiting = burst(&first, &mute);
                for _ in 0..2 * SESSION_MOST {
                    assert_eq!(second.run(|| 7).await, Some(7));
                }
                // Nobody waits for these any more, and the threads are still taken.
                waiting.abort_all();
                while waiting.join_next().await.is_some() {}
                let mut again = burst(&first, &mute);
                assert_eq!(second.run(|| 7).await, Some(7));
                assert!(mute.asked.load(Ordering::SeqCst) <= SESSION_MOST);
                drop(held);
                while let Some(done) = again.join_next().await {
                    done.unwrap();
                }
                assert_eq!(first.run(|| 7).await, Some(7));
            });
        }
    }

    #[test]
    fn a_key_with_many_sessions_stops_no_other_key() {
        let key = || PrivateKey::generate().unwrap().public();
        let (one, other) = (key(), key());
        let mute = Arc::new(Mute::default());
        let held = mute.lock.write().unwrap();
        as_far_end(async {
            let lookups = Lookups::default();
            let sessions: Vec<_> = (0..16).map(|_| lookups.of_session(one)).collect();
            let waiting: Vec<_> = sessions.iter().map(|session| burst(session, &mute)).collect();
            assert_eq!(lookups.of_session(other).run(|| 7).await, Some(7));
            assert!(mute.asked.load(Ordering::SeqCst) <= KEY_MOST);
            drop((held, waiting));
        });
    }
}
