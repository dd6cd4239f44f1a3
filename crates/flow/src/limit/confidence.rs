//! How often a verdict is right, estimated from how often verdicts of its class were right where
//! the limit was known.
//!
//! A verdict's class depends on what it says, on what was seen of the transfer, and on whether the
//! limit that it names held for most of the time. The figure of a class is the fraction of its
//! verdicts that were right on scenarios whose limit is built in. These are the scenarios of
//! `fullpipe lab generate --seed 1` and `--seed 2`. They were captured at both ends, as they passed
//! the wire and as offloads show them, whole and without the first 400 packets; for sockets, their
//! samples were used. Four verdicts with the mean of the table are added to each class, so that a
//! class of few verdicts does not look certain. Seeds from 9000 on are held out and were not used.

use fullpipe_model::limit::{Cause, Limit};

/// What kind of evidence a verdict rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Packets.
    Capture,
    /// Samples of the sender's socket, and of the receiver's where there are any.
    Samples,
    /// Samples of the receiver's socket alone.
    ReceiverSamples,
}

/// Which part of a transfer was seen.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Coverage {
    /// It was seen from its start.
    FromStart,
    /// Its handshake was not captured, and the capture was taken at the sender.
    MiddleAtSender,
    /// Its handshake was not captured, and the capture was not taken at the sender, or its place is
    /// not known.
    MiddleElsewhere,
}

/// The confidence in what the packets prove: a link by a standing queue, loss by timeouts, a window
/// above TCP by its grants.
pub(super) const PROVEN: f64 = 0.97;
/// A verdict with less confidence is no more than a guess: at least every second one is wrong.
pub const SURE_FROM: f64 = 0.5;
/// A limit that held for this fraction of the time held for most of it.
const MOST_OF_TIME: f64 = 0.75;

/// The fraction of verdicts about short transfers that are right, of those that were seen from
/// their start. `limit` is the one named first.
pub(super) fn of_brief(source: Source, limit: Limit) -> f64 {
    let [start, link] = if source == Source::Capture { BRIEF } else { BRIEF_SOCKETS };
    match limit {
        Limit::CongestionWindow(Cause::SlowStart) => start,
        Limit::Link => link,
        Limit::CongestionWindow(Cause::Loss) => BRIEF_LOSS,
        Limit::ReceiveWindow | Limit::SendBuffer => SURE_FROM,
        limit => of(source, Coverage::FromStart, limit, 1.0),
    }
}

/// A start that has not grown, and the link, in worlds that were drawn for no cause
/// (`cargo xtask truth --worlds`, sets 31 and 32).
const BRIEF: [f64; 2] = [0.96, 0.98]; // of 344 and 277
const BRIEF_SOCKETS: [f64; 2] = [0.93, 0.92]; // of 86 and 60
/// In the same worlds it was never more than a drop of the link's own queue.
const BRIEF_LOSS: f64 = 0.45; // of 8

/// The fraction of verdicts of one class that are right. `limit` is the one named first; it held
/// for `share` of the time.
pub(super) fn of(source: Source, coverage: Coverage, limit: Limit, share: f64) -> f64 {
    let row = match limit {
        Limit::ReceiveWindow => 0,
        Limit::ReceiverApplication => 1,
        Limit::SendBuffer => 2,
        Limit::SenderApplication => 3,
        Limit::CongestionWindow(Cause::SlowStart) => 4,
        Limit::CongestionWindow(Cause::Loss) => 5,
        Limit::Link => 6,
        // It is named where packets prove it, and nowhere else.
        Limit::ApplicationWindow => return PROVEN,
        Limit::Unknown => return 0.0,
    };
    let table = match (source, coverage) {
        (Source::Samples, _) => &SOCKETS,
        (Source::ReceiverSamples, _) => &RECEIVER,
        (Source::Capture, Coverage::FromStart) => &FROM_START,
        (Source::Capture, Coverage::MiddleAtSender) => &MIDDLE_AT_SENDER,
        (Source::Capture, Coverage::MiddleElsewhere) => &MIDDLE_ELSEWHERE,
    };
    table[row][usize::from(share >= MOST_OF_TIME)]
}

/// One row per limit, in the order of [`of`]. The first figure is for verdicts whose limit held for
/// less than most of the time, the second for those whose limit held for most of it.
type Table = [[f64; 2]; 7];

const FROM_START: Table = [
    [0.27, 0.95], // of 8 and 109
    [0.95, 0.99], // of 13 and 75
    [0.63, 0.89], // of 20 and 78
    [0.90, 0.98], // of 4 and 42
    [0.45, 0.99], // of 12 and 84
    [0.49, 0.56], // of 43 and 95
    [0.88, 0.74], // of 27 and 85
];
const MIDDLE_AT_SENDER: Table = [
    [0.52, 0.85], // of 1 and 45
    [0.80, 0.92], // of 3 and 13
    [0.51, 0.75], // of 7 and 34
    [0.43, 0.27], // of 2 and 32
    [0.65, 0.65], // of 0 and 0
    [0.42, 0.61], // of 7 and 33
    [0.76, 0.67], // of 6 and 28
];
const MIDDLE_ELSEWHERE: Table = [
    [0.36, 0.80], // of 2 and 54
    [0.63, 0.83], // of 1 and 7
    [0.48, 0.70], // of 11 and 42
    [0.22, 0.33], // of 6 and 108
    [0.54, 0.54], // of 0 and 0
    [0.31, 0.60], // of 16 and 41
    [0.51, 0.75], // of 8 and 31
];
const SOCKETS: Table = [
    [0.60, 0.97], // of 1 and 25
    [0.92, 0.93], // of 8 and 11
    [0.86, 0.92], // of 3 and 20
    [0.83, 0.92], // of 2 and 9
    [0.60, 0.96], // of 1 and 21
    [0.29, 0.50], // of 13 and 34
    [0.71, 0.56], // of 13 and 14
];
/// Verdicts of the receiver's socket alone that the trained judge did not weigh. Nobody has scored
/// such short transfers. One half claims nothing: a verdict of that kind is neither sure nor called
/// a guess.
const RECEIVER: Table = [[SURE_FROM; 2]; 7];
