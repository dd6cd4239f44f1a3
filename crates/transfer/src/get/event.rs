//! What a download tells while it goes on, and what its user should know.

use super::GetError;
use crate::Timing;
use fullpipe_model::units::{Bytes, Duration};
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// What an observer hears.
#[derive(Debug)]
pub enum GetEvent {
    /// A connection was made.
    Connected {
        /// Our address and port.
        local: SocketAddr,
        /// The server's, or the proxy's.
        peer: SocketAddr,
    },
    /// The answer is there.
    Started {
        /// The file's length, if it is known.
        length: Option<Bytes>,
        /// What an earlier run has fetched.
        resumed: Bytes,
        /// What it took until then; its end is the first byte.
        timing: Timing,
    },
    /// Some ten times a second.
    Progress {
        /// What is there, with what an earlier run has fetched.
        done: Bytes,
        /// The file's length, if it is known.
        length: Option<Bytes>,
        /// Connections that fetch.
        connections: usize,
    },
    /// Something that the user should know.
    Notice(GetNotice),
}

/// Something that the user should know while the download goes on.
#[derive(Debug)]
pub enum GetNotice {
    /// What an earlier run left is not used.
    Distrusted(Distrusted),
    /// The earlier run had another file, or one that cannot be continued.
    AnotherFile,
    /// The earlier run fetched another URL into this file.
    AnotherUrl,
    /// One connection, although more were allowed: why.
    OneConnection(&'static str),
    /// The server did not take one more connection.
    Refused {
        /// Its number.
        number: usize,
        /// Why, if that is an error.
        error: Option<GetError>,
        /// Else, why no part can be asked for.
        why: &'static str,
    },
    /// It is tried again.
    Again {
        /// What failed.
        error: GetError,
        /// After so long.
        delay: Duration,
    },
    /// It begins again at the first byte.
    Anew {
        /// What failed.
        error: GetError,
        /// After so long.
        delay: Duration,
    },
    /// A redirect led to another server, which does not get these header fields.
    Withheld {
        /// Its host and port.
        host: String,
        /// Names of header fields that the user gave.
        fields: String,
    },
    /// A redirect led from `https` to `http`, and a digest checks what comes.
    Unprotected,
}

/// A file of an earlier run that is not to be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distrusted {
    /// Which.
    pub path: PathBuf,
    /// Why: what it is.
    pub why: &'static str,
    /// What the system said, if that is why.
    pub cause: Option<String>,
}

impl Distrusted {
    pub(super) fn new(path: &Path, why: &'static str) -> Distrusted {
        Distrusted { path: path.into(), why, cause: None }
    }
}

impl fmt::Display for GetNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GetNotice::Distrusted(Distrusted { path, why, cause }) => {
                write!(f, "{} {why}", path.display())?;
                cause.iter().try_for_each(|cause| write!(f, ": {cause}"))?;
                f.write_str(": from the first byte")
            }
            GetNotice::AnotherFile => f.write_str(
                "the file is another than in the earlier run, or cannot be continued: from its \
                 first byte",
            ),
            GetNotice::AnotherUrl => f.write_str(
                "the earlier run fetched another URL into this file: from the first byte of this \
                 one",
            ),
            GetNotice::OneConnection(why) => write!(f, "one connection, because {why}"),
            GetNotice::Refused { number, error, why } => {
                let why = error.as_ref().map_or_else(|| (*why).to_owned(), ToString::to_string);
                write!(f, "connection {number} was refused ({why}): {} stay", number - 1)
            }
            GetNotice::Again { error, delay } => write!(f, "{error}; trying again in {delay}"),
            GetNotice::Anew { error, delay } => {
                write!(f, "{error}; from the first byte again in {delay}")
            }
            GetNotice::Withheld { host, fields } => {
                write!(f, "redirected to another server, {host}: not sent there: {fields}")
            }
            GetNotice::Unprotected => f.write_str(
                "redirected from https to http, where anyone on the path can read and change the \
                 file: followed, because --sha256 checks it",
            ),
        }
    }
}
