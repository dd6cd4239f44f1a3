//! The account of a live socket, as far as its samples show it.
//!
//! A socket tells what it waits for now: for its retransmission timer, for a window to open, for
//! its data to be acknowledged, and for how long no data has come or gone. What lies between two
//! samples is known by its end: a question and its answer that fall between them are data that was
//! on its way. What the future will tell is not known either: an end is gone here while it does not
//! answer, and a client that asks nothing has nothing to ask.

use super::parts::AccountPart;
use super::{AccountParts, Behind, Cause, HeldTime, transfer};
use crate::connection::{Direction, Spent};
use crate::limit::Candidate;
use fullpipe_model::limit::End;
use fullpipe_model::observe::{Sample, SocketEnds, TcpInfo, TcpState, is_server_port};
use fullpipe_model::units::{Bytes, Duration, Window};

/// Timeouts in a row after which the other end is gone: at the usual timer of 200 ms, 1.4 s of
/// silence.
const GONE_AFTER: u8 = 3;

/// Below this round trip an answer may come within the millisecond of its question.
const NEAR: Duration = Duration::from_millis(2);

/// Whether nothing can be sent into a window: it is zero, or has no room for a segment, and more
/// waits to be sent than it has room for (RFC 9293 section 3.8.6.2.1).
fn shuts(window: Option<Window>, segment: Bytes, waits: Bytes) -> bool {
    window.is_some_and(|window| {
        let room = window.bytes();
        room == Bytes::ZERO || (room < segment && room < waits)
    })
}

/// Where the time of a socket went since it was first looked at. Each part only grows.
#[derive(Debug, Clone)]
pub struct LiveAccount {
    parts: AccountParts,
    /// This end: 0 is the client.
    here: u8,
    /// Whether the client sent again before it was answered: then nobody waits for answers.
    goes_on: bool,
    /// Whether the client's data was the last before a silence.
    is_asked: bool,
}

/// For how long a socket's client has waited for an answer of the server's application; `None`
/// where it does not.
pub fn waits_for_answer(sample: &Sample) -> Option<Duration> {
    let info = sample.info.as_ref().filter(|_| sample.state == TcpState::Established)?;
    let here = client_or_server((sample.local, sample.remote));
    is_client_last(info, here).then(|| silence(info))
}

/// Which end of its connection a socket is: 0 is the client. The server has the port that no system
/// gives to clients, or else the lower one.
fn client_or_server((local, remote): SocketEnds) -> u8 {
    let is_client = match (is_server_port(local.port()), is_server_port(remote.port())) {
        (true, false) => false,
        (false, true) => true,
        _ => local.port() > remote.port(),
    };
    u8::from(!is_client)
}

/// Whether the client's data is the last.
fn is_client_last(info: &TcpInfo, here: u8) -> bool {
    let [sent, received] = ages(info);
    if sent != received {
        return (sent < received) == (here == 0);
    }
    // Of the same millisecond. Where no answer comes within one, this end spoke last. Elsewhere it
    // did if an ACK came later; if none did, what nobody waits for is taken for true.
    let is_near = info.rtt < NEAR;
    let is_here = !is_near || info.last_ack_recv < received;
    sent != Duration::MAX && is_here && here == 0
}

impl LiveAccount {
    /// Nothing yet, of a socket with these ends.
    pub fn new(ends: SocketEnds) -> Self {
        let here = client_or_server(ends);
        LiveAccount { parts: AccountParts::default(), here, goes_on: false, is_asked: false }
    }

    /// The parts, the longest first.
    pub fn parts(&self) -> Vec<AccountPart> {
        let AccountParts(mut parts) = self.parts.clone();
        parts.sort_by_key(|part| std::cmp::Reverse(part.time));
        parts
    }

    /// What is lost of all parts together; it only grows.
    pub fn lost(&self) -> Duration {
        let AccountParts(parts) = &self.parts;
        parts.iter().fold(Duration::ZERO, |sum, part| sum.saturating_add(part.lost))
    }

    /// Divides the time between two samples that follow each other; none of it is the connection's
    /// where it had ended before. `role` is this end of the data,
    /// and `shares` what held the data meanwhile.
    pub fn note(&mut self, before: &Sample, now: &Sample, role: End, shares: &[Candidate]) {
        let length = now.at.since(before.at);
        let (Some(then), Some(info)) = (&before.info, &now.info) else {
            if is_over(before) && is_over(now) {
                return;
            }
            return self.add(Spent::NotCaptured, length, role, shares);
        };
        if now.state == TcpState::SynSent {
            let what = if info.retransmits > 0 { Spent::SynRepeated } else { Spent::Connect };
            return self.add(what, length, role, shares);
        }
        let moved = MovedBetween::of(then, info);
        if let Some(what) = self.stuck(now, info, moved) {
            return self.add(what, length, role, shares);
        }
        self.take_turns(moved);
        // A request that the server has not read is its turn as well.
        let is_unread = now.rqueue > Bytes::ZERO && self.here == 0;
        let quiet = if now.wqueue > Bytes::ZERO || is_unread {
            Duration::ZERO
        } else {
            silence(info).min(length)
        };
        self.add(Spent::Transfer(self.sender(role)), length.saturating_sub(quiet), role, shares);
        let (what, way) = self.silent(info);
        // The data before the silence was on its way first.
        let on_its_way = way.min(info.rtt.saturating_sub(silence(info) - quiet)).min(quiet);
        self.add(Spent::Turn(1), on_its_way, role, shares);
        self.add(what, quiet - on_its_way, role, shares);
    }

    fn peer(&self) -> u8 {
        1 - self.here
    }

    fn sender(&self, role: End) -> u8 {
        if role == End::Sender { self.here } else { self.peer() }
    }

    /// What the socket waits for that is neither data on its way nor an application's turn.
    fn stuck(&self, now: &Sample, info: &TcpInfo, moved: MovedBetween) -> Option<Spent> {
        let sends = now.wqueue > Bytes::ZERO;
        let is_unheard = sends && info.unacked > 0 && info.retransmits > 0 && !moved.was_acked;
        if is_unheard {
            let is_gone = info.retransmits >= GONE_AFTER;
            return Some(if is_gone { Spent::Gone(self.peer()) } else { Spent::Timeout });
        }
        let is_shut = shuts(info.snd_wnd, info.snd_mss, now.wqueue);
        if sends && info.unacked == 0 && !moved.was_sent && is_shut {
            return Some(Spent::WindowShut(self.peer()));
        }
        let holds = now.rqueue > Bytes::ZERO && !moved.was_received;
        // What waits at the other end is more than one segment, as this end has data unread.
        let is_shut = shuts(info.rcv_wnd, info.rcv_mss, info.rcv_mss);
        (holds && is_shut).then_some(Spent::WindowShut(self.here))
    }

    /// Notes who spoke.
    fn take_turns(&mut self, moved: MovedBetween) {
        let [by_client, by_server] = if self.here == 0 {
            [moved.was_sent, moved.was_received]
        } else {
            [moved.was_received, moved.was_sent]
        };
        if by_server {
            (self.goes_on, self.is_asked) = (false, false);
        } else if by_client {
            self.goes_on |= self.is_asked;
        }
    }

    /// Whose turn it is while nobody says anything, and how much of a round trip the last data is
    /// on its way until that is so.
    fn silent(&mut self, info: &TcpInfo) -> (Spent, Duration) {
        if !is_client_last(info, self.here) {
            return (Spent::Idle, Duration::ZERO);
        }
        if silence(info) > info.rtt {
            self.is_asked = true;
        }
        let what = if self.goes_on { Spent::Paused(0) } else { Spent::Thinks(1) };
        (what, if self.here == 0 { info.rtt } else { Duration::ZERO })
    }

    fn add(&mut self, what: Spent, time: Duration, role: End, shares: &[Candidate]) {
        if time == Duration::ZERO {
            return;
        }
        match Cause::of(what) {
            Ok((owner, cause)) => {
                // The one round trip that a question has to pay is not lost.
                let lost = cause.lost(time, Some(1));
                self.parts.add(AccountPart { owner, cause, direction: None, time, lost });
            }
            Err(_) => {
                let direction = match self.sender(role) {
                    0 => Direction::ClientToServer,
                    _ => Direction::ServerToClient,
                };
                let held = HeldTime { shares, time, is_by_clock: false };
                transfer(&mut self.parts, direction, time, held, Behind::default());
            }
        }
    }
}

/// Whether the connection has ended: the kernel keeps its ends for a minute, without counters.
fn is_over(sample: &Sample) -> bool {
    sample.info.is_none() && matches!(sample.state, TcpState::TimeWait | TcpState::FinWait2)
}

/// How long ago data was sent and received last. The kernel counts from the handshake where none
/// was.
fn ages(info: &TcpInfo) -> [Duration; 2] {
    [(info.last_data_sent, info.data_segs_out), (info.last_data_recv, info.data_segs_in)]
        .map(|(age, segments)| if segments == Some(0) { Duration::MAX } else { age })
}

/// For how long no data has come or gone: the longest time that there is if none ever did.
pub fn silence(info: &TcpInfo) -> Duration {
    let [sent, received] = ages(info);
    sent.min(received)
}

/// What moved between two samples.
#[derive(Debug, Clone, Copy)]
struct MovedBetween {
    was_sent: bool,
    was_acked: bool,
    was_received: bool,
}

impl MovedBetween {
    fn of(before: &TcpInfo, now: &TcpInfo) -> MovedBetween {
        MovedBetween {
            was_sent: now.data_segs_out > before.data_segs_out,
            was_acked: now.bytes_acked > before.bytes_acked,
            was_received: now.bytes_received > before.bytes_received,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Cause, Owner};
    use super::*;
    use crate::limit::Limit;
    use fullpipe_model::units::Instant;
    use proptest::prelude::*;

    const SERVER: &str = "192.0.2.1:443";
    const CLIENT: &str = "198.51.100.2:40000";

    /// A look at a socket each second, with a round trip of 40 ms.
    fn look(here: &str, second: u64, change: impl Fn(&mut Sample, &mut TcpInfo)) -> Sample {
        let mut info = TcpInfo {
            state: TcpState::Established,
            rtt: Duration::from_millis(40),
            data_segs_in: Some(1),
            data_segs_out: Some(1),
            bytes_acked: Some(Bytes::ZERO),
            bytes_received: Some(Bytes::ZERO),
            snd_wnd: Some(Window::new(Bytes::new(65_536))),
            rcv_wnd: Some(Window::new(Bytes::new(65_536))),
            ..TcpInfo::default()
        };
        let there = if here == SERVER { CLIENT } else { SERVER };
        let mut sample = Sample::new(
            Instant::ZERO + Duration::from_secs(second),
            here.parse().unwrap(),
            there.parse().unwrap(),
            TcpState::Established,
        );
        change(&mut sample, &mut info);
        sample.info = Some(info);
        sample
    }

    fn account(role: End, samples: &[Sample]) -> Vec<(Owner, Cause, u64)> {
        let mut account = LiveAccount::new((samples[0].local, samples[0].remote));
        let held = [Candidate { limit: Limit::Link, share: 1.0 }];
        samples.windows(2).for_each(|pair| account.note(&pair[0], &pair[1], role, &held));
        let parts = account.parts().into_iter();
        parts.map(|part| (part.owner, part.cause, part.time.as_micros() / 1000)).collect()
    }

    /// Two seconds of data, and three of silence after the last of it went or came.
    fn asked(here: &str, sent: bool) -> Vec<Sample> {
        let at = |second: u64| {
            look(here, second, |_, info| {
                let ago = Duration::from_secs(second.saturating_sub(2));
                let longer = ago.saturating_add(Duration::from_secs(1));
                (info.last_data_sent, info.last_data_recv) =
                    if sent { (ago, longer) } else { (longer, ago) };
                let moved = if sent { &mut info.data_segs_out } else { &mut info.data_segs_in };
                *moved = Some(1 + second.min(2) as u32);
            })
        };
        (0..6).map(at).collect()
    }

    #[test]
    fn who_has_the_question_has_the_time() {
        let link = (Owner::Path, Cause::Transfer(Limit::Link));
        let thinks = (Owner::ServerApplication, Cause::ServerThinks);
        let parts = account(End::Receiver, &asked(SERVER, false));
        assert_eq!(parts, [(thinks.0, thinks.1, 3000), (link.0, link.1, 2000)]);
        let parts = account(End::Sender, &asked(CLIENT, true));
        let way = (Owner::Path, Cause::Turns, 40);
        assert_eq!(parts, [(thinks.0, thinks.1, 2960), (link.0, link.1, 2000), way]);
        for (here, sent) in [(SERVER, true), (CLIENT, false)] {
            let parts = account(End::Sender, &asked(here, sent));
            assert_eq!(parts[0], (Owner::Nobody, Cause::Idle, 3000), "the client has its answer");
        }
    }

    #[test]
    fn a_client_that_goes_on_unanswered_waits_for_no_answer() {
        let at = |second: u64| {
            look(CLIENT, second, |_, info| {
                // It sends in each even second, and is never answered.
                info.last_data_sent = Duration::from_secs(second % 2);
                info.last_data_recv = Duration::from_secs(second + 1);
                info.data_segs_out = Some(1 + second as u32 / 2);
            })
        };
        let samples: Vec<Sample> = (0..10).map(at).collect();
        let parts = account(End::Sender, &samples);
        // The first silence may still be the server's.
        let paused = (Owner::ClientApplication, Cause::Paused, 4 * 960);
        assert!(parts.contains(&paused), "{parts:?}");
    }

    #[test]
    fn a_socket_that_is_stuck_says_by_what() {
        let state = |change: fn(&mut Sample, &mut TcpInfo)| {
            let samples = [look(CLIENT, 0, change), look(CLIENT, 1, change)];
            account(End::Sender, &samples)[0]
        };
        let syn = state(|sample, info| (sample.state, info.retransmits) = (TcpState::SynSent, 2));
        assert_eq!(syn, (Owner::Path, Cause::SynRepeated, 1000));
        let timer = state(|sample, info| {
            (sample.wqueue, info.unacked, info.retransmits) = (Bytes::new(100), 1, 1);
        });
        assert_eq!(timer, (Owner::Path, Cause::Timeouts, 1000));
        let gone = state(|sample, info| {
            (sample.wqueue, info.unacked, info.retransmits) = (Bytes::new(100), 1, 5);
        });
        assert_eq!(gone, (Owner::PeerGone, Cause::PeerGone, 1000));
        let shut = state(|sample, info| {
            sample.wqueue = Bytes::new(100);
            info.snd_wnd = Some(Window::new(Bytes::ZERO));
        });
        assert_eq!(shut, (Owner::ServerApplication, Cause::WindowShut, 1000));
        // A segment has 64 kB on loopback; 13 kB are no room for it.
        let small = |room: u64, waits: u64| {
            move |sample: &mut Sample, info: &mut TcpInfo| {
                sample.wqueue = Bytes::new(waits);
                info.snd_mss = Bytes::new(65_483);
                info.snd_wnd = Some(Window::new(Bytes::new(room)));
            }
        };
        for (room, waits, is_shut) in
            [(13_312, 100_000, true), (13_312, 10_000, false), (65_536, 100_000, false)]
        {
            let change = small(room, waits);
            let samples = [look(CLIENT, 0, change), look(CLIENT, 1, change)];
            let cause = account(End::Sender, &samples)[0].1;
            assert_eq!(cause == Cause::WindowShut, is_shut, "{room} {waits}: {cause:?}");
        }
        let unread = state(|sample, info| {
            sample.rqueue = Bytes::new(65_536);
            info.rcv_wnd = Some(Window::new(Bytes::ZERO));
        });
        assert_eq!(unread, (Owner::ClientApplication, Cause::WindowShut, 1000));
        for (room, is_shut) in [(13_312, true), (65_536, false)] {
            let change = |sample: &mut Sample, info: &mut TcpInfo| {
                sample.rqueue = Bytes::new(65_536);
                info.rcv_mss = Bytes::new(65_483);
                info.rcv_wnd = Some(Window::new(Bytes::new(room)));
            };
            let samples = [look(CLIENT, 0, change), look(CLIENT, 1, change)];
            let cause = account(End::Receiver, &samples)[0].1;
            assert_eq!(cause == Cause::WindowShut, is_shut, "{room}: {cause:?}");
        }
    }

    #[test]
    fn what_comes_after_the_end_is_no_time_of_the_connection() {
        let mut samples = asked(CLIENT, true);
        let seen = account(End::Sender, &samples);
        for second in 6..20 {
            let mut sample = look(CLIENT, second, |_, _| {});
            (sample.state, sample.info) = (TcpState::TimeWait, None);
            samples.push(sample);
        }
        let ended = account(End::Sender, &samples);
        // When it ended between two looks is not known.
        let unknown = (Owner::NotCaptured, Cause::NotCaptured, 1000);
        let others: Vec<_> = ended.iter().copied().filter(|part| *part != unknown).collect();
        assert_eq!((others, ended.len()), (seen, 4));
    }

    /// Timeouts, whether data waits to be sent and read; times since data was sent and received and
    /// of a round trip, in milliseconds; segments that were sent and received.
    type Drawn = ((u8, bool, bool), u64, u64, u64, (u32, u32));

    proptest! {
        /// Whatever a kernel says, every nanosecond is somebody's.
        #[test]
        fn all_the_time_is_divided(
            looks in proptest::collection::vec(
                (any::<(u8, bool, bool)>(), 0_u64..3000, 0_u64..3000, 0_u64..300, any::<(u32, u32)>()),
                2..20,
            ),
            is_server in any::<bool>(),
        ) {
            let here = if is_server { SERVER } else { CLIENT };
            let at = |(second, drawn): (usize, &Drawn)| {
                let ((retransmits, sends, reads), sent, received, rtt, (out, into)) = *drawn;
                look(here, second as u64, |sample, info| {
                    sample.wqueue = Bytes::new(u64::from(sends));
                    sample.rqueue = Bytes::new(u64::from(reads));
                    info.retransmits = retransmits % 6;
                    info.unacked = u32::from(retransmits) & 1;
                    info.last_data_sent = Duration::from_millis(sent);
                    info.last_data_recv = Duration::from_millis(received);
                    info.rtt = Duration::from_millis(rtt);
                    (info.data_segs_out, info.data_segs_in) = (Some(out), Some(into));
                })
            };
            let samples: Vec<Sample> = looks.iter().enumerate().map(at).collect();
            let mut account = LiveAccount::new((samples[0].local, samples[0].remote));
            let held = [Candidate { limit: Limit::ReceiveWindow, share: 0.7 }];
            for pair in samples.windows(2) {
                account.note(&pair[0], &pair[1], End::Sender, &held);
            }
            let sum = account.parts().iter().map(|part| part.time).sum::<Duration>();
            prop_assert_eq!(sum, Duration::from_secs(samples.len() as u64 - 1));
        }
    }
}
