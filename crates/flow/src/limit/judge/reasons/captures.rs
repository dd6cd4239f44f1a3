//! What the further traits of a capture mean, in their order.

use super::shared_meanings::{
    IN_FLIGHT_BY_ROOT_LOSS, IN_FLIGHT_OF_RATE_BY_RTT, INTERVALS_LOG2,
    INTERVALS_WITH_RETRANSMISSIONS, LATE_RATE_OF_EARLY, RATE_OF_P95, RATE_VARIATION_BETWEEN_LOSSES,
    RETRANSMISSIONS, RETRANSMISSIONS_VARIATION, RTT_P10_OF_PATH, RTT_P50_OF_PATH, RTT_P90_OF_PATH,
    WINDOW_P10_OF_P50, WINDOW_P50_OF_WIDEST,
};
use super::words::Form::{Count, Holds, Percent, Times};
use super::words::{Meaning, Subject};

pub static MEANINGS: [Meaning; 39] = [
    Meaning::new(
        "rate_of_queued_rate",
        Subject::Rate,
        Percent,
        "the mean rate is {} of what passed while a queue stood",
    )
    .or("no queue stood for three round trips"),
    RATE_OF_P95,
    Meaning::new(
        "rate_p98_of_mean",
        Subject::Rate,
        Times,
        "the 98th percentile of the intervals' rates is {} times the mean",
    ),
    Meaning::new(
        "rate_of_stretch_rate",
        Subject::Pace,
        Percent,
        "the mean rate is {} of the rate at a stretch",
    )
    .or("no stretch was long enough to be timed"),
    Meaning::new(
        "stretch_rate_p90_of_p50",
        Subject::Pace,
        Times,
        "the 90th percentile of the rates at a stretch is {} times their median",
    ),
    RTT_P50_OF_PATH,
    RTT_P10_OF_PATH,
    RTT_P90_OF_PATH,
    Meaning::new(
        "rate_variation",
        Subject::Rate,
        Percent,
        "over nine intervals the rate varies by {} of its mean (standard deviation)",
    ),
    Meaning::new(
        "rate_p10_of_p90",
        Subject::Rate,
        Percent,
        "over nine intervals the 10th percentile of the rates is {} of the 90th",
    ),
    RETRANSMISSIONS,
    INTERVALS_WITH_RETRANSMISSIONS,
    RETRANSMISSIONS_VARIATION,
    Meaning::new(
        "intervals_after_timeout",
        Subject::Timer,
        Percent,
        "a silence of 200 ms or more ended with a repair in {} of the intervals",
    ),
    Meaning::new(
        "rtt_before_loss_of_p50",
        Subject::LossPattern,
        Times,
        "the round trip before a loss is {} times the median",
    )
    .or("no round trip was measured before a loss"),
    IN_FLIGHT_BY_ROOT_LOSS,
    RATE_VARIATION_BETWEEN_LOSSES,
    Meaning::new(
        "in_flight_of_window",
        Subject::Window,
        Percent,
        "the data in flight fills {} of the receive window in the mean",
    )
    .or("the receive window is not known"),
    Meaning::new(
        "in_flight_p90_of_window",
        Subject::Window,
        Percent,
        "the 90th percentile of the data in flight is {} of the median window",
    )
    .or("the receive window is not known"),
    Meaning::new(
        "window_full",
        Subject::Window,
        Percent,
        "the next segment did not fit into the window for {} of the time",
    ),
    WINDOW_P50_OF_WIDEST,
    WINDOW_P10_OF_P50,
    Meaning::new(
        "unread_of_acknowledged",
        Subject::Unread,
        Percent,
        "the window closed by {} of what was acknowledged",
    ),
    IN_FLIGHT_OF_RATE_BY_RTT,
    Meaning::new(
        "in_flight_of_p90",
        Subject::InFlightCourse,
        Percent,
        "the mean of the data in flight is {} of its 90th percentile",
    ),
    Meaning::new("idle", Subject::Idle, Percent, "nothing was in flight for {} of the time"),
    Meaning::new(
        "intervals_with_idle",
        Subject::Idle,
        Percent,
        "in {} of the intervals nothing was in flight for a tenth of it or more",
    ),
    Meaning::new(
        "unprompted",
        Subject::Writes,
        Percent,
        "{} of the data left without an ACK that made room",
    ),
    Meaning::new(
        "short_segments",
        Subject::Writes,
        Percent,
        "{} of the new segments were not full",
    ),
    Meaning::new("acks_by_segments", Subject::Acks, Times, "there were {} ACKs for each segment"),
    Meaning::new(
        "stretch_events",
        Subject::Acks,
        Times,
        "{} ACKs or segments an interval came at a stretch",
    ),
    Meaning::new(
        "in_flight_p20_of_p80",
        Subject::InFlightCourse,
        Percent,
        "over the intervals the 20th percentile of the mean in flight is {} of the 80th",
    ),
    Meaning::new(
        "in_flight_p50_of_p95",
        Subject::InFlightCourse,
        Percent,
        "the median of the most in flight is {} of the 95th percentile",
    ),
    Meaning::new(
        "intervals_at_most_in_flight",
        Subject::InFlightCourse,
        Percent,
        "in {} of the intervals the data in flight came to within 5 % of its most",
    ),
    Meaning::new(
        "in_flight_segments_log2",
        Subject::InFlight,
        Count,
        "the 90th percentile of the data in flight is {} segments",
    ),
    INTERVALS_LOG2,
    LATE_RATE_OF_EARLY,
    Meaning::new(
        "late_in_flight_of_early",
        Subject::Course,
        Times,
        "the second half of the intervals had {} times as much in flight as the first",
    ),
    Meaning::new(
        "handshake_seen",
        Subject::Start,
        Holds("the handshake was not captured"),
        "the handshake was captured",
    ),
];
