//! What is shown of a recording: its progress, what it has, and the answer.

use crate::cmd::analyze::Answer;
use crate::failure::Failure;
use crate::sentence::either;
use crate::terminal::{print, print_json, remark, remark_json};
use fullpipe_flow::schema::Version;
use fullpipe_host::recording::{Recorded, Recording};
use fullpipe_host::trigger::Triggered;
use fullpipe_model::units::Duration;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

/// A bar on standard error, drawn only if that is a terminal.
pub struct Bar(ProgressBar);

impl Bar {
    /// Without a `span` nobody knows when it ends.
    pub fn new(span: Option<Duration>) -> Bar {
        let (bar, template) = match span {
            Some(span) => (ProgressBar::new(span.as_micros()), "{msg} {wide_bar} {elapsed:>4}"),
            None => (ProgressBar::new_spinner(), "{spinner} {msg} {elapsed}"),
        };
        let style = ProgressStyle::with_template(template);
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        Bar(bar.with_style(style.progress_chars("=> ")))
    }

    /// Shows what there is by now.
    pub fn show(&self, passed: Duration, recording: &Recording) {
        let (packets, size, dropped) = recording.so_far();
        let lost = match dropped {
            0 => String::new(),
            _ => either(format!(", {dropped} dropped"), format!("，丢弃 {dropped} 个")),
        };
        self.0.set_message(either(
            format!("{packets} packets, {size}{lost}"),
            format!("{packets} 个数据包，{size}{lost}"),
        ));
        self.0.set_position(passed.as_micros());
    }

    /// Tells where a condition held.
    pub fn tell(&self, found: &Triggered) {
        self.0.suspend(|| remark(&in_words(found)));
    }
}

fn in_words(found: &Triggered) -> String {
    let Triggered { condition, local, remote, value, .. } = found;
    either(
        format!("it happened: {condition}: {local} with {remote} had {value}"),
        format!("情况发生：{condition}：{local} 与 {remote} 之间为 {value}"),
    )
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// What came of a recording.
pub struct Outcome<'a> {
    pub recorded: Recorded,
    /// Where a condition held that was to end it.
    pub triggered: Option<&'a Triggered>,
    pub json: bool,
    /// Whether everything is told on standard error, because the output is a program's.
    pub on_error: bool,
}

/// The JSON of `fullpipe record`.
#[derive(Serialize)]
struct RecordDocument<'a, A: Serialize> {
    schema: Version,
    recorded: &'a Recorded,
    /// Where the condition of --until held.
    #[serde(skip_serializing_if = "Option::is_none")]
    triggered: Option<&'a Triggered>,
    /// What `analyze --json` says of it.
    analysis: Option<A>,
}

impl Outcome<'_> {
    /// Tells what was recorded, and the answer.
    pub fn show(&self) -> Result<(), Failure> {
        let is_empty = self.recorded.packets == 0;
        let files = &self.recorded.files;
        let answer = (!is_empty).then(|| Answer::of(files, self.json)).transpose()?;
        if self.json {
            let analysis = answer.as_ref().map(Answer::document);
            let (schema, recorded) = (Version::default(), &self.recorded);
            let document = RecordDocument { schema, recorded, triggered: self.triggered, analysis };
            if !self.on_error {
                return Ok(print_json(&document)?);
            }
            remark_json(&serde_json::to_string(&document).map_err(std::io::Error::from)?);
            return Ok(());
        }
        let Some(answer) = answer else {
            if self.on_error {
                remark(either(
                    "fullpipe: record: no TCP packet of a new connection passed; nothing was \
                     written",
                    "fullpipe: record：没有新连接的 TCP 数据包经过；未写入任何内容",
                ));
            }
            return Ok(());
        };
        let text = answer.text();
        if self.on_error {
            remark(&text)
        } else {
            print(&text)?
        }
        remark(&self.in_words());
        Ok(())
    }

    fn in_words(&self) -> String {
        let Recorded { packets, size, dropped, is_full, files, .. } = &self.recorded;
        let span = self.recorded.span();
        let lost = lost(*dropped);
        let full = full(*is_full);
        let place = match &files[..] {
            [only] => only.display().to_string(),
            [first, .., last] => {
                format!("{} {} {}", first.display(), either("to", "至"), last.display())
            }
            [] => String::new(),
        };
        either(
            format!("recorded {packets} packets in {span}, {size}: {place}; {lost}{full}"),
            format!("{span} 内记录了 {packets} 个数据包，{size}：{place}；{lost}{full}"),
        )
    }
}

/// Says what is missing in a stream; nothing, where nothing is.
pub fn tell_missing(recorded: &Recorded) {
    if recorded.dropped > 0 || recorded.is_full {
        let (lost, full) = (lost(recorded.dropped), full(recorded.is_full));
        remark(&format!("fullpipe: record: {lost}{full}"));
    }
}

fn lost(dropped: u64) -> String {
    match dropped {
        0 => either("none was dropped", "没有丢弃").to_owned(),
        _ => either(
            format!(
                "{dropped} more were dropped, as this machine was too busy to keep up: record \
                 fewer with --port, --host or --device"
            ),
            format!(
                "另有 {dropped} 个因本机太忙而丢弃：请用 --port、--host 或 --device 少记录一些"
            ),
        ),
    }
}

fn full(is_full: bool) -> &'static str {
    if is_full {
        either("; the file is full, and --size allows more", "；文件已满，--size 可以放宽")
    } else {
        ""
    }
}
