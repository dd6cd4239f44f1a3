//! Lets another thread end a server or a download.

use std::sync::Arc;
use tokio::sync::watch;

/// A request to stop, made once and seen by every clone: keep one, and give the other to
/// [`crate::Server::run`] or [`crate::download`].
///
/// It takes a lock, so a signal handler must not call it; let the handler wake a thread that does.
#[derive(Debug, Clone)]
pub struct Stop(Arc<watch::Sender<bool>>);

impl Stop {
    /// Not yet stopped.
    pub fn new() -> Self {
        Stop(Arc::new(watch::Sender::new(false)))
    }

    /// Asks all holders of a clone to stop. May be called from any thread, before or while they
    /// run, and repeatedly.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }

    /// Whether [`Stop::stop`] was called.
    pub fn is_stopped(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns once [`Stop::stop`] was called.
    pub async fn stopped(&self) {
        // An error would mean that the sender is gone, but `self` holds it.
        let _ = self.0.subscribe().wait_for(|stopped| *stopped).await;
    }
}

impl Default for Stop {
    fn default() -> Self {
        Self::new()
    }
}
