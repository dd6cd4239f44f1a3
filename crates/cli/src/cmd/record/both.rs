//! A recording at both ends, with the `fullpipe serve --allow-record` at the far one.

use super::{RecordCommand, failed};
use crate::cmd::analyze::both::BothAnswer;
use crate::cmd::peer_keys::{private_key, with_port};
use crate::failure::{Failure, Kind};
use crate::sentence::{Sentence, either};
use crate::terminal::{print, print_json, remark};
use fullpipe_flow::schema::Version;
use fullpipe_host::recording::{OneFile, Recorded, Recording};
use fullpipe_kernel::file::folder::Pending;
use fullpipe_kernel::run::sandbox::Interrupt;
use fullpipe_model::units::{Bytes, Duration, column};
use fullpipe_peer::record::{FarRecordError, FarRecording, RecordLimits};
use fullpipe_peer::{Client, Keys, PeerError};
use serde::Serialize;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};

/// How long both ends record where nothing is said.
const SPAN: Duration = Duration::from_secs(30);
/// How long the connection attempt to the far end may take.
const CONNECT: Duration = Duration::from_secs(10);

/// What the far end recorded.
#[derive(Serialize)]
struct FarRecorded {
    packets: u64,
    dropped: u64,
    #[serde(rename = "size_bytes", with = "column::bytes")]
    size: Bytes,
    is_full: bool,
    file: PathBuf,
}

/// The JSON of `fullpipe record HOST`.
#[derive(Serialize)]
struct BothRecordedDocument<'a, A: Serialize> {
    schema: Version,
    near: &'a Recorded,
    far: &'a FarRecorded,
    /// What `analyze --both --json` says of the two files.
    both: A,
}

/// Records at both ends, and answers by both.
pub fn run(record: &RecordCommand, far: &str, end: &Interrupt) -> Result<u8, Failure> {
    let keys = match (&record.key, record.server_key) {
        (Some(file), Some(server)) => Some(Keys { own: private_key(file)?, server }),
        _ => None,
    };
    let client = Client::new(&with_port(far), keys.as_ref(), CONNECT);
    let client = client.map_err(|error| far_failed(error.into()))?;
    let span = record.span.unwrap_or(SPAN);
    let size = record.size.min(RecordLimits::default().size);
    let [near_file, far_file] = [".near", ".far"].map(|end| named(&record.output, end));
    let mut kept = Pending::nameless_at(&far_file).map_err(|cause| not_kept(&far_file, &cause))?;
    let place = OneFile::begin(&near_file, size).map_err(failed)?;
    // Each end begins before it is known that the other one has.
    let options = record.options(&[client.addr().ip()])?;
    let recording = Recording::start(&options, Box::new(place)).map_err(failed)?;
    let far = FarRecording::begin(&client, &record.port, span, size).map_err(far_failed)?;
    let waited = record.wait(&recording, end, Some(span))?;
    let mut length = 0;
    let finished = far.finish(&mut |piece| {
        length += piece.len() as u64;
        kept.write_all(piece)
    });
    let (packets, dropped, is_full) = finished.map_err(far_failed)?;
    let near = recording.finish().map_err(failed)?;
    if near.packets == 0 || packets == 0 {
        return Err(Failure::new(Kind::Run, nothing_seen(near.packets == 0)));
    }
    kept.commit().map_err(|cause| not_kept(&far_file, &cause))?;
    let size = Bytes::new(length);
    let far = FarRecorded { packets, dropped, size, is_full, file: far_file.clone() };
    let answer = BothAnswer::of(&[near_file, far_file], "record")?;
    if record.json {
        let (schema, near) = (Version::default(), &near);
        print_json(&BothRecordedDocument { schema, near, far: &far, both: answer.documents() })?;
    } else {
        print(&answer.text())?;
        remark(&in_words(&near, &far));
    }
    if waited.is_cut {
        return Err(super::cut());
    }
    Ok(0)
}

fn nothing_seen(is_here: bool) -> Sentence {
    let (place, in_chinese) =
        if is_here { ("here", "本端") } else { ("at the far end", "远端") };
    Sentence::new(
        format!(
            "record: no TCP packet between the two hosts was seen {place}; start the transfer \
             meanwhile, or look whether --port is right and whether addresses are translated in \
             between"
        ),
        format!(
            "record：{in_chinese}没有看到两台主机之间的 TCP 数据包；请在记录期间开始传输，或检查 --port \
             是否正确、中间是否有地址转换"
        ),
    )
}

fn in_words(near: &Recorded, far: &FarRecorded) -> String {
    let files: Vec<_> = near.files.iter().map(|file| file.display().to_string()).collect();
    let (files, far_file) = (files.join(", "), far.file.display());
    let (packets, dropped) = (near.packets, near.dropped);
    let (far_packets, far_dropped) = (far.packets, far.dropped);
    let is_full = near.is_full || far.is_full;
    let full = if is_full {
        either("; no more room was allowed", "；已达到允许的大小")
    } else {
        ""
    };
    either(
        format!(
            "recorded here {packets} packets, {dropped} dropped: {files}; at the far end \
             {far_packets}, {far_dropped} dropped: {far_file}{full}"
        ),
        format!(
            "本端记录 {packets} 个数据包，丢弃 {dropped} 个：{files}；远端 {far_packets} 个，丢弃 \
             {far_dropped} 个：{far_file}{full}"
        ),
    )
}

/// A file beside the one that is named, for one end.
fn named(output: &Path, end: &str) -> PathBuf {
    let mut name = OsString::from(output.file_stem().unwrap_or_default());
    name.push(end);
    if let Some(extension) = output.extension() {
        name.push(".");
        name.push(extension);
    }
    output.with_file_name(name)
}

fn not_kept(file: &Path, cause: &std::io::Error) -> Failure {
    let place = file.display();
    let told = Sentence::new(
        format!("record: write {place}: {cause}; free some space, or choose another place (-o)"),
        format!("record：写入 {place}：{cause}；请腾出空间，或换一个位置（-o）"),
    );
    Failure::new(Kind::Run, told)
}

fn far_failed(error: FarRecordError) -> Failure {
    let kind = match &error {
        FarRecordError::Peer(PeerError::NeedsKeys(_)) => Kind::Usage,
        FarRecordError::Peer(PeerError::Keys(_)) => Kind::Input,
        _ => Kind::Run,
    };
    Failure::new(kind, Sentence::from(&error).of("record"))
}
