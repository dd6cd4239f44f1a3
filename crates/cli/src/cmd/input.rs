//! Opens the captures that the command line names, with a progress bar. Ctrl-C ends those that are
//! pipes.

pub mod keys;
mod pipe;
pub mod records;
pub mod twice;
pub mod windows;

use self::pipe::Pipe;
use crate::failure::{Failure, Kind};
use crate::sentence::{Sentence, either};
use clap::{Args, ValueEnum};
use fullpipe_analyze::{Capture, Error, by_first_packet};
use fullpipe_flow::capture::{Layer, ReadError};
use fullpipe_flow::connection::filter::Filter;
use fullpipe_flow::limit::CapturePoint;
use fullpipe_flow::{Config, KeyLog, OwnWindows};
use fullpipe_model::units::Duration;
use indicatif::{ProgressBar, ProgressStyle};
use std::fs::File;
use std::io::Read;
use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// A small file of text, of at most so many bytes.
///
/// # Errors
/// It cannot be read, or is longer.
pub fn text_of(file: &Path, longest: u64) -> std::io::Result<String> {
    let mut text = String::new();
    File::open(file)?.take(longest + 1).read_to_string(&mut text)?;
    if text.len() as u64 > longest {
        let problem = format!("more than {} MiB", longest >> 20);
        return Err(std::io::Error::other(problem));
    }
    Ok(text)
}

/// How to read captures: what `analyze` and `report` have in common.
#[derive(Args)]
pub struct Reading {
    /// Select connections: host ADDRESS, net ADDRESS/LENGTH, port N, portrange N-M, and, or, not, (
    /// ).
    #[arg(long, value_name = "FILTER")]
    filter: Option<Filter>,
    /// Where the capture was taken.
    #[arg(long, value_name = "POINT", value_enum, default_value_t = Point::Auto)]
    capture_point: Point,
    /// Which packet of a tunnelled one to analyse.
    #[arg(long, value_name = "LAYER", value_enum, default_value_t = TunnelLayer::Inner)]
    layer: TunnelLayer,
    /// What programs of your own grant above TCP: a TOML file as the guide shows it. Its entries
    /// win over the built-in ones.
    #[arg(long, value_name = "FILE", value_parser = windows::read)]
    windows: Option<OwnWindows>,
    /// How far apart the looks of a log of `ss -tin` are, if it has no time stamps: 1s.
    #[arg(long, value_name = "TIME", value_parser = interval)]
    every: Option<Duration>,
    /// Secrets of TLS connections, as browsers and curl write them (SSLKEYLOGFILE): the frames of
    /// HTTP/2 are read, for its windows, and no payload is kept. Secrets that a pcapng has itself
    /// need no option.
    #[arg(long, value_name = "FILE", value_parser = keys::read)]
    keys: Option<KeyLog>,
    /// Threads that read and analyse; the result does not depend on their number.
    #[arg(long, value_name = "N", default_value_t = NonZeroUsize::MIN)]
    pub threads: NonZeroUsize,
}

impl Reading {
    /// The options that change what is read, as words, for comparison.
    pub fn words(&self) -> String {
        let point = self.capture_point.to_possible_value();
        let layer = self.layer.to_possible_value();
        let [point, layer] =
            [&point, &layer].map(|value| value.as_ref().map_or("", |v| v.get_name()));
        let filter = self.filter.as_ref().map_or_else(String::new, |filter| format!(" {filter:?}"));
        let windows = self.windows.map_or_else(String::new, |own| format!(" {:?}", own.entries()));
        let every =
            self.every.map_or_else(String::new, |every| format!(" --every {}", every.to_exact()));
        let keys = self.keys.as_ref().map_or_else(String::new, |keys| format!(" {keys:?}"));
        format!("--capture-point {point} --layer {layer}{filter}{windows}{every}{keys}")
    }

    /// What to analyse, with everything else as it is by default.
    pub fn config(&self) -> Config {
        Config {
            capture_point: self.capture_point.into(),
            layer: self.layer.into(),
            filter: self.filter.clone(),
            windows: self.windows.unwrap_or_default(),
            looks_every: self.every,
            keys: self.keys.clone().unwrap_or_default(),
            ..Config::default()
        }
    }
}

/// Parses the length of an interval.
pub fn interval(text: &str) -> Result<Duration, Sentence> {
    match text.parse::<Duration>().map_err(|error| Sentence::from(&error))? {
        Duration::ZERO => Err(Sentence::new(
            "an interval cannot be 0; use 1ms or more",
            "时段不能为 0；请用 1ms 或更长",
        )),
        length => Ok(length),
    }
}

impl Reading {
    /// Of how many connections there are keys, where a file of them is named.
    pub fn keyed(&self) -> Option<usize> {
        self.keys.as_ref().map(KeyLog::sessions)
    }
}

/// Where a capture was taken.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Point {
    /// At the sender of the data.
    Sender,
    /// At the receiver of the data.
    Receiver,
    /// Guessed from the timing of the handshake.
    Auto,
}

/// Which packet of a tunnelled one to analyse.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum TunnelLayer {
    /// The innermost, inside all tunnels.
    Inner,
    /// The outermost.
    Outer,
}

impl From<Point> for CapturePoint {
    fn from(point: Point) -> Self {
        match point {
            Point::Sender => CapturePoint::SenderEdge,
            Point::Receiver => CapturePoint::ReceiverEdge,
            Point::Auto => CapturePoint::Unknown,
        }
    }
}

impl From<TunnelLayer> for Layer {
    fn from(layer: TunnelLayer) -> Self {
        match layer {
            TunnelLayer::Inner => Layer::Inner,
            TunnelLayer::Outer => Layer::Outer,
        }
    }
}

/// A smaller file is read before a bar would be visible.
const PROGRESS_FROM: u64 = 100 << 20;

/// Opens the captures that the command line names.
///
/// # Errors
/// No file can be opened; or standard input is named twice, or together with files whose packets
/// must be sorted by time.
pub fn captures(files: &[PathBuf], as_one: bool) -> Result<Vec<Capture>, Failure> {
    let standard = files.iter().filter(|file| is_standard_input(file)).count();
    if standard > 1 || standard == 1 && as_one && files.len() > 1 {
        let problem = Sentence::new(
            "analyze -: standard input can be read once only; name it once, and not with --as-one",
            "analyze -：标准输入只能读取一次；请只给出一次，且不与 --as-one 同用",
        );
        return Err(Failure::new(Kind::Usage, problem));
    }
    // A missing file among several does not stop the others; without any file there is nothing to
    // do.
    let missing: Vec<Error> = files.iter().filter_map(|file| missing(file)).collect();
    if missing.len() == files.len() {
        let problems: Vec<_> = missing.iter().map(Sentence::from).collect();
        return Err(Failure::new(Kind::Input, Sentence::lines(&problems)));
    }
    if !as_one {
        return files.iter().map(|file| capture(file)).collect();
    }
    Ok(vec![Capture::merged(by_first_packet(files.to_vec())).or_recording().opened_by(open)])
}

fn is_standard_input(file: &Path) -> bool {
    file.as_os_str() == "-"
}

/// Why a file cannot be opened. A pipe is not tested, because it can be opened only once.
fn missing(file: &Path) -> Option<Error> {
    if is_standard_input(file) {
        return None;
    }
    let looked = std::fs::metadata(file).and_then(|metadata| {
        if metadata.is_dir() {
            return Err(std::io::ErrorKind::IsADirectory.into());
        }
        if metadata.is_file() { File::open(file).map(drop) } else { Ok(()) }
    });
    looked.err().map(|cause| Error::Open { path: file.into(), cause })
}

fn capture(file: &Path) -> Result<Capture, Failure> {
    if !is_standard_input(file) {
        return Ok(Capture::file(file).or_recording().opened_by(open));
    }
    let source = std::io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .and_then(|file| unless_pipe(File::from(file)));
    let source = source.map_err(|error| {
        let what = Sentence::new("open standard input", "打开标准输入");
        Failure::new(Kind::Input, what.with(error))
    })?;
    Ok(Capture::reader("standard input", source).or_recording())
}

/// Opens a file whose reads move a progress bar.
fn open(path: &Path) -> std::io::Result<Box<dyn Read + Send>> {
    let file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(std::io::ErrorKind::IsADirectory.into());
    }
    let bar = progress(path, &file);
    if bar.is_hidden() { unless_pipe(file) } else { Ok(Box::new(bar.wrap_read(file))) }
}

/// Returns a regular file as it is, and wraps a pipe or terminal so that Ctrl-C ends it.
pub fn unless_pipe(file: File) -> std::io::Result<Box<dyn Read + Send>> {
    Ok(if file.metadata()?.is_file() { Box::new(file) } else { Box::new(Pipe::new(file)?) })
}

/// A progress bar for a large file; it is drawn on a terminal only.
pub fn progress(path: &Path, file: &File) -> ProgressBar {
    let length =
        file.metadata().ok().filter(std::fs::Metadata::is_file).map_or(0, |file| file.len());
    if length < PROGRESS_FROM {
        return ProgressBar::hidden();
    }
    let template = either(
        "{msg:24!} {wide_bar} {bytes:>10} of {total_bytes} {bytes_per_sec} {eta:>4}",
        "{msg:24!} {wide_bar} {bytes:>10} / {total_bytes} {bytes_per_sec} {eta:>4}",
    );
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(length).with_message(path.display().to_string());
    bar.set_style(style.progress_chars("=> "));
    bar
}

/// Drops errors that are no problem: a pipe that Ctrl-C ended may end in the middle of a packet.
///
/// # Errors
/// Ctrl-C ended a pipe before any packet arrived.
pub fn problems(errors: Vec<Error>) -> Result<Vec<Error>, Failure> {
    if !pipe::is_interrupted() {
        return Ok(errors);
    }
    if errors.iter().any(|error| matches!(error, Error::Empty { .. })) {
        let told = Sentence::new(
            "analyze: interrupted before any packet arrived",
            "analyze：在收到任何数据包之前被中断",
        );
        return Err(Failure::new(Kind::Interrupted, told));
    }
    Ok(errors.into_iter().filter(|error| !is_end(error)).collect())
}

fn is_end(error: &Error) -> bool {
    match error {
        Error::Cut { .. } => true,
        Error::Read { cause: ReadError::Source(cause), .. } => {
            cause.kind() == std::io::ErrorKind::UnexpectedEof
        }
        _ => false,
    }
}
