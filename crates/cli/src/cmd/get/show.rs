//! What the user sees: a bar meanwhile, and what came of it.

use super::words;
use crate::cmd::waits;
use crate::terminal::{language, print};
use fullpipe_flow::Language;
use fullpipe_model::limit::Limit;
use fullpipe_model::units::{Bytes, Duration, Instant, Rate};
use fullpipe_report::table::escape;
use fullpipe_transfer::{GetEvent, GetRequest, Got, Target};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::path::Path;

/// The time over which the shown rate is the mean.
const MEAN: Duration = Duration::from_secs(3);

/// The bar on standard error; nothing is drawn where that is no terminal.
pub struct Bar {
    bar: ProgressBar,
    /// What had arrived when.
    past: RefCell<VecDeque<(Instant, Bytes)>>,
    limited: bool,
    language: Language,
}

impl Bar {
    pub fn new(request: &GetRequest, hidden: bool) -> Bar {
        let bar = ProgressBar::no_length();
        if hidden {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        bar.set_style(style("{prefix:24!} {spinner} {bytes} {msg}"));
        let name = match &request.target {
            Target::File(path) => path.display().to_string(),
            Target::Stdout => request.url.clone(),
        };
        bar.set_prefix(escape::in_line(&name).into_owned());
        let options = &request.options;
        let limited = options.limit_rate.is_some() || options.limit_rate_each.is_some();
        Bar { bar, past: RefCell::default(), limited, language: language() }
    }

    pub fn show(&self, event: &GetEvent, limit: Option<Limit>) {
        match event {
            GetEvent::Started { length: Some(length), .. } => {
                self.bar.set_length(length.get());
                self.bar.set_style(style("{prefix:24!} {wide_bar} {percent:>3} % {msg}"));
            }
            GetEvent::Progress { done, length, connections } => {
                let rate = self.rate(fullpipe_kernel::host::clock::now(), *done);
                let mut text = rate.map_or_else(String::new, |rate| rate.to_string());
                let left = length.map(|length| length.saturating_sub(*done));
                let left = rate.zip(left).and_then(|(rate, left)| rate.time_for(left));
                let (connections, language) = (*connections, self.language);
                let limit = limit.map(|limit| words::held_by(language, limit, self.limited));
                text += &words::meanwhile(language, left, connections, limit);
                self.bar.set_position(done.get());
                self.bar.set_message(text);
            }
            _ => {}
        }
    }

    fn rate(&self, now: Instant, done: Bytes) -> Option<Rate> {
        let mut past = self.past.borrow_mut();
        while past.front().is_some_and(|(at, _)| now.since(*at) > MEAN) {
            past.pop_front();
        }
        past.push_back((now, done));
        let (at, before) = *past.front()?;
        done.saturating_sub(before).per(now.since(at)).filter(|rate| *rate > Rate::ZERO)
    }

    pub fn with_bar_hidden(&self, work: impl FnOnce()) {
        self.bar.suspend(work);
    }

    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ")
}

/// A file that was fetched, as printed.
#[derive(Serialize)]
pub struct Fetched {
    /// `null`: standard output.
    pub(super) file: Option<String>,
    #[serde(flatten)]
    pub(super) got: Got,
    goodput_bps: Option<u64>,
    /// What limited the connection that was watched, at last; absent if the download was too
    /// short to tell.
    #[serde(flatten)]
    limit: Option<Limit>,
    #[serde(skip)]
    limited: bool,
}

impl Fetched {
    pub fn new(got: Got, request: &GetRequest, limit: Option<Limit>) -> Fetched {
        let file = match &request.target {
            Target::File(path) => Some(path.display().to_string()),
            Target::Stdout => None,
        };
        let goodput_bps = got.goodput().map(Rate::bits_per_sec);
        let options = &request.options;
        let limited = options.limit_rate.is_some() || options.limit_rate_each.is_some();
        Fetched { file, got, goodput_bps, limit, limited }
    }

    /// Prints it: on standard output, or on standard error if the file is there.
    pub fn tell(&self) -> std::io::Result<()> {
        match &self.file {
            Some(file) => print(&self.text(file)),
            None => {
                crate::terminal::remark(self.text(&self.got.url).trim_end());
                Ok(())
            }
        }
    }

    fn text(&self, name: &str) -> String {
        let got = &self.got;
        let name = Path::new(name).file_name().map_or(name.into(), |name| name.to_string_lossy());
        let time = got.timing;
        let both = |rate: Rate| format!("{rate} ({rate:#})");
        let rate = got.fetched.per(time.total).map_or_else(|| "-".into(), both);
        let language = language();
        let mut text = words::fetched(language, &escape::in_line(&name), got, &rate);
        if got.fetched != got.file {
            text += &words::continued(language, got.file - got.fetched, got.file);
        }
        let times = waits::times(&time, language);
        text += &words::since_start(language, &times, got.goodput().map(both).as_deref());
        if let Some(wait) = waits::longest_wait(&time, language) {
            text += &format!("  {wait}\n");
        }
        if let Some(limit) = self.limit {
            let held_by = words::held_by(language, limit, self.limited);
            text += &words::limited_by(language, held_by);
        }
        for step in &got.steps {
            text += &words::step(language, step.at, step.connections, step.rate, step.reason);
        }
        if got.sha256.is_some() {
            text += words::as_expected(language);
        }
        text
    }
}
