//! Which files may be opened.

use super::refusal::ToolRefusal;
use crate::failure::{Failure, Kind};
use crate::sentence::Sentence;
use nix::fcntl::OFlag;
use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Result};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The files that may be opened: regular ones, below these folders where there are some.
#[derive(Debug, Clone)]
pub struct Files {
    roots: Vec<PathBuf>,
}

impl Files {
    /// Those below these folders; all of them where none is named.
    ///
    /// # Errors
    /// One of them is no folder.
    pub fn below(roots: &[PathBuf]) -> std::result::Result<Files, Failure> {
        let real = roots.iter().map(|root| {
            let found = root.canonicalize().and_then(|real| {
                if real.is_dir() { Ok(real) } else { Err(ErrorKind::NotADirectory.into()) }
            });
            found.map_err(|cause| {
                let root = root.display();
                let problem = Sentence::new(
                    format!("mcp: --root {root}: {cause}; name a folder that is there"),
                    format!("mcp：--root {root}：{cause}；请给出一个存在的文件夹"),
                );
                Failure::new(Kind::Usage, problem)
            })
        });
        Ok(Files { roots: real.collect::<std::result::Result<_, _>>()? })
    }

    /// Opens a file for `operation`.
    ///
    /// # Errors
    /// It is not there, may not be read, is no regular file, or lies elsewhere.
    pub fn open(
        &self,
        operation: &'static str,
        path: &str,
    ) -> std::result::Result<File, ToolRefusal> {
        self.opened(Path::new(path)).map_err(|cause| {
            let hint = match cause.kind() {
                ErrorKind::PermissionDenied => {
                    "name a file that this user may read, in a folder that --root allows"
                }
                _ => "name a capture that is there, best by its whole path",
            };
            ToolRefusal::new(operation, path, cause, hint)
        })
    }

    fn opened(&self, path: &Path) -> Result<File> {
        // Looked at first by a descriptor that reads nothing: a FIFO would wait for its writer, and
        // a device may do something when it is opened.
        let only_path = OFlag::O_PATH.bits();
        let found = OpenOptions::new().read(true).custom_flags(only_path).open(path)?;
        if !found.metadata()?.is_file() {
            return Err(Error::new(ErrorKind::InvalidInput, "it is no regular file"));
        }
        // By the descriptor, so that it is the same file, whatever a link is changed to meanwhile.
        let by_descriptor = format!("/proc/self/fd/{}", found.as_raw_fd());
        let real = std::fs::read_link(&by_descriptor)?;
        if !self.roots.is_empty() && !self.roots.iter().any(|root| real.starts_with(root)) {
            let problem = "it is not below a folder that --root allows";
            return Err(Error::new(ErrorKind::PermissionDenied, problem));
        }
        File::open(by_descriptor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_regular_files_below_a_root_are_opened() {
        let place = tempfile::tempdir().unwrap();
        let [inside, outside] = ["in", "out"].map(|name| place.path().join(name));
        for folder in [&inside, &outside] {
            std::fs::create_dir(folder).unwrap();
            std::fs::write(folder.join("a.pcap"), b"x").unwrap();
        }
        let above = inside.join("..").join("out").join("a.pcap");
        symlink(outside.join("a.pcap"), inside.join("leads-out")).unwrap();
        symlink(inside.join("a.pcap"), inside.join("leads-in")).unwrap();
        symlink(&outside, inside.join("folder")).unwrap();
        let files = Files::below(std::slice::from_ref(&inside)).unwrap();
        let open = |path: &Path| files.opened(path).map(drop).map_err(|cause| cause.kind());
        assert_eq!(open(&inside.join("a.pcap")), Ok(()));
        assert_eq!(open(&inside.join("leads-in")), Ok(()));
        for path in [outside.join("a.pcap"), above, inside.join("leads-out")] {
            assert_eq!(open(&path), Err(ErrorKind::PermissionDenied), "{}", path.display());
        }
        assert_eq!(open(&inside.join("folder/a.pcap")), Err(ErrorKind::PermissionDenied));
        // A folder of a similar name is another folder.
        std::fs::create_dir(place.path().join("in2")).unwrap();
        std::fs::write(place.path().join("in2/a"), b"x").unwrap();
        assert_eq!(open(&place.path().join("in2/a")), Err(ErrorKind::PermissionDenied));

        let fifo = inside.join("fifo");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
        assert!(made.success(), "mkfifo of coreutils");
        for path in [&inside, &fifo, Path::new("/dev/zero")] {
            assert_eq!(open(path), Err(ErrorKind::InvalidInput), "{}", path.display());
        }
        assert!(Files::below(&[inside.join("a.pcap")]).is_err());
        assert!(Files::below(&[]).unwrap().opened(&outside.join("a.pcap")).is_ok());
    }
}
