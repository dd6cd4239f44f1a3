//! `record --sockets`: the host's flight recorder.

use super::RecordCommand;
use super::upload::{Uploaded, Uploader};
use crate::cmd::past::not_read;
use crate::failure::Failure;
use crate::sentence::either;
use crate::terminal::{print_json, remark};
use fullpipe_flow::schema::Version;
use fullpipe_host::history::{
    HistoryOptions, HistoryProgress, HistoryRecorder, HistoryRing, RingTrouble, directory,
};
use fullpipe_kernel::host::clock;
use fullpipe_kernel::run::sandbox::Interrupt;
use fullpipe_model::units::{Bytes, Duration, Instant, column};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::path::PathBuf;

/// The JSON of `record --sockets`.
#[derive(Serialize)]
struct SocketsDocument {
    schema: Version,
    /// The folder.
    ring: PathBuf,
    /// How many parts it has.
    parts: usize,
    #[serde(rename = "size_bytes", with = "column::bytes")]
    size: Bytes,
    /// When the first of them begins, since 1970.
    #[serde(rename = "first_ns", with = "column::instant_optional")]
    first: Option<Instant>,
    /// Parts of this recording that could not be written.
    lost: u64,
    /// What `--upload` sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    upload: Option<Uploaded>,
}

/// Records until `end` is set, or for the time that was asked for.
pub fn run(command: &RecordCommand, end: &Interrupt) -> Result<u8, Failure> {
    let path = command.ring.clone().map_or_else(directory, Ok).map_err(not_read)?;
    let ring = HistoryRing::begin(&path, command.size).map_err(not_read)?;
    let bar = bar();
    let mut parts = NewParts { last: ring.newest(), uploader: None };
    if let Some(address) = &command.upload {
        parts.uploader = Some(Uploader::begin(address, &path, &bar)?);
    }
    let begun = HistoryRecorder::begin(ring, command.size, HistoryOptions::default());
    let mut recorder = begun.map_err(not_read)?;
    if command.span.is_none() {
        let place = path.display();
        remark(&either(
            format!(
                "recording sockets to {place}; Ctrl-C ends it, `fullpipe why --at -10m` reads it"
            ),
            format!("正在把套接字记录到 {place}；按 Ctrl-C 结束，用 `fullpipe why --at -10m` 读取"),
        ));
    }
    let mut trouble = Trouble::default();
    let last = command.span.map(|span| clock::now() + span);
    loop {
        let left = last.map_or(Duration::MAX, |last| last.since(clock::now()));
        if left == Duration::ZERO || end.wait(Some(recorder.idle().min(left)))? {
            break;
        }
        let wrong = recorder.step().map_err(not_read)?;
        bar.set_message(progress(recorder.progress(), recorder.ring().size()));
        trouble.tell(&bar, wrong, recorder.ring().parts().0);
        parts.see(recorder.ring());
    }
    bar.finish_and_clear();
    let (ring, wrong) = recorder.finish();
    trouble.tell(&bar, wrong, ring.parts().0);
    parts.see(&ring);
    let upload = parts.uploader.and_then(Uploader::finish);
    if command.json {
        let (parts, first) = ring.parts();
        let (schema, size, lost) = (Version::default(), ring.size(), trouble.lost);
        print_json(&SocketsDocument { schema, ring: path, parts, size, first, lost, upload })?;
    }
    // Whoever ends what has no end of its own has what was asked for.
    let is_cut = end.is_set() && command.span.is_some();
    if is_cut { Err(super::cut()) } else { Ok(0) }
}

/// Whoever sends the parts, and the last one that it knows.
struct NewParts {
    last: Option<String>,
    uploader: Option<Uploader>,
}

impl NewParts {
    /// Tells of a part that was written since the last call.
    fn see(&mut self, ring: &HistoryRing) {
        let Some(uploader) = &self.uploader else { return };
        let newest = ring.newest();
        if newest != self.last {
            newest.iter().for_each(|name| uploader.add(name.clone()));
            self.last = newest;
        }
    }
}

/// What went wrong with parts, each kind told once while it goes on.
#[derive(Default)]
struct Trouble {
    is_full: bool,
    is_lost: bool,
    lost: u64,
}

impl Trouble {
    fn tell(&mut self, bar: &ProgressBar, trouble: Option<RingTrouble>, parts: usize) {
        let (is_told, told) = match trouble {
            None => return,
            Some(RingTrouble::DiskFull { .. }) => (&mut self.is_full, full(parts)),
            Some(RingTrouble::Lost(error)) => {
                self.lost += 1;
                let told = either(
                    format!("a part could not be written and is lost: {error}; it goes on"),
                    format!("有一段未能写出，已丢失：{error}；记录继续"),
                );
                (&mut self.is_lost, told)
            }
        };
        if !std::mem::replace(is_told, true) {
            bar.suspend(|| remark(&told));
        }
    }
}

fn full(parts: usize) -> String {
    either(
        format!("the disk is full: the oldest parts go before --size is reached; {parts} are left"),
        format!("磁盘已满：未到 --size 就删除最旧的部分；还剩 {parts} 个"),
    )
}

fn progress(progress: HistoryProgress, size: Bytes) -> String {
    let HistoryProgress { connections, kept, .. } = progress;
    either(
        format!("{connections} connections, samples of {kept}, {size}"),
        format!("{connections} 个连接，保留 {kept} 个的采样，{size}"),
    )
}

/// A line on standard error, drawn only if that is a terminal.
fn bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {msg} {elapsed}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
    ProgressBar::new_spinner().with_style(style)
}
