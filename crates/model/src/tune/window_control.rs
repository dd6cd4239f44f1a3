//! The receive window that follows the rate at which the application reads: the law of the window
//! agent, without the agent.
//!
//! How to think about it: a receiver needs room for what its application reads in one round trip,
//! `drain x RTT`, and for little more. Linux grows its buffer by the same figure, but only up to
//! `tcp_rmem[2]`, and it never gives room back. So a fast reader on a long path is held at
//! `tcp_rmem[2] / RTT`, and a slow reader lets a large buffer fill and stand full. This law looks
//! at each acknowledgement and decides once in a round trip (an epoch):
//!
//! * **Standing queue** (what was received and not read never fell below the threshold in the
//!   epoch): the reader is the limit. A window is what arrives in the next round trip. So it is
//!   what is needed less half of what stands above the threshold, but at least half of what is
//!   needed, without growth for eight round trips.
//! * **Start**: window = `2 x needed + step`, until three epochs gained less than a quarter; also
//!   within an epoch, by what was read so far, or the sender's doubling would wait.
//! * **Steady**: where `5/4 x needed` and two segments exceed the window, it grows by a sixteenth,
//!   at least one step. After four such epochs in which no queue was seen, at the reader or in the
//!   path, it grows by an eighth, after eight by a quarter. Where the window is far more than
//!   double, it shrinks by a sixteenth, down to `keep`.
//!
//! What is **needed** is `drain x RTT` and what was received beyond a hole: until a lost segment is
//! repaired, a round trip or more, the application reads nothing, and whatever comes meanwhile
//! takes up window. So bytes beyond a hole count as read, as they come, and the most that stood
//! there in the epoch is added. Without that, a path with loss looks like a sender that needs
//! little.
//!
//! A queue is counted without what came since the look before. A look is taken when data arrives,
//! and what has just arrived no reader can have read.
//!
//! RTT is the least of the last 10 to 20 seconds, not the newest. A queue at the bottleneck makes
//! the round trip longer at the same drain; counted with the newest, the window would feed that
//! queue. So growth ends once the queue in the path adds a quarter to the round trip. But a queue
//! that always stands becomes the least round trip itself. So every five seconds, where the window
//! is full and the round trip is a quarter longer than the least, the window **settles**: it
//! becomes `drain x RTT`, at least half of what it was. The link stays full, its queue empties, and
//! the least round trip is seen anew. Where the round trip stays as it was, the path itself became
//! longer (or others fill it), and the newest round trip is the least from then on.
//!
//! What holds whatever is observed: the right edge of the window (RFC 9293 section 3.8.6.2.1)
//! never moves left, since [`Grant::room`] contains all that was promised; the room never exceeds
//! [`Settings::most`] unless more was promised before, or two segments are more; and in a
//! connection's first second the window is never below the kernel's own choice, within the same
//! bound, unless the reader is the limit.
//!
//! No window is below two of the connection's own segments, whatever a setting, a budget or the
//! reader asks for: a sender waits to send a whole segment (RFC 9293 section 3.8.6.2.1), so a
//! window that has no room for one stops it until its persist timer sends a probe,
//! 200 ms later or more.
//! And a receiver acknowledges every second segment (RFC 9293 section 3.8.6.3). For the same reason
//! two segments are the least queue that stands, and the least step.
//!
//! Only integers, no signs, and no product of more than 64 bits: a BPF program computes the same.
//! Source of the form: `tcp_rcv_space_adjust` (net/ipv4/tcp_input.c) with the reader's drain in
//! place of a bound. What it does not know: the sender's congestion control, which still decides
//! what is sent within the window.
//!
//! ```
//! use fullpipe_model::units::{Bytes, Duration, Instant, Window};
//! use fullpipe_model::tune::window_control::{Look, Settings, WindowControl};
//! let start = Look {
//!     received: 0,
//!     copied: 0,
//!     out_of_order: Bytes::ZERO,
//!     promised: Window::new(Bytes::new(65_536)),
//!     rtt: Duration::from_millis(80),
//!     own: Window::new(Bytes::new(65_536)),
//!     segment: Bytes::new(1_448),
//! };
//! let mut control = WindowControl::new(Settings::default(), Instant::ZERO, &start);
//! // After a round trip the application has read all that had come.
//! let later = Look { received: 65_536, copied: 65_536, ..start };
//! let grant = control.acknowledge(Instant::from_nanos(80_000_000), &later);
//! assert_eq!(grant.window, Window::new(Bytes::new(2 * 65_536 + 16_384)));
//! ```

mod budget;

pub use budget::{least_budget, level};

use crate::units::{Bytes, Duration, Instant, Window};

/// For so long the window is at least what the kernel would have chosen.
const KERNEL_LEADS: Duration = Duration::from_secs(1);
/// The least round trip is that of this span and the one before.
const LEAST_RTT_SPAN: Duration = Duration::from_secs(10);
/// A window may settle so often: before the least round trip is forgotten.
const SETTLE_EVERY: Duration = Duration::from_secs(5);
/// Round trips without growth after a window has settled: one empties the queue, the next are seen.
const SETTLE_ROUND_TRIPS: u64 = 4;
/// The least epoch, in microseconds: shorter ones count too few segments.
const LEAST_EPOCH_US: u64 = 1_000;
/// The longest round trip that is believed: the largest that still fits 32 bits of microseconds.
const LONGEST_RTT_US: u64 = u32::MAX as u64;
/// A window ends its start after so many epochs that gained less than a quarter.
const FLAT_EPOCHS: u8 = 3;
/// After a longer silence an epoch says nothing about the drain.
const IDLE_ROUND_TRIPS: u64 = 4;
/// No queue is so small that it stands where less than twice this is read in a round trip, and no
/// step is smaller: some segments of Ethernet. Where two segments are more, they count instead.
const LEAST_STEP: u64 = 4_096;
/// No segment is larger: its length, with its header, has 16 bits.
const LARGEST_SEGMENT: u64 = 65_535;
/// Growth doubles after so many epochs of it without a queue, and once more after twice as many.
const EPOCHS_OF_GROWTH: u32 = 4;

/// What a host decides about the law. All windows are of payload, not of buffer memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// A queue that never falls below this stands. Where less than twice this is needed, half of
    /// that, at least 4 KiB.
    pub threshold: Bytes,
    /// The same as time of the drain: the larger of the two counts.
    pub threshold_time: Duration,
    /// The least by which a window grows. One below four times this grows by a quarter, at least 4
    /// KiB.
    pub step: Bytes,
    /// No window is smaller, nor smaller than two segments ([`Look::least`]).
    pub least: Window,
    /// No window is larger, unless two segments are. RFC 7323 allows less than 1 GiB.
    pub most: Window,
    /// An unused window shrinks down to this.
    pub keep: Window,
    /// Round trips without growth after a standing queue.
    pub hold_round_trips: u32,
}

impl Default for Settings {
    /// As in the trial over 80 ms and 2 Gbit/s: 256 KiB or 2 ms, in steps of 64 KiB, up to RFC
    /// 7323's bound; 4 MiB are kept for the next burst. The least, 8 KiB, is some segments.
    fn default() -> Self {
        Settings {
            threshold: Bytes::new(256 << 10),
            threshold_time: Duration::from_millis(2),
            step: Bytes::new(64 << 10),
            least: Window::new(Bytes::new(8 << 10)),
            most: Window::new(Bytes::new((1 << 30) - 1)),
            keep: Window::new(Bytes::new(4 << 20)),
            hold_round_trips: 8,
        }
    }
}

/// A receiving socket at the moment of an acknowledgement, in the kernel's fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// `rcv_nxt`: the next sequence number expected.
    pub received: u32,
    /// `copied_seq`: the next sequence number that the application will read.
    pub copied: u32,
    /// From `rcv_nxt` to the end of the last SACK block (RFC 2018) that the receiver would send:
    /// what came beyond a hole, and the hole. Zero without one.
    pub out_of_order: Bytes,
    /// `tcp_receive_window`: what the peer may still send after `received`.
    pub promised: Window,
    /// `rcv_rtt_est`, or `srtt_us` where that is zero; below a millisecond counts as one.
    pub rtt: Duration,
    /// What the kernel's own autotuning would advertise now.
    pub own: Window,
    /// The largest segment that the peer sends, in payload: the larger of `rcv_mss`, which
    /// was seen,
    /// and of `advmss` as far as the peer's own MSS goes.
    pub segment: Bytes,
}

impl Look {
    /// Two segments: the least window with which the peer need not wait.
    pub fn least(&self) -> Window {
        Window::new(Bytes::new(2 * self.segment.get().min(LARGEST_SEGMENT)))
    }

    /// Received and not yet read. Sequence numbers wrap (RFC 9293 section 3.4).
    fn queue(&self) -> u64 {
        u64::from(self.received.wrapping_sub(self.copied))
    }

    /// The next sequence number that would be read if no hole were there. Where the queue is read
    /// at once it moves by what arrives, whatever was lost.
    fn taken(&self) -> u32 {
        self.copied.wrapping_add(self.out_of_order.get() as u32)
    }
}

/// From one sequence number to another, zero where it goes back (RFC 9293 section 3.4).
fn advanced(from: u32, to: u32) -> u64 {
    let span = to.wrapping_sub(from);
    if span >> 31 == 0 { u64::from(span) } else { 0 }
}

/// What the socket is to be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// `TCP_WINDOW_CLAMP`.
    pub window: Window,
    /// The payload that the buffer must have room for, queue included: the window, and more as long
    /// as more is promised.
    pub room: Bytes,
}

/// What the law is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// It doubles with the drain.
    Start,
    /// It follows the drain without growth, because a queue stood at the reader or in the path.
    Hold,
    /// It follows the drain and probes for more.
    Steady,
}

/// One connection's law.
///
/// [`WindowControl::new`] when the connection is established or adopted, then
/// [`WindowControl::acknowledge`] before each acknowledgement, with times that do not go back (one
/// that does counts as no time).
#[derive(Debug, Clone)]
pub struct WindowControl {
    settings: Settings,
    born: Instant,
    epoch: Epoch,
    least_rtt: LeastRtt,
    phase: Phase,
    held_until: Instant,
    settles_at: Instant,
    /// The round trip before the window settled, in microseconds; zero once that is judged.
    settled_from: u64,
    /// In bytes, as the two below.
    window: u64,
    room: u64,
    /// What a reader that was seen to be the limit takes in a round trip; zero without one.
    reads: u64,
    /// Whether a queue stood in the epoch before.
    stood: bool,
    /// What was needed in a round trip when the last growth was counted.
    fullest: u64,
    flat: u8,
    /// `rcv_nxt` of the look before.
    received: u32,
    /// Epochs of growth without a queue, one after another.
    grown: u32,
    /// [`Look::least`] of the newest look.
    two_segments: u64,
}

/// What is counted between two decisions.
#[derive(Debug, Clone)]
struct Epoch {
    began: Instant,
    /// [`Look::taken`] at its beginning.
    taken: u32,
    /// The least queue seen, without what came since the look before.
    queue: u64,
    /// The most that stood beyond a hole.
    out_of_order: u64,
}

/// The least round trip of two spans of time, in microseconds.
#[derive(Debug, Clone)]
struct LeastRtt {
    span_ends: Instant,
    now: u64,
    before: u64,
}

impl LeastRtt {
    fn new(now: Instant, rtt: u64) -> Self {
        LeastRtt { span_ends: now + LEAST_RTT_SPAN, now: rtt, before: rtt }
    }

    fn seen(&mut self, now: Instant, rtt: u64) -> u64 {
        if now >= self.span_ends {
            self.before = self.now;
            self.now = rtt;
            self.span_ends = now + LEAST_RTT_SPAN;
        }
        self.now = self.now.min(rtt);
        self.now.min(self.before)
    }
}

impl WindowControl {
    /// The law of a connection that looks like `first` at `now`: new, or adopted in mid-life. It
    /// starts with all that is promised already.
    pub fn new(settings: Settings, now: Instant, first: &Look) -> Self {
        let rtt = micros(first.rtt);
        let promised = first.promised.bytes().get();
        let two_segments = first.least().bytes().get();
        let window = bounded(promised, &settings, two_segments);
        WindowControl {
            settings,
            born: now,
            epoch: Epoch::new(now, first, first.queue()),
            least_rtt: LeastRtt::new(now, rtt),
            phase: Phase::Start,
            held_until: now,
            settles_at: now,
            settled_from: 0,
            window,
            room: window.max(first.queue().saturating_add(promised)),
            reads: 0,
            stood: false,
            fullest: 0,
            flat: 0,
            received: first.received,
            grown: 0,
            two_segments,
        }
    }

    /// What the socket is to be given before the acknowledgement that `look` belongs to.
    pub fn acknowledge(&mut self, now: Instant, look: &Look) -> Grant {
        let queue = look.queue();
        let rtt = micros(look.rtt);
        let least_rtt = self.least_rtt.seen(now, rtt);
        self.two_segments = look.least().bytes().get();
        let unread = queue.saturating_sub(advanced(self.received, look.received));
        self.received = look.received;
        self.epoch.queue = self.epoch.queue.min(unread);
        self.epoch.out_of_order = self.epoch.out_of_order.max(look.out_of_order.get());
        let elapsed = now.since(self.epoch.began).as_micros();
        let bytes = advanced(self.epoch.taken, look.taken());
        if elapsed >= rtt {
            let out_of_order = self.epoch.out_of_order.min(u64::from(u32::MAX));
            self.decide(now, Drain { bytes, out_of_order, elapsed, rtt, least_rtt });
            self.epoch = Epoch::new(now, look, unread);
        } else if self.phase == Phase::Start && elapsed <= least_rtt {
            self.double(bytes);
        }
        if self.reads == 0 && now.since(self.born) < KERNEL_LEADS {
            self.window = self.window.max(look.own.bytes().get());
        }
        self.window = bounded(self.window, &self.settings, self.two_segments);
        // What is promised must fit. The room never grows for it: what was promised was within it.
        let promised = queue.saturating_add(look.promised.bytes().get());
        // The kernel takes what is queued off the room, and a burst that a slow reader takes a
        // round trip for must not shut the window.
        let room = self.window.saturating_add(self.reads.min(self.window));
        let most = self.settings.most.bytes().get().max(self.window);
        self.room = room.min(most).max(self.room.min(promised));
        Grant { window: Window::new(Bytes::new(self.window)), room: Bytes::new(self.room) }
    }

    /// What it is doing.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The decision at the end of an epoch.
    fn decide(&mut self, now: Instant, drain: Drain) {
        let threshold = self.settings.threshold.get();
        let is_idle = drain.elapsed / IDLE_ROUND_TRIPS > drain.rtt && self.epoch.queue <= threshold;
        if is_idle || drain.bytes == 0 {
            return;
        }
        let needed = drain.needed();
        let threshold = threshold
            .min((needed / 2).max(LEAST_STEP))
            .max(self.two_segments)
            .max(drain.over(micros_of(self.settings.threshold_time)));
        // A reader that comes back from a pause has read little of what came meanwhile. One round
        // trip more tells it from a slow one.
        let stood = std::mem::replace(&mut self.stood, self.epoch.queue > threshold);
        if self.epoch.queue > threshold {
            if !stood && drain.bytes < self.epoch.queue / 4 {
                return;
            }
            self.reads = needed;
            self.read_off(threshold);
            self.settled_from = 0;
            self.hold(now, u64::from(self.settings.hold_round_trips), drain.rtt);
            return;
        }
        if self.phase == Phase::Hold && now < self.held_until {
            if self.reads > 0 {
                self.read_off(threshold);
            }
            return;
        }
        self.reads = 0;
        match self.phase {
            Phase::Start => self.start(needed),
            Phase::Hold | Phase::Steady => {
                self.phase = Phase::Steady;
                let settled_from = std::mem::take(&mut self.settled_from);
                if settled_from > 0 && drain.rtt >= settled_from - settled_from / 8 {
                    self.least_rtt = LeastRtt::new(now, drain.rtt);
                } else if now >= self.settles_at && drain.fills_path(self.window) {
                    self.window = needed.max(self.window / 2);
                    self.settles_at = now + SETTLE_EVERY;
                    self.settled_from = drain.rtt;
                    self.hold(now, SETTLE_ROUND_TRIPS, drain.rtt);
                } else {
                    self.follow(needed, drain.has_queue());
                }
            }
        }
    }

    fn hold(&mut self, now: Instant, round_trips: u64, rtt: u64) {
        self.phase = Phase::Hold;
        self.grown = 0;
        self.held_until = now + Duration::from_micros(round_trips.saturating_mul(rtt));
    }

    /// What is read, and half of what the queue is below the threshold, or less that of what it is
    /// above: all of it would swing, since the queue is that of the last round trip and the window
    /// acts in the next. So a third of the threshold stands in the end. Less would leave the reader
    /// without data where acknowledgements come a sixteenth of a round trip apart.
    fn read_off(&mut self, threshold: u64) {
        let slack = (threshold / 2).min((threshold / 4).max(self.settings.step.get()));
        let full = self.reads.saturating_add(slack);
        self.window = full.saturating_sub(self.epoch.queue / 2).max(self.reads / 2);
    }

    fn double(&mut self, needed: u64) {
        let double = needed.saturating_mul(2).saturating_add(self.step());
        self.window = self.window.max(double);
    }

    /// The least growth: a quarter of a small window.
    fn step(&self) -> u64 {
        self.settings.step.get().min((self.window / 4).max(LEAST_STEP)).max(self.two_segments)
    }

    /// Doubles with the drain until that stays the same.
    fn start(&mut self, needed: u64) {
        self.double(needed);
        if needed > self.fullest.saturating_add(self.fullest / 4) {
            self.fullest = needed;
            self.flat = 0;
        } else {
            self.flat += 1;
            if self.flat >= FLAT_EPOCHS {
                self.phase = Phase::Steady;
            }
        }
    }

    /// Probes where what is needed fills the window, and gives back what is not used. `has_queue`:
    /// in the path.
    fn follow(&mut self, needed: u64, has_queue: bool) {
        let step = self.settings.step.get();
        let double = needed.saturating_add(step).saturating_mul(2);
        // A segment is not sent before all of it fits, and makes no room before it is read.
        let used = needed.saturating_add(needed / 4).saturating_add(self.two_segments);
        if used > self.window {
            if has_queue {
                self.grown = 0;
            }
            let hurry = (self.grown / EPOCHS_OF_GROWTH).min(2);
            let growth = self.step().max(self.window >> (4 - hurry));
            self.window = self.window.saturating_add(growth);
            self.grown = self.grown.saturating_add(1);
        } else {
            self.grown = 0;
            if self.window > double && self.window > self.settings.keep.bytes().get() {
                self.window -= self.window / 16;
            }
        }
    }
}

/// A window within the settings' bounds, and never below two segments.
fn bounded(window: u64, settings: &Settings, two_segments: u64) -> u64 {
    let (least, most) = (settings.least.bytes().get(), settings.most.bytes().get());
    window.max(least).min(most).max(two_segments)
}

impl Epoch {
    fn new(now: Instant, look: &Look, unread: u64) -> Self {
        let out_of_order = look.out_of_order.get();
        Epoch { began: now, taken: look.taken(), queue: unread, out_of_order }
    }
}

/// What the application read in an epoch, or would have read but for a hole; times in microseconds.
struct Drain {
    bytes: u64,
    /// The most that stood beyond a hole, in 32 bits.
    out_of_order: u64,
    elapsed: u64,
    rtt: u64,
    least_rtt: u64,
}

impl Drain {
    /// What it reads in `micros`. Both factors have 32 bits; `elapsed` is at least a millisecond.
    fn over(&self, micros: u64) -> u64 {
        self.bytes * micros / self.elapsed
    }

    /// What takes up window in a round trip without a queue in the path. A repair waits in that
    /// queue, too, so what stands beyond a hole counts by the least round trip like the drain.
    fn needed(&self) -> u64 {
        self.over(self.least_rtt) + self.out_of_order * self.least_rtt / self.rtt
    }

    /// Whether so much waits in the path that the round trip is an eighth longer than the least.
    fn has_queue(&self) -> bool {
        self.rtt > self.least_rtt + self.least_rtt / 8
    }

    /// Whether `window` is in use, within a quarter, and so much of it waits in the path that the
    /// round trip is a quarter longer than the least.
    fn fills_path(&self, window: u64) -> bool {
        let used = self.over(self.rtt) + self.out_of_order;
        used >= window - window / 4 && self.rtt > self.least_rtt + self.least_rtt / 4
    }
}

/// A round trip in microseconds that counts at least as the least epoch.
fn micros(rtt: Duration) -> u64 {
    micros_of(rtt).max(LEAST_EPOCH_US)
}

fn micros_of(time: Duration) -> u64 {
    time.as_micros().min(LONGEST_RTT_US)
}
