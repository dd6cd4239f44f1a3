//! A capture with comments for Wireshark at the packets that the answer rests on.
//!
//! The capture is read three times: to be analysed, to find the packets that the comments belong
//! to, and to be written. So memory follows the comments, and not the capture.

use super::{Analyze, tell};
use crate::cmd::input::records::each_record;
use crate::cmd::input::twice::{CopyError, TwiceRead};
use crate::cmd::report::not_written;
use crate::failure::{Failure, Kind};
use crate::sentence::{Sentence, either};
use crate::terminal::{language, print, print_json};
use fullpipe_analyze::{Capture, Error};
use fullpipe_flow::capture::commented::CommentedFile;
use fullpipe_flow::capture::{FileRecord, ReadError, Summary};
use fullpipe_flow::schema::Version;
use fullpipe_flow::{Intake, Language};
use fullpipe_kernel::file::folder::Pending;
use fullpipe_model::units::Bytes;
use fullpipe_report::connection::analysis::remarks;
use fullpipe_report::connection::comments::{CommentPlan, PlacedComments};
use fullpipe_report::table::escape::in_line;
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Output that is gathered before it is written.
const WRITE_AT: usize = 1 << 18;

/// The JSON of `fullpipe analyze --annotate`.
#[derive(Serialize)]
struct AnnotatedCapture {
    schema: Version,
    /// The file that was written.
    output: PathBuf,
    size_bytes: u64,
    packets: u64,
    /// Comments, and the packets that have one or more.
    comments: u64,
    commented_packets: u64,
    /// Comments that were too many, or that no packet was found for.
    left_out: u64,
    /// The comment about the whole capture: a verdict for each connection.
    about: String,
}

/// Writes the capture with comments.
pub fn run(analyze: &Analyze, output: &Path) -> Result<u8, Failure> {
    let [input] = &analyze.files[..] else {
        let problem = Sentence::new(
            "analyze --annotate: it takes one capture; name one FILE",
            "analyze --annotate：一次只处理一个抓包；请给出一个 FILE",
        );
        return Err(Failure::new(Kind::Usage, problem));
    };
    let source = TwiceRead::open(input, output)?;
    if source.is(output) {
        let problem = Sentence::new(
            "analyze: --annotate names the input itself; name another file",
            "analyze：--annotate 就是输入文件本身；请给出另一个文件",
        );
        return Err(Failure::new(Kind::Usage, problem));
    }
    let work = Work { analyze, source, output };
    let mut pending = Pending::nameless_at(output).map_err(|cause| work.not_written(&cause))?;
    let (plan, is_whole) = work.plan()?;
    let about = plan.about();
    // What programs read is in English, whatever the comments are.
    let told = if analyze.json { plan.about_in(Language::English) } else { about.clone() };
    let placed = work.place(plan)?;
    let (packets, size_bytes) = work.write(about, &placed, &mut pending)?;
    pending.commit().map_err(|cause| work.not_written(&cause))?;
    let annotated = AnnotatedCapture {
        schema: Version::default(),
        output: output.to_owned(),
        size_bytes,
        packets,
        comments: placed.count,
        commented_packets: placed.packets() as u64,
        left_out: placed.left_out,
        about: told,
    };
    if analyze.json {
        print_json(&annotated)?;
    } else {
        print(&annotated.text())?;
    }
    Ok(Analyze::code(is_whole))
}

impl AnnotatedCapture {
    fn text(&self) -> String {
        let AnnotatedCapture { packets, comments, commented_packets, left_out, .. } = self;
        let output = in_line(&self.output.display().to_string()).into_owned();
        let size = Bytes::new(self.size_bytes);
        let mut text = either(
            format!(
                "{output}: {packets} packets, {size}; {comments} comments at {commented_packets} of them \
                 (Wireshark: frame.comment)\n"
            ),
            format!(
                "{output}：{packets} 个数据包，{size}；其中 {commented_packets} 个带有共 {comments} 条注释\
                 （Wireshark：frame.comment）\n"
            ),
        );
        if *left_out > 0 {
            text += &either(
                format!(
                    "{left_out} comments on shorter waits, or without a packet, are left out\n"
                ),
                format!("略去了 {left_out} 条注释：等待较短，或没有对应的数据包\n"),
            );
        }
        text + &self.about + "\n"
    }
}

/// A capture on its way.
struct Work<'a> {
    analyze: &'a Analyze,
    source: TwiceRead,
    output: &'a Path,
}

impl Work<'_> {
    /// Analyses it: what is to be said, and whether it was read to its end.
    fn plan(&self) -> Result<(CommentPlan, bool), Failure> {
        let name = self.source.name();
        let reader = self.source.reader().map_err(|cause| self.not_read(cause.into()))?;
        let capture = Capture::reader(name, reader);
        let mut connections = capture.connections_without_findings(&self.analyze.options());
        let mut plan = CommentPlan::in_language(language());
        while let Some(round) = connections.next_round() {
            round.iter().for_each(|explained| plan.add(explained));
        }
        let (counts, errors) = connections.finish();
        remarks(&counts, language()).iter().for_each(|told| tell(name, told));
        // Where nothing could be read, the next reading says why.
        let is_whole = errors.is_empty();
        if counts.packets > 0 {
            super::problem(errors)?;
        }
        Ok((plan, is_whole))
    }

    /// Finds the packets that comments belong to.
    fn place(&self, plan: CommentPlan) -> Result<PlacedComments, Failure> {
        let mut placer = plan.placer();
        let mut intake = Intake::new(&self.analyze.config());
        self.each_record(|number, record| {
            if let Some(packet) = &record.packet
                && let Some((arrival, _)) = intake.open(packet)
            {
                placer.see(number, arrival.at, &arrival.segment);
            }
            Ok(())
        })?;
        Ok(placer.finish())
    }

    /// Writes it with its comments; gives the packets and the bytes.
    fn write(
        &self,
        about: String,
        placed: &PlacedComments,
        to: &mut impl Write,
    ) -> Result<(u64, u64), Failure> {
        let (mut out, mut bytes) = (Vec::with_capacity(2 * WRITE_AT), 0);
        let mut file = CommentedFile::new(about);
        let summary = self.each_record(|number, record| {
            let comments = if record.packet.is_some() { placed.of(number) } else { &[] };
            file.record(record, comments, &mut out);
            if out.len() >= WRITE_AT {
                to.write_all(&out)?;
                bytes += out.len() as u64;
                out.clear();
            }
            Ok(())
        })?;
        file.end(&mut out);
        to.write_all(&out).map_err(|cause| self.not_written(&cause))?;
        Ok((summary.packets, bytes + out.len() as u64))
    }

    /// Calls `each` for every record with the number of the last packet until then, and in it. What
    /// cannot be read further ends there, as the analysis did; only where nothing was read it
    /// fails.
    fn each_record(
        &self,
        each: impl FnMut(u64, &FileRecord<'_>) -> std::io::Result<()>,
    ) -> Result<Summary, Failure> {
        self.read(each).map_err(|error| match error {
            CopyError::Read(cause) => self.not_read(cause),
            CopyError::Write(cause) => self.not_written(&cause),
        })
    }

    fn read(
        &self,
        each: impl FnMut(u64, &FileRecord<'_>) -> std::io::Result<()>,
    ) -> Result<Summary, CopyError> {
        each_record(self.source.reader().map_err(ReadError::from)?, each)
    }

    fn not_read(&self, cause: ReadError) -> Failure {
        let error = Error::Read { name: self.source.name().into(), cause };
        Failure::new(Kind::Input, Sentence::from(&error))
    }

    /// That --annotate names no file that can be written.
    fn not_written(&self, cause: &std::io::Error) -> Failure {
        Failure::new(Kind::Run, not_written(self.output, cause))
    }
}
