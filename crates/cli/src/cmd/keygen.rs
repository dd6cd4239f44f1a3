//! `fullpipe keygen`: a key for tests between hosts.

use crate::failure::{Failure, Kind};
use crate::terminal::{print, print_json};
use clap::Args;
use fullpipe_peer::PrivateKey;
use serde::Serialize;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Make a key by which two hosts know each other, and print the lines to paste.
///
/// Writes the private key to FILE, which only its owner may read, and never replaces a file. Each
/// host needs a key of its own: the daemon's is told to its clients, and the clients' to the
/// daemon.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe keygen ~/.config/fullpipe.key
  fullpipe keygen /etc/fullpipe/serve.key --name server
  fullpipe keygen my.key --json | jq -r .public_key")]
pub struct Keygen {
    /// The file to write.
    file: PathBuf,
    /// A name for the key, as a comment in the list of allowed keys.
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    name: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// The JSON of `fullpipe keygen`.
#[derive(Serialize)]
struct KeygenDocument {
    /// The file with the private key.
    file: String,
    /// What others may know.
    public_key: String,
}

impl Keygen {
    pub fn run(self) -> Result<u8, Failure> {
        let file = self.file.display();
        if self.name.chars().any(char::is_control) {
            return Err(Failure::new(Kind::Usage, "--name: it has a control character"));
        }
        let failed = |cause: &dyn std::fmt::Display| {
            Failure::new(Kind::Input, format!("write private key {file}: {cause}"))
        };
        let key = PrivateKey::generate().ok_or_else(|| failed(&"this host has no randomness"))?;
        let public = key.public().ok_or_else(|| failed(&"the key is not valid; try again"))?;
        self.write(&key.to_line()).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                failed(&"the file exists, and a key is never replaced; name another")
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                failed(&format!("{error}; nothing was written: free some space"))
            }
            _ => failed(&format!("{error}; name a file in a folder that you may write to")),
        })?;
        if self.json {
            let document =
                KeygenDocument { file: file.to_string(), public_key: public.to_string() };
            return Ok(print_json(&document).map(|()| 0)?);
        }
        let name = if self.name.is_empty() { String::new() } else { format!(" {}", self.name) };
        print(&format!(
            "The private key is in {file}; it stays on this host.\n\
             A daemon lets this host in by this line in its --allow-key file:\n\
             {public}{name}\n\
             A client of a daemon that has this key adds to its command:\n\
             --server-key {public}\n"
        ))?;
        Ok(0)
    }

    /// Writes the key under another name first, so that a file with this one is a whole key.
    fn write(&self, line: &str) -> io::Result<()> {
        let parent = self.file.parent().filter(|parent| !parent.as_os_str().is_empty());
        // Only its owner may read it, as tempfile makes it.
        let mut made = tempfile::Builder::new()
            .prefix(".fullpipe-key-")
            .tempfile_in(parent.unwrap_or(Path::new(".")))?;
        made.write_all(line.as_bytes())?;
        made.as_file().sync_all()?;
        made.persist_noclobber(&self.file).map(drop).map_err(|refused| refused.error)
    }
}
