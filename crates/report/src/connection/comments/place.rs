//! Finds the packets that comments belong to.

use super::{PlannedComment, WORTH_TELLING};
use fullpipe_flow::account::AccountSpan;
use fullpipe_flow::capture::segment::{Flags, Segment};
use fullpipe_flow::connection::Direction;
use fullpipe_model::units::{Duration, Instant};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Which packet of its connection a comment belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CommentPlace {
    pub when: When,
    /// Which way it goes; either, where that does not matter.
    pub by: Option<Direction>,
    pub kind: PacketKind,
}

/// When it was captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    /// The first from then on.
    First(Instant),
    /// The same, soon after; where there is none, the first of any kind: a wait that ends then ends
    /// for another reason, too, for example as who waited gives up.
    Ended(Instant),
    /// The first from one time to another.
    Within(Instant, Instant),
    /// The last until then.
    Last(Instant),
}

impl When {
    fn at(self) -> Instant {
        match self {
            When::First(at) | When::Ended(at) | When::Within(at, _) | When::Last(at) => at,
        }
    }
}

/// What a packet has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PacketKind {
    Any,
    /// It carries data.
    Data,
    /// It carries data, SYN or FIN.
    Sequence,
    Syn,
    /// Its window is zero.
    ZeroWindow,
}

impl PacketKind {
    const ALL: [PacketKind; 5] = [
        PacketKind::Any,
        PacketKind::Data,
        PacketKind::Sequence,
        PacketKind::Syn,
        PacketKind::ZeroWindow,
    ];

    fn is(self, segment: &Segment) -> bool {
        let has_data = segment.payload.get() > 0;
        match self {
            PacketKind::Any => true,
            PacketKind::Data => has_data,
            PacketKind::Sequence => has_data || segment.flags.any(Flags::SYN | Flags::FIN),
            PacketKind::Syn => segment.flags.any(Flags::SYN),
            PacketKind::ZeroWindow => {
                segment.window == 0 && !segment.flags.any(Flags::SYN | Flags::RST)
            }
        }
    }
}

/// What is said at a packet.
#[derive(Debug, Clone, PartialEq)]
pub struct PlacedComment {
    /// All of it, with the names for programs.
    pub text: String,
    /// What it is about.
    pub span: AccountSpan,
}

impl PlacedComment {
    /// The sentence alone, without the connection before it and the names behind it.
    pub fn sentence(&self) -> &str {
        let said = self.text.split_once(": ").map_or(&*self.text, |(_, said)| said);
        said.rsplit_once(" [").map_or(said, |(said, _)| said)
    }
}

impl AsRef<str> for PlacedComment {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

/// Comments by the numbers of their packets.
#[derive(Debug, Default)]
pub struct PlacedComments {
    by_packet: BTreeMap<u64, Vec<PlacedComment>>,
    /// How many there are.
    pub count: u64,
    /// How many were too many, or have no packet.
    pub left_out: u64,
}

impl PlacedComments {
    /// Those of a packet, counted from 1.
    pub fn of(&self, number: u64) -> &[PlacedComment] {
        self.by_packet.get(&number).map_or(&[], Vec::as_slice)
    }

    /// All of them, each with the number of its packet, in the order of the capture.
    pub fn all(&self) -> impl Iterator<Item = (u64, &PlacedComment)> {
        self.by_packet.iter().flat_map(|(number, own)| own.iter().map(|one| (*number, one)))
    }

    /// How many packets have one or more.
    pub fn packets(&self) -> usize {
        self.by_packet.len()
    }

    fn add(&mut self, number: u64, comment: PlacedComment) {
        let own = self.by_packet.entry(number).or_default();
        if !own.iter().any(|other| other.text == comment.text) {
            own.push(comment);
            self.count += 1;
        }
    }
}

/// Looks at the packets of a capture, in its order.
#[derive(Debug)]
pub struct Placer {
    /// By the two ends of a connection, the lower first.
    connections: BTreeMap<[SocketAddr; 2], Ports>,
    placed: PlacedComments,
}

/// What is looked for between two ends, where one connection may follow another.
#[derive(Debug, Default)]
struct Ports {
    /// By time, the latest first.
    later: Vec<PlannedComment>,
    /// Those whose time has come.
    waiting: Vec<PlannedComment>,
    /// The last packet of each kind, of the lower end and of the higher.
    last: [[Option<u64>; PacketKind::ALL.len()]; 2],
}

fn sorted(ends: [SocketAddr; 2]) -> [SocketAddr; 2] {
    let [one, other] = ends;
    if one <= other { ends } else { [other, one] }
}

impl Placer {
    pub(super) fn new(comments: Vec<PlannedComment>, left_out: u64) -> Placer {
        let mut connections = BTreeMap::<_, Ports>::new();
        for comment in comments {
            connections.entry(sorted(comment.ends)).or_default().later.push(comment);
        }
        for ports in connections.values_mut() {
            ports.later.sort_by_key(|one| std::cmp::Reverse(one.place.when.at()));
        }
        let placed = PlacedComments { left_out, ..PlacedComments::default() };
        Placer { connections, placed }
    }

    /// Notes a packet: its number, when it was captured, and the segment in it.
    pub fn see(&mut self, number: u64, at: Instant, segment: &Segment) {
        let ends = sorted([segment.source, segment.destination]);
        let Some(ports) = self.connections.get_mut(&ends) else { return };
        while let Some(comment) = ports.later.pop_if(|one| one.place.when.is_due(at)) {
            match comment.place.when {
                When::Last(_) => self.placed.or_left_out(ports.last_of(&comment), comment.placed()),
                _ => ports.waiting.push(comment),
            }
        }
        let mut index = 0;
        while let Some(comment) = ports.waiting.get(index) {
            let CommentPlace { when, by, kind } = comment.place;
            let is_too_late = match when {
                When::Within(_, until) => at > until,
                When::Ended(from) => at > from + comment.soon(),
                When::First(_) | When::Last(_) => false,
            };
            let sender = match by {
                Some(Direction::ClientToServer) => Some(comment.ends[0]),
                Some(Direction::ServerToClient) => Some(comment.ends[1]),
                None => None,
            };
            let is_it = sender.is_none_or(|sender| sender == segment.source) && kind.is(segment);
            if !is_it && !is_too_late {
                if let Some(comment) = ports.waiting.get_mut(index) {
                    comment.first_of_any.get_or_insert(number);
                }
                index += 1;
                continue;
            }
            let comment = ports.waiting.swap_remove(index);
            let found = if is_too_late { comment.otherwise(number) } else { Some(number) };
            self.placed.or_left_out(found, comment.placed());
        }
        let end = usize::from(segment.source != ends[0]);
        for kind in PacketKind::ALL.into_iter().filter(|kind| kind.is(segment)) {
            ports.last[end][kind as usize] = Some(number);
        }
    }

    /// The capture has ended.
    pub fn finish(mut self) -> PlacedComments {
        for ports in self.connections.into_values() {
            let last = ports.last.iter().filter_map(|kinds| kinds[PacketKind::Any as usize]).max();
            let Ports { ref later, ref waiting, .. } = ports;
            for comment in later.iter().chain(waiting).cloned() {
                let number = match (comment.place.when, &comment.unended) {
                    (When::Last(_), _) => ports.last_of(&comment),
                    (_, Some(_)) => last,
                    _ => comment.first_of_any.and_then(|one| comment.otherwise(one)),
                };
                let is_unended = !matches!(comment.place.when, When::Last(_));
                let unended = comment.unended.clone().filter(|_| is_unended);
                let said = comment.placed();
                let text = unended.unwrap_or(said.text);
                self.placed.or_left_out(number, PlacedComment { text, ..said });
            }
        }
        self.placed
    }
}

impl PlannedComment {
    /// How long after a wait the packet may come that ended it.
    fn soon(&self) -> Duration {
        WORTH_TELLING.max(Duration::from_nanos(self.length.as_nanos() / 10))
    }

    /// What is said where it is placed.
    fn placed(self) -> PlacedComment {
        PlacedComment { text: self.text, span: self.span }
    }

    /// Its packet where none is of its kind, as of a packet of any kind.
    fn otherwise(&self, number: u64) -> Option<u64> {
        let is_wait = matches!(self.place.when, When::Ended(_));
        is_wait.then(|| self.first_of_any.unwrap_or(number))
    }
}

impl PlacedComments {
    fn or_left_out(&mut self, number: Option<u64>, comment: PlacedComment) {
        match number {
            Some(number) => self.add(number, comment),
            None => self.left_out += 1,
        }
    }
}

impl When {
    /// Whether a packet of this time has to do with it.
    fn is_due(self, at: Instant) -> bool {
        match self {
            When::First(from) | When::Ended(from) | When::Within(from, _) => from <= at,
            When::Last(until) => until < at,
        }
    }
}

impl Ports {
    /// The last packet that is as a comment wants it.
    fn last_of(&self, comment: &PlannedComment) -> Option<u64> {
        let ends = sorted(comment.ends);
        let kind = comment.place.kind as usize;
        let client = usize::from(comment.ends[0] != ends[0]);
        match comment.place.by {
            Some(Direction::ClientToServer) => self.last[client][kind],
            Some(Direction::ServerToClient) => self.last[1 - client][kind],
            None => self.last[0][kind].max(self.last[1][kind]),
        }
    }
}
