//! Numbers that more than one kind of evidence has, with the same meaning.

use super::words::Form::{Count, Percent, QueueingDelay, Times};
use super::words::{Meaning, Subject};

pub const RATE_OF_P95: Meaning = Meaning::new(
    "rate_of_p95",
    Subject::Rate,
    Percent,
    "the mean rate is {} of the 95th percentile of the intervals'",
);
pub const RTT_P50_OF_PATH: Meaning = Meaning::new(
    "rtt_p50_of_path",
    Subject::Queue,
    QueueingDelay,
    "the median queueing delay is {}",
)
.or("no round trip was measured");
pub const RTT_P10_OF_PATH: Meaning = Meaning::new(
    "rtt_p10_of_path",
    Subject::Queue,
    QueueingDelay,
    "the 10th percentile of the queueing delay is {}",
);
pub const RTT_P90_OF_PATH: Meaning = Meaning::new(
    "rtt_p90_of_path",
    Subject::Queue,
    QueueingDelay,
    "the 90th percentile of the queueing delay is {}",
);
pub const RETRANSMISSIONS: Meaning =
    Meaning::new("retransmissions", Subject::Loss, Percent, "{} of the segments were sent again");
pub const INTERVALS_WITH_RETRANSMISSIONS: Meaning = Meaning::new(
    "intervals_with_retransmissions",
    Subject::Loss,
    Percent,
    "something was sent again in {} of the intervals",
);
pub const RETRANSMISSIONS_VARIATION: Meaning = Meaning::new(
    "retransmissions_variation",
    Subject::LossPattern,
    Times,
    "what was sent again by intervals varies by {} of its mean (standard deviation)",
)
.or("nothing was sent again");
pub const IN_FLIGHT_BY_ROOT_LOSS: Meaning = Meaning::new(
    "in_flight_by_root_loss",
    Subject::Loss,
    Times,
    "segments in flight times the root of the loss rate are {} (loss alone keeps it near 1.2)",
);
pub const RATE_VARIATION_BETWEEN_LOSSES: Meaning = Meaning::new(
    "rate_variation_between_losses",
    Subject::LossPattern,
    Percent,
    "from one loss to the next the rate varies by {} of its mean (standard deviation)",
)
.or("there were not four episodes of loss to compare");
pub const WINDOW_P50_OF_WIDEST: Meaning = Meaning::new(
    "window_p50_of_widest",
    Subject::WindowCourse,
    Percent,
    "the median window is {} of the widest",
)
.or("the receive window is not known");
pub const WINDOW_P10_OF_P50: Meaning = Meaning::new(
    "window_p10_of_p50",
    Subject::WindowCourse,
    Percent,
    "the 10th percentile of the windows is {} of the median",
)
.or("the receive window is not known");
pub const IN_FLIGHT_OF_RATE_BY_RTT: Meaning = Meaning::new(
    "in_flight_of_rate_by_rtt",
    Subject::Queue,
    Times,
    "the data in flight is {} times the rate by the path's round trip",
)
.or("the path's round trip is not known");
pub const INTERVALS_LOG2: Meaning =
    Meaning::new("intervals_log2", Subject::Length, Count, "the transfer has {} intervals");
pub const LATE_RATE_OF_EARLY: Meaning = Meaning::new(
    "late_rate_of_early",
    Subject::Course,
    Times,
    "the second half of the intervals was {} times as fast as the first",
);
pub const RATE_P10_OF_P90: Meaning = Meaning::new(
    "rate_p10_of_p90",
    Subject::Rate,
    Percent,
    "the 10th percentile of the intervals' rates is {} of the 90th",
);
pub const RATE_VARIATION: Meaning = Meaning::new(
    "rate_variation",
    Subject::Rate,
    Percent,
    "over four intervals the rate varies by {} of its mean (standard deviation)",
);
pub const WIDE_RATE_P10_OF_P90: Meaning = Meaning::new(
    "wide_rate_p10_of_p90",
    Subject::Rate,
    Percent,
    "over four intervals the 10th percentile of the rates is {} of the 90th",
);
pub const RECEIVE_BUFFER_FILL: Meaning = Meaning::new(
    "receive_buffer_fill",
    Subject::Unread,
    Percent,
    "the receive buffer is filled to {} in the mean",
);
pub const UNREAD_OF_WINDOW: Meaning = Meaning::new(
    "unread_of_window",
    Subject::Unread,
    Percent,
    "unread data is {} of unread data and the window together",
);
