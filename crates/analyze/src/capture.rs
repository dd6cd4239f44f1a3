//! A capture: a file, several files merged by time, a reader, or bytes.

use crate::connections::Connections;
use crate::error::Error;
use crate::options::Options;
use crate::origin::{Open, Origin, opener};
use crate::packets::LabelledPackets;
use crate::recording;
use crate::rounds::Findings;
use crate::stream::{PacketStream, first_packet};
use fullpipe_flow::capture::{FileItem, Packet};
use fullpipe_flow::connection::Labels;
use fullpipe_flow::diagnosis::DiagnosedConnection;
use fullpipe_flow::diagnosis::live::History;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One capture: pcap, pcapng or snoop, plain or compressed with gzip, zstd, xz or lz4. The bytes
/// decide, not the file's name. Nothing is read before packets or connections are requested.
///
/// With [`Capture::or_recording`] it may be a recording too.
pub struct Capture {
    name: String,
    origins: Vec<Origin>,
    open: Open,
    /// Reads a recording, where one is taken too. What nobody asks for is not linked into small
    /// programs.
    recording: Option<recording::Read>,
}

/// The connections of captures with their diagnoses, one capture after another, each connection as
/// it finishes. If a capture could not be read to its end, the error follows its connections, and
/// the next capture is still read.
///
/// # Examples
/// ```no_run
/// use fullpipe_analyze::{Options, files};
/// for connection in files(["monday.pcap", "tuesday.pcap.zst"], &Options::default()) {
///     match connection {
///         Ok(found) => println!("{}", found.connection.client),
///         Err(error) => eprintln!("{error}"),
///     }
/// }
/// ```
pub fn files<P: Into<PathBuf>>(
    paths: impl IntoIterator<Item = P>,
    options: &Options,
) -> impl Iterator<Item = Result<DiagnosedConnection, Error>> {
    let options = options.clone();
    paths.into_iter().flat_map(move |path| Capture::file(path).connections(&options))
}

/// The connections of a capture from `source`, for example a pipe.
pub fn reader(source: impl Read + Send + 'static, options: &Options) -> Connections {
    Capture::reader("capture", source).connections(options)
}

/// The connections of a capture in memory.
pub fn bytes(capture: impl AsRef<[u8]> + Send + 'static, options: &Options) -> Connections {
    reader(std::io::Cursor::new(capture), options)
}

/// Sorts files by the time of their first packets; files without a packet come last.
pub fn by_first_packet(paths: impl IntoIterator<Item = PathBuf>) -> Vec<PathBuf> {
    let open = opener();
    let mut paths: Vec<_> =
        paths.into_iter().map(|path| (first_packet(&path, &open), path)).collect();
    paths.sort_by_key(|(at, _)| (at.is_none(), *at));
    paths.into_iter().map(|(_, path)| path).collect()
}

impl Capture {
    /// A file.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Capture::merged([path.into()])
    }

    /// Several files as one capture, with their packets sorted by time; among packets of the same
    /// time those of the file named first come first. Files that follow one another are opened one
    /// at a time.
    pub fn merged(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let origins: Vec<_> = paths.into_iter().map(Origin::File).collect();
        let names: Vec<_> = origins.iter().map(Origin::name).collect();
        Capture { name: names.join("+"), origins, open: opener(), recording: None }
    }

    /// A capture from `source`; `name` is for messages.
    pub fn reader(name: impl Into<String>, source: impl Read + Send + 'static) -> Self {
        let name = name.into();
        Capture {
            name: name.clone(),
            origins: vec![Origin::Reader(name, Box::new(source))],
            open: opener(),
            recording: None,
        }
    }

    /// Takes a recording as well: samples of sockets as JSON lines, as `fullpipe why --record`
    /// writes them. They have connections but no packets; their first byte tells them from a
    /// capture.
    #[must_use]
    pub fn or_recording(mut self) -> Self {
        self.recording = Some(recording::read_only);
        self
    }

    /// Opens files with `open`, for example to follow the progress of reading.
    #[must_use]
    pub fn opened_by(
        mut self,
        open: impl Fn(&Path) -> std::io::Result<Box<dyn Read + Send>> + Send + Sync + 'static,
    ) -> Self {
        self.open = Arc::new(open);
        self
    }

    /// The names of its files, or of its reader.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All that it has as a part of what `fullpipe record --sockets` keeps, plain or compressed,
    /// and why that is not the whole part.
    #[must_use]
    pub fn history(self) -> (History, Vec<Error>) {
        recording::history::read(self.origins, &self.open)
    }

    /// Its TCP connections, as they finish.
    #[must_use]
    pub fn connections(self, options: &Options) -> Connections {
        self.diagnosed(options, Findings::AtOnce)
    }

    /// The same for callers that do not need findings: those take much of the time, and are
    /// computed only when requested.
    #[must_use]
    pub fn connections_without_findings(self, options: &Options) -> Connections {
        self.diagnosed(options, Findings::Later)
    }

    fn diagnosed(mut self, options: &Options, findings: Findings) -> Connections {
        let recorded = self.recording.and_then(|read| read(&mut self.origins, &options.config));
        match recorded {
            Some(recorded) => Connections::recorded(recorded, findings),
            None => Connections::captured(self.stream(sorts(options)), options, findings),
        }
    }

    /// Its TCP segments with their labels, in the order of the capture.
    pub fn labelled_packets(self, options: &Options) -> LabelledPackets {
        LabelledPackets::new(self.stream(sorts(options)), options)
    }

    /// Calls `packet` for each packet, until it fails or nothing is left.
    ///
    /// # Errors
    /// The first error of `packet`; otherwise, at the end, why a file was not read completely.
    pub fn for_each_packet<E: From<Error>>(
        self,
        mut packet: impl FnMut(&Packet<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut stream = self.stream(false);
        let mut given = Ok(());
        let mut goes_on = true;
        while goes_on && given.is_ok() {
            goes_on = stream.read(|next| match next {
                FileItem::Packet(next) if given.is_ok() => given = packet(next),
                FileItem::Packet(_) | FileItem::Secrets(_) => {}
            });
        }
        given?;
        let (_, errors) = stream.finish();
        errors.into_iter().next().map_or(Ok(()), |error| Err(error.into()))
    }

    fn stream(self, sorts: bool) -> PacketStream {
        PacketStream::new(self.origins, self.open, sorts)
    }
}

/// Whether packets whose times go back are sorted. Wireshark takes them as they come, so its labels
/// do, too.
fn sorts(options: &Options) -> bool {
    options.config.labels != Labels::Wireshark
}
