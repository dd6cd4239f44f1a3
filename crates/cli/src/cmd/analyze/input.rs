//! Captures as files: opened, unpacked, put in order, and read with a progress bar.

use crate::failure::{Failure, Kind};
use fullpipe_flow::capture::{Packet, ReadError, Reader, Unpack};
use fullpipe_model::units::Instant;
use indicatif::{ProgressBar, ProgressStyle};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// One capture: one file, or several that are taken for one.
pub struct Source {
    files: Vec<PathBuf>,
}

/// A file below this size is read before a bar could be seen.
const PROGRESS_FROM: u64 = 100 << 20;

/// The captures that the command line names.
///
/// # Errors
/// A file that cannot be opened, and standard input among files that must be put in order.
pub fn sources(files: &[PathBuf], as_one: bool) -> Result<Vec<Source>, Failure> {
    let standard = files.iter().filter(|file| is_standard_input(file)).count();
    if standard > 1 || standard == 1 && as_one && files.len() > 1 {
        let problem = "analyze -: standard input can be read once only; name it once, and not with --as-one";
        return Err(Failure::new(Kind::Usage, problem));
    }
    // Before hours are spent on the first file, the last should be known to be there.
    for file in files.iter().filter(|file| !is_standard_input(file)) {
        open(file).map_err(|problem| Failure::new(Kind::Input, problem))?;
    }
    if !as_one {
        return Ok(files.iter().map(|file| Source { files: vec![file.clone()] }).collect());
    }
    let mut files: Vec<_> = files.iter().map(|file| (first_packet(file), file.clone())).collect();
    files.sort_by_key(|(first, _)| *first);
    Ok(vec![Source { files: files.into_iter().map(|(_, file)| file).collect() }])
}

fn is_standard_input(file: &Path) -> bool {
    file.as_os_str() == "-"
}

fn open(file: &Path) -> Result<Box<dyn Read + Send>, String> {
    if is_standard_input(file) {
        return Ok(Box::new(std::io::stdin()));
    }
    let opened = File::open(file).and_then(|opened| {
        if opened.metadata()?.is_dir() {
            return Err(std::io::ErrorKind::IsADirectory.into());
        }
        Ok(opened)
    });
    match opened {
        Ok(opened) => Ok(Box::new(opened)),
        Err(error) => {
            Err(format!("open {}: {error}; captures are files that tcpdump -w or dumpcap made", file.display()))
        }
    }
}

/// When a file's first packet was captured; files without one come last, where their problem is told.
fn first_packet(file: &Path) -> Option<Instant> {
    let mut unpacked = Unpack::new(open(file).ok()?).ok()?;
    let mut reader = Reader::new();
    while reader.fill(&mut unpacked).ok()? > 0 {
        if let Some(packet) = reader.next_packet().ok()? {
            return Some(packet.at);
        }
    }
    None
}

impl Source {
    /// What to call it.
    pub fn name(&self) -> String {
        let names: Vec<_> = self.files.iter().map(|file| display(file)).collect();
        names.join("+")
    }

    /// Every packet, in the files' order.
    pub fn packets(&self) -> Packets<'_> {
        Packets { files: self.files.iter(), open: None, problems: Vec::new() }
    }
}

/// A file's bytes, unpacked where it was packed.
type Unpacked = Unpack<Box<dyn Read + Send>>;

/// The packets of a capture, a piece of a file at a time: [`Packets::read`] until it says that nothing is left, then
/// [`Packets::finish`].
pub struct Packets<'a> {
    files: std::slice::Iter<'a, PathBuf>,
    open: Option<(&'a Path, Unpacked, Reader)>,
    problems: Vec<String>,
}

impl Packets<'_> {
    /// Reads on and gives the packets that are whole now to `packet`; false once nothing is left.
    pub fn read(&mut self, mut packet: impl FnMut(&Packet<'_>)) -> bool {
        let Some((file, source, reader)) = &mut self.open else {
            let Some(file) = self.files.next() else { return false };
            match unpacked(file) {
                Ok(source) => self.open = Some((file, source, Reader::new())),
                Err(error) => self.problems.push(format!("{}: {error}", display(file))),
            }
            return true;
        };
        match read_on(source, reader, &mut packet) {
            Ok(true) => return true,
            Ok(false) => {
                let ended = end(std::mem::take(reader));
                self.problems.extend(ended.err().map(|problem| format!("{}: {problem}", display(file))));
            }
            Err(error) => self.problems.push(format!("{}: {error}", display(file))),
        }
        self.open = None;
        true
    }

    /// Ends.
    ///
    /// # Errors
    /// Why a file was not read to its end; packets before that, and of the files behind it, were given.
    pub fn finish(self) -> Result<(), String> {
        if self.problems.is_empty() { Ok(()) } else { Err(self.problems.join("\n")) }
    }
}

/// The name of a file in messages.
pub fn display(file: &Path) -> String {
    if is_standard_input(file) { "standard input".into() } else { file.display().to_string() }
}

/// A file's bytes, unpacked; a bar moves with those of the file.
fn unpacked(file: &Path) -> std::io::Result<Unpacked> {
    let opened = open(file).map_err(std::io::Error::other)?;
    let bar = progress(file);
    Unpack::new(if bar.is_hidden() { opened } else { Box::new(bar.wrap_read(opened)) })
}

/// Reads on and gives the packets that are whole now to `packet`; whether the file goes on.
fn read_on(
    source: &mut impl Read,
    reader: &mut Reader,
    packet: &mut impl FnMut(&Packet<'_>),
) -> Result<bool, ReadError> {
    if reader.fill(source)? == 0 {
        return Ok(false);
    }
    while let Some(found) = reader.next_packet()? {
        packet(&found);
    }
    Ok(true)
}

/// Ends a capture.
///
/// # Errors
/// What is missing of it.
fn end(reader: Reader) -> Result<(), String> {
    let summary = reader.finish();
    let behind = match summary.cut {
        0 if summary.recognised => return Ok(()),
        0 => return Err("reading a capture: there is nothing in it; a capture has at least a file header".into()),
        1 => "one byte".into(),
        bytes => format!("{bytes} bytes"),
    };
    Err(format!(
        "reading a capture: it ends in the middle of a packet, {behind} after the last whole one; the {} packets before it \
         are analysed",
        summary.packets
    ))
}

/// A bar where the file is long enough for one; it is drawn on a terminal only.
pub fn progress(file: &Path) -> ProgressBar {
    let length = std::fs::metadata(file).ok().filter(|file| file.is_file()).map_or(0, |file| file.len());
    if length < PROGRESS_FROM {
        return ProgressBar::hidden();
    }
    let style =
        ProgressStyle::with_template("{msg:24!} {wide_bar} {bytes:>10} of {total_bytes} {bytes_per_sec} {eta:>4}");
    let bar = ProgressBar::new(length).with_message(display(file));
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
    bar
}
