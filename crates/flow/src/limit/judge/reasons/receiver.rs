//! What the further traits of a receiver's samples mean, in their order.

use super::shared_meanings::{
    INTERVALS_LOG2, LATE_RATE_OF_EARLY, RATE_OF_P95, RATE_P10_OF_P90, RATE_VARIATION,
    RATE_VARIATION_BETWEEN_LOSSES, RECEIVE_BUFFER_FILL, UNREAD_OF_WINDOW, WIDE_RATE_P10_OF_P90,
    WINDOW_P10_OF_P50, WINDOW_P50_OF_WIDEST,
};
use super::words::Form::{Count, Percent, QueueingDelay, Times};
use super::words::{Meaning, Subject};

pub static MEANINGS: [Meaning; 38] = [
    RATE_OF_P95,
    Meaning::new(
        "rate_p50_of_p98",
        Subject::Rate,
        Percent,
        "the median rate of the intervals is {} of the 98th percentile",
    ),
    RATE_P10_OF_P90,
    RATE_VARIATION,
    WIDE_RATE_P10_OF_P90,
    LATE_RATE_OF_EARLY,
    INTERVALS_LOG2,
    Meaning::new(
        "rcv_rtt_p50_of_path",
        Subject::Queue,
        QueueingDelay,
        "the median queueing delay, as the receiver measures it, is {}",
    )
    .or("no round trip was measured"),
    Meaning::new(
        "rcv_rtt_p10_of_path",
        Subject::Queue,
        QueueingDelay,
        "the 10th percentile of the queueing delay, as the receiver measures it, is {}",
    ),
    Meaning::new(
        "rcv_rtt_p90_of_path",
        Subject::Queue,
        QueueingDelay,
        "the 90th percentile of the queueing delay, as the receiver measures it, is {}",
    ),
    Meaning::new(
        "segments_a_round_trip_log2",
        Subject::InFlight,
        Count,
        "a round trip carries {} segments",
    ),
    Meaning::new("path_ms_log2", Subject::Length, Count, "the path's round trip is {} ms"),
    Meaning::new("out_of_order", Subject::Loss, Percent, "{} of the segments came out of order"),
    Meaning::new(
        "intervals_out_of_order",
        Subject::Loss,
        Percent,
        "something came out of order in {} of the intervals",
    ),
    Meaning::new(
        "out_of_order_variation",
        Subject::LossPattern,
        Times,
        "what came out of order by intervals varies by {} of its mean (standard deviation)",
    )
    .or("nothing came out of order"),
    RATE_VARIATION_BETWEEN_LOSSES,
    Meaning::new(
        "rcv_rtt_before_loss_of_p50",
        Subject::LossPattern,
        Times,
        "the round trip before a loss is {} times the median",
    )
    .or("nothing came out of order"),
    Meaning::new(
        "out_of_order_at_once",
        Subject::LossPattern,
        Percent,
        "{} of what came out of order did so in one interval",
    )
    .or("nothing came out of order"),
    Meaning::new("pauses", Subject::Idle, Percent, "nothing came for {} of the time, in pauses"),
    Meaning::new(
        "silence",
        Subject::Idle,
        Percent,
        "nothing came between samples for {} of the time",
    ),
    Meaning::new("burst_period_of_path", Subject::Pace, Times, "bursts come every {} round trips")
        .or("data came without bursts"),
    Meaning::new(
        "burst_period_p10_of_p90",
        Subject::Pace,
        Percent,
        "the 10th percentile of the times from burst to burst is {} of the 90th",
    )
    .or("data came without bursts"),
    Meaning::new(
        "segment_size_p50",
        Subject::Writes,
        Percent,
        "the median segment is {} of a full one",
    ),
    Meaning::new(
        "segment_size_p10",
        Subject::Writes,
        Percent,
        "the 10th percentile of the segments' sizes is {} of a full one",
    ),
    Meaning::new(
        "sampled_rate_p50_of_p95",
        Subject::Pace,
        Percent,
        "from sample to sample, the median rate is {} of the 95th percentile",
    ),
    Meaning::new(
        "round_trip_variation",
        Subject::InFlightCourse,
        Percent,
        "what a round trip carries varies by {} of its mean (standard deviation)",
    ),
    Meaning::new(
        "round_trip_p50_of_p98",
        Subject::InFlightCourse,
        Percent,
        "the median of what round trips carry is {} of the 98th percentile",
    ),
    Meaning::new(
        "round_trip_p10_of_p90",
        Subject::InFlightCourse,
        Percent,
        "the 10th percentile of what round trips carry is {} of the 90th",
    ),
    Meaning::new(
        "carried_of_window",
        Subject::Window,
        Percent,
        "a round trip carries {} of the median window",
    ),
    Meaning::new(
        "carried_of_window_p90",
        Subject::Window,
        Percent,
        "a round trip carries {} of the 90th percentile of the windows",
    ),
    Meaning::new(
        "carried_with_queue_of_window",
        Subject::Window,
        Percent,
        "a round trip, with its queueing delay, carries {} of the window in the median",
    ),
    Meaning::new(
        "carried_with_queue_p90_of_window",
        Subject::Window,
        Percent,
        "a round trip, with its queueing delay, carries {} of the window in the 90th percentile",
    ),
    WINDOW_P50_OF_WIDEST,
    WINDOW_P10_OF_P50,
    Meaning::new(
        "rcv_space_of_window",
        Subject::WindowCourse,
        Percent,
        "what the application reads in a round trip is {} of the window",
    )
    .or("the receive window is not known"),
    RECEIVE_BUFFER_FILL,
    UNREAD_OF_WINDOW,
    Meaning::new("unread", Subject::Unread, Percent, "there was unread data in {} of the samples"),
];
