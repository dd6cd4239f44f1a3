//! Why a sender was silent: the causes of one silence in a direction's data.
//!
//! The classes are those of TAPO (Zhou et al., "Demystifying and Mitigating TCP Stalls at the
//! Server Side", CoNEXT 2015), as far as a capture at either end shows them. The silence is judged
//! by the segment that ends it and by what was acknowledged and advertised meanwhile. What prompts
//! a segment (an ACK, a window that opens) comes before it by the reaction time: the round trip
//! between capture point and sender. So the same rules hold at the sender and at the receiver.

use serde::ser::{Serialize, SerializeStruct, Serializer};

/// Fewer segments behind a lost one do not prompt its repair (RFC 5681 section 3.2: three duplicate
/// ACKs).
const DUPLICATES_LEAST: u64 = 3;
/// A receiver delays the ACK of no more than two segments (RFC 9293 section 3.8.6.3), for no more
/// than 500 ms. Linux delays for at least 40 ms, less a jiffy.
const DELAYED_SEGMENTS: u64 = 2;
const DELAYED_LEAST: u64 = 30_000;
const DELAYED_MOST: u64 = 550_000;
/// Nobody waits longer for an ACK before sending again (RFC 6298 section 2: an initial timeout of 1
/// s, once 3 s). Who seems to was answered by an ACK that was not captured.
const UNANSWERED_MOST: u64 = 3_000_000;

/// What a silence waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StallCause {
    /// The retransmission timer, although other data had followed what was lost.
    RetransmissionTimeout,
    /// The retransmission timer, because too little data followed what was lost for the ACKs to
    /// show it.
    TailLoss,
    /// The receiver advertised a window of zero.
    ZeroWindow,
    /// The receiver had acknowledged the data but its window stayed too small for a segment: its
    /// application did not read.
    ReceiverApplication,
    /// Nothing was in flight and the window was open: the sender's application had nothing to send.
    SenderApplication,
    /// The receiver delayed its ACK of one or two segments, and the sender waited for it.
    DelayedAck,
    /// As the sender's application, and afterwards the sender began again with a small window.
    IdleRestart,
    /// The path held data or ACKs back: nothing was sent again.
    PacketDelay,
    /// None of these shows.
    Unknown,
}

impl StallCause {
    /// The stable name in results.
    pub const fn name(self) -> &'static str {
        match self {
            StallCause::RetransmissionTimeout => "retransmission_timeout",
            StallCause::TailLoss => "tail_loss",
            StallCause::ZeroWindow => "zero_window",
            StallCause::ReceiverApplication => "receiver_application",
            StallCause::SenderApplication => "sender_application",
            StallCause::DelayedAck => "delayed_ack",
            StallCause::IdleRestart => "idle_restart",
            StallCause::PacketDelay => "packet_delay",
            StallCause::Unknown => "unknown",
        }
    }
}

/// A silence in a direction's data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stall {
    /// When the last data before it passed, and how long it was, in µs.
    pub(super) start: u64,
    pub(super) length: u64,
    /// What it waited for.
    pub cause: StallCause,
    /// What the direction's mean goodput would have carried meanwhile, in bytes.
    pub(super) cost: u64,
    /// Where in the data.
    pub(super) sequence: i64,
}

impl Serialize for Stall {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut stall = s.serialize_struct("Stall", 5)?;
        stall.serialize_field("start_us", &self.start)?;
        stall.serialize_field("length_us", &self.length)?;
        stall.serialize_field("cause", self.cause.name())?;
        stall.serialize_field("cost_bytes", &self.cost)?;
        stall.serialize_field("sequence", &self.sequence)?;
        stall.end()
    }
}

/// The cause where data was in flight for so long, in µs, and acknowledged without being sent
/// again.
pub(super) fn held_back(waited: u64) -> StallCause {
    if waited > UNANSWERED_MOST { StallCause::Unknown } else { StallCause::PacketDelay }
}

/// Drops all but the longest `most`; leaves them in any order.
pub(super) fn keep_longest(stalls: &mut Vec<Stall>, most: usize) {
    if stalls.len() > most {
        stalls.sort_unstable_by_key(|stall| std::cmp::Reverse(stall.length));
        stalls.truncate(most);
    }
}

/// The data that ended a silence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Resumed {
    /// New data.
    New,
    /// Data that was sent before, not prompted by duplicate ACKs.
    Timer,
    /// Data that was sent before, prompted by duplicate ACKs or SACK.
    Fast,
    /// Data that was overtaken on the path.
    Overtaken,
}

/// The receive window during a silence, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    /// Always enough for a segment, or not known.
    Open,
    /// Too small until the end.
    Closed,
    /// It became large enough this long before the end, in µs.
    Opened(u64),
}

/// What is known of a silence when data ends it. Times are in µs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Silence {
    pub length: u64,
    /// The least round trip of the path.
    pub rtt: u64,
    /// Within this time, a sender answers to what passes the capture point.
    pub reaction: u64,
    pub resumed: Resumed,
    /// IP identifications show that packets did not reach the capture point, and the last that did
    /// was not the end of a write. (Alone, identifications say nothing of a silence: many systems
    /// number the packets of all their connections together.)
    pub follows_gap: bool,
    /// Its timestamp shows that the data left long before the silence ended.
    pub left_early: bool,
    pub room: Room,
    /// A window of zero was in force.
    pub is_zero: bool,
    /// Something was acknowledged while the window stayed too small, or the window opened without
    /// an acknowledgement.
    pub is_unread: bool,
    /// How long before the end something new was acknowledged; `None` if nothing was.
    pub acked: Option<u64>,
    /// Something was still in flight at the end.
    pub in_flight: bool,
    /// Segments in flight when it began, and at its end.
    pub segments_before: u64,
    pub segments_after: u64,
}

impl Silence {
    /// What it waited for; `None` if only what follows shows it: whether the data in flight is
    /// acknowledged or sent again.
    pub fn cause(&self) -> Option<StallCause> {
        if let Some(cause) = self.window() {
            return Some(cause);
        }
        Some(match self.resumed {
            // The first of the segments in flight is the one lost.
            Resumed::Timer if self.segments_after <= DUPLICATES_LEAST => StallCause::TailLoss,
            Resumed::Timer => StallCause::RetransmissionTimeout,
            Resumed::Overtaken => StallCause::PacketDelay,
            Resumed::Fast => StallCause::PacketDelay,
            // What was lost before the capture point was the last of its flight, since nothing came
            // behind it, and what repeats it is new here.
            Resumed::New if self.follows_gap => StallCause::TailLoss,
            Resumed::New if self.left_early => StallCause::PacketDelay,
            Resumed::New if self.is_mostly_late() => self.late_ack(),
            // The sender did not wait for the ACK, which the receiver may have delayed.
            Resumed::New if self.may_be_delayed(self.length) => StallCause::SenderApplication,
            Resumed::New if self.in_flight => return None,
            Resumed::New => StallCause::SenderApplication,
        })
    }

    /// The cause where the receive window was too small and data came as soon as it no longer was.
    fn window(&self) -> Option<StallCause> {
        match self.room {
            Room::Open => None,
            Room::Opened(ago) if ago > self.reaction => None,
            _ if self.is_zero => Some(StallCause::ZeroWindow),
            Room::Opened(_) if self.is_unread => Some(StallCause::ReceiverApplication),
            _ => None,
        }
    }

    /// Whether a receiver may delay an ACK of what was in flight for so long.
    fn may_be_delayed(&self, late: u64) -> bool {
        let is_of_few = self.segments_before <= DELAYED_SEGMENTS;
        is_of_few && (DELAYED_LEAST..=DELAYED_MOST).contains(&late)
    }

    /// How much later than the quickest an ACK can come the ACK came.
    fn late(&self) -> u64 {
        let waited = self.length.saturating_sub(self.acked.unwrap_or(0));
        waited.saturating_sub(self.rtt)
    }

    /// Whether the ACK was late for most of what the silence was longer than a round trip.
    fn is_mostly_late(&self) -> bool {
        self.acked.is_some() && self.late() >= self.length.saturating_sub(self.rtt) / 2
    }

    /// The cause where an ACK was late. A receiver's delay holds only those senders up that answer
    /// its ACK.
    fn late_ack(&self) -> StallCause {
        let is_delayed = self.may_be_delayed(self.late());
        match self.acked {
            Some(ago) if is_delayed && ago <= self.reaction => StallCause::DelayedAck,
            _ if is_delayed => StallCause::SenderApplication,
            _ => held_back(self.late()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1000;

    /// New data after a second, in which all was acknowledged at once and the window was open.
    fn silence() -> Silence {
        Silence {
            length: 1000 * MS,
            rtt: 20 * MS,
            reaction: 15 * MS,
            resumed: Resumed::New,
            follows_gap: false,
            left_early: false,
            room: Room::Open,
            is_zero: false,
            is_unread: false,
            acked: Some(980 * MS),
            in_flight: false,
            segments_before: 10,
            segments_after: 0,
        }
    }

    fn cause(change: impl FnOnce(&mut Silence)) -> Option<StallCause> {
        let mut silence = silence();
        change(&mut silence);
        silence.cause()
    }

    #[test]
    fn nothing_in_flight_and_an_open_window_is_the_application() {
        assert_eq!(silence().cause(), Some(StallCause::SenderApplication));
        assert_eq!(cause(|s| s.in_flight = true), None, "what follows will show it");
        let small = cause(|s| (s.in_flight, s.segments_before, s.length) = (true, 1, 200 * MS));
        assert_eq!(small, Some(StallCause::SenderApplication), "it did not wait for the ACK");
        let with_a_gap = cause(|s| s.follows_gap = true);
        assert_eq!(with_a_gap, Some(StallCause::TailLoss), "lost before the capture point");
        assert_eq!(cause(|s| s.left_early = true), Some(StallCause::PacketDelay));
    }

    #[test]
    fn a_timer_is_tail_loss_where_less_than_three_segments_followed() {
        let timer = |segments| {
            cause(|s| (s.resumed, s.segments_after, s.acked) = (Resumed::Timer, segments, None))
        };
        assert_eq!(timer(1), Some(StallCause::TailLoss));
        assert_eq!(timer(3), Some(StallCause::TailLoss));
        assert_eq!(timer(4), Some(StallCause::RetransmissionTimeout));
    }

    #[test]
    fn a_window_holds_data_only_until_it_opens() {
        let opened = |ago, is_zero, is_unread| {
            cause(|s| {
                (s.room, s.is_zero, s.is_unread) = (Room::Opened(ago), is_zero, is_unread);
            })
        };
        assert_eq!(opened(10 * MS, true, false), Some(StallCause::ZeroWindow));
        assert_eq!(opened(10 * MS, false, true), Some(StallCause::ReceiverApplication));
        assert_eq!(opened(16 * MS, true, true), Some(StallCause::SenderApplication), "long open");
        assert_eq!(
            cause(|s| (s.room, s.is_zero) = (Room::Closed, true)),
            Some(StallCause::ZeroWindow)
        );
        // The ACK that opens the window was late itself.
        let by_ack = cause(|s| (s.room, s.acked) = (Room::Opened(5 * MS), Some(5 * MS)));
        assert_eq!(by_ack, Some(StallCause::PacketDelay));
    }

    #[test]
    fn an_ack_is_delayed_for_one_or_two_segments_and_up_to_half_a_second() {
        let acked = |segments, length: u64| {
            cause(|s| {
                (s.segments_before, s.length, s.acked) = (segments, length * MS, Some(5 * MS));
            })
        };
        assert_eq!(acked(2, 225), Some(StallCause::DelayedAck));
        assert_eq!(acked(3, 225), Some(StallCause::PacketDelay));
        let unprompted = cause(|s| {
            (s.segments_before, s.length, s.acked) = (2, 225 * MS, Some(16 * MS));
        });
        assert_eq!(unprompted, Some(StallCause::SenderApplication));
        assert_eq!(acked(2, 700), Some(StallCause::PacketDelay));
        assert_eq!(acked(2, 4000), Some(StallCause::Unknown), "a timer would have expired");
        assert_eq!(acked(2, 40), Some(StallCause::PacketDelay), "no later than the path");
        // The ACK came after a round trip, and the sender took longer than another.
        let of_a_slow_sender = cause(|s| {
            (s.length, s.rtt, s.reaction) = (700 * MS, 300 * MS, 400 * MS);
            s.acked = Some(390 * MS);
        });
        assert_eq!(of_a_slow_sender, Some(StallCause::SenderApplication));
    }
}
