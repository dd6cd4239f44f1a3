//! Any interleaving of what users, carriers and time do.
//!
//! Two sessions, carriers that keep their order and die at any point, each end noticing it at a
//! time of its own. Every byte is a function of its stream, direction and offset, so that a reader
//! checks what it reads without the writer.

use bytes::{Bytes as Buffer, BytesMut};
use fullpipe_model::units::{Bytes, Duration, Instant};
use fullpipe_peer::relay::{
    CarrierId, Event, Frame, Read, Refusal, ResetReason, Role, Session, SessionLimits, StreamId,
    decode,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};

const LIMITS: SessionLimits = SessionLimits {
    receive: Bytes::new(300_000),
    send: Bytes::new(300_000),
    streams: 6,
    resume_for: Duration::from_secs(60),
};

fn byte_at(stream: StreamId, side: usize, offset: u64) -> u8 {
    let mixed = offset ^ u64::from(stream.0) << 40 ^ (side as u64) << 60;
    (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// What one user of a stream did and saw.
#[derive(Debug, Default, Clone)]
struct User {
    is_open: bool,
    written: u64,
    is_finished: bool,
    read: u64,
    saw_end: bool,
    saw_reset: bool,
    did_reset: bool,
}

/// One carrier: a queue of written frames each way, and whether each end has noticed its death.
struct Wire {
    ends: [Option<CarrierId>; 2],
    is_alive: bool,
    queues: [VecDeque<BytesMut>; 2],
}

struct World {
    now: Instant,
    sessions: [Session; 2],
    wires: Vec<Wire>,
    users: [BTreeMap<StreamId, User>; 2],
}

#[derive(Debug, Clone)]
enum Step {
    Open,
    Write { side: usize, which: usize, length: u64 },
    Finish { side: usize, which: usize },
    Reset { side: usize, which: usize },
    Read { side: usize, which: usize, pieces: usize },
    Take { side: usize, wire: usize, frames: usize },
    Arrive { side: usize, wire: usize, frames: usize },
    Connect,
    Die { wire: usize },
    Notice { side: usize, wire: usize },
    Wait { ms: u64 },
}

fn steps() -> impl Strategy<Value = Step> {
    let (side, which) = (0usize..2, 0usize..8);
    let (wire, frames) = (0usize..5, 1usize..12);
    prop_oneof![
        2 => Just(Step::Open),
        8 => (side.clone(), which.clone(), 1u64..90_000)
            .prop_map(|(side, which, length)| Step::Write { side, which, length }),
        2 => (side.clone(), which.clone()).prop_map(|(side, which)| Step::Finish { side, which }),
        1 => (side.clone(), which.clone()).prop_map(|(side, which)| Step::Reset { side, which }),
        8 => (side.clone(), which, 1usize..20)
            .prop_map(|(side, which, pieces)| Step::Read { side, which, pieces }),
        12 => (side.clone(), wire.clone(), frames.clone())
            .prop_map(|(side, wire, frames)| Step::Take { side, wire, frames }),
        12 => (side.clone(), wire.clone(), frames)
            .prop_map(|(side, wire, frames)| Step::Arrive { side, wire, frames }),
        3 => Just(Step::Connect),
        1 => wire.clone().prop_map(|wire| Step::Die { wire }),
        2 => (side, wire).prop_map(|(side, wire)| Step::Notice { side, wire }),
        3 => (0u64..2500).prop_map(|ms| Step::Wait { ms }),
    ]
}

impl World {
    fn new() -> Self {
        let now = Instant::ZERO;
        let roles = [Role::Initiator, Role::FarEnd];
        World {
            now,
            sessions: roles.map(|role| Session::new(now, role, LIMITS)),
            wires: Vec::new(),
            users: [BTreeMap::new(), BTreeMap::new()],
        }
    }

    fn nth(&self, side: usize, which: usize) -> Option<StreamId> {
        self.users[side].keys().nth(which % self.users[side].len().max(1)).copied()
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Open => {
                let stream = self.sessions[0].open("x:1").unwrap();
                self.users[0].insert(stream, User::default());
            }
            Step::Write { side, which, length } => self.write(side, which, length),
            Step::Finish { side, which } => {
                let Some(stream) = self.nth(side, which) else { return };
                self.sessions[side].finish(stream);
                self.users[side].get_mut(&stream).unwrap().is_finished = true;
            }
            Step::Reset { side, which } => {
                let Some(stream) = self.nth(side, which) else { return };
                self.sessions[side].reset(stream, ResetReason::Reset);
                self.users[side].get_mut(&stream).unwrap().did_reset = true;
            }
            Step::Read { side, which, pieces } => {
                if let Some(stream) = self.nth(side, which) {
                    self.read(side, stream, pieces);
                }
            }
            Step::Take { side, wire, frames } => self.take(side, wire, frames),
            Step::Arrive { side, wire, frames } => self.arrive(side, wire, frames),
            Step::Connect if self.wires.len() < 40 => self.connect(),
            Step::Connect => {}
            Step::Die { wire } => {
                let count = self.wires.len().max(1);
                if let Some(wire) = self.wires.get_mut(wire % count) {
                    wire.is_alive = false;
                    wire.queues = Default::default();
                }
            }
            Step::Notice { side, wire } => self.notice(side, wire),
            Step::Wait { ms } => self.wait(Duration::from_millis(ms)),
        }
        self.events();
        self.check_memory();
    }

    fn write(&mut self, side: usize, which: usize, length: u64) {
        let Some(stream) = self.nth(side, which) else { return };
        let user = self.users[side].get_mut(&stream).unwrap();
        let is_over = user.is_finished || user.did_reset || user.saw_reset;
        let length = length.min(self.sessions[side].room(stream).get());
        if is_over || side == 1 && !user.is_open {
            return;
        }
        let data: Vec<u8> =
            (user.written..user.written + length).map(|at| byte_at(stream, side, at)).collect();
        user.written += length;
        self.sessions[side].write(stream, Buffer::from(data));
    }

    fn read(&mut self, side: usize, stream: StreamId, pieces: usize) {
        for _ in 0..pieces {
            let user = self.users[side].get_mut(&stream).unwrap();
            match self.sessions[side].read(self.now, stream) {
                Read::Data(data) => {
                    assert!(!user.saw_end && !user.saw_reset);
                    for byte in data {
                        assert_eq!(byte, byte_at(stream, 1 - side, user.read));
                        user.read += 1;
                    }
                }
                Read::End => {
                    user.saw_end = true;
                    let (user, other) =
                        (&self.users[side][&stream], &self.users[1 - side][&stream]);
                    assert!(other.is_finished, "an end that nobody made");
                    assert_eq!(user.read, other.written, "a truncated success");
                    return;
                }
                Read::Later | Read::Gone => return,
            }
        }
    }

    fn connect(&mut self) {
        let now = self.now;
        let ends = [0, 1].map(|side| Some(self.sessions[side].attach(now)));
        self.wires.push(Wire { ends, is_alive: true, queues: Default::default() });
    }

    fn notice(&mut self, side: usize, wire: usize) {
        let count = self.wires.len().max(1);
        let Some(wire) = self.wires.get_mut(wire % count) else { return };
        if !wire.is_alive
            && let Some(carrier) = wire.ends[side].take()
        {
            self.sessions[side].detach(self.now, carrier);
        }
    }

    /// A carrier takes frames of one end; what a dead one takes is lost.
    fn take(&mut self, side: usize, wire: usize, frames: usize) {
        let count = self.wires.len().max(1);
        let Some(wire) = self.wires.get_mut(wire % count) else { return };
        let Some(carrier) = wire.ends[side] else { return };
        for _ in 0..frames {
            let Some(frame) = self.sessions[side].poll_frame(self.now, carrier) else { return };
            let mut bytes = BytesMut::new();
            frame.encode(&mut bytes);
            if wire.is_alive {
                wire.queues[side].push_back(bytes);
            }
        }
    }

    /// Frames of the other end arrive at `side`.
    fn arrive(&mut self, side: usize, wire: usize, frames: usize) {
        let count = self.wires.len().max(1);
        let Some(wire) = self.wires.get_mut(wire % count) else { return };
        let Some(carrier) = wire.ends[side] else { return };
        for _ in 0..frames {
            let Some(mut bytes) = wire.queues[1 - side].pop_front() else { return };
            let frame: Frame = decode(&mut bytes).unwrap().unwrap();
            assert!(bytes.is_empty());
            self.sessions[side].push(self.now, carrier, frame).unwrap();
        }
    }

    fn wait(&mut self, time: Duration) {
        self.now = self.now + time;
        for session in &mut self.sessions {
            session.poll(self.now);
        }
    }

    fn events(&mut self) {
        for side in 0..2 {
            while let Some(event) = self.sessions[side].poll_event() {
                match event {
                    Event::Incoming { stream, .. } => {
                        let user = User { is_open: true, ..User::default() };
                        assert!(self.users[side].insert(stream, user).is_none(), "opened twice");
                        self.sessions[side].accept(stream);
                    }
                    Event::Opened(stream) => {
                        self.users[side].get_mut(&stream).unwrap().is_open = true;
                    }
                    Event::Refused(stream, _) | Event::Reset(stream, _) => {
                        let user = self.users[side].get_mut(&stream).unwrap();
                        assert!(!user.saw_reset, "reset twice");
                        user.saw_reset = true;
                    }
                    Event::CarrierDead(carrier) => {
                        let ends = self.wires.iter_mut().find(|w| w.ends[side] == Some(carrier));
                        let wire = ends.unwrap();
                        wire.is_alive = false;
                        wire.queues = Default::default();
                        wire.ends[side] = None;
                        self.sessions[side].detach(self.now, carrier);
                    }
                    Event::Readable(_) | Event::Writable(_) | Event::Draining | Event::Lost => {}
                }
            }
        }
    }

    fn check_memory(&mut self) {
        for side in 0..2 {
            let state = self.sessions[side].state(self.now);
            assert!(state.unread + state.behind_gap <= state.granted);
            assert!(state.granted <= self.sessions[side].receive_bound());
        }
    }

    /// Every user closes, carriers live, and everyone reads: what is left must come to its end.
    fn settle(&mut self) {
        for wire in 0..self.wires.len() {
            self.step(&Step::Die { wire });
            for side in 0..2 {
                self.step(&Step::Notice { side, wire });
            }
        }
        (0..3).for_each(|_| self.step(&Step::Connect));
        let last = self.wires.len() - 3;
        for turn in 0..4000 {
            for side in 0..2 {
                for which in 0..self.users[side].len() {
                    self.step(&Step::Finish { side, which });
                    self.step(&Step::Read { side, which, pieces: 100 });
                }
                for wire in last..last + 3 {
                    self.step(&Step::Take { side, wire, frames: 3 });
                    self.step(&Step::Arrive { side: 1 - side, wire, frames: 100 });
                }
            }
            let is_over = self.sessions.iter().all(Session::is_idle);
            if is_over && turn > 3 {
                return;
            }
            self.step(&Step::Wait { ms: 1 });
        }
        panic!("streams are left: {:?}", self.users);
    }

    fn check_ends(&self) {
        for side in 0..2 {
            for (stream, user) in &self.users[side] {
                let Some(other) = self.users[1 - side].get(stream) else {
                    assert!(user.saw_reset || user.did_reset, "a stream that only one end knows");
                    continue;
                };
                let is_reset = user.saw_reset || user.did_reset;
                assert!(is_reset || user.saw_end, "{stream:?} of {side}: neither end nor error");
                if !is_reset && !other.saw_reset && !other.did_reset {
                    assert_eq!(user.read, other.written);
                }
                let made_by_other = other.did_reset || is_reset && user.did_reset;
                assert!(!user.saw_reset || made_by_other, "{stream:?}: a reset that nobody made");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]
    #[test]
    fn every_stream_arrives_whole_or_with_an_error(
        steps in prop::collection::vec(steps(), 1..400),
    ) {
        let mut world = World::new();
        world.step(&Step::Connect);
        steps.iter().for_each(|step| world.step(step));
        world.settle();
        world.check_ends();
    }

    /// Frames that a peer made up: an answer or a violation, and bounded memory.
    #[test]
    fn any_frames_are_taken_or_cut(
        bytes in prop::collection::vec((0u8..12, 0u8..20, 0u32..4, any::<u64>()), 1..80),
        is_far in any::<bool>(),
    ) {
        let role = if is_far { Role::FarEnd } else { Role::Initiator };
        let mut session = Session::new(Instant::ZERO, role, LIMITS);
        let carrier = session.attach(Instant::ZERO);
        (0..2).for_each(|_| { session.open("x:1"); });
        for (kind, length, stream, value) in bytes {
            let mut frame = BytesMut::from(&[kind, 0, 0, length, 0, 0, 0, stream as u8][..]);
            frame.extend_from_slice(&(value % 500_000).to_be_bytes());
            frame.resize(8 + usize::from(length), 1);
            let Ok(Some(frame)) = decode(&mut frame) else { continue };
            if session.push(Instant::ZERO, carrier, frame).is_err() {
                break;
            }
            while let Some(event) = session.poll_event() {
                if let Event::Incoming { stream, .. } = event {
                    session.accept(stream);
                }
            }
            while session.poll_frame(Instant::ZERO, carrier).is_some() {}
            let state = session.state(Instant::ZERO);
            prop_assert!(state.unread + state.behind_gap <= session.receive_bound());
        }
    }
}

/// A destination that does not answer, and a user that goes before the answer.
#[test]
fn a_refusal_and_a_reset_reach_the_other_user_as_what_they_are() {
    let now = Instant::ZERO;
    let mut near = Session::new(now, Role::Initiator, LIMITS);
    let mut far = Session::new(now, Role::FarEnd, LIMITS);
    let ends = [near.attach(now), far.attach(now)];
    let exchange = |near: &mut Session, far: &mut Session| {
        for _ in 0..10 {
            while let Some(frame) = near.poll_frame(now, ends[0]) {
                far.push(now, ends[1], frame).unwrap();
            }
            while let Some(frame) = far.poll_frame(now, ends[1]) {
                near.push(now, ends[0], frame).unwrap();
            }
        }
    };
    let streams = [near.open("a:1"), near.open("b:1"), near.open("c:1")].map(Option::unwrap);
    near.reset(streams[1], ResetReason::Reset);
    exchange(&mut near, &mut far);
    far.refuse(streams[0], Refusal::Refused);
    far.accept(streams[1]);
    far.accept(streams[2]);
    exchange(&mut near, &mut far);
    far.reset(streams[2], ResetReason::Failed);
    exchange(&mut near, &mut far);
    let near_events: Vec<Event> = std::iter::from_fn(|| near.poll_event()).collect();
    assert_eq!(
        near_events,
        [
            Event::Refused(streams[0], Refusal::Refused),
            Event::Opened(streams[2]),
            Event::Reset(streams[2], ResetReason::Failed),
        ]
    );
    let far_events: Vec<Event> = std::iter::from_fn(|| far.poll_event()).skip(3).collect();
    assert_eq!(far_events, [Event::Reset(streams[1], ResetReason::Reset)]);
    assert!(near.is_idle() && far.is_idle());
}

/// Without a carrier for longer than the session is kept, users see a reset and no end.
#[test]
fn a_session_that_is_alone_for_too_long_is_lost_with_its_streams() {
    let mut world = World::new();
    world.step(&Step::Connect);
    world.step(&Step::Open);
    world.step(&Step::Take { side: 0, wire: 0, frames: 9 });
    world.step(&Step::Arrive { side: 1, wire: 0, frames: 9 });
    world.step(&Step::Die { wire: 0 });
    (0..2).for_each(|side| world.step(&Step::Notice { side, wire: 0 }));
    world.step(&Step::Wait { ms: 59_999 });
    assert!(!world.users[0][&StreamId(1)].saw_reset);
    world.step(&Step::Wait { ms: 1 });
    assert!((0..2).all(|side| world.users[side][&StreamId(1)].saw_reset));
    assert!(world.sessions[0].open("x:1").is_none());
}

/// A stream that has ended, and whose user has not closed yet, keeps no credit from the next one:
/// so do downloads one after another begin.
#[test]
fn an_ended_stream_leaves_its_window_to_the_next() {
    let now = Instant::ZERO;
    let limits = SessionLimits { receive: Bytes::new(64 << 20), ..SessionLimits::default() };
    let mut near = Session::new(now, Role::Initiator, limits);
    let carrier = near.attach(now);
    let open = |near: &mut Session| {
        let stream = near.open("x:1").unwrap();
        // An acknowledgement may be due first.
        let credit = std::iter::from_fn(|| near.poll_frame(now, carrier)).find_map(|frame| {
            if let Frame::Open { credit, .. } = frame { Some(credit) } else { None }
        });
        (stream, credit.unwrap())
    };
    let (first, whole) = open(&mut near);
    near.push(now, carrier, Frame::Opened { stream: first, credit: Bytes::new(1) }).unwrap();
    // With the first stream at its beginning, less is left for a second one.
    let (second, less) = open(&mut near);
    assert!(less < whole, "{less} {whole}");
    near.push(now, carrier, Frame::Refused { stream: second, reason: Refusal::Refused }).unwrap();

    let data =
        Frame::Data { stream: first, offset: Bytes::ZERO, data: Buffer::from_static(b"end") };
    for frame in [data, Frame::Fin { stream: first, length: Bytes::new(3) }] {
        near.push(now, carrier, frame).unwrap();
    }
    assert_eq!(open(&mut near).1, whole);
    assert_eq!(near.read(now, first), Read::Data(Buffer::from_static(b"end")));
    assert_eq!(near.read(now, first), Read::End);
}
