//! A transfer in virtual time: two sessions over the carriers of [`super::network`].

use super::network::{Direction, Path, SharedLink};
use bytes::{Bytes as Buffer, BytesMut};
use fullpipe_model::units::{Bytes, Duration, Instant};
use fullpipe_peer::relay::{
    CarrierId, Event, Frame, Read, Role, Session, SessionLimits, StreamId, decode,
};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A transfer that has not ended by now hangs.
const HANGS_AFTER: Duration = Duration::from_secs(3600);

/// What a user of a limited rate writes at a time.
const PIECE: u64 = 256 * 1024;

/// What happens to a carrier.
#[derive(Debug, Clone, Copy)]
pub struct Trouble {
    pub carrier: usize,
    pub at: Instant,
    /// Nothing arrives for so long; `None`: it dies, and is connected anew a second later.
    pub outage: Option<Duration>,
}

/// What is carried over what.
#[derive(Debug, Clone)]
pub struct Setting {
    pub paths: Vec<Path>,
    /// Bytes a second, each way.
    pub link: f64,
    pub bytes: u64,
    pub streams: u32,
    /// Bytes a second that the users write, together, in pieces of `PIECE`.
    pub source: f64,
    pub troubles: Vec<Trouble>,
    pub seed: u64,
}

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    pub time: Duration,
    pub repeated: u64,
    /// When each stream ended.
    pub ends: Vec<Duration>,
    /// The most that the receiver held.
    pub held: u64,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    /// (carrier, life, to which side, the frame's bytes)
    Arrives(usize, u32, usize, Vec<u8>),
    Runs(usize, usize),
    Trouble(usize),
    Connects(usize),
    Look,
}

struct Carrier {
    ends: [Option<CarrierId>; 2],
    /// From each side.
    directions: [Direction<Vec<u8>>; 2],
    life: u32,
}

struct World {
    setting: Setting,
    now: Instant,
    sessions: [Session; 2],
    carriers: Vec<Carrier>,
    links: [SharedLink; 2],
    heap: BinaryHeap<Reverse<(Instant, u64, Happening)>>,
    order: u64,
    written: Vec<u64>,
    read: Vec<u64>,
    ends: Vec<Duration>,
    held: u64,
}

fn byte_at(stream: u32, offset: u64) -> u8 {
    ((offset ^ u64::from(stream) << 33).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

impl World {
    fn new(setting: Setting) -> Self {
        let now = Instant::ZERO;
        let roles = [Role::Initiator, Role::FarEnd];
        let limits =
            SessionLimits { resume_for: Duration::from_secs(600), ..SessionLimits::default() };
        let streams = setting.streams as usize;
        let mut world = World {
            now,
            sessions: roles.map(|role| Session::new(now, role, limits)),
            carriers: Vec::new(),
            links: [SharedLink::new(setting.link), SharedLink::new(setting.link)],
            heap: BinaryHeap::new(),
            order: 0,
            written: vec![0; streams + 1],
            read: vec![0; streams + 1],
            ends: Vec::new(),
            held: 0,
            setting,
        };
        for at in 0..world.setting.paths.len() {
            let carrier = world.connected(at, 0);
            world.carriers.push(carrier);
        }
        for at in 0..world.setting.troubles.len() {
            world.later(world.setting.troubles[at].at, Happening::Trouble(at));
        }
        world.later(now, Happening::Look);
        world
    }

    fn connected(&mut self, at: usize, life: u32) -> Carrier {
        let (path, now) = (self.setting.paths[at], self.now);
        let seed = self.setting.seed * 1000 + at as u64 * 10 + u64::from(life) * 2;
        Carrier {
            ends: [0, 1].map(|side| Some(self.sessions[side].attach(now))),
            directions: [Direction::new(path, seed), Direction::new(path, seed + 1)],
            life,
        }
    }

    fn later(&mut self, at: Instant, happening: Happening) {
        self.order += 1;
        self.heap.push(Reverse((at, self.order, happening)));
    }

    /// Carriers with room take frames, and send what their windows allow.
    fn pump(&mut self) {
        for at in 0..self.carriers.len() {
            for side in 0..2 {
                self.pump_one(at, side);
            }
        }
    }

    fn pump_one(&mut self, at: usize, side: usize) {
        let Some(id) = self.carriers[at].ends[side] else { return };
        loop {
            let direction = &mut self.carriers[at].directions[side];
            let mut took = false;
            while direction.has_room()
                && let Some(frame) = self.sessions[side].poll_frame(self.now, id)
            {
                let mut bytes = BytesMut::new();
                frame.encode(&mut bytes);
                direction.put(bytes.to_vec(), bytes.len());
                took = true;
            }
            let sent = direction.run(self.now, &mut self.links[side]);
            let (next, life) = (direction.next(), self.carriers[at].life);
            let is_sent = !sent.is_empty();
            for (when, bytes) in sent {
                self.later(when, Happening::Arrives(at, life, 1 - side, bytes));
            }
            if is_sent && let Some(next) = next {
                self.later(next, Happening::Runs(at, side));
            }
            if !took && !is_sent {
                return;
            }
        }
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Arrives(at, life, side, bytes) => {
                let carrier = &self.carriers[at];
                let Some(id) = carrier.ends[side].filter(|_| carrier.life == life) else { return };
                let mut bytes = BytesMut::from(&bytes[..]);
                let frame: Frame = decode(&mut bytes).unwrap().unwrap();
                self.sessions[side].push(self.now, id, frame).unwrap();
            }
            Happening::Runs(at, side) => {
                if let Some(next) = self.carriers[at].directions[side].next()
                    && next > self.now
                {
                    self.later(next, Happening::Runs(at, side));
                }
            }
            Happening::Trouble(which) => {
                let trouble = self.setting.troubles[which];
                match trouble.outage {
                    Some(time) => {
                        for direction in &mut self.carriers[trouble.carrier].directions {
                            direction.outage_until = self.now + time;
                        }
                    }
                    None => self.die(trouble.carrier),
                }
            }
            Happening::Connects(at) if self.carriers[at].ends[0].is_some() => {}
            Happening::Connects(at) => {
                let life = self.carriers[at].life + 1;
                self.carriers[at] = self.connected(at, life);
            }
            Happening::Look => {
                for side in 0..2 {
                    self.sessions[side].poll(self.now);
                }
                let times = self.sessions.iter().filter_map(Session::poll_at);
                let next = times.min().unwrap_or(self.now + Duration::from_secs(1));
                self.later(next.max(self.now + Duration::from_millis(1)), Happening::Look);
            }
        }
    }

    fn die(&mut self, at: usize) {
        for side in 0..2 {
            if let Some(id) = self.carriers[at].ends[side].take() {
                self.sessions[side].detach(self.now, id);
            }
        }
        self.later(self.now + Duration::from_secs(1), Happening::Connects(at));
    }

    /// The near users write all they can, the far ones read all they can.
    fn users(&mut self) {
        let each = self.setting.bytes / u64::from(self.setting.streams);
        let produced = self.setting.source * self.now.since(Instant::ZERO).as_secs_f64();
        let produced = (produced / f64::from(self.setting.streams)) as u64 / PIECE * PIECE;
        for number in 1..=self.setting.streams {
            let (stream, at) = (StreamId(number), number as usize);
            let produced = produced.saturating_add(PIECE).min(each) - self.written[at];
            let room = self.sessions[0].room(stream).get().min(produced);
            if room > 0 {
                let range = self.written[at]..self.written[at] + room;
                let data: Vec<u8> = range.map(|offset| byte_at(number, offset)).collect();
                self.sessions[0].write(stream, Buffer::from(data));
                self.written[at] += room;
                if self.written[at] == each {
                    self.sessions[0].finish(stream);
                }
            }
            while let Read::Data(data) = self.sessions[1].read(self.now, stream) {
                for byte in data {
                    assert_eq!(byte, byte_at(number, self.read[at]), "{}", self.setting.seed);
                    self.read[at] += 1;
                }
            }
            if self.read[at] == each
                && self.ends.len() < self.setting.streams as usize
                && self.sessions[1].read(self.now, stream) == Read::End
            {
                self.ends.push(self.now.since(Instant::ZERO));
                self.sessions[1].finish(stream);
            }
        }
    }

    fn events(&mut self) {
        for side in 0..2 {
            while let Some(event) = self.sessions[side].poll_event() {
                match event {
                    Event::Incoming { stream, .. } => self.sessions[1].accept(stream),
                    Event::CarrierDead(id) => {
                        let at = self.carriers.iter().position(|c| c.ends[side] == Some(id));
                        at.into_iter().for_each(|at| self.die(at));
                    }
                    Event::Reset(..) | Event::Refused(..) | Event::Lost => {
                        panic!("seed {}: {event:?}", self.setting.seed)
                    }
                    _ => {}
                }
            }
        }
        let state = self.sessions[1].state(self.now);
        self.held = self.held.max((state.unread + state.behind_gap).get());
    }
}

/// Carries everything. Panics where bytes differ, or where it never ends.
pub fn carry(setting: &Setting) -> Outcome {
    let mut world = World::new(setting.clone());
    for _ in 0..setting.streams {
        world.sessions[0].open("x:1").unwrap();
    }
    while world.ends.len() < setting.streams as usize {
        let Reverse((at, _, happening)) = world.heap.pop().unwrap();
        world.now = at;
        assert!(at.since(Instant::ZERO) < HANGS_AFTER, "seed {} hangs", setting.seed);
        world.happen(happening);
        world.events();
        world.users();
        world.pump();
    }
    Outcome {
        time: world.now.since(Instant::ZERO),
        repeated: world.sessions[0].state(world.now).repeated.get(),
        ends: world.ends,
        held: world.held,
    }
}

/// What the carriers would carry of an endless supply until `until`, each taking all it can: no
/// order, no credit, nothing repeated.
pub fn optimum(setting: &Setting, until: Instant) -> Bytes {
    let mut link = SharedLink::new(setting.link);
    let mut directions: Vec<Direction<u64>> = (0..setting.paths.len())
        .map(|at| Direction::new(setting.paths[at], setting.seed * 1000 + at as u64 * 10))
        .collect();
    let mut arrived = 0;
    let mut heap: BinaryHeap<Reverse<(Instant, usize)>> =
        (0..directions.len()).map(|at| Reverse((Instant::ZERO, at))).collect();
    while let Some(Reverse((now, at))) = heap.pop() {
        if now > until {
            break;
        }
        let direction = &mut directions[at];
        loop {
            while direction.has_room() {
                direction.put(16 * 1024, 16 * 1024 + 16);
            }
            let sent = direction.run(now, &mut link);
            if sent.is_empty() {
                break;
            }
            arrived += sent.iter().filter(|(at, _)| *at <= until).map(|(_, n)| n).sum::<u64>();
        }
        let next = direction.next().filter(|next| *next > now);
        heap.extend(next.map(|next| Reverse((next, at))));
    }
    Bytes::new(arrived)
}
