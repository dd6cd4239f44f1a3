//! `fullpipe keygen`: a key for tests between hosts.

use crate::failure::{Failure, Kind};
use crate::sentence::{Sentence, either};
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
            return Err(Failure::new(
                Kind::Usage,
                Sentence::new("--name: it has a control character", "--name：其中有控制字符"),
            ));
        }
        let failed = |cause: Sentence| {
            let what = format!("write private key {file}");
            Failure::new(Kind::Input, Sentence::new(what, format!("写入私钥 {file}")).and(&cause))
        };
        let key = PrivateKey::generate().ok_or_else(|| {
            failed(Sentence::new("this host has no randomness", "本机没有随机数"))
        })?;
        let public = key.public().ok_or_else(|| {
            failed(Sentence::new("the key is not valid; try again", "密钥无效；请再试"))
        })?;
        self.write(&key.to_line()).map_err(|error| failed(refusal(&error)))?;
        if self.json {
            let document =
                KeygenDocument { file: file.to_string(), public_key: public.to_string() };
            return Ok(print_json(&document).map(|()| 0)?);
        }
        let name = if self.name.is_empty() { String::new() } else { format!(" {}", self.name) };
        print(&either(
            format!(
                "The private key is in {file}; it stays on this host.\n\
                 A daemon lets this host in by this line in its --allow-key file:\n\
                 {public}{name}\n\
                 A client of a daemon that has this key adds to its command:\n\
                 --server-key {public}\n"
            ),
            format!(
                "私钥在 {file}；它留在本机。\n\
                 守护进程凭其 --allow-key 文件中的这一行让本机进入：\n\
                 {public}{name}\n\
                 持有此密钥的守护进程，其客户端在命令中加上：\n\
                 --server-key {public}\n"
            ),
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

/// Why a key was not written.
fn refusal(error: &io::Error) -> Sentence {
    match error.kind() {
        io::ErrorKind::AlreadyExists => Sentence::new(
            "the file exists, and a key is never replaced; name another",
            "文件已存在，而密钥从不被替换；请换一个文件",
        ),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Sentence::new(
            format!("{error}; nothing was written: free some space"),
            format!("{error}；没有写入任何内容：请腾出空间"),
        ),
        _ => Sentence::new(
            format!("{error}; name a file in a folder that you may write to"),
            format!("{error}；请给出可写文件夹中的文件"),
        ),
    }
}
