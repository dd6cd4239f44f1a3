//! The keys of a daemon, which may be replaced while it runs.

use crate::{AcceptError, PrivateKey, PublicKey, tls};
use rustls::ServerConfig;
use std::sync::{Arc, PoisonError, RwLock};

/// A daemon's own key and those of the peers that it lets in. Clones share them.
#[derive(Debug, Clone)]
pub struct Keyring(Arc<RwLock<Held>>);

#[derive(Debug)]
struct Held {
    /// `None`: without keys, over loopback.
    config: Option<Arc<ServerConfig>>,
    has_carriers: bool,
}

impl Keyring {
    pub(super) fn new(keys: Option<(&PrivateKey, Vec<PublicKey>)>) -> Result<Keyring, AcceptError> {
        let config = keys.map(|(own, allowed)| config(own, allowed)).transpose()?;
        Ok(Keyring(Arc::new(RwLock::new(Held { config, has_carriers: false }))))
    }

    /// Takes carriers of relays from now on.
    pub(super) fn allow_carriers(&self) {
        let mut held = self.0.write().unwrap_or_else(PoisonError::into_inner);
        held.has_carriers = true;
        held.config = held.config.as_deref().map(tls::with_carriers);
    }

    /// What a connection that begins now is asked for.
    pub(super) fn config(&self) -> Option<Arc<ServerConfig>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).config.clone()
    }

    /// Replaces the keys for connections that begin from now on. Those that there are stay.
    pub fn replace(&self, own: &PrivateKey, allowed: Vec<PublicKey>) -> Result<(), AcceptError> {
        let config = config(own, allowed)?;
        let mut held = self.0.write().unwrap_or_else(PoisonError::into_inner);
        held.config = Some(if held.has_carriers { tls::with_carriers(&config) } else { config });
        Ok(())
    }
}

fn config(own: &PrivateKey, allowed: Vec<PublicKey>) -> Result<Arc<ServerConfig>, AcceptError> {
    tls::server(own, allowed).map_err(|error| AcceptError::Keys(error.to_string()))
}
