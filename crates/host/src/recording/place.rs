//! Where a recording goes.

use super::RecordError;
use fullpipe_kernel::file::folder::{Folder, Pending};
use fullpipe_model::units::Bytes;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Takes a recording: one file after another, each complete or not there at all.
pub trait RecordPlace: Send {
    /// Takes the next bytes of the file, which begins with them if there is none.
    ///
    /// # Errors
    /// They cannot be written.
    fn write(&mut self, bytes: &[u8]) -> Result<(), RecordError>;

    /// Completes the file, where there is one.
    ///
    /// # Errors
    /// It cannot be completed.
    fn complete(&mut self) -> Result<(), RecordError> {
        Ok(())
    }

    /// The files that are complete and still there, in order of time.
    fn files(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// The most bytes of a file.
    fn file_max(&self) -> Bytes;

    /// Whether there is a file after one that is full.
    fn goes_on(&self) -> bool {
        false
    }

    /// Whether somebody waits for the file's first bytes, before there is a packet.
    fn begins_at_once(&self) -> bool {
        false
    }
}

/// One file, which has no name until it is complete.
#[derive(Debug)]
pub struct OneFile {
    path: PathBuf,
    file: Option<Pending>,
    is_complete: bool,
    max: Bytes,
}

impl OneFile {
    /// Begins the file at `path`, with at most `max` bytes. It replaces one that exists when it is
    /// complete; without a packet it is not written.
    ///
    /// # Errors
    /// It cannot be written there.
    pub fn begin(path: &Path, max: Bytes) -> Result<OneFile, RecordError> {
        let file = Pending::nameless_at(path).map_err(|cause| not_written(path, cause))?;
        Ok(OneFile { path: path.into(), file: Some(file), is_complete: false, max })
    }
}

impl RecordPlace for OneFile {
    fn write(&mut self, bytes: &[u8]) -> Result<(), RecordError> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.write_all(bytes).map_err(|cause| not_written(&self.path, cause))
    }

    fn complete(&mut self) -> Result<(), RecordError> {
        let Some(file) = self.file.take() else { return Ok(()) };
        file.commit().map_err(|cause| not_written(&self.path, cause))?;
        self.is_complete = true;
        Ok(())
    }

    fn files(&self) -> Vec<PathBuf> {
        if self.is_complete { vec![self.path.clone()] } else { Vec::new() }
    }

    fn file_max(&self) -> Bytes {
        self.max
    }
}

/// A stream to another program, which reads packets while they pass.
pub struct Stream {
    name: String,
    sink: Box<dyn Write + Send>,
    max: Bytes,
}

impl Stream {
    /// A stream of at most `max` bytes to `sink`, which messages call `name`.
    pub fn to(name: impl Into<String>, sink: impl Write + Send + 'static, max: Bytes) -> Stream {
        Stream { name: name.into(), sink: Box::new(sink), max }
    }
}

impl RecordPlace for Stream {
    fn write(&mut self, bytes: &[u8]) -> Result<(), RecordError> {
        let written = self.sink.write_all(bytes).and_then(|()| self.sink.flush());
        written.map_err(|cause| RecordError::Write { place: self.name.clone(), cause })
    }

    fn file_max(&self) -> Bytes {
        self.max
    }

    fn begins_at_once(&self) -> bool {
        true
    }
}

/// One file in memory, for whoever passes it on.
#[derive(Debug)]
pub struct InMemory {
    file: Arc<Mutex<Vec<u8>>>,
    max: Bytes,
}

impl InMemory {
    /// One of at most `max` bytes, and where they are.
    pub fn new(max: Bytes) -> (InMemory, Arc<Mutex<Vec<u8>>>) {
        let file = Arc::default();
        (InMemory { file: Arc::clone(&file), max }, file)
    }
}

impl RecordPlace for InMemory {
    fn write(&mut self, bytes: &[u8]) -> Result<(), RecordError> {
        self.file.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).extend(bytes);
        Ok(())
    }

    fn file_max(&self) -> Bytes {
        self.max
    }
}

/// A file of a ring that is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RingFile {
    number: u64,
    size: u64,
    /// Whether this recording made it, rather than one before it.
    is_own: bool,
}

/// Numbered files in a folder. The oldest of them go, so that they never take more than they may
/// together. Each has no name until it is complete.
#[derive(Debug)]
pub struct FileRing {
    folder: Folder,
    most: Bytes,
    complete: VecDeque<RingFile>,
    /// The one that is being written, and what it has by now.
    open: Option<(Pending, RingFile)>,
    next: u64,
    /// The folder was made for it.
    is_made: bool,
}

impl Drop for FileRing {
    /// Takes a folder back that was made for nothing.
    fn drop(&mut self) {
        if self.is_made && self.complete.is_empty() {
            // Only an empty one goes.
            let _ = std::fs::remove_dir(self.folder.path());
        }
    }
}

impl FileRing {
    /// How many files share what a ring may take: what is lost by the first file that goes is so
    /// much of it at most.
    const FILES: u64 = 8;

    /// Begins in the folder at `path`, which is made if it is missing. Files that a ring left there
    /// count, and go first.
    ///
    /// # Errors
    /// The folder cannot be made or read.
    pub fn begin(path: &Path, most: Bytes) -> Result<FileRing, RecordError> {
        FileRing::in_folder(path, most).map_err(|cause| not_written(path, cause))
    }

    fn in_folder(path: &Path, most: Bytes) -> io::Result<FileRing> {
        let is_made = !path.try_exists()?;
        std::fs::create_dir_all(path)?;
        let folder = Folder::open(path)?;
        let mut complete = Vec::new();
        for name in folder.names()? {
            if let Some(number) = name.to_str().and_then(number) {
                let size = folder.open_file(&name)?.metadata()?.len();
                complete.push(RingFile { number, size, is_own: false });
            }
        }
        complete.sort_by_key(|file| file.number);
        let next = complete.last().map_or(1, |file| file.number + 1);
        Ok(FileRing { folder, most, complete: complete.into(), open: None, next, is_made })
    }

    /// Begins a file, once there is room for as much as it may take.
    fn open(&mut self) -> io::Result<&mut (Pending, RingFile)> {
        if self.open.is_none() {
            let room = self.most.get().saturating_sub(self.file_max().get());
            while self.complete.iter().map(|file| file.size).sum::<u64>() > room {
                let Some(oldest) = self.complete.pop_front() else { break };
                self.folder.remove_file(name(oldest.number))?;
            }
            let file = self.folder.begin_nameless(name(self.next))?;
            self.open = Some((file, RingFile { number: self.next, size: 0, is_own: true }));
            self.next += 1;
        }
        self.open.as_mut().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn try_write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let (file, about) = self.open()?;
        file.write_all(bytes)?;
        about.size += bytes.len() as u64;
        Ok(())
    }

    fn not_written(&self, cause: io::Error) -> RecordError {
        not_written(self.folder.path(), cause)
    }
}

impl RecordPlace for FileRing {
    fn write(&mut self, bytes: &[u8]) -> Result<(), RecordError> {
        self.try_write(bytes).map_err(|cause| self.not_written(cause))
    }

    fn complete(&mut self) -> Result<(), RecordError> {
        let Some((file, about)) = self.open.take() else { return Ok(()) };
        file.commit().map_err(|cause| self.not_written(cause))?;
        self.complete.push_back(about);
        Ok(())
    }

    fn files(&self) -> Vec<PathBuf> {
        let own = self.complete.iter().filter(|file| file.is_own);
        own.map(|file| self.folder.path().join(name(file.number))).collect()
    }

    fn file_max(&self) -> Bytes {
        Bytes::new(self.most.get() / Self::FILES)
    }

    fn goes_on(&self) -> bool {
        true
    }
}

/// Names of a ring's files sort as their numbers do.
fn name(number: u64) -> String {
    format!("recording-{number:08}.pcapng")
}

/// The number in the name of a ring's file.
fn number(text: &str) -> Option<u64> {
    let number = text.strip_prefix("recording-")?.strip_suffix(".pcapng")?.parse().ok()?;
    (name(number) == text).then_some(number)
}

fn not_written(path: &Path, cause: io::Error) -> RecordError {
    RecordError::Write { place: path.display().to_string(), cause }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_ring_that_kept_nothing_leaves_no_folder_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let (made, there) = (folder.path().join("made"), folder.path().join("there"));
        std::fs::create_dir(&there).unwrap();
        for path in [&made, &there] {
            let mut ring = FileRing::begin(path, Bytes::new(800)).unwrap();
            ring.write(b"begun").unwrap();
            assert!(path.exists());
        }
        assert!(!made.exists(), "what was made for it goes");
        assert!(there.exists(), "what was there before stays");
        let mut ring = FileRing::begin(&made, Bytes::new(800)).unwrap();
        ring.write(b"kept").unwrap();
        ring.complete().unwrap();
        drop(ring);
        assert!(made.exists(), "what has a recording stays");
    }

    /// What is in the folder, but for what was there before and is none of the ring's.
    fn sizes(path: &Path) -> u64 {
        let entries = std::fs::read_dir(path).unwrap().map(Result::unwrap);
        let ring = entries.filter(|entry| entry.file_name() != "notes.txt");
        ring.map(|entry| entry.metadata().unwrap().len()).sum()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        /// The files never take more than they may, the newest are there, and nothing else goes.
        #[test]
        fn a_ring_keeps_the_newest_within_its_size(
            files in prop::collection::vec(prop::collection::vec(1usize..100, 1..4), 0..40),
            again in any::<bool>(),
        ) {
            const MOST: u64 = 8 * 300;
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("ring");
            let mut ring = FileRing::begin(&path, Bytes::new(MOST)).unwrap();
            std::fs::write(path.join("notes.txt"), [0; 5000]).unwrap();
            let (half, mut written) = (files.len() / 2, Vec::new());
            for (at, file) in files.iter().enumerate() {
                if again && at == half {
                    ring = FileRing::begin(&path, Bytes::new(MOST)).unwrap();
                }
                for (part, size) in file.iter().enumerate() {
                    ring.write(&vec![(at + part) as u8; *size]).unwrap();
                    let open = ring.open.as_ref().unwrap().1.size;
                    prop_assert!(sizes(&path) + open <= MOST);
                }
                ring.complete().unwrap();
                written.push(file.iter().sum::<usize>() as u64);
            }
            let there: Vec<u64> = ring.complete.iter().map(|file| file.size).collect();
            prop_assert!(written.ends_with(&there));
            prop_assert!(there.len() >= written.len().min(7), "{} of {}", there.len(), written.len());
            prop_assert_eq!(sizes(&path), there.iter().sum::<u64>());
            let own = ring.files();
            let most = if again { files.len() - half } else { files.len() };
            prop_assert!(own.len() <= most);
            prop_assert!(own.is_sorted() && own.iter().all(|file| file.is_file()));
            prop_assert!(path.join("notes.txt").exists());
        }
    }
}
