//! What the first traits mean, of captures and of samples: the fraction of the time that the rules
//! give to each limit.

use super::words::Form::Percent;
use super::words::{Meaning, Subject};

pub static MEANINGS: [Meaning; 7] = [
    Meaning::new(
        "rules_receive_window",
        Subject::Rules,
        Percent,
        "interval by interval the rules name the receive window for {} of the time",
    ),
    Meaning::new(
        "rules_receiver_application",
        Subject::Rules,
        Percent,
        "interval by interval the rules name the receiver's application for {} of the time",
    ),
    Meaning::new(
        "rules_send_buffer",
        Subject::Rules,
        Percent,
        "interval by interval the rules name the send buffer for {} of the time",
    ),
    Meaning::new(
        "rules_sender_application",
        Subject::Rules,
        Percent,
        "interval by interval the rules name the sender's application for {} of the time",
    ),
    Meaning::new(
        "rules_congestion_window_slow_start",
        Subject::Rules,
        Percent,
        "interval by interval the rules name slow start for {} of the time",
    ),
    Meaning::new(
        "rules_congestion_window_loss",
        Subject::Rules,
        Percent,
        "interval by interval the rules name loss for {} of the time",
    ),
    Meaning::new(
        "rules_link",
        Subject::Rules,
        Percent,
        "interval by interval the rules name the link for {} of the time",
    ),
];
