//! One line of results: what was run, what it showed, and what the laws allow.
//!
//! Column names carry units, and are the same in the table, in JSON and in files. Counts are of
//! packets. A column is from the capture of the end at which its event can be seen: the sender's
//! for what the sender did (retransmission, window full, round-trip times), the receiver's for what
//! reached and left the receiver (duplicate ACK, out of order, zero window, packets).

mod failed;
mod limited;

use crate::limit::Candidate;
use crate::version::Version;
use fullpipe_model::limit::{self, Limit};
use fullpipe_model::scenario::LinkEngine;

use fullpipe_model::units::{Bytes, Duration, Rate, Window, column};

/// Whose clock a run went by.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Default,
    serde::Serialize,
    serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// The machine's clock.
    #[default]
    Real,
    /// A guest kernel's clock, which stands still while anything computes.
    Virtual,
}

impl Clock {
    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Clock::Real => "real",
            Clock::Virtual => "virtual",
        }
    }
}

/// What one run showed. The row of a failed run ([`Row::error`]) says what was run and why it
/// failed; its figures are zero or absent here and are not written.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize)]
#[serde(default, remote = "Self")]
pub struct Row {
    /// The version of the columns with which it was written.
    #[serde(default = "Version::unsaid")]
    pub schema: Version,
    /// Scenario, case and place in the matrix.
    pub name: String,
    /// Number of the repetition, from 1.
    pub repetition: u32,
    /// Whose clock the run went by.
    pub engine: Clock,
    /// What carried the packets: `own`, our link, or `netem`, the kernel's.
    pub link_engine: LinkEngine,
    /// Whether it was taken from the cache instead of run anew; in virtual time the result is the
    /// same.
    pub cached: bool,
    /// Release of the kernel under test.
    pub kernel: String,
    /// Congestion control of the sender's socket.
    pub congestion_control: Option<String>,
    /// The configured round-trip time of the link.
    #[serde(rename = "rtt_nominal_us", with = "column::micros")]
    pub rtt_nominal: Duration,
    /// The configured rate of the link, in IP packets, in the direction of the data; absent without
    /// one.
    #[serde(rename = "rate_nominal_bps", with = "column::rate_optional")]
    pub rate_nominal: Option<Rate>,
    /// Time from SYN to SYN-ACK.
    #[serde(rename = "handshake_rtt_us", with = "column::micros_optional")]
    pub handshake_rtt: Option<Duration>,
    /// Least round-trip time of data.
    #[serde(rename = "rtt_min_us", with = "column::micros_optional")]
    pub rtt_min: Option<Duration>,
    /// Median round-trip time of data, queueing included.
    #[serde(rename = "rtt_p50_us", with = "column::micros_optional")]
    pub rtt_p50: Option<Duration>,
    /// 99 % of the round-trip times of data are at most this.
    #[serde(rename = "rtt_p99_us", with = "column::micros_optional")]
    pub rtt_p99: Option<Duration>,
    /// Largest receive window that was advertised.
    #[serde(rename = "window_max_bytes", with = "column::window_optional")]
    pub window_max: Option<Window>,
    /// Most payload in flight at the sender.
    #[serde(rename = "in_flight_max_bytes", with = "column::bytes")]
    pub in_flight_max: Bytes,
    /// Mean payload in flight at the sender: the window that was in use, whatever was advertised.
    /// By Little's law it is goodput times round-trip time.
    #[serde(rename = "in_flight_mean_bytes", with = "column::bytes_optional")]
    pub in_flight_mean: Option<Bytes>,
    /// Mean of what had been received and not read, all connections together.
    #[serde(rename = "receive_queue_mean_bytes", with = "column::bytes_optional")]
    pub receive_queue_mean: Option<Bytes>,
    /// The most of that.
    #[serde(rename = "receive_queue_max_bytes", with = "column::bytes_optional")]
    pub receive_queue_max: Option<Bytes>,
    /// Mean of the memory that it took, with the kernel's overhead.
    #[serde(rename = "receive_memory_mean_bytes", with = "column::bytes_optional")]
    pub receive_memory_mean: Option<Bytes>,
    /// The most of that.
    #[serde(rename = "receive_memory_max_bytes", with = "column::bytes_optional")]
    pub receive_memory_max: Option<Bytes>,
    /// Payload that the receiving application received.
    #[serde(rename = "body_bytes", with = "column::bytes")]
    pub body: Bytes,
    /// Time from the response's first byte to its last.
    #[serde(rename = "duration_us", with = "column::micros")]
    pub duration: Duration,
    /// Whether the whole response arrived; otherwise its time ran out.
    pub complete: bool,
    /// Payload over that time.
    #[serde(rename = "goodput_bps", with = "column::rate")]
    pub goodput: Rate,
    /// The same over the second half of the bytes: without slow start and the growth of the
    /// buffers.
    #[serde(rename = "steady_goodput_bps", with = "column::rate_optional")]
    pub steady_goodput: Option<Rate>,
    /// Whole Ethernet frames, both ways together, over the connection's time: including headers,
    /// ACKs and retransmissions. What capinfos calls the data byte rate, from the capture at the
    /// receiver.
    #[serde(rename = "frames_bps", with = "column::rate_optional")]
    pub frames: Option<Rate>,
    /// The steady goodput that the laws predict without loss: in virtual time over netem from the
    /// scenario alone, else for the window seen.
    #[serde(rename = "law_bps", with = "column::rate_optional")]
    pub law: Option<Rate>,
    /// Which term of the law that is: `receive_window`, `send_buffer`, `congestion_window` or
    /// `link`.
    #[serde(with = "limit::term::optional")]
    pub law_term: Option<Limit>,
    /// Packets, both ways.
    pub packets: u64,
    /// Segments that the sender sent again, by the capture at its edge.
    pub retransmission: u64,
    /// Duplicate ACKs.
    pub duplicate_ack: u64,
    /// Segments that arrived out of order.
    pub out_of_order: u64,
    /// Segments that filled the receive window to its edge.
    pub window_full: u64,
    /// ACKs with a window of zero.
    pub zero_window: u64,
    /// Packets that the link dropped because its queue was full.
    pub queue_dropped: u64,
    /// Packets that the link lost at random.
    pub lost: u64,
    /// What limited the transfer for the largest share of its time, from the capture at the sender:
    /// the columns `limited_by` and `limit_cause` (`slow_start` or `loss`, for a congestion
    /// window).
    #[serde(flatten, with = "limited::by_capture")]
    pub limited_by: Limit,
    /// That share, 0 to 1.
    pub limit_share: f64,
    /// How often verdicts like this one are right, 0 to 1; absent where there is none.
    pub limit_confidence: Option<f64>,
    /// The answer in a few words: the limit, or `probably A or B` where it is no more than a guess.
    pub headline: Option<String>,
    /// Every limit and its share, largest first.
    pub limits: Vec<Candidate>,
    /// What limited it, in a sentence with the numbers, and what would change it.
    pub finding: Option<String>,
    /// The same question answered from the sockets' TCP_INFO: columns `limited_by_sockets`,
    /// `limit_cause_sockets`.
    #[serde(flatten, with = "limited::by_sockets")]
    pub limited_by_sockets: Option<Limit>,
    /// The share of that.
    pub limit_share_sockets: Option<f64>,
    /// curl's time_connect.
    #[serde(rename = "connect_us", with = "column::micros_optional")]
    pub connect: Option<Duration>,
    /// curl's time_starttransfer.
    #[serde(rename = "starttransfer_us", with = "column::micros_optional")]
    pub starttransfer: Option<Duration>,
    /// curl's time_total.
    #[serde(rename = "total_us", with = "column::micros_optional")]
    pub total: Option<Duration>,
    /// Half of the packets left the link this much late or less.
    #[serde(rename = "link_late_p50_us", with = "column::micros")]
    pub link_late_p50: Duration,
    /// 99 % of the packets left the link this much late or less.
    #[serde(rename = "link_late_p99_us", with = "column::micros")]
    pub link_late_p99: Duration,
    /// The latest packet.
    #[serde(rename = "link_late_max_us", with = "column::micros")]
    pub link_late_max: Duration,
    /// Whether the machine was quiet enough for the link to keep its times. If not, the figures
    /// depend on the machine as well.
    pub quiet: bool,
    /// What a reader of this row must know: why it was not quiet, and which settings could not be
    /// applied.
    pub notes: Vec<String>,
    /// Goodput that somebody else measured in the same experiment.
    #[serde(rename = "reference_goodput_bps", with = "column::rate_optional")]
    pub reference_goodput: Option<Rate>,
    /// The same if they counted whole frames: compare it with [`Self::frames`].
    #[serde(rename = "reference_frames_bps", with = "column::rate_optional")]
    pub reference_frames: Option<Rate>,
    /// Ours divided by theirs. If our run was cut short, its steady goodput is used.
    pub reference_ratio: Option<f64>,
    /// What they say about it.
    pub reference_note: Option<String>,
    /// If this row repeats another one to show why that differs from the reference: what was
    /// changed.
    pub reference_cause: Option<String>,
    /// Why the run failed, in one line; absent if it did not.
    pub error: Option<String>,
}

impl Row {
    /// Whether the run failed: then the row has no figures.
    pub fn is_failed(&self) -> bool {
        self.error.is_some()
    }
}
