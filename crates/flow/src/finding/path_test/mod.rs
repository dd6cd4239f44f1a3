//! A test between two hosts that both run this program: what the path carries, and what limited
//! each run.
//!
//! How to think about it: a run is some connections that carry data one way for some seconds. Both
//! hosts sample the sockets, count what the application read, and say how much of a core the
//! threads took that moved it. The shells gather that as a [`PathTestRun`];
//! [`PathTestRun::measure`] turns it into a [`Measured`] path. The rate is the receiver's: what a
//! sender wrote may still be in a buffer. Round trips and retransmissions are the sender's, because
//! only it sees them. The diagnosis is of the connection that carried most, by the samples of both
//! ends.
//!
//! Nothing but this program sends and reads here, and it always has data and always reads. So if a
//! socket waited for its application, the program or its machine was too slow, and not the path:
//! [`Measured::machine`] says so.
//!
//! [`Rfc6349`] are the metrics of RFC 6349 for the same run.

mod loss;
mod measure;
mod rfc6349;
mod seconds;

pub use loss::Loss;
pub use rfc6349::Rfc6349;

use crate::diagnosis::live::Answer;
use fullpipe_model::limit::{End, Limit};
use fullpipe_model::observe::Sample;
use fullpipe_model::tune::HostSettings;
use fullpipe_model::units::{Bytes, Duration, Rate, Window, column};

/// One end's view of a connection.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Seen {
    /// Samples of its socket, in order of time.
    pub samples: Vec<Sample>,
    /// The share of one core that the thread took which wrote or read the data, 0 to 1.
    pub cpu: f64,
}

/// A connection of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TestConnection {
    /// What its receiver's application read.
    pub received: Bytes,
    /// From its start to the last data that was read.
    pub time: Duration,
    /// The sender's view.
    pub sender: Seen,
    /// The receiver's view, on the sender's clock.
    pub receiver: Seen,
}

/// What both hosts saw of one run.
#[derive(Debug, Clone)]
pub struct PathTestRun<'a> {
    /// Which end of the data this host was.
    pub role: End,
    /// Its connections.
    pub connections: &'a [TestConnection],
    /// The least round trip that was seen before the load.
    pub idle_rtt: Option<Duration>,
    /// The settings of the sender's host.
    pub sender_settings: &'a HostSettings,
    /// The settings of the receiver's host.
    pub receiver_settings: &'a HostSettings,
}

/// That a machine or this program was the limit, and not the path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MachineLimit {
    /// The end whose machine it was.
    pub end: End,
    /// The share of one core that its busiest thread took, 0 to 1.
    pub cpu: f64,
    /// What shows it.
    pub by: OwnLimit,
}

/// What shows that a test's own machine was its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnLimit {
    /// The socket waited for this program to write.
    DidNotWrite,
    /// The socket waited for this program to read.
    DidNotRead,
    /// A thread that moves data had no more time.
    BusyThread,
}

/// What one connection of a run did.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct MeasuredConnection {
    /// What its receiver read.
    #[serde(rename = "bytes", with = "column::bytes")]
    pub received: Bytes,
    /// Its mean goodput.
    #[serde(rename = "goodput_bps", with = "column::rate")]
    pub goodput: Rate,
    /// Segments that its sender sent again.
    pub retransmitted_segments: u64,
    /// What limited it.
    #[serde(flatten)]
    pub limit: Limit,
    /// The share of its time, 0 to 1.
    pub share: f64,
}

/// The path as one run measured it.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Measured {
    /// Which end of the data this host was.
    pub role: End,
    /// What the receivers read, all connections together.
    #[serde(rename = "bytes", with = "column::bytes")]
    pub received: Bytes,
    /// From the start to the last data.
    #[serde(rename = "time_us", with = "column::micros")]
    pub time: Duration,
    /// Mean goodput of that time, slow start included.
    #[serde(rename = "goodput_bps", with = "column::rate")]
    pub goodput: Rate,
    /// Goodput of the second half of the time: without slow start.
    #[serde(rename = "steady_goodput_bps", with = "column::rate")]
    pub steady: Rate,
    /// The rate of the bottleneck in IP packets, where the path was what limited the run.
    #[serde(rename = "bottleneck_bps", with = "column::rate_optional")]
    pub bottleneck: Option<Rate>,
    /// The least round trip: before the load or in it.
    #[serde(rename = "base_rtt_us", with = "column::micros_optional")]
    pub base_rtt: Option<Duration>,
    /// The mean round trip under load: the mean of one value for each second.
    #[serde(rename = "loaded_rtt_us", with = "column::micros_optional")]
    pub loaded_rtt: Option<Duration>,
    /// The longest round trip under load.
    #[serde(rename = "longest_rtt_us", with = "column::micros_optional")]
    pub longest_rtt: Option<Duration>,
    /// By how much the mean round trip grew under load: the time spent in queues.
    #[serde(rename = "queue_us", with = "column::micros_optional")]
    pub queue: Option<Duration>,
    /// The path's MTU as the sender's kernel knows it.
    #[serde(rename = "mtu_bytes", with = "column::bytes_optional")]
    pub mtu: Option<Bytes>,
    /// The data in a full segment.
    #[serde(rename = "mss_bytes", with = "column::bytes_optional")]
    pub mss: Option<Bytes>,
    /// The sender's congestion control.
    pub congestion_control: Option<String>,
    /// The largest window that a receiver advertised.
    #[serde(rename = "window_bytes", with = "column::window_optional")]
    pub window: Option<Window>,
    /// Segments that had to be sent again.
    pub loss: Option<Loss>,
    /// The rate of a policer, where the run looks like one.
    #[serde(rename = "policer_bps", with = "column::rate_optional")]
    pub policer: Option<Rate>,
    /// Whether a machine was the limit, and not the path.
    pub machine: Option<MachineLimit>,
    /// What limited the connection that carried most; `None` if it was too short to tell.
    pub answer: Option<Answer>,
    /// Each connection.
    pub connections: Vec<MeasuredConnection>,
}

#[cfg(test)]
mod tests;
