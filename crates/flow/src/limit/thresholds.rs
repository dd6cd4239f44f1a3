//! Every threshold of the verdicts, for captures and for samples, with the data that fixed it.
//!
//! Unless a comment says otherwise, a value was fixed on two corpora: the lab's runs of
//! `bench/limits.toml` and `bench/limits-fresh.toml` (78 captures at each end whose limit is built
//! in), and the transfers of `tests/limits`. All of these are right with it. How far a value could
//! move was not measured. `bench/limits-held-out.toml` and seeds of `lab generate` from 9000 on
//! were not used. Lengths in intervals are for captures, whose intervals are about a round trip
//! long.

use fullpipe_model::units::Duration;

/// A queue is seen where the round trip exceeds the path's by at least this fraction of it, and by
/// at least this time.
pub(super) const QUEUE_PART: f64 = 0.03;
pub(super) const QUEUE_LEAST: Duration = Duration::from_micros(300);
/// A link was full for nearly all of the time: this fraction of it, and of the transfer the time
/// since a queue first stood is at least [`QUEUED_SINCE`]. A slow start of a long round trip takes
/// the time before. The queue stood for at least [`QUEUED_MOST`] of it; for the rest, at least
/// [`AT_QUEUED_RATE`] of what passed with a queue passed without.
pub(super) const QUEUED_NEARLY_ALL: f64 = 0.9;
pub(super) const QUEUED_MOST: f64 = 0.6;
pub(super) const AT_QUEUED_RATE: f64 = 0.95;
pub(super) const QUEUED_SINCE: f64 = 0.5;
/// An ACK that covers more than this fraction of what is in flight waited for its receiver.
pub(super) const LATE_ACK: f64 = 0.5;
/// ACKs that are kept back hold the sender where less than this part of what it carries at its best
/// is carried.
pub(super) const SLOWER: f64 = 0.7;
/// A full link carries one rate: the 10th percentile is at least this fraction of the 90th.
pub(super) const RATE_STEADY: f64 = 0.8;
/// The sender came near a receive window that could hold it for at least this fraction of the
/// intervals, or of the time.
pub(super) const REACHED_PART: f64 = 0.05;
/// A reader closes its window: for at least [`CLOSED_PART`] of the intervals it is below this
/// fraction of the largest so far, or it closes by at least [`UNREAD_PART`] of what is
/// acknowledged.
pub(super) const CLOSED_TO: f64 = 0.9;
pub(super) const CLOSED_PART: f64 = 0.05;
pub(super) const UNREAD_PART: f64 = 0.1;
/// Drops shape the amount in flight where, without one for [`RUN_LEAST`] intervals or more, the
/// last quarter has this many times as much in flight as the first, and still grows unless a drop
/// ends it; or where the most in flight is below [`LOWER_AFTER_DROP`] of what it was before. Runs
/// without a drop take at least [`RUNS_PART`] of the time, and half of that is so.
pub(super) const GROWS_AFTER_DROP: f64 = 1.05;
pub(super) const GROWN_PAIRS: f64 = 0.9;
pub(super) const LOWER_AFTER_DROP: f64 = 0.85;
pub(super) const RUN_LEAST: usize = 8;
pub(super) const RUNS_PART: f64 = 0.3;
/// A path whose drops cost little carries at least this fraction of what it carries behind a queue.
pub(super) const MOSTLY_AT_CAPACITY: f64 = 0.9;
/// Where packets overtake each other, a link has room whose trains are this much faster than what
/// it carries. In 28 transfers over jitter and reordering, full links had 0.98 to 1.3, others 2.1
/// to 3.9 (but for trains of ACKs, where a queue decides).
pub(super) const ROOM_FOR_TRAINS: f64 = 1.6;
/// A path that is full delays something: at least [`QUEUES_LEAST`] intervals by this fraction of
/// the path's round trip, and by at least [`QUEUE_SIGN_LEAST`]. Where less rules a link out, a
/// small queue must count.
pub(super) const QUEUE_SIGN: f64 = 0.01;
pub(super) const QUEUE_SIGN_LEAST: Duration = Duration::from_micros(50);
pub(super) const QUEUES_LEAST: usize = 3;
/// A queue stood over the whole transfer where the median round trip exceeds the path's by this
/// factor.
pub(super) const QUEUED_MOSTLY: f64 = 1.1;
/// An interval runs at capacity if it carries this fraction of the most that the path was seen to
/// carry: the first without a standing queue, the second with one.
pub(super) const AT_CAPACITY: f64 = 0.92;
pub(super) const AT_CAPACITY_QUEUED: f64 = 0.80;
/// Where the path's rate is given, an interval runs at capacity from this fraction of it on:
/// headers (52 of 1500 bytes) and ramps at both ends of an interval are part of that rate.
pub(super) const OF_HINT: f64 = 0.90;
/// A queue at less than this fraction of a given rate is not the link's.
pub(super) const OF_LINK: f64 = 0.70;
/// A full window whose data waited for a repair carries less than this fraction of a window per
/// round trip.
pub(super) const UNREPAIRED: f64 = 0.70;
/// What is in flight grows where it gains this factor within a few round trips.
pub(super) const GROWTH: f64 = 1.15;
/// Something fixed holds the sender where what is in flight comes back to within this fraction of
/// the most.
pub(super) const PLATEAU: f64 = 0.90;
pub(super) const WOKEN: f64 = 0.6;
/// A sender paused if it had nothing in flight for more than this fraction of an interval.
pub(super) const PAUSED: f64 = 0.25;
/// An application writes at its own pace if more than this fraction of what it wrote left without
/// an ACK that made room. The [`NEAR`] intervals before and after count.
pub(super) const OWN_PACE: f64 = 0.3;
pub(super) const NEAR: usize = 25;
/// A segment that is not full ends a write, because a sender that has more to send fills it. A
/// fraction of short segments below this one says nothing. From [`PIECES`] on, the application has
/// no more to send. In between, the application is the limit only if it also writes at its own
/// pace. A pace alone may be the pacing of congestion control.
pub(super) const FEW_PIECES: f64 = 0.01;
pub(super) const PIECES: f64 = 0.05;
/// Drops come at a path's ceiling where at least [`CEILINGS_LEAST`] of them, and this fraction,
/// come behind a queue; the amounts in flight, of up to [`BEFORE_DROP`] intervals before, differ by
/// at most this fraction of their median (80 % of them); and the path carries at least this
/// fraction of what passes in a train. The whole transfer carries at least [`BUSY_AT_CEILING`] of
/// that, and a host holds it for at most [`HELD_AT_CEILING`] of the time.
pub(super) const MOST_AT_CEILING: f64 = 0.75;
pub(super) const CEILING_SPREAD: f64 = 0.3;
pub(super) const OF_TRAINS: f64 = 0.85;
pub(super) const BUSY_AT_CEILING: f64 = 0.65;
pub(super) const HELD_AT_CEILING: f64 = 0.2;
pub(super) const CEILINGS_LEAST: usize = 3;
pub(super) const BEFORE_DROP: usize = 3;
/// A short transfer has a limit where lifting it saves at least this fraction of the time from the
/// connection's start on: a tenth faster. Twice the rate saves half of the time that bytes take.
pub(super) const SAVES: f64 = 1.0 / 11.0;
pub(super) const HALF_OF_RATE: f64 = 0.5;
/// A state decides if it lasts for more than half of the time.
pub(super) const MOST: f64 = 0.5;
/// A window also counts as full where the mean in flight is this fraction of it.
pub(super) const TOUCHED: f64 = 0.97;
pub(super) const NEARLY: f64 = 0.88;
/// A window holds the sender if it is full for at least this fraction of an interval, and on
/// average for at least [`FILLED_MEAN`] of the intervals around it.
pub(super) const FILLED_LEAST: f64 = 0.2;
pub(super) const FILLED_MEAN: f64 = 0.25;
/// Rates are averaged over this many intervals before and after, to see them through the noise of
/// repairs. A transfer has a rate plateau if [`PLATEAU_SHARE`] of its intervals come back to one
/// rate, within [`PLATEAU_WIDTH`] of it.
pub(super) const WIDE: usize = 4;
pub(super) const PLATEAU_SHARE: f64 = 0.5;
pub(super) const PLATEAU_WIDTH: f64 = 0.10;
/// A lasting state must show in this many intervals before and after: half of [`NEAR`].
pub(super) const AROUND: usize = 12;
/// A handful of segments makes neither a standing queue nor a train.
pub(super) const FEW_SEGMENTS: u64 = 8;
/// A link is busy where the rate over a round trip is this fraction of the rate of a train. A
/// smaller fraction is enough where what is in flight does not move. A fraction above [`BUSY_MOST`]
/// means that no train was long enough to be timed. In 79 scenarios of `lab generate --seed 1`, the
/// fraction is 0.84 to 1.03 for those held by the link, 0.08 to 0.84 for loss, and up to 0.40 for a
/// send buffer.
pub(super) const BUSY: f64 = 0.92;
pub(super) const BUSY_AND_FLAT: f64 = 0.85;
pub(super) const BUSY_MOST: f64 = 1.2;
/// At least two trains a round trip: a single longer train would include the gaps between bursts.
pub(super) const TRAIN_EVENTS_LEAST: usize = 16;
/// The highest rate, in bits per second for each byte of a segment, whose trains are timed without
/// doubt. At the sender, eight ACKs of two segments take 0.5 ms at 256,000 bit/s for each byte, and
/// faster trains are timed only together with the pause that follows them. Elsewhere, 512 segments
/// take it at 32 times that. These are three quarters of both.
pub(super) const TRAIN_RATE_MOST_OF_ACKS: f64 = 192_000.0;
pub(super) const TRAIN_RATE_MOST: f64 = 32.0 * TRAIN_RATE_MOST_OF_ACKS;
/// From this confidence on, as for advice, the receiver holds a connection that shares a full link.
pub(super) const SURELY_THE_RECEIVER: f64 = 0.6;
/// Trains show one link only if nine in ten are at most this multiple of their median. In 24
/// scenarios of `lab generate --seed 71` those that a pause lengthened differ by more.
pub(super) const TRAINS_ALIKE: f64 = 1.15;
/// A link passes data in bursts where these have at least this part of the bytes. Of the captures
/// that name a link which dropped and had no queue (generated runs of seeds 1, 2, 3, 13, 14, 9031
/// and 9032, worlds of seeds 24 and 31 to 33), two in three have a policer; from here on
/// 214 of 216.
pub(super) const MUCH_IN_BURSTS: f64 = 0.4;
pub(super) const FLAT: f64 = 0.85;
/// Where congestion control reacts to loss, what is in flight swings by more than this. A window
/// halved and regrown (reno) gives 0.67, one cut to 0.7 (cubic, RFC 9438 section 4.6) 0.83. In the
/// same scenarios send buffers give 0.95 and more.
pub(super) const UNMOVED: f64 = 0.92;
/// Where the application reads late, the window closes by this fraction of what is acknowledged.
pub(super) const CLOSING: f64 = 0.3;
/// The application closed a window that is below this fraction of the largest one so far.
pub(super) const COLLAPSED: f64 = 0.5;
/// It did not, where this fraction of the most so far is carried all the same: such a window was
/// too large before. Fixed by `window/fast-reader`, whose receiver lowers its window to what the
/// path holds once its start has gone twice beyond it.
pub(super) const AS_MUCH: f64 = 0.95;
/// A capacity is read from at least this many intervals with a queue, at [`CAPACITY_PERCENTILE`]: a
/// single ACK of a repaired hole reports more than the path carried. For the same reason, of the
/// intervals without a queue the fastest are left out: [`HASTY_LEAST`], and one more for every
/// [`HASTY_PART`] intervals.
pub(super) const QUEUED_LEAST: usize = 3;
pub(super) const CAPACITY_PERCENTILE: usize = 95;
pub(super) const HASTY_LEAST: usize = 2;
pub(super) const HASTY_PART: usize = 50;
/// A queue is the link's only if intervals with it carried at least this fraction of what intervals
/// without it carried.
pub(super) const OF_UNQUEUED: f64 = 0.95;
/// Nine of ten intervals have less in flight than the plateau.
pub(super) const PLATEAU_PERCENTILE: usize = 90;
/// A transfer is bounded where one in four intervals comes to within this fraction of the most in
/// flight.
pub(super) const BOUNDED: f64 = 0.95;
pub(super) const BOUNDED_ONE_IN: usize = 4;
/// What is in flight still grows if one of the next [`GROWS_WITHIN`] intervals has more by this
/// factor.
pub(super) const STILL_GROWS: f64 = 1.05;
pub(super) const GROWS_WITHIN: usize = 8;
/// A bound is seen if at least this many intervals reached it.
pub(super) const BOUND_SEEN: usize = 8;
/// The repair that ends a silence comes within this many intervals: the minimum timeout of Linux is
/// 200 ms, and it doubles.
pub(super) const REPAIR_WITHIN: usize = 16;

/// Timers hold a sender that waits for them for more than this fraction of the time, and at least
/// [`TIMERS_LEAST`] times. Of all policers of seeds 1 to 7, one is like that.
pub(super) const TIMED: f64 = 0.3;
pub(super) const TIMERS_LEAST: usize = 4;

/// Samples only: an interval runs at capacity from this fraction of the best delivery on. Intervals
/// of samples are shorter than a capture's and therefore noisier: two jiffies of 40 ms.
pub(super) const AT_CAPACITY_SAMPLED: f64 = 0.85;
/// Samples only, for a proof: before a queue that stands, what is in flight is never less than this
/// part of what the path holds at its rate. Behind a blocked writer, who is woken when a third of
/// its buffer is free, it falls to four fifths.
pub(super) const NEARLY_BDP: f64 = 0.9;
/// Samples only: round trips that are longer than the path's by less than this fraction prove no
/// full link. A reader that takes blocks delays its acknowledgements by as much (worlds 34/0032).
pub(super) const QUEUE_PART_SAMPLED: f64 = 0.2;
/// Samples only: a queue delays the round trip by at least this time. Scheduling alone moves a
/// smoothed round trip by some hundred microseconds.
pub(super) const QUEUE_LEAST_SAMPLED: Duration = Duration::from_micros(500);
/// Samples only: the send buffer is full from this fraction on. The writer is woken when a third of
/// it is free (`sk_stream_is_writeable`).
pub(super) const FULL_BUFFER: f64 = 0.6;
/// Samples only: data in the receiver's buffer is unread, and not in transit through it, above this
/// fraction of the buffer.
pub(super) const UNREAD: f64 = 0.5;
/// Samples only: a repair must follow within this many intervals.
pub(super) const REPAIR_WITHIN_SAMPLED: usize = 32;
/// Samples only: a smaller fraction is noise, because one jiffy in an interval is.
pub(super) const NOISE: f64 = 0.02;
/// Without a queue, half of the round trips of data are longer than the shortest by less than this
/// time, and less than so many segments take: that is what hosts delay.
pub(super) const UNDELAYED: Duration = Duration::from_millis(1);
pub(super) const UNDELAYED_SEGMENTS: f64 = 2.0;

/// A full link carries no more than what passes back to back, to within this factor.
pub(super) const AT_MOST_FULL: f64 = 1.1;
/// More in flight than the path holds by so many segments waits in a queue: an ACK covers two.
pub(super) const BEYOND: u64 = 2;
/// Repairs with no more round trips than this between them are of one time of loss.
pub(super) const SAME_EPISODE: u64 = 4;
/// After the last drop of a full link's own, this part of the time passes without one, and this
/// part of what the link carries passes.
pub(super) const QUIET_AFTER_DROPS: f64 = 0.3;
pub(super) const CARRIES_AFTER_DROPS: f64 = 0.5;
/// Or there are so many times of loss, and the path was full before each.
pub(super) const EPISODES_LEAST: usize = 3;
/// So many intervals in which a queue stood show what the link carries.
pub(super) const QUEUED_RATES_LEAST: usize = 3;
