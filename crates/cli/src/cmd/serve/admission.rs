//! Who may come in and where relays may connect to: options and files, which are read again on
//! SIGHUP. What is connected stays connected.

use super::super::peer_keys::{allowed_keys, private_key};
use crate::failure::{Failure, Kind};
use crate::sentence::{Sentence, either};
use crate::terminal::{OwnTerminal, remark};
use clap::Args;
use fullpipe_kernel::run::sandbox::Interrupt;
use fullpipe_peer::relay::{AllowList, FarEnd};
use fullpipe_peer::{Keyring, PrivateKey, PublicKey};
use fullpipe_transfer::Stop;
use std::path::{Path, PathBuf};

/// The files with keys.
#[derive(Args, Clone)]
pub struct KeyFiles {
    /// The file with this daemon's private key, as `fullpipe keygen` makes it.
    #[arg(long, value_name = "FILE", requires = "allow_key")]
    key: Option<PathBuf>,
    /// A file with the public keys of those who may connect, one a line. On SIGHUP it is read
    /// again, and --key, too.
    #[arg(long, value_name = "FILE", requires = "key")]
    allow_key: Option<PathBuf>,
}

impl KeyFiles {
    /// The daemon's key, and those that it lets in.
    pub fn read(&self) -> Result<Option<(PrivateKey, Vec<PublicKey>)>, Failure> {
        match (&self.key, &self.allow_key) {
            (Some(key), Some(allowed)) => Ok(Some((private_key(key)?, allowed_keys(allowed)?))),
            _ => Ok(None),
        }
    }
}

/// Where relays may connect to.
#[derive(Args, Clone)]
pub struct Destinations {
    /// Where relays may connect to; repeatable. HOST is a name, an address, a network or *, PORT a
    /// number, a range or *. This host's loopback and link-local addresses have to be named
    /// literally, for example as localhost:5432.
    #[arg(long, value_name = "HOST:PORT", requires = "relay")]
    allow: Vec<AllowList>,
    /// A file with more of them, one a line; # begins a comment. It is read again on SIGHUP.
    #[arg(long, value_name = "FILE", requires = "relay")]
    allow_from: Option<PathBuf>,
}

impl Destinations {
    /// Whether none is given at all.
    pub fn are_missing(&self) -> bool {
        self.allow.is_empty() && self.allow_from.is_none()
    }

    /// All of them.
    pub fn read(&self) -> Result<AllowList, Failure> {
        let mut all = AllowList::default();
        self.allow.iter().cloned().for_each(|rules| all.extend(rules));
        if let Some(path) = &self.allow_from {
            all.extend(allowed_destinations(path)?);
        }
        Ok(all)
    }
}

/// The destinations in a file.
fn allowed_destinations(path: &Path) -> Result<AllowList, Failure> {
    let wrong = |why: Sentence| {
        let name = path.display();
        let what = format!("read allowed destinations {name}");
        Failure::new(Kind::Input, Sentence::new(what, format!("读取允许的目的地 {name}")).and(&why))
    };
    let text = std::fs::read_to_string(path).map_err(|error| wrong(Sentence::as_is(error)))?;
    let mut all = AllowList::default();
    for (number, line) in text.lines().enumerate() {
        let rule = line.split('#').next().unwrap_or_default().trim();
        if !rule.is_empty() {
            let parsed: Result<AllowList, _> = rule.parse();
            let number = number + 1;
            let place = Sentence::new(format!("line {number}"), format!("第 {number} 行"));
            all.extend(parsed.map_err(|error| wrong(place.and(&(&error).into())))?);
        }
    }
    Ok(all)
}

/// What is read again on SIGHUP.
pub struct Reload {
    pub keys: KeyFiles,
    pub keyring: Keyring,
    pub destinations: Destinations,
}

impl Reload {
    /// Whether there is a file to read again. Without one, SIGHUP ends the daemon, as it ends any
    /// program whose terminal closes.
    pub fn has_files(&self) -> bool {
        self.keys.key.is_some() || self.destinations.allow_from.is_some()
    }

    /// Reads everything again, and takes it over if all of it is right.
    pub fn again(&self, far_end: Option<&FarEnd>) -> Result<(), Failure> {
        let keys = self.keys.read()?;
        let allow = self.destinations.read()?;
        if let Some((own, allowed)) = keys {
            self.keyring.replace(&own, allowed).map_err(|error| {
                let what = Sentence::new("take new keys", "采用新的密钥");
                Failure::new(Kind::Input, what.and(&(&error).into()))
            })?;
        }
        if let Some(far_end) = far_end {
            far_end.allow(allow);
        }
        Ok(())
    }

    /// Reads again at each SIGHUP, until `end` is set. One that says that the daemon's `terminal`
    /// was closed makes `stop`.
    pub fn on_hangup(
        &self,
        mut hangup: Interrupt,
        end: &Interrupt,
        far_end: Option<&FarEnd>,
        (terminal, stop): (OwnTerminal, &Stop),
    ) {
        while let Ok(true) = hangup.wait_beside(end) {
            // The next signal may come while this one is answered.
            let next = Interrupt::on_hangup();
            if terminal.is_closed() {
                stop.stop();
                return;
            }
            match self.again(far_end) {
                Ok(()) => remark(either(
                    "read keys and destinations again, for new connections",
                    "已重新读取密钥和目的地，用于新的连接",
                )),
                Err(failure) => {
                    let why = failure.message().here();
                    remark(&either(format!("nothing changed: {why}"), format!("没有改变：{why}")));
                }
            }
            match next {
                Ok(next) => hangup = next,
                Err(_) => return,
            }
        }
    }
}
