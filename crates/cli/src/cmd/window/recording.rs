//! `--record`: samples of the connections that an agent follows, as `why --record` writes them.
//!
//! The agent says which connections there are; the samples are the kernel's own account of their
//! sockets. So whatever reads a recording reads these, and what the agent does is seen from
//! outside. Order of calls: [`Recording::begin`], [`Recording::step`] when it is due, and
//! [`Recording::finish`].

use super::agent::Running;
use crate::cmd::samples::SampleFile;
use crate::failure::{Failure, Kind};
use crate::sentence::{Sentence, either};
use crate::terminal::remark;
use fullpipe_analyze::SAMPLES_MAX;
use fullpipe_flow::diagnosis::live::Note;
use fullpipe_host::Recorder;
use fullpipe_kernel::{Refused, host::clock};
use fullpipe_model::observe::{SocketEnds, SocketOptions, canonical_ends};
use fullpipe_model::tune::HostSettings;
use fullpipe_model::units::{Duration, Instant};
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// Time between two questions which connections there are.
const CHOOSE_EVERY: Duration = Duration::from_millis(100);

/// What is noted of a socket when it is gone.
struct Noted {
    /// Its last sample.
    at: Instant,
    settings: Option<HostSettings>,
    /// Its program chose its buffer.
    is_frozen: bool,
}

/// A recording at work.
pub struct Recording {
    file: SampleFile,
    recorder: Recorder,
    /// Sockets that were sampled and are still there.
    sockets: HashMap<SocketEnds, Noted>,
    /// Of them, or of new ones, those whose program chose its buffer.
    frozen: HashSet<SocketEnds>,
    lines: u64,
    samples_at: Instant,
    chooses_at: Instant,
}

impl Recording {
    /// Begins the file, before anything is followed.
    pub fn begin(path: &Path) -> Result<Recording, Failure> {
        let now = clock::now();
        Ok(Recording {
            file: SampleFile::begin(path)?,
            recorder: Recorder::open().map_err(failed)?,
            sockets: HashMap::new(),
            frozen: HashSet::new(),
            lines: 0,
            samples_at: now,
            chooses_at: now,
        })
    }

    /// Does what is due; returns how long nothing is due.
    pub fn step(&mut self, running: &Running) -> Result<Duration, Failure> {
        let now = clock::now();
        if now >= self.chooses_at {
            self.choose(running)?;
            self.chooses_at = now + CHOOSE_EVERY;
        }
        if now >= self.samples_at {
            self.sample()?;
            // Late, it goes on from now rather than sample twice in a row.
            let due = self.samples_at + self.recorder.step();
            self.samples_at = due.max(now);
        }
        Ok(self.samples_at.min(self.chooses_at).since(clock::now()))
    }

    fn choose(&mut self, running: &Running) -> Result<(), Failure> {
        let open = running.open_connections()?;
        let ends: Vec<SocketEnds> = open.iter().map(|one| (one.local, one.remote)).collect();
        let frozen = open.iter().filter(|one| one.is_frozen).map(|one| (one.local, one.remote));
        self.frozen = frozen.collect();
        self.recorder.choose(&ends).map_err(failed)?;
        let open: HashSet<SocketEnds> = ends.into_iter().collect();
        let gone: Vec<SocketEnds> = self
            .sockets
            .keys()
            .copied()
            .filter(|ends| !open.contains(&canonical_ends(*ends)))
            .collect();
        gone.into_iter().try_for_each(|ends| self.note(ends))
    }

    fn sample(&mut self) -> Result<(), Failure> {
        for sample in self.recorder.sample().map_err(failed)? {
            // Room is left for a note of each socket.
            if self.lines + self.sockets.len() as u64 + 2 > SAMPLES_MAX {
                return Err(too_long());
            }
            self.file.add(&sample)?;
            self.lines += 1;
            let ends = (sample.local, sample.remote);
            match self.sockets.get_mut(&ends) {
                Some(noted) => noted.at = sample.at,
                None => {
                    let settings = self.recorder.settings(ends.0, ends.1);
                    let is_frozen = self.frozen.contains(&canonical_ends(ends));
                    self.sockets.insert(ends, Noted { at: sample.at, settings, is_frozen });
                }
            }
        }
        Ok(())
    }

    /// Writes what was known of a socket, which is gone.
    fn note(&mut self, ends: SocketEnds) -> Result<(), Failure> {
        let Some(noted) = self.sockets.remove(&ends) else { return Ok(()) };
        // The clamp on its window may be the agent's, and is no wish of its program.
        let asked =
            SocketOptions { sets_rcvbuf: Some(noted.is_frozen), ..SocketOptions::default() };
        self.lines += 1;
        self.file.note(&Note {
            at: noted.at,
            local: ends.0,
            remote: ends.1,
            asked: Some(asked),
            settings: noted.settings,
            socket: None,
        })
    }

    /// Completes the file.
    pub fn finish(mut self) -> Result<(), Failure> {
        let left: Vec<SocketEnds> = self.sockets.keys().copied().collect();
        left.into_iter().try_for_each(|ends| self.note(ends))?;
        if self.lines == 0 {
            remark(either(
                "The recording is empty: no connection was followed, or it was too short.",
                "记录为空：没有跟踪任何连接，或时间太短。",
            ));
        }
        self.file.finish()
    }
}

fn failed(refused: Refused) -> Failure {
    let what = Sentence::new("window: record", "window：记录");
    Failure::new(Kind::Run, what.and(&Sentence::from(&refused)))
}

fn too_long() -> Failure {
    let why = Sentence::new(
        format!(
            "window: record: more than {SAMPLES_MAX} samples are not read by anybody; what there is, is kept: \
             record for a shorter time"
        ),
        format!("window：记录：超过 {SAMPLES_MAX} 次采样无从读取；已有的保留着：请缩短记录时间"),
    );
    Failure::new(Kind::Run, why)
}
