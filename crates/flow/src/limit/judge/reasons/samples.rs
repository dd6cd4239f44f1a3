//! What the further traits of samples mean, in their order.

use super::words::Form::{Count, Holds, Percent, QueueingDelay, Times};
use super::words::{Meaning, Subject};

pub static MEANINGS: [Meaning; 42] = [
    Meaning::new(
        "rate_of_p95",
        Subject::Rate,
        Percent,
        "the mean rate is {} of the 95th percentile of the intervals'",
    ),
    Meaning::new(
        "rate_p10_of_p90",
        Subject::Rate,
        Percent,
        "the 10th percentile of the intervals' rates is {} of the 90th",
    ),
    Meaning::new(
        "rate_variation",
        Subject::Rate,
        Percent,
        "over four intervals the rate varies by {} of its mean (standard deviation)",
    ),
    Meaning::new(
        "wide_rate_p10_of_p90",
        Subject::Rate,
        Percent,
        "over four intervals the 10th percentile of the rates is {} of the 90th",
    ),
    Meaning::new(
        "rtt_p50_of_path",
        Subject::Queue,
        QueueingDelay,
        "the median queueing delay is {}",
    )
    .or("no round trip was measured"),
    Meaning::new(
        "rtt_p10_of_path",
        Subject::Queue,
        QueueingDelay,
        "the 10th percentile of the queueing delay is {}",
    ),
    Meaning::new(
        "rtt_p90_of_path",
        Subject::Queue,
        QueueingDelay,
        "the 90th percentile of the queueing delay is {}",
    ),
    Meaning::new(
        "late_rate_of_early",
        Subject::Course,
        Times,
        "the second half of the intervals was {} times as fast as the first",
    ),
    Meaning::new("intervals_log2", Subject::Length, Count, "the transfer has {} intervals"),
    Meaning::new("retransmissions", Subject::Loss, Percent, "{} of the segments were sent again"),
    Meaning::new(
        "intervals_with_retransmissions",
        Subject::Loss,
        Percent,
        "something was sent again in {} of the intervals",
    ),
    Meaning::new(
        "retransmissions_variation",
        Subject::LossPattern,
        Times,
        "what was sent again by intervals varies by {} of its mean (standard deviation)",
    )
    .or("nothing was sent again"),
    Meaning::new(
        "in_flight_by_root_loss",
        Subject::Loss,
        Times,
        "segments in flight times the root of the loss rate are {} (loss alone keeps it near 1.2)",
    ),
    Meaning::new(
        "rtt_before_loss_of_p50",
        Subject::LossPattern,
        Times,
        "the round trip before a loss is {} times the median",
    )
    .or("nothing was sent again"),
    Meaning::new(
        "rate_variation_between_losses",
        Subject::LossPattern,
        Percent,
        "from one loss to the next the rate varies by {} of its mean (standard deviation)",
    )
    .or("there were not four episodes of loss to compare"),
    Meaning::new(
        "repairing",
        Subject::Loss,
        Percent,
        "congestion control was repairing loss in {} of the samples",
    ),
    Meaning::new(
        "lost_of_cwnd",
        Subject::Loss,
        Percent,
        "segments held for lost are {} of the congestion window",
    ),
    Meaning::new(
        "busy",
        Subject::Idle,
        Percent,
        "the kernel counts the sender busy for {} of the time",
    ),
    Meaning::new(
        "rwnd_limited",
        Subject::Window,
        Percent,
        "the kernel counts the receive window as the limit for {} of the time",
    ),
    Meaning::new(
        "sndbuf_limited",
        Subject::Buffer,
        Percent,
        "the kernel counts the send buffer as the limit for {} of the time",
    ),
    Meaning::new(
        "rate_of_pacing_rate",
        Subject::Pace,
        Percent,
        "the rate is {} of the pacing rate",
    ),
    Meaning::new(
        "delivery_rate_of_rate",
        Subject::Pace,
        Times,
        "the kernel's delivery rate is {} times the mean rate",
    ),
    Meaning::new(
        "delivery_app_limited",
        Subject::Writes,
        Percent,
        "the kernel marks the delivery rate as limited by the application in {} of the samples",
    ),
    Meaning::new(
        "nothing_to_send",
        Subject::Writes,
        Percent,
        "there was nothing unsent in {} of the samples",
    ),
    Meaning::new(
        "unsent_of_send_buffer",
        Subject::Buffer,
        Percent,
        "data not yet sent fills {} of the send buffer",
    ),
    Meaning::new(
        "queued_of_send_buffer",
        Subject::Buffer,
        Percent,
        "the send buffer is filled to {} in the mean",
    )
    .or("the socket's memory was not sampled"),
    Meaning::new(
        "queued_p80_of_send_buffer",
        Subject::Buffer,
        Percent,
        "the send buffer is filled to {} or more for a fifth of the time",
    )
    .or("the socket's memory was not sampled"),
    Meaning::new(
        "in_flight_of_cwnd",
        Subject::Congestion,
        Percent,
        "the data in flight fills {} of the congestion window in the mean",
    ),
    Meaning::new(
        "in_flight_p90_of_cwnd",
        Subject::Congestion,
        Percent,
        "the data in flight fills {} or more of the congestion window in one of ten samples",
    ),
    Meaning::new(
        "in_flight_of_window",
        Subject::Window,
        Percent,
        "the data in flight fills {} of the receive window in the mean",
    ),
    Meaning::new(
        "window_p50_of_widest",
        Subject::WindowCourse,
        Percent,
        "the median window is {} of the widest",
    )
    .or("the receive window is not known"),
    Meaning::new(
        "window_p10_of_p50",
        Subject::WindowCourse,
        Percent,
        "the 10th percentile of the windows is {} of the median",
    )
    .or("the receive window is not known"),
    Meaning::new(
        "cwnd_p10_of_p90",
        Subject::Congestion,
        Percent,
        "the 10th percentile of the congestion windows is {} of the 90th",
    ),
    Meaning::new(
        "cwnd_p50_of_p98",
        Subject::Congestion,
        Percent,
        "the median congestion window is {} of the 98th percentile",
    ),
    Meaning::new(
        "cwnd_segments_log2",
        Subject::Congestion,
        Count,
        "the median congestion window is {} segments",
    ),
    Meaning::new(
        "ssthresh_of_cwnd",
        Subject::Congestion,
        Times,
        "the slow start threshold is {} times the congestion window",
    )
    .or("slow start has not ended"),
    Meaning::new(
        "in_flight_p50_of_p95",
        Subject::InFlightCourse,
        Percent,
        "the median of the data in flight is {} of the 95th percentile",
    ),
    Meaning::new(
        "in_flight_p10_of_p90",
        Subject::InFlightCourse,
        Percent,
        "the 10th percentile of the data in flight is {} of the 90th",
    ),
    Meaning::new(
        "in_flight_of_rate_by_rtt",
        Subject::Queue,
        Times,
        "the data in flight is {} times the rate by the path's round trip",
    )
    .or("the path's round trip is not known"),
    Meaning::new(
        "receiver_sampled",
        Subject::Start,
        Holds("the receiver's socket was not sampled"),
        "the receiver's socket was sampled",
    ),
    Meaning::new(
        "receive_buffer_fill",
        Subject::Unread,
        Percent,
        "the receive buffer is filled to {} in the mean",
    ),
    Meaning::new(
        "unread_of_window",
        Subject::Unread,
        Percent,
        "unread data is {} of unread data and the window together",
    ),
];
