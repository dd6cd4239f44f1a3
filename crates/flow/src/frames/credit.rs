//! The account of HTTP/2's flow control (RFC 9113 section 5.2): what one end may still send, in
//! each stream and in all together.
//!
//! Data uses up a stream's window and the connection's; window updates, and settings for streams,
//! open them again. Both pass the capture point, and the sender acts on what the other end grants
//! only when it has heard it: by the round trip between the capture point and the sender later
//! (`lag`). Where data needs a grant that is still on its way by that, its sender had it.
//!
//! A window was waited for if it was used up, and the next data follows the grant that opens it at
//! once. A sender that goes on later had nothing to send, and a stream that ends just there waits
//! for nothing. What cannot carry another frame of the sender's usual size is used up, too: some
//! send whole frames only.

use super::facts::{FlowControl, FlowWindow, HeldSpans};
use super::http2::{FlowFrame, LARGEST_WINDOW};
use super::lines::{GrantedLines, WindowLine};
use fullpipe_model::units::{Bytes, Duration, Instant};
use std::collections::{BTreeMap, VecDeque};

/// What a window is before anybody says otherwise (RFC 9113 section 6.9.2).
const INITIAL: i64 = 65_535;
/// The most streams that are followed at a time, and those that are told.
const STREAMS_MOST: usize = 1024;
const TOLD_MOST: usize = 8;
/// The most grants on their way to the sender. More count as heard.
const GRANTS_MOST: usize = 1 << 14;
/// Data follows a grant at once within this time, or this part of a round trip: its program has to
/// be woken. On a busy host that takes longer, and after a long wait it may: so much of it, up to a
/// limit. Where the window was used up to the byte, which no end of a message would be, it may take
/// as long as the wait.
const AT_ONCE: Duration = Duration::from_millis(5);
const AT_ONCE_PART: u64 = 8;
const OF_WAIT: u64 = 4;
const OF_WAIT_MOST: Duration = Duration::from_millis(50);
const AFTER_ALL_MOST: Duration = Duration::from_millis(250);
/// The most streams whose windows are drawn at a time.
const LINES_MOST: usize = 16;
/// The largest frame that is taken for a usual one.
const USUAL_FRAME: i64 = 1 << 14;

/// How far the capture point is from the two ends of a direction.
#[derive(Debug, Clone, Copy)]
pub(super) struct Distance {
    /// The round trip to the sender.
    pub to_sender: Duration,
    /// The round trip of the whole path.
    pub whole: Duration,
}

/// More was sent than was granted: frames are missing, or an end breaks the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exceeded;

/// The account of the data that one end sends.
#[derive(Debug)]
pub(super) struct Credit {
    /// What each new stream may carry.
    initial: i64,
    connection: Window,
    streams: BTreeMap<u32, Window>,
    /// The highest stream that was opened, of the client's and of the server's.
    opened: [u32; 2],
    /// What the other end granted, by when the sender hears it.
    grants: VecDeque<(Instant, FlowFrame)>,
    /// Streams that ended, those that waited longest.
    told: Vec<FlowWindow>,
    with_data: u64,
    last_data: Option<Instant>,
    held: Duration,
    used_up: u64,
    spans: HeldSpans,
    /// The connection's first packet, where graphs are drawn.
    drawn_from: Option<Instant>,
    /// How many open streams are drawn, and of those that ended the one that waited longest.
    drawn: usize,
    longest: Option<(Duration, u32, WindowLine)>,
}

/// One window.
#[derive(Debug, Clone)]
struct Window {
    /// What may be sent now; below zero after settings took something back.
    available: i64,
    /// The most that this ever was.
    largest: i64,
    data: u64,
    first: Option<Instant>,
    last: Instant,
    /// The largest frame, up to a usual one.
    frame: i64,
    /// Present while it is used up.
    empty: Option<Empty>,
    /// When a grant made it more than nothing, and when one made it enough for a frame.
    opened: Option<Instant>,
    refilled: Option<Instant>,
    waits: u64,
    waited: Duration,
    /// The longest wait, and how large the window was then.
    longest: (Duration, i64),
    /// The window over time, where it is drawn.
    line: Option<Box<WindowLine>>,
}

/// A window that is used up.
#[derive(Debug, Clone, Copy)]
struct Empty {
    since: Instant,
    /// To the byte, and not only to what another frame would take.
    is_exact: bool,
    /// How large it had been by then.
    largest: i64,
}

impl Window {
    fn new(available: i64) -> Self {
        Window {
            available,
            largest: available,
            data: 0,
            first: None,
            last: Instant::ZERO,
            frame: 1,
            empty: None,
            opened: None,
            refilled: None,
            waits: 0,
            waited: Duration::ZERO,
            longest: (Duration::ZERO, available),
            line: None,
        }
    }

    /// Begins its line, with what is known of the time before.
    fn draws(&mut self, start: Instant, before: Option<(Instant, i64)>) {
        let mut line = Box::new(WindowLine::new(start));
        if let Some((at, available)) = before {
            line.note(at, available);
        }
        self.line = Some(line);
    }

    fn draw(&mut self, at: Instant) {
        if let Some(line) = &mut self.line {
            line.note(at, self.available);
        }
    }

    /// A grant that the sender hears now.
    fn grows(&mut self, at: Instant, by: i64) {
        let before = self.available;
        self.available = self.available.saturating_add(by);
        self.largest = self.largest.max(self.available);
        if self.available > 0 {
            self.opened.get_or_insert(at);
        }
        if before < self.frame {
            self.refilled = Some(at);
        }
        self.draw(at);
    }

    /// Settings that the sender hears now make it another one.
    fn changes(&mut self, at: Instant, by: i64) {
        let largest = self.largest.saturating_add(by);
        self.grows(at, by);
        self.largest = largest.max(self.available);
    }

    /// Since when and until when the data that is sent now had waited for it.
    fn waited_for(&self, at: Instant, at_once: Duration) -> Option<(Instant, Instant)> {
        let Empty { since, is_exact, .. } = self.empty?;
        // A grant that is late by the lag was there when the data left.
        let grants = [self.opened, self.refilled].into_iter().flatten();
        let mut ends = grants.map(|grant| grant.min(at)).filter(|end| {
            let wait = end.since(since);
            let patience = if is_exact {
                wait.min(AFTER_ALL_MOST)
            } else {
                Duration::from_nanos(wait.as_nanos() / OF_WAIT).min(OF_WAIT_MOST)
            };
            at.since(*end) <= at_once.max(patience)
        });
        ends.next().filter(|end| *end > since).map(|end| (since, end))
    }

    fn notes_wait(&mut self, (since, until): (Instant, Instant)) {
        let time = until.since(since);
        self.waits += 1;
        self.waited = self.waited.saturating_add(time);
        if let Some(Empty { largest, .. }) = self.empty.filter(|_| time > self.longest.0) {
            self.longest = (time, largest);
        }
    }

    /// Data is sent.
    fn carries(&mut self, at: Instant, length: u32) {
        self.first.get_or_insert(at);
        self.last = self.last.max(at);
        self.data += u64::from(length);
        self.available -= i64::from(length);
        self.frame = self.frame.max(i64::from(length).min(USUAL_FRAME));
        (self.empty, self.opened, self.refilled) = (None, None, None);
        self.draw(at);
    }

    fn facts(&self, stream: u32) -> FlowWindow {
        let window = if self.waits > 0 { self.longest.1 } else { self.largest };
        FlowWindow {
            stream,
            window: Bytes::new(window.max(0) as u64),
            data: Bytes::new(self.data),
            time: self.first.map_or(Duration::ZERO, |first| self.last.since(first)),
            waits: self.waits,
            waited: self.waited,
        }
    }
}

impl Credit {
    /// Before anything was sent. Where graphs are drawn, they begin with the connection's first
    /// packet.
    pub fn new(drawn_from: Option<Instant>) -> Self {
        let mut connection = Window::new(INITIAL);
        if let Some(start) = drawn_from {
            connection.draws(start, Some((start, INITIAL)));
        }
        Credit {
            initial: INITIAL,
            connection,
            streams: BTreeMap::new(),
            opened: [0; 2],
            grants: VecDeque::new(),
            told: Vec::new(),
            with_data: 0,
            last_data: None,
            held: Duration::ZERO,
            used_up: 0,
            spans: HeldSpans::default(),
            drawn_from,
            drawn: 0,
            longest: None,
        }
    }

    /// The other end, whose frame passed at `at`, grants something, or ends a stream.
    pub fn hears(&mut self, at: Instant, frame: FlowFrame, distance: Distance) {
        match frame {
            FlowFrame::WindowUpdate { .. } | FlowFrame::InitialWindow(_) => {
                if self.grants.len() >= GRANTS_MOST {
                    self.next_grant();
                }
                self.grants.push_back((at + distance.to_sender, frame));
            }
            FlowFrame::Headers { stream, .. } => self.opens(stream),
            FlowFrame::Reset { stream } => self.ends(stream),
            FlowFrame::Data { .. } => {}
        }
    }

    /// The end itself sends a frame.
    pub fn sends(
        &mut self,
        at: Instant,
        frame: FlowFrame,
        distance: Distance,
    ) -> Result<(), Exceeded> {
        match frame {
            FlowFrame::Data { stream, length, ends } => {
                if length > 0 {
                    self.data(at, stream, length, distance)?;
                }
                if ends {
                    self.ends(stream);
                }
            }
            FlowFrame::Headers { stream, ends } => {
                self.opens(stream);
                if ends {
                    self.ends(stream);
                }
            }
            FlowFrame::Reset { stream } => self.ends(stream),
            FlowFrame::InitialWindow(_) | FlowFrame::WindowUpdate { .. } => {}
        }
        Ok(())
    }

    /// A stream is opened, unless it was before: each end counts its own upwards.
    fn opens(&mut self, stream: u32) {
        let opened = &mut self.opened[(stream & 1) as usize];
        if stream > *opened {
            *opened = stream;
            if self.streams.len() < STREAMS_MOST {
                self.streams.insert(stream, Window::new(self.initial));
            }
        }
    }

    fn ends(&mut self, stream: u32) {
        if let Some(window) = self.streams.remove(&stream) {
            self.tells(window.facts(stream));
            self.keeps_line(stream, window);
        }
    }

    /// Keeps the line of a stream that ended, if it waited longer than those before.
    fn keeps_line(&mut self, stream: u32, window: Window) {
        let Some(line) = window.line else { return };
        self.drawn = self.drawn.saturating_sub(1);
        if self.longest.as_ref().is_none_or(|(waited, ..)| window.waited > *waited) {
            self.longest = Some((window.waited, stream, *line));
        }
    }

    /// Keeps the facts of a stream, if it is one of those that waited longest.
    fn tells(&mut self, facts: FlowWindow) {
        if facts.data > Bytes::ZERO {
            let place = self
                .told
                .partition_point(|other| (other.waited, other.data) >= (facts.waited, facts.data));
            self.told.insert(place, facts);
            self.told.truncate(TOLD_MOST);
        }
    }

    /// The sender hears what was granted first.
    fn next_grant(&mut self) -> Option<()> {
        let (at, frame) = self.grants.pop_front()?;
        match frame {
            FlowFrame::WindowUpdate { stream: 0, by } => self.connection.grows(at, by.into()),
            FlowFrame::WindowUpdate { stream, by } => {
                if let Some(window) = self.streams.get_mut(&stream) {
                    window.grows(at, by.into());
                }
            }
            FlowFrame::InitialWindow(window) => {
                let by = i64::from(window) - self.initial;
                self.initial = window.into();
                self.streams.values_mut().for_each(|window| window.changes(at, by));
            }
            _ => {}
        }
        Some(())
    }

    /// Data is sent.
    fn data(
        &mut self,
        at: Instant,
        stream: u32,
        length: u32,
        distance: Distance,
    ) -> Result<(), Exceeded> {
        self.opens(stream);
        while self.grants.front().is_some_and(|(heard, _)| *heard <= at) {
            self.next_grant();
        }
        // What the sender needs for this, it has heard.
        while self.lacks(stream, length) {
            self.next_grant().ok_or(Exceeded)?;
        }
        let at_once = AT_ONCE.max(Duration::from_nanos(distance.whole.as_nanos() / AT_ONCE_PART));
        let mut held: Option<(Instant, Instant)> = None;
        let own = self.streams.get_mut(&stream);
        self.with_data += u64::from(own.as_ref().is_some_and(|window| window.data == 0));
        for window in own.into_iter().chain([&mut self.connection]) {
            // Later, its sender had nothing to send.
            let soon = distance.whole.saturating_add(at_once);
            let is_soon = window.empty.is_some_and(|empty| at.since(empty.since) <= soon);
            self.used_up += u64::from(is_soon);
            if let Some(wait) = window.waited_for(at, at_once) {
                window.notes_wait(wait);
                held = Some(held.map_or(wait, |one| (one.0.min(wait.0), one.1.max(wait.1))));
            }
            window.carries(at, length);
        }
        if let (Some((since, until)), Some(last)) = (held, self.last_data) {
            let since = since.max(last);
            self.held = self.held.saturating_add(until.since(since));
            self.spans.add(since, until);
        }
        self.last_data = Some(self.last_data.map_or(at, |last| last.max(at)));
        self.notes_empty(at, stream);
        Ok(())
    }

    /// Whether more is sent than may be.
    fn lacks(&self, stream: u32, length: u32) -> bool {
        let own = self.streams.get(&stream);
        own.into_iter().chain([&self.connection]).any(|one| one.available < i64::from(length))
    }

    /// Notes which window is used up by what was just sent. Where one is, what is left of the other
    /// was not the reason to stop.
    fn notes_empty(&mut self, at: Instant, stream: u32) {
        let mut own = self.streams.get_mut(&stream);
        let of_stream = own.as_ref().map_or(i64::from(LARGEST_WINDOW), |one| one.available);
        let of_all = self.connection.available;
        for (window, other) in own
            .iter_mut()
            .map(|own| (&mut **own, of_all))
            .chain([(&mut self.connection, of_stream)])
        {
            let is_short = window.available < window.frame && other >= window.available;
            if window.available <= 0 || is_short {
                let (is_exact, largest) = (window.available <= 0, window.largest);
                window.empty = Some(Empty { since: at, is_exact, largest });
            }
        }
        // Most streams never use their window up, and need no line.
        let Some((own, start)) = own.filter(|own| own.empty.is_some()).zip(self.drawn_from) else {
            return;
        };
        if own.line.is_none() && self.drawn < LINES_MOST {
            self.drawn += 1;
            own.draws(start, own.first.map(|first| (first, own.largest)));
            own.draw(at);
        }
    }

    /// The facts. `is_whole`: whether its frames were read to the end.
    pub fn finish(mut self, is_whole: bool) -> FlowControl {
        for (stream, window) in std::mem::take(&mut self.streams) {
            self.tells(window.facts(stream));
            self.keeps_line(stream, window);
        }
        let connection = self.connection.facts(0);
        let (stream, stream_window) = self
            .longest
            .filter(|(waited, ..)| *waited > Duration::ZERO)
            .map(|(_, stream, line)| (stream, line.finish()))
            .unzip();
        let lines = self.connection.line.map(|line| {
            Box::new(GrantedLines { connection: line.finish(), stream, stream_window })
        });
        FlowControl {
            is_whole,
            data: connection.data,
            streams: self.with_data,
            time: connection.time,
            held: self.held,
            used_up: self.used_up,
            connection,
            worst: self.told,
            spans: self.spans.finish(),
            lines,
        }
    }
}

#[cfg(test)]
mod tests;
