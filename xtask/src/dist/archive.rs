//! Archives whose bytes depend on nothing but what is in them.

use super::tree::{SCHEMAS, packed};
use super::{Architecture, Release, write};
use anyhow::Context;
use std::path::Path;

/// An archive in the making: every file belongs to root, and has the commit's time.
pub struct Archive {
    tar: tar::Builder<Vec<u8>>,
    time: u64,
}

impl Archive {
    /// An empty one, of files with this time, in seconds since 1970.
    pub fn new(time: u64) -> Archive {
        Archive { tar: tar::Builder::new(Vec::new()), time }
    }

    /// Adds a file.
    pub fn file(&mut self, path: &str, mode: u32, bytes: &[u8]) -> anyhow::Result<()> {
        self.add(tar::EntryType::Regular, path, mode, bytes)
    }

    /// Adds a folder.
    pub fn folder(&mut self, path: &str, mode: u32) -> anyhow::Result<()> {
        self.add(tar::EntryType::Directory, path, mode, &[])
    }

    fn add(
        &mut self,
        kind: tar::EntryType,
        path: &str,
        mode: u32,
        bytes: &[u8],
    ) -> anyhow::Result<()> {
        let mut header = tar::Header::new_ustar();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_mtime(self.time);
        header.set_size(bytes.len() as u64);
        self.tar.append_data(&mut header, path, bytes).with_context(|| format!("pack {path}"))
    }

    /// Its bytes.
    pub fn finish(self) -> anyhow::Result<Vec<u8>> {
        Ok(self.tar.into_inner()?)
    }
}

/// The tarball, for whoever has no package manager: the program and what belongs to it in one
/// folder.
pub fn tarball(
    release: &Release,
    target: Architecture,
    root: &Path,
    out: &Path,
) -> anyhow::Result<()> {
    /// Where each part stands in a package, and in the tarball.
    const PARTS: [(&str, &str); 8] = [
        ("usr/share/bash-completion/completions", "completions"),
        ("usr/share/zsh/vendor-completions", "completions"),
        ("usr/share/fish/vendor_completions.d", "completions"),
        ("usr/lib/systemd/system", "systemd"),
        ("usr/share/doc/fullpipe", "doc"),
        (SCHEMAS, "schema"),
        ("usr/share/man/man1", "man"),
        ("usr/share/man/zh_CN/man1", "man/zh_CN"),
    ];
    let stem = release.stem(target);
    let mut archive = Archive::new(release.time);
    archive.folder(&format!("{stem}/"), 0o755)?;
    archive.file(
        &format!("{stem}/fullpipe"),
        0o755,
        &std::fs::read(root.join("usr/bin/fullpipe"))?,
    )?;
    for (from, to) in PARTS {
        for (name, _) in super::files(&root.join(from))? {
            let bytes = std::fs::read(root.join(from).join(&name))?;
            let (name, bytes) = match name.strip_suffix(".gz") {
                Some(plain) => (plain.to_owned(), unpacked(&bytes)?),
                None => (name, bytes),
            };
            archive.file(&format!("{stem}/{to}/{name}"), 0o644, &bytes)?;
        }
    }
    write(&out.join(format!("{stem}.tar.gz")), &packed(&archive.finish()?)?)
}

fn unpacked(bytes: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut plain = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(bytes), &mut plain)?;
    Ok(plain)
}
