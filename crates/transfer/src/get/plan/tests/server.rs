//! A server for the model test: it replaces its files, cuts its answers, lies in their heads, and
//! forgets fields. What it never does is what no client could notice without a hash: send other
//! bytes than its head names, or use one strong validator for two versions under one URL.

use hyper::{Response, StatusCode};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::ops::Range;
use std::time::{Duration, UNIX_EPOCH};

/// Random choices.
pub struct Dice(Pcg64Mcg);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(Pcg64Mcg::seed_from_u64(seed))
    }

    /// Below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0.next_u64() % end.max(1)
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}

/// One version of the file under a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    /// Of all versions of all files.
    pub id: usize,
    pub length: u64,
    /// The entity tag: two files may have equal ones, as nginx makes them of time and length.
    tag: u64,
    modified: u64,
}

/// The body of an answer.
#[derive(Debug, Clone, Copy)]
pub struct Body {
    pub version: usize,
    /// The offset of its next byte in the file.
    pub at: u64,
    /// Bytes that will still come.
    pub left: u64,
    /// Whether its end is one by its framing.
    pub clean: bool,
}

/// How the server tags its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tags {
    Strong,
    Weak,
    No,
}

/// Two URLs, and how the server treats who asks for them.
pub struct Server {
    files: [Version; 2],
    /// All versions of each.
    history: [Vec<Version>; 2],
    now: u64,
    tags: Tags,
    dates: bool,
    has_ranges: bool,
    says_ranges: Option<&'static str>,
    keeps_if_range: bool,
    chunked: bool,
    /// It lies, forgets or cuts once in so many answers.
    lies: u64,
    cuts: u64,
}

const LENGTHS: [u64; 6] = [0, 1, 1_000, 600_000, 2_000_000, 2_000_000];

impl Server {
    pub fn new(dice: &mut Dice) -> Server {
        let file = |id, dice: &mut Dice| Version {
            id,
            length: LENGTHS[dice.below(6) as usize],
            tag: 1,
            modified: 1_000_000 - dice.below(2) * dice.below(200),
        };
        let rare = [2, 8, 64, u64::MAX];
        let files = [file(0, dice), file(1, dice)];
        Server {
            files,
            history: files.map(|one| vec![one]),
            now: 1_000_000,
            tags: [Tags::Strong, Tags::Strong, Tags::Weak, Tags::No][dice.below(4) as usize],
            dates: !dice.once_in(3),
            has_ranges: !dice.once_in(4),
            says_ranges: [Some("bytes"), Some("bytes"), Some("none"), None][dice.below(4) as usize],
            keeps_if_range: !dice.once_in(3),
            chunked: dice.once_in(4),
            lies: rare[dice.below(4) as usize],
            cuts: rare[dice.below(4) as usize],
        }
    }

    /// Puts another file under a URL, often of the same length.
    pub fn replace(&mut self, url: usize, dice: &mut Dice) {
        let old = self.files[url];
        let length = if dice.once_in(3) { LENGTHS[dice.below(6) as usize] } else { old.length };
        let id = self.history.iter().map(Vec::len).sum();
        let new = Version { id, length, tag: old.tag + 1, modified: self.now };
        self.files[url] = new;
        self.history[url].push(new);
    }

    /// All versions that were ever under this URL.
    pub fn history(&self, url: usize) -> &[Version] {
        &self.history[url]
    }

    pub fn wait(&mut self, dice: &mut Dice) {
        self.now += dice.below(100);
    }

    fn tag(&self, file: &Version) -> Option<String> {
        match self.tags {
            Tags::Strong => Some(format!("\"{}\"", file.tag)),
            // The same for several versions: that is what weak means.
            Tags::Weak => Some(format!("W/\"{}\"", file.tag / 4)),
            Tags::No => None,
        }
    }

    fn date(seconds: u64) -> String {
        httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds))
    }

    /// Answers a request for the whole file or a range of it (to the end of the file: `u64::MAX`).
    pub fn answer(
        &self,
        url: usize,
        range: Option<Range<u64>>,
        if_range: Option<&str>,
        dice: &mut Dice,
    ) -> (Response<()>, Body) {
        let file = self.files[url];
        let is_same = |text: &str| {
            self.tag(&file).as_deref() == Some(text)
                || self.dates && Server::date(file.modified) == text
        };
        let fits = if_range.is_none_or(|text| !self.keeps_if_range || is_same(text));
        let range = range.filter(|_| self.has_ranges && fits);
        let lie = if dice.once_in(self.lies) { dice.below(10) } else { u64::MAX };
        let (mut status, mut part) = (StatusCode::OK, 0..file.length);
        if let Some(asked) = range {
            (status, part) = (StatusCode::PARTIAL_CONTENT, asked.start..asked.end.min(file.length));
        }
        if part.start > 0 && part.start >= file.length {
            (status, part) = (StatusCode::RANGE_NOT_SATISFIABLE, 0..0);
        }
        match lie {
            0 => status = StatusCode::SERVICE_UNAVAILABLE,
            1 => status = StatusCode::PARTIAL_CONTENT,
            2 => (status, part) = (StatusCode::OK, 0..file.length),
            // Less or another part than was asked for, and its head says so.
            3 if !part.is_empty() => part.end -= dice.below(part.end - part.start),
            4 if !part.is_empty() => part.start += dice.below(part.end - part.start),
            _ => {}
        }
        if status == StatusCode::OK && part != (0..file.length) {
            status = StatusCode::PARTIAL_CONTENT;
        }
        let length = part.end - part.start;
        let cut = dice.once_in(self.cuts);
        let left = if cut { dice.below(length + 1) } else { length };
        // A chunked part may end early and in order: only its Content-Range tells.
        let clean = !cut || status == StatusCode::PARTIAL_CONTENT && self.chunked;
        let body = Body { version: file.id, at: part.start, left, clean };
        (self.head(&file, status, &part, lie), body)
    }

    fn head(
        &self,
        file: &Version,
        status: StatusCode,
        part: &Range<u64>,
        lie: u64,
    ) -> Response<()> {
        let length = part.end - part.start;
        let mut head = Response::builder().status(status);
        if let Some(tag) = self.tag(file).filter(|_| lie != 5) {
            head = head.header("etag", tag);
        }
        if self.dates && lie != 6 {
            head = head.header("last-modified", Server::date(file.modified));
        }
        if lie != 7 {
            head = head.header("date", Server::date(self.now));
        }
        if let Some(says) = self.says_ranges {
            head = head.header("accept-ranges", says);
        }
        if status == StatusCode::PARTIAL_CONTENT && !part.is_empty() {
            let total = if lie == 8 { file.length + 7 } else { file.length };
            let text = format!("bytes {}-{}/{total}", part.start, part.end - 1);
            head = head.header("content-range", text);
        }
        if self.chunked {
            head = head.header("transfer-encoding", "chunked");
        }
        // Twice, where it lies.
        if !self.chunked || lie == 9 {
            head = head.header("content-length", length);
        }
        head.body(()).unwrap()
    }
}
