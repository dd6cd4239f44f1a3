//! What the further traits of samples mean, in their order.

use super::shared_meanings::{
    IN_FLIGHT_BY_ROOT_LOSS, IN_FLIGHT_OF_RATE_BY_RTT, INTERVALS_LOG2,
    INTERVALS_WITH_RETRANSMISSIONS, LATE_RATE_OF_EARLY, RATE_OF_P95, RATE_P10_OF_P90,
    RATE_VARIATION, RATE_VARIATION_BETWEEN_LOSSES, RECEIVE_BUFFER_FILL, RETRANSMISSIONS,
    RETRANSMISSIONS_VARIATION, RTT_P10_OF_PATH, RTT_P50_OF_PATH, RTT_P90_OF_PATH, UNREAD_OF_WINDOW,
    WIDE_RATE_P10_OF_P90, WINDOW_P10_OF_P50, WINDOW_P50_OF_WIDEST,
};
use super::words::Form::{Count, Holds, Percent, Times};
use super::words::{Meaning, Subject};

pub static MEANINGS: [Meaning; 42] = [
    RATE_OF_P95,
    RATE_P10_OF_P90,
    RATE_VARIATION,
    WIDE_RATE_P10_OF_P90,
    RTT_P50_OF_PATH,
    RTT_P10_OF_PATH,
    RTT_P90_OF_PATH,
    LATE_RATE_OF_EARLY,
    INTERVALS_LOG2,
    RETRANSMISSIONS,
    INTERVALS_WITH_RETRANSMISSIONS,
    RETRANSMISSIONS_VARIATION,
    IN_FLIGHT_BY_ROOT_LOSS,
    Meaning::new(
        "rtt_before_loss_of_p50",
        Subject::LossPattern,
        Times,
        "the round trip before a loss is {} times the median",
    )
    .or("nothing was sent again"),
    RATE_VARIATION_BETWEEN_LOSSES,
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
    WINDOW_P50_OF_WIDEST,
    WINDOW_P10_OF_P50,
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
    IN_FLIGHT_OF_RATE_BY_RTT,
    Meaning::new(
        "receiver_sampled",
        Subject::Start,
        Holds("the receiver's socket was not sampled"),
        "the receiver's socket was sampled",
    ),
    RECEIVE_BUFFER_FILL,
    UNREAD_OF_WINDOW,
];
