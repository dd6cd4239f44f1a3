//! Where a capture comes from: a file, which is read twice, or a pipe, which is kept in a file
//! without a name until then.

use super::{progress, unless_pipe};
use crate::failure::{Failure, Kind};
use crate::sentence::Sentence;
use fullpipe_analyze::Error;
use fullpipe_flow::capture::ReadError;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A capture that can be read from its beginning more than once.
pub struct TwiceRead {
    name: String,
    file: File,
}

impl TwiceRead {
    /// Opens the capture at `path`. What can be read once only is copied first, beside `output`.
    ///
    /// # Errors
    /// It cannot be opened, or there is no room for the copy.
    pub fn open(path: &Path, output: &Path) -> Result<TwiceRead, Failure> {
        let is_standard = path.as_os_str() == "-";
        let name = if is_standard { "standard input".into() } else { path.display().to_string() };
        let opened = if is_standard {
            std::io::stdin().as_fd().try_clone_to_owned().map(File::from)
        } else {
            File::open(path)
        };
        let looked = opened.and_then(|file| {
            let metadata = file.metadata()?;
            if metadata.is_dir() {
                return Err(std::io::ErrorKind::IsADirectory.into());
            }
            Ok((file, metadata.is_file()))
        });
        let (file, is_file) = looked.map_err(|cause| {
            let error = Error::Open { path: path.into(), cause };
            Failure::new(Kind::Input, Sentence::from(&error))
        })?;
        if is_file {
            return Ok(TwiceRead { name, file });
        }
        let folder = output.parent().filter(|parent| !parent.as_os_str().is_empty());
        let kept = keep(file, folder.unwrap_or(Path::new("."))).map_err(|cause| {
            let what = Sentence::new(
                format!("keep {name} beside the output until it is written"),
                format!("在输出旁暂存 {name}，直到写完"),
            );
            Failure::new(Kind::Run, what.with(cause))
        })?;
        Ok(TwiceRead { name, file: kept })
    }

    /// What messages call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is the file at `path`, whatever it is called there.
    pub fn is(&self, path: &Path) -> bool {
        let (own, other) = (self.file.metadata(), std::fs::metadata(path));
        own.ok()
            .zip(other.ok())
            .is_some_and(|(own, other)| (own.dev(), own.ino()) == (other.dev(), other.ino()))
    }

    /// Its bytes from the beginning, with a progress bar where that is worth one.
    pub fn reader(&self) -> std::io::Result<Box<dyn Read + Send>> {
        let own = self.again()?;
        let bar = progress(Path::new(&self.name), &own);
        Ok(if bar.is_hidden() { Box::new(own) } else { Box::new(bar.wrap_read(own)) })
    }

    /// Its bytes from the beginning, for a reader with a place of its own.
    pub fn again(&self) -> std::io::Result<File> {
        reopened(&self.file)
    }
}

/// Why a capture was not written anew.
pub enum CopyError {
    /// It cannot be read.
    Read(ReadError),
    /// The output cannot be written.
    Write(std::io::Error),
}

impl From<ReadError> for CopyError {
    fn from(cause: ReadError) -> Self {
        CopyError::Read(cause)
    }
}

/// Copies what is read once into a file that nobody else can name.
fn keep(file: File, folder: &Path) -> std::io::Result<File> {
    let mut kept = tempfile::tempfile_in(folder)?;
    let mut source = unless_pipe(file)?;
    std::io::copy(&mut source, &mut kept)?;
    kept.seek(SeekFrom::Start(0))?;
    Ok(kept)
}

/// The same file, opened anew for reading from its beginning; it need not have a name.
pub fn reopened(file: &File) -> std::io::Result<File> {
    File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))
}
