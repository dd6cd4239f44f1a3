//! Every threshold of the verdicts, for captures and for samples, with what fixed it.
//!
//! Where nothing else is said, a value was fixed on the lab's runs of `bench/limits.toml` and
//! `bench/limits-fresh.toml` (78 captures at each end whose limit is built in) together with the
//! transfers of `tests/limits`, all of which are right with it; how far it could move was not
//! measured. `bench/limits-held-out.toml` and seeds of `lab generate` from 9000 on were not used.
//! Lengths in intervals are of captures, whose intervals are a round trip or so.

use fullpipe_model::units::Duration;

/// A queue is seen where the round trip stands above the path's by this part of it, and by this
/// time at least.
pub(super) const QUEUE_PART: f64 = 0.03;
pub(super) const QUEUE_LEAST: Duration = Duration::from_micros(300);
/// A queue stands over all of a transfer where the median round trip is so many of the path's.
pub(super) const QUEUED_MOSTLY: f64 = 1.1;
/// An interval carries what the path can if it carries this part of the most that the path was seen
/// to carry. Where the path's rate is given, headers are a part of it (52 of 1500 bytes), and ramps
/// at both ends of an interval.
pub(super) const AT_CAPACITY: f64 = 0.92;
pub(super) const AT_CAPACITY_QUEUED: f64 = 0.80;
pub(super) const OF_HINT: f64 = 0.90;
pub(super) const OF_LINK: f64 = 0.70;
/// A window that was full, but of data that waited for its repair, gives less than this part of a
/// window a round trip.
pub(super) const UNREPAIRED: f64 = 0.70;
/// In flight grows where it gains this factor within a few round trips.
pub(super) const GROWTH: f64 = 1.15;
/// Held by something fixed: what is in flight comes back to within this part of the most.
pub(super) const PLATEAU: f64 = 0.90;
pub(super) const WOKEN: f64 = 0.6;
/// A sender that had nothing in flight for this part of an interval paused.
pub(super) const PAUSED: f64 = 0.25;
/// An application writes at its own pace where more than this part of what it wrote in [`NEAR`]
/// intervals before and after came without an ACK that made room.
pub(super) const OWN_PACE: f64 = 0.3;
pub(super) const NEAR: usize = 25;
/// Segments that are not full end a write. A sender that has more to send fills them: fewer than
/// this part says nothing, more than [`PIECES`] says that the application has no more. In between
/// it needs an own pace as well, which alone may be the pacing of congestion control.
pub(super) const FEW_PIECES: f64 = 0.01;
pub(super) const PIECES: f64 = 0.05;
/// More than half of the time decides.
pub(super) const MOST: f64 = 0.5;
/// A window is full as well where the mean in flight is this part of it.
pub(super) const TOUCHED: f64 = 0.97;
pub(super) const NEARLY: f64 = 0.88;
/// A window that is full for at least this part of an interval, and for that part of those around
/// it, holds the sender.
pub(super) const FILLED_LEAST: f64 = 0.2;
pub(super) const FILLED_MEAN: f64 = 0.25;
/// Intervals before and after that are taken together to see a rate through the noise of repairs,
/// and what part of a transfer's intervals must come back to one rate, and within which part of it,
/// for a plateau.
pub(super) const WIDE: usize = 4;
pub(super) const PLATEAU_SHARE: f64 = 0.5;
pub(super) const PLATEAU_WIDTH: f64 = 0.10;
/// Intervals before and after in which a state must show that lasts: half of [`NEAR`].
pub(super) const AROUND: usize = 12;
/// A handful of segments makes no queue that stands, and no train.
pub(super) const FEW_SEGMENTS: u64 = 8;
/// A link is busy where a round trip's rate is this part of the rate at a stretch; a smaller part
/// will do where what is in flight does not move. More than [`BUSY_MOST`] says that no train was
/// long enough to be timed. Of 79 scenarios of `lab generate --seed 1`, those held by the link have
/// 0.84 to 1.03, by loss 0.08 to 0.84, by a send buffer to 0.40.
pub(super) const BUSY: f64 = 0.92;
pub(super) const BUSY_AND_FLAT: f64 = 0.85;
pub(super) const BUSY_MOST: f64 = 1.2;
/// Two trains a round trip at least: a longer one than what comes at a stretch would have the gaps
/// in it.
pub(super) const TRAIN_EVENTS_LEAST: usize = 16;
pub(super) const FLAT: f64 = 0.85;
/// What is in flight swings by more where congestion control reacts to loss: a window halved and
/// regrown (reno) gives 0.67, one cut to 0.7 (cubic, RFC 9438 section 4.6) 0.83. Same scenarios:
/// send buffers from 0.95.
pub(super) const UNMOVED: f64 = 0.92;
/// The part of what is acknowledged by which the window closes where the application reads late.
pub(super) const CLOSING: f64 = 0.3;
/// A window that never opens to half of what it was is closed by the application.
pub(super) const COLLAPSED: f64 = 0.5;
/// Queued intervals from which a capacity is read, and the part of them below it: single ACKs of
/// repaired holes tell of more than the path carried. Of intervals without a queue [`HASTY_LEAST`]
/// and one of [`HASTY_PART`] are left out for that.
pub(super) const QUEUED_LEAST: usize = 3;
pub(super) const CAPACITY_PERCENTILE: usize = 95;
pub(super) const HASTY_LEAST: usize = 2;
pub(super) const HASTY_PART: usize = 50;
/// A queue is the link's only where intervals without one carried no more than this allows.
pub(super) const OF_UNQUEUED: f64 = 0.95;
/// The plateau of what is in flight has nine of ten intervals below it.
pub(super) const PLATEAU_PERCENTILE: usize = 90;
/// A transfer is bounded where one of four intervals comes to within this part of the most in
/// flight.
pub(super) const BOUNDED: f64 = 0.95;
pub(super) const BOUNDED_ONE_IN: usize = 4;
/// What is in flight still grows where the next [`GROWS_WITHIN`] intervals have more by this
/// factor.
pub(super) const STILL_GROWS: f64 = 1.05;
pub(super) const GROWS_WITHIN: usize = 8;
/// A bound is seen where it was reached in so many intervals.
pub(super) const BOUND_SEEN: usize = 8;
/// A repair that a silence waits for comes within so many intervals: the least timeout of Linux is
/// 200 ms, and doubles.
pub(super) const REPAIR_WITHIN: usize = 16;

/// Timers hold a sender that waits for them for this part of the time, so often at least. Of all
/// policers of seeds 1 to 7 one is so.
pub(super) const TIMED: f64 = 0.3;
pub(super) const TIMERS_LEAST: usize = 4;

/// Samples only: of the best delivery, full. Shorter intervals than a capture's are noisier: two
/// jiffies of 40 ms.
pub(super) const AT_CAPACITY_SAMPLED: f64 = 0.85;
/// Scheduling alone moves a smoothed round trip by some hundred microseconds.
pub(super) const QUEUE_LEAST_SAMPLED: Duration = Duration::from_micros(500);
/// Samples only: of the send buffer, full. The writer is woken when a third of it is free
/// (`sk_stream_is_writeable`).
pub(super) const FULL_BUFFER: f64 = 0.6;
/// Samples only: of the receiver's buffer, unread rather than in transit through it.
pub(super) const UNREAD: f64 = 0.5;
/// Samples only: intervals within which a repair must follow.
pub(super) const REPAIR_WITHIN_SAMPLED: usize = 32;
/// Samples only: a jiffy in an interval is noise.
pub(super) const NOISE: f64 = 0.02;
