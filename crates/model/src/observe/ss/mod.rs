//! A log of `ss -tin`: looks at sockets, as iproute2 prints them for people.
//!
//! ss leaves out what is zero and what its kernel does not know, and the two look alike. Both the
//! kernel's `struct tcp_info` and ss only grew, field after field, so a log in which any socket
//! shows a later field knows the earlier ones: there, what is left out is zero. Fields that came
//! after the latest one shown stay absent. ss does not print the state of congestion control; it is
//! told by the segments that are lost, repeated or selectively acknowledged, of which an open
//! congestion control has none.
//!
//! [`SsLogReader`] takes lines: `line` for each, then `finish`. Times are those of the stamps
//! between the looks or in front of their lines, as `ss -tin | ts` writes them ([`SsLog::clock`]
//! says which there are), or of a steady `every`.

mod fields;
mod stamp;

use super::{Sample, SocketEnds, TcpState};
use crate::units::{Bytes, Duration, Instant};
use fields::{LatestField, SsFields};
use stamp::Stamp;
use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};

/// The instant that a line of `date` names, in any of the forms that a log may have.
pub(super) fn date(line: &str) -> Option<Instant> {
    Some(stamp::read(line)?.after(Instant::ZERO))
}

/// So much of the beginning of a file tells whether it is a log.
pub const OPENING: usize = 4096;

/// Why a line of a log cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseSsError {
    /// An address or a port is a name.
    #[error("{0:?} is no address with a port; log with `ss -tin`, whose -n keeps numbers")]
    Name(String),
    /// A field has a value that no ss prints.
    #[error("{0:?} is no value of ss; was the line cut or changed?")]
    Value(String),
    /// Sockets without what -i adds.
    #[error("its sockets have no details; log with `ss -tin`, whose -i prints them")]
    NoDetails,
    /// A header, and nothing below it.
    #[error("it has no connection; log with `ss -tin` while the transfer runs")]
    NoSockets,
}

/// What tells the times of the looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SsClock {
    /// A stamp before each look, or in front of its lines.
    Stamps,
    /// The user, who says how far apart they are.
    Every,
    /// Nothing: the last look at each socket is all that can be used.
    None,
}

/// The looks of a log.
#[derive(Debug, Clone, PartialEq)]
pub struct SsLog {
    /// Looks at all sockets, in the order of the log.
    pub samples: Vec<Sample>,
    /// What tells their times.
    pub clock: SsClock,
}

/// Whether a file that begins with these bytes is a log of ss.
pub fn is_log(opening: &[u8]) -> bool {
    let opening = opening.get(..OPENING).unwrap_or(opening);
    if !could_be_log(opening) {
        return false;
    }
    // A character may be cut at the end.
    let whole = opening.iter().rposition(|byte| *byte == b'\n').map_or(opening.len(), |at| at + 1);
    let Ok(text) = std::str::from_utf8(&opening[..whole]) else { return false };
    text.lines().any(|line| {
        let line = stamped(line).map_or(line, |(_, rest)| rest);
        is_header(line) || matches!(socket(line), Ok(Some(_)))
    })
}

/// Whether a file that begins with these bytes may yet turn out to be a log: it is text.
pub fn could_be_log(opening: &[u8]) -> bool {
    // pcapng begins with a line feed, JSON with a brace, pcap with a byte that is not ASCII.
    opening.first().is_none_or(|first| first.is_ascii() && *first != b'\n' && *first != b'{')
        && opening.iter().copied().all(is_text)
}

fn is_text(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~' | 0x80..)
}

/// Whether a line is the head of a table of ss.
fn is_header(line: &str) -> bool {
    let mut words = line.split_ascii_whitespace();
    words.any(|word| word == "Recv-Q") && words.next() == Some("Send-Q")
}

/// Reads a log, line by line.
#[derive(Debug, Default)]
pub struct SsLogReader {
    every: Option<Duration>,
    /// The latest stamp, and which look it stands before.
    now: Option<Instant>,
    has_fractions: bool,
    looks: Vec<Instant>,
    /// The sockets of the look that is being read.
    seen: HashSet<SocketEnds>,
    known: LatestField,
    read: Vec<ReadSocket>,
    has_stamps: bool,
    is_open: bool,
}

/// A socket as one look shows it.
#[derive(Debug)]
struct ReadSocket {
    look: usize,
    sample: Sample,
    fields: SsFields,
}

impl SsLogReader {
    /// Nothing yet. `every` is how far the looks are apart where no stamps say so.
    pub fn new(every: Option<Duration>) -> Self {
        SsLogReader { every, ..SsLogReader::default() }
    }

    /// How many looks at sockets were read.
    pub fn samples(&self) -> usize {
        self.read.len()
    }

    /// Reads the next line, without its end. Lines that are neither stamps nor of ss are passed
    /// over.
    ///
    /// # Errors
    /// It is a line of ss, and something in it cannot be read.
    pub fn line(&mut self, line: &str) -> Result<(), ParseSsError> {
        // Where each line has a stamp, a look begins as in a log without: with a header, or with a
        // socket that the look has already.
        let line = match stamped(line) {
            Some((stamp, rest)) => {
                self.stamp(stamp);
                rest
            }
            None => line,
        };
        if let Some(stamp) = stamp::read(line) {
            self.stamp(stamp);
            self.begin();
        } else if is_header(line) {
            self.begin();
        } else if let Some((sample, rest)) = socket(line)? {
            self.socket(sample, rest)?;
        } else if line.starts_with([' ', '\t']) && self.is_open {
            self.details(line)?;
        }
        Ok(())
    }

    fn stamp(&mut self, stamp: Stamp) {
        self.has_stamps = true;
        self.has_fractions |= stamp.has_fraction;
        let last = self.now.unwrap_or(Instant::ZERO);
        self.now = Some(stamp.after(last));
    }

    /// Ends a look. The next socket begins another one.
    fn begin(&mut self) {
        self.seen.clear();
        self.is_open = false;
    }

    fn socket(&mut self, sample: Sample, rest: &str) -> Result<(), ParseSsError> {
        let ends = (sample.local, sample.remote);
        let is_new = self.seen.is_empty() || self.seen.contains(&ends);
        if is_new {
            self.seen.clear();
            // Without a header or a stamp between them two looks have one time; it is the later's.
            self.looks.push(self.now.unwrap_or(Instant::ZERO));
        }
        self.seen.insert(ends);
        let fields = SsFields::default();
        self.read.push(ReadSocket { look: self.looks.len() - 1, sample, fields });
        self.is_open = true;
        self.details(rest)
    }

    fn details(&mut self, text: &str) -> Result<(), ParseSsError> {
        let Some(socket) = self.read.last_mut() else { return Ok(()) };
        socket.fields.read(text)?;
        self.known = self.known.max(socket.fields.known());
        Ok(())
    }

    /// What all lines say together.
    ///
    /// # Errors
    /// There is no socket with details among them.
    pub fn finish(self) -> Result<SsLog, ParseSsError> {
        if self.read.is_empty() {
            return Err(ParseSsError::NoSockets);
        }
        if !self.read.iter().any(|socket| socket.fields.has_details()) {
            return Err(ParseSsError::NoDetails);
        }
        let clock = match (self.has_stamps, self.every) {
            (true, _) => SsClock::Stamps,
            (false, Some(_)) => SsClock::Every,
            (false, None) => SsClock::None,
        };
        let times = match (clock, self.every) {
            (SsClock::Every, Some(every)) => steady(every, self.looks.len()),
            (SsClock::Stamps, _) if !self.has_fractions => evened(self.looks),
            _ => self.looks,
        };
        let samples = self.read.into_iter().map(|socket| {
            let ReadSocket { look, mut sample, fields } = socket;
            sample.at = times.get(look).copied().unwrap_or(Instant::ZERO);
            let has_details = fields.has_details();
            sample.info = has_details.then(|| fields.info(self.known, sample.state));
            sample.memory = fields.memory();
            sample.congestion_control = fields.congestion_control;
            sample
        });
        let samples: Vec<Sample> = samples.collect();
        let samples = if clock == SsClock::None { last_of_each(samples) } else { samples };
        Ok(SsLog { samples, clock })
    }
}

/// Times of looks that are `every` apart.
fn steady(every: Duration, looks: usize) -> Vec<Instant> {
    (0..looks as u64).map(|look| Instant::ZERO + every.saturating_mul(look)).collect()
}

/// Stamps of whole seconds are up to a second early, so two looks a second apart may show none or
/// two. Where all of them fit a steady loop, its times are meant.
fn evened(stamps: Vec<Instant>) -> Vec<Instant> {
    const SECOND: u64 = 1_000_000_000;
    let (Some(first), Some(last)) = (stamps.first().copied(), stamps.last().copied()) else {
        return stamps;
    };
    let (all, steps) = (last.since(first).as_nanos(), stamps.len() as u64 - 1);
    if steps < 2 {
        return stamps;
    }
    let even: Vec<Instant> = (0..=steps)
        .map(|step| {
            let behind = u128::from(all) * u128::from(step) / u128::from(steps);
            first + Duration::from_nanos(u64::try_from(behind).unwrap_or(u64::MAX))
        })
        .collect();
    let fits = std::iter::zip(&stamps, &even)
        .all(|(stamp, even)| stamp.as_nanos().abs_diff(even.as_nanos()) <= SECOND);
    if fits { even } else { stamps }
}

/// The last look at each socket.
fn last_of_each(samples: Vec<Sample>) -> Vec<Sample> {
    let mut last: HashMap<SocketEnds, usize> = HashMap::new();
    for (at, sample) in samples.iter().enumerate() {
        last.insert((sample.local, sample.remote), at);
    }
    let all = samples.into_iter().enumerate();
    all.filter(|(at, one)| last.get(&(one.local, one.remote)) == Some(at))
        .map(|(_, sample)| sample)
        .collect()
}

/// The stamp in front of a line of ss, and the line: `1764464829.25 ESTAB 0 0 ..`, as `ts` of
/// moreutils and the like write it. What a line without a stamp begins with is none: the line is of
/// ss as it is, or the rest would be no line of ss.
fn stamped(line: &str) -> Option<(Stamp, &str)> {
    let (stamp, rest) = stamp::in_front(line).find(|(_, rest)| is_of_ss(rest))?;
    // `ss state established` begins with what waits to be read, which may be as large as a time.
    (socket(line) == Ok(None)).then_some((stamp, rest))
}

/// Whether a line without its stamp may be one of ss.
fn is_of_ss(line: &str) -> bool {
    let is_detail = line.starts_with([' ', '\t']) && line.contains(':');
    is_detail || is_header(line) || socket(line) != Ok(None)
}

/// The socket of a line and what follows its ends; `None` where the line is not a connection's.
/// `ss state established` has no column of the state.
fn socket(line: &str) -> Result<Option<(Sample, &str)>, ParseSsError> {
    let mut words = SsWords(line);
    let mut word = words.next();
    if word == Some("tcp") {
        word = words.next();
    }
    let named = word.and_then(state);
    if named.is_some() {
        word = words.next();
    } else if line.starts_with([' ', '\t']) {
        return Ok(None);
    }
    let (Some(rqueue), Some(wqueue)) = (word.and_then(queue), words.next().and_then(queue)) else {
        return Ok(None);
    };
    let (Some(local), Some(remote)) = (words.next(), words.next()) else { return Ok(None) };
    let is_listener = matches!(named, Some(TcpState::Listen));
    if is_listener || is_any(local) || is_any(remote) {
        return Ok(None);
    }
    if !local.contains(':') || !remote.contains(':') {
        return Ok(None);
    }
    let state = named.unwrap_or(TcpState::Established);
    let mut sample = Sample::new(Instant::ZERO, end(local)?, end(remote)?, state);
    sample.rqueue = Bytes::new(rqueue.into());
    sample.wqueue = Bytes::new(wqueue.into());
    Ok(Some((sample, words.0)))
}

/// The bytes in a queue.
fn queue(word: &str) -> Option<u32> {
    word.parse().ok()
}

/// Whether an end stands for any address or port.
fn is_any(end: &str) -> bool {
    end.starts_with('*') || end.ends_with(":*")
}

/// The state that a word of ss names.
fn state(word: &str) -> Option<TcpState> {
    Some(match word {
        "ESTAB" => TcpState::Established,
        "SYN-SENT" => TcpState::SynSent,
        "SYN-RECV" => TcpState::SynRecv,
        "FIN-WAIT-1" => TcpState::FinWait1,
        "FIN-WAIT-2" => TcpState::FinWait2,
        "TIME-WAIT" => TcpState::TimeWait,
        "UNCONN" => TcpState::Close,
        "CLOSE-WAIT" => TcpState::CloseWait,
        "LAST-ACK" => TcpState::LastAck,
        "LISTEN" => TcpState::Listen,
        "CLOSING" => TcpState::Closing,
        _ => return None,
    })
}

/// An end: `192.0.2.1:80`, `192.0.2.1%eth0:80`, `[2001:db8::1]:80`, `[fe80::1]%eth0:80`.
fn end(text: &str) -> Result<SocketAddr, ParseSsError> {
    let parsed = || {
        let (address, port) = text.rsplit_once(':')?;
        let address = address.split('%').next()?;
        let bare = address.strip_prefix('[').unwrap_or(address);
        let bare = bare.strip_suffix(']').unwrap_or(bare);
        Some(SocketAddr::new(bare.parse::<IpAddr>().ok()?, port.parse().ok()?))
    };
    parsed().ok_or_else(|| ParseSsError::Name(shortened(text)))
}

/// Enough of a foreign word for a message.
fn shortened(word: &str) -> String {
    const ENOUGH: usize = 60;
    word.chars().take(ENOUGH).collect()
}

/// Words of a line, with what stands behind them.
struct SsWords<'a>(&'a str);

impl<'a> Iterator for SsWords<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let from = self.0.trim_ascii_start();
        let to = from.find(|one: char| one.is_ascii_whitespace()).unwrap_or(from.len());
        let (word, rest) = from.split_at(to);
        self.0 = rest;
        (!word.is_empty()).then_some(word)
    }
}

#[cfg(test)]
mod tests;
