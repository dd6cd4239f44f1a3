//! Connections whose frames can be read, so that their segments are passed on whole: those that
//! begin with HTTP/2's preface, and those of TLS whose keys are known. Whoever reads the capture
//! asks before connections are known.

use crate::capture::segment::{ApplicationProtocol, Flags, FlowKey, PayloadStart};
use crate::config::Config;
use crate::frames::{KeyLog, can_read};
use std::collections::HashMap;

/// The most connections that are remembered. More are passed on without payload.
const MOST: usize = 1 << 16;

/// The connections, each with how many FINs it had. The hash is keyed anew in each process.
#[derive(Debug)]
pub(super) struct Followed {
    is_wanted: bool,
    keys: KeyLog,
    open: HashMap<FlowKey, u8, foldhash::fast::RandomState>,
}

impl Followed {
    /// None yet.
    pub fn new(config: &Config) -> Self {
        let Config { frames, ref keys, .. } = *config;
        Followed { is_wanted: frames, keys: keys.clone(), open: HashMap::default() }
    }

    /// Learns secrets of connections.
    pub fn learn(&mut self, log: &[u8]) {
        if self.is_wanted {
            self.keys.learn(log);
        }
    }

    /// Whether there is any.
    #[inline]
    pub fn any(&self) -> bool {
        !self.open.is_empty()
    }

    /// Whether a segment that begins so may be the first of one.
    #[inline]
    pub fn may_begin(&self, start: PayloadStart) -> bool {
        match start {
            PayloadStart::Http2Preface | PayloadStart::Says(ApplicationProtocol::Http2) => {
                self.is_wanted
            }
            PayloadStart::ClientHello => !self.keys.is_empty(),
            _ => false,
        }
    }

    /// Whether this segment begins one.
    pub fn begins(&mut self, key: FlowKey, start: PayloadStart, payload: &[u8]) -> bool {
        let begins =
            self.may_begin(start) && self.open.len() < MOST && can_read(start, payload, &self.keys);
        if begins {
            self.open.insert(key, 0);
        }
        begins
    }

    /// Whether a segment of this connection, with these flags, is one of those. After a reset, or
    /// the FINs of both ends and their repetition, it is forgotten.
    #[inline]
    pub fn is_one(&mut self, key: FlowKey, flags: Flags) -> bool {
        self.any() && self.notes(key, flags)
    }

    fn notes(&mut self, key: FlowKey, flags: Flags) -> bool {
        const FINS_MOST: u8 = 4;
        let Some(fins) = self.open.get_mut(&key) else { return false };
        *fins += u8::from(flags.any(Flags::FIN));
        let is_over = *fins >= FINS_MOST || flags.any(Flags::RST);
        let is_new = flags.any(Flags::SYN);
        if is_over || is_new {
            self.open.remove(&key);
        }
        // Another connection on its ports may be none.
        !is_new
    }
}
