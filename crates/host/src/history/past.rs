//! Answers from a recording: what limited the connections at a time that is past.

mod coverage;

pub use coverage::Gap;

use super::HistoryError;
use super::ring::parts_between;
use crate::machine::{Counters, offload_named};
use crate::watch::{SocketKey, WatchedSocket};
use crate::why::{Followed, Found, is_loopback, worst_first};
use coverage::gaps;
use flate2::read::MultiGzDecoder;
use fullpipe_flow::connection::filter::LiveFilter;
use fullpipe_flow::diagnosis::live::{History, HostNote, NotedMemory, NotedTime, PastAnswer};
use fullpipe_flow::diagnosis::{Explanation, MachineCause};
use fullpipe_kernel::file::folder::Folder;
use fullpipe_model::units::{Duration, Instant, column};
use serde::Serialize;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// More than the longest part lasts, and what it takes to write one.
pub(super) const PART_MOST: Duration = Duration::from_secs(150);
/// Looks at all sockets may be so far apart: one that comes after the time covers its end.
const AROUND: Duration = Duration::from_secs(40);
/// The machine's counters are read so often; those just outside the time tell of it, too.
const HOSTS_AROUND: Duration = Duration::from_secs(12);
/// More than a part has, unpacked: whoever writes more wants to fill the memory.
const TEXT_MOST: u64 = 64 << 20;
/// A line of a recording has some 1.5 kB, and one about the machine some more.
const LINE_MOST: u64 = 1 << 20;

/// What is asked of a recording.
#[derive(Debug, Clone, Copy)]
pub struct PastQuestion<'q> {
    /// From when, since 1970.
    pub from: Instant,
    /// Until when.
    pub until: Instant,
    /// Which connections.
    pub filter: &'q LiveFilter,
    /// Whether connections within this host count as well.
    pub loopback: bool,
    /// How many connections to tell at most, those that lost most first.
    pub most: usize,
}

/// A connection of an answer as [`crate::watch::Watch`] would have shown it then: where its time
/// went, look by look.
pub fn watched(one: &Followed) -> Option<WatchedSocket> {
    let socket = one.note.socket.as_deref()?;
    let key = SocketKey { namespace: socket.namespace_inode, cookie: socket.cookie };
    let process = one.connection.process.clone();
    WatchedSocket::of_samples(key, &socket.namespace, process, socket.uid, &one.samples)
}

/// What a recording tells of a time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Past {
    /// The answers, as [`crate::why()`] gives them.
    pub found: Found,
    /// What is known of the answers' ground.
    pub ground: PastGround,
}

/// What the answers rest on, and what they lack.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct PastGround {
    /// The time that was asked about, since 1970.
    #[serde(rename = "from_ns", with = "column::instant")]
    pub from: Instant,
    /// Its end.
    #[serde(rename = "until_ns", with = "column::instant")]
    pub until: Instant,
    /// Where the recording begins, whatever was asked about.
    #[serde(rename = "first_ns", with = "column::instant_optional")]
    pub first: Option<Instant>,
    /// Where it ends.
    #[serde(rename = "last_ns", with = "column::instant_optional")]
    pub last: Option<Instant>,
    /// Times in which nothing was recorded.
    pub gaps: Vec<Gap>,
    /// The longest time between two looks at all sockets.
    #[serde(rename = "looks_each_us", with = "column::micros")]
    pub looks_each: Duration,
    /// The time that all connections lost, summed over them.
    #[serde(rename = "lost_us", with = "column::micros")]
    pub lost: Duration,
    /// Of it, that of connections of which nothing was kept.
    #[serde(rename = "lost_unkept_us", with = "column::micros")]
    pub lost_unkept: Duration,
    /// The most connections of one look of which nothing was kept, although they were busy.
    pub unkept: u64,
    /// How long each limit held, summed over all connections, the longest first.
    pub limits: Vec<NotedTime>,
    /// Parts that could not be read, with why.
    pub unreadable: Vec<String>,
    /// Whether other users' processes could not be seen.
    pub is_blind: bool,
}

/// Answers `question` from the recording in the folder `ring`.
///
/// # Errors
/// The folder cannot be read, or has no part.
pub fn past(ring: &Path, question: PastQuestion<'_>) -> Result<Past, HistoryError> {
    let folder = Folder::open(ring).map_err(|cause| refused(ring, cause))?;
    let all = parts_between(&folder, Instant::ZERO, Instant::from_nanos(u64::MAX))
        .map_err(|cause| refused(ring, cause))?;
    let (Some((first, _)), Some((newest, _))) = (all.first(), all.last()) else {
        return Err(HistoryError::Empty { place: ring.display().to_string() });
    };
    let PastQuestion { from, until, .. } = question;
    let mut history = History::new(from.saturating_sub(AROUND), until + AROUND);
    let mut ground = PastGround { from, until, first: Some(*first), ..PastGround::default() };
    for (start, name) in &all {
        let is_meant = *start <= until + AROUND && *start + PART_MOST >= from;
        if !is_meant && start != newest {
            continue;
        }
        // Of the newest one the end is told, whatever was asked about.
        let mut other = History::new(Instant::ZERO, Instant::from_nanos(u64::MAX));
        let into = if is_meant { &mut history } else { &mut other };
        let read = read_part(&folder, name, into);
        into.end_part();
        if let Err(why) = read {
            ground.unreadable.push(format!("{}: {why}", name.display()));
        }
        let last = into.looks().last().map(|(at, _)| *at);
        ground.last = ground.last.max(last);
    }
    ground.tell(&history);
    Ok(Past { found: found(&history, question), ground })
}

fn refused(ring: &Path, cause: std::io::Error) -> HistoryError {
    let place = ring.display().to_string();
    if cause.kind() == std::io::ErrorKind::NotFound {
        return HistoryError::Empty { place };
    }
    HistoryError::Unreadable { place, cause }
}

/// Reads the lines of a part.
fn read_part(folder: &Folder, name: &OsStr, history: &mut History) -> Result<(), String> {
    lines_of(folder, name, |number, text| {
        history.line(text).map_err(|error| format!("line {number}: {error}"))
    })
}

/// Gives each line of a part with its number to `each`.
pub(super) fn lines_of(
    folder: &Folder,
    name: &OsStr,
    mut each: impl FnMut(u64, &str) -> Result<(), String>,
) -> Result<(), String> {
    let file = folder.open_file(name).map_err(|error| error.to_string())?;
    let mut lines = BufReader::new(MultiGzDecoder::new(BufReader::new(file)).take(TEXT_MOST));
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        let read = lines.by_ref().take(LINE_MOST).read_until(b'\n', &mut line);
        if read.map_err(|error| error.to_string())? == 0 {
            break;
        }
        each(number, std::str::from_utf8(&line).map_err(|error| error.to_string())?)?;
    }
    Ok(())
}

/// The answers to what is asked.
fn found(history: &History, question: PastQuestion<'_>) -> Found {
    let answers = history.answers_between(question.from, question.until, &mut |note| {
        let process = note.socket.as_ref().and_then(|socket| socket.process.as_ref());
        question.filter.matches(note.local, note.remote, process)
            && (question.loopback || !is_loopback(note.local, note.remote))
    });
    let followed = answers.into_iter().map(|one| {
        let PastAnswer { connection, samples, other, note } = one;
        Followed { connection, samples, other, note }
    });
    let mut followed = worst_first(followed.collect());
    let selected = followed.len();
    followed.truncate(question.most);
    let connections = history.looks().iter().map(|(_, look)| look.connections).max();
    let (from, until) = (question.from.saturating_sub(HOSTS_AROUND), question.until + HOSTS_AROUND);
    let near = history.hosts().iter().filter(|host| {
        let at = host.offset.calendar(host.at);
        (from..=until).contains(&at)
    });
    let near: Vec<&HostNote> = near.collect();
    let machine = machine(&near).into_iter().map(Explanation::from).collect();
    Found {
        followed,
        machine,
        selected,
        connections: connections.map_or(0, |count| usize::try_from(count).unwrap_or(usize::MAX)),
    }
}

/// What the machine dropped or held back.
fn machine(hosts: &[&HostNote]) -> Vec<MachineCause> {
    let mut causes: Vec<MachineCause> = Vec::new();
    for pair in hosts.windows(2) {
        let [before, now] = pair else { continue };
        // Counters begin anew when a machine is started.
        if before.boot == now.boot {
            let [before, now] = [before, now].map(|host| Counters::of_named(&host.counters));
            now.since(&before).into_iter().for_each(|cause| add(&mut causes, cause));
        }
    }
    let memory = hosts.iter().filter_map(|host| host.memory.as_ref());
    causes.extend(memory.max_by_key(|memory| memory.held).map(|memory| {
        let NotedMemory { held, bound, holder } = memory.clone();
        let holder = holder.map(|holder| (holder.process, holder.memory));
        MachineCause::TcpMemory { held, bound, holder }
    }));
    let off = hosts.last().map_or(&[][..], |host| &host.offloads_off);
    causes.extend(off.iter().filter_map(|(device, name)| {
        Some(MachineCause::OffloadOff { device: device.clone(), offload: offload_named(name)? })
    }));
    causes
}

/// Adds what was counted to what was counted of the same before.
fn add(causes: &mut Vec<MachineCause>, new: MachineCause) {
    if let MachineCause::Counted { event, count, at } = &new {
        for known in causes.iter_mut() {
            if let MachineCause::Counted { event: other, count: sum, at: place } = known
                && (other, &*place) == (&mut event.clone(), at)
            {
                *sum = sum.saturating_add(*count);
                return;
            }
        }
    }
    causes.push(new);
}

impl PastGround {
    /// Tells what the looks of the time that was asked about found.
    fn tell(&mut self, history: &History) {
        let meant = history.looks().iter().filter(|(at, _)| (self.from..=self.until).contains(at));
        let mut limits: Vec<NotedTime> = Vec::new();
        for (_, look) in meant {
            self.looks_each = self.looks_each.max(look.length);
            self.lost = self.lost.saturating_add(look.lost);
            self.lost_unkept = self.lost_unkept.saturating_add(look.lost_unkept);
            self.unkept = self.unkept.max(look.busy.saturating_sub(look.kept));
            for held in &look.limits {
                match limits.iter_mut().find(|one| one.limit == held.limit) {
                    Some(known) => known.time = known.time.saturating_add(held.time),
                    None => limits.push(*held),
                }
            }
        }
        limits.sort_by_key(|one| std::cmp::Reverse(one.time));
        self.limits = limits;
        self.gaps = gaps(history.looks(), self.from, self.until);
        self.is_blind = history.hosts().iter().any(|host| host.is_blind);
    }
}

#[cfg(test)]
mod tests;
