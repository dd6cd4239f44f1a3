//! What a host recorded of its sockets for days, a look about each second: `record --sockets`.
//!
//! A recording of this kind is cut into parts of a minute, each a recording as any other: samples
//! of some sockets, one socket after another, each with its [`Note`]. Two kinds of lines are added:
//! a [`LookNote`] says what a look at *all* sockets found, a [`HostNote`] what the machine counted.
//!
//! **Order of calls.** [`History::new`] with the time that is asked about, [`History::line`] for
//! each line of each part in order of time, with [`History::end_part`] after each part; then
//! [`History::answers_between`]. Times in lines are by the clock of the machine since it was
//! started; [`ClockOffset`] leads from there to the calendar.

mod lines;

pub use lines::{
    ClockOffset, HistoryLine, HostNote, LookNote, NotedHolder, NotedMemory, NotedTime,
};

use super::{HostFacts, LiveConnection, Note, NotedGroup, NotedSocket, Observed, role};
use crate::diagnosis::MachineCause;
use fullpipe_model::observe::{Egress, ParseSampleError, Sample, SocketEnds};
use fullpipe_model::units::Instant;
use std::collections::HashMap;

/// What identifies a socket in a recording: the boot, its namespace, its number.
type PastKey = (String, u64, u64);

/// A socket of a recording.
#[derive(Debug, Clone, PartialEq)]
struct PastSocket {
    /// With the calendar's time of each.
    samples: Vec<(Instant, Sample)>,
    note: Note,
    socket: NotedSocket,
}

/// What was recorded in the time that is asked about.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    from: Instant,
    until: Instant,
    sockets: Vec<PastSocket>,
    known: HashMap<PastKey, usize>,
    looks: Vec<(Instant, LookNote)>,
    hosts: Vec<HostNote>,
    /// The host's newest note of the part that is read.
    current: Option<HostNote>,
    /// Samples whose note is still to come.
    pending: Vec<Sample>,
}

/// A connection of a recording with its answer, and what that rests on.
#[derive(Debug, Clone, PartialEq)]
pub struct PastAnswer {
    /// What it is and what limited it.
    pub connection: LiveConnection,
    /// The samples of this host's end.
    pub samples: Vec<Sample>,
    /// Those of the other end, where that is on this host too.
    pub other: Vec<Sample>,
    /// What the host knew of it.
    pub note: Note,
}

impl History {
    /// Nothing yet, of the time from `from` until `until`, both since 1970.
    pub fn new(from: Instant, until: Instant) -> History {
        History {
            from,
            until,
            sockets: Vec::new(),
            known: HashMap::new(),
            looks: Vec::new(),
            hosts: Vec::new(),
            current: None,
            pending: Vec::new(),
        }
    }

    /// Takes the next line of a part.
    ///
    /// # Errors
    /// It is no line of a recording.
    pub fn line(&mut self, line: &str) -> Result<(), ParseSampleError> {
        match line.parse()? {
            HistoryLine::Sample(sample) => self.pending.push(*sample),
            HistoryLine::Note(note) => self.note(*note),
            HistoryLine::Look(look) => {
                if let Some(at) = self.when(look.at).filter(|at| self.is_meant(*at)) {
                    self.looks.push((at, look));
                }
            }
            HistoryLine::Host(host) => {
                self.current = Some(*host.clone());
                if self.when(host.at).is_some_and(|at| self.is_meant(at)) {
                    self.hosts.push(*host);
                }
            }
        }
        Ok(())
    }

    /// Ends a part: the next line is of another one.
    pub fn end_part(&mut self) {
        (self.current, self.pending) = (None, Vec::new());
    }

    /// The calendar's time of a moment of the part that is read.
    fn when(&self, at: Instant) -> Option<Instant> {
        Some(self.current.as_ref()?.offset.calendar(at))
    }

    fn is_meant(&self, at: Instant) -> bool {
        (self.from..=self.until).contains(&at)
    }

    /// Takes the samples that a note closes.
    fn note(&mut self, note: Note) {
        let samples = std::mem::take(&mut self.pending);
        let Some(host) = &self.current else { return };
        let (offset, boot) = (host.offset, host.boot.clone());
        let timed = samples.into_iter().map(|one| (offset.calendar(one.at), one));
        let meant: Vec<(Instant, Sample)> = timed.filter(|(at, _)| self.is_meant(*at)).collect();
        let (Some(socket), false) = (note.socket.as_deref().cloned(), meant.is_empty()) else {
            return;
        };
        let key = (boot, socket.namespace_inode, socket.cookie);
        match self.known.get(&key).and_then(|at| self.sockets.get_mut(*at)) {
            Some(known) => known.go_on(meant, note, socket),
            None => {
                self.known.insert(key, self.sockets.len());
                self.sockets.push(PastSocket { samples: meant, note, socket });
            }
        }
    }

    /// What the looks at all sockets found, with the calendar's time of each, in order.
    pub fn looks(&self) -> &[(Instant, LookNote)] {
        &self.looks
    }

    /// What the machine counted, in order of time.
    pub fn hosts(&self) -> &[HostNote] {
        &self.hosts
    }

    /// The connections that `is_meant` takes, with their answers of a time within that of this
    /// history, in the order in which they were first recorded. Of two ends of one connection on
    /// this host, both have one.
    pub fn answers_between(
        &self,
        from: Instant,
        until: Instant,
        is_meant: &mut dyn FnMut(&Note) -> bool,
    ) -> Vec<PastAnswer> {
        let vendor = self.hosts.last().map_or("", |host| &host.vendor);
        let mut by_ends: HashMap<SocketEnds, usize> = HashMap::new();
        for (at, one) in self.sockets.iter().enumerate() {
            by_ends.insert((one.note.local, one.note.remote), at);
        }
        let mut answers = Vec::new();
        for one in &self.sockets {
            let note = Note { socket: Some(Box::new(one.socket.clone())), ..one.note.clone() };
            if !is_meant(&note) {
                continue;
            }
            let other = by_ends.get(&(one.note.remote, one.note.local));
            let other = other.and_then(|at| self.sockets.get(*at)).filter(|other| *other != one);
            let samples = one.between(from, until);
            let other = other.map_or(Vec::new(), |other| other.between(from, until));
            answers.extend(one.answer(samples, other, note, vendor));
        }
        answers
    }
}

impl PastSocket {
    /// Takes what a later part has of it.
    fn go_on(&mut self, samples: Vec<(Instant, Sample)>, note: Note, socket: NotedSocket) {
        let last = self.samples.last().map(|(_, one)| one.at);
        let newer = samples.into_iter().filter(|(_, one)| last.is_none_or(|at| one.at > at));
        self.samples.extend(newer);
        let NotedSocket { egress: before, process, .. } =
            std::mem::replace(&mut self.socket, socket);
        // A process that has closed the socket by now is still whose it was.
        self.socket.process = self.socket.process.take().or(process);
        let asked = self.note.asked;
        self.note = note;
        self.note.asked = self.note.asked.or(asked);
        self.socket.egress = match (before, self.socket.egress.take()) {
            (Some([first, _]), Some([_, last])) => Some([first, last]),
            (before, now) => now.or(before),
        };
    }

    /// The samples of a time, since 1970.
    fn between(&self, from: Instant, until: Instant) -> Vec<Sample> {
        let within = self.samples.iter().filter(|(at, _)| (from..=until).contains(at));
        within.map(|(_, sample)| sample.clone()).collect()
    }

    fn answer(
        &self,
        samples: Vec<Sample>,
        other: Vec<Sample>,
        note: Note,
        vendor: &str,
    ) -> Option<PastAnswer> {
        let socket = &self.socket;
        let group = socket.group.as_ref().map(NotedGroup::cause);
        let egress = socket.egress.as_ref().map(|[before, after]: &[Egress; 2]| [before, after]);
        let host = HostFacts {
            egress,
            group: group.as_ref(),
            vendor,
            program: socket.process.as_ref().map_or("", |process| &process.name),
        };
        let (asked, settings) = (note.asked, note.settings.as_ref());
        let role = role(&samples);
        let seen = Observed { role, samples: &samples, other: &other, asked, settings, host };
        let connection = LiveConnection {
            answer: seen.answer_of_looks()?,
            namespace: socket.namespace.clone(),
            process: socket.process.clone(),
            uid: socket.uid,
            peer_site: None,
        };
        Some(PastAnswer { connection, samples, other, note })
    }
}

impl NotedGroup {
    /// What that does to its sockets.
    pub fn cause(&self) -> MachineCause {
        let NotedGroup { path, used, bound, sockets } = self.clone();
        MachineCause::GroupMemory { group: path, used, bound, sockets }
    }
}

#[cfg(test)]
pub(super) mod tests;
