//! Additions to a finished scenario: an outage, long polling with keep-alives, an upload.
//!
//! They leave the limit as it is, and are drawn from a random stream of their own. A scenario
//! without an addition therefore does not depend on which additions exist.

use super::super::Cause;
use super::dice::Dice;
use super::draft::Draft;
use super::variation::Variation;

/// The longest time that a scenario of requests is idle, in seconds.
const IDLE_MAX: f64 = 60.0;
/// From this wait on, a kernel that probes each second sends some probes, in seconds.
const PROBED_FROM: f64 = 2.5;
/// Few answers are enough where each takes seconds.
const ANSWERS_LEAST: f64 = 12.0;

/// Draws the addition that the draft may have.
pub(super) fn draw(draft: &mut Draft, dice: &mut Dice) {
    let is_plain = draft.variation == Variation::Plain;
    if draft.variation == Variation::Requests {
        if dice.chance(0.75) {
            long_polling(draft, dice);
        }
    } else if draft.is(&["transfer", "server"], "iperf3") {
        if dice.chance(0.6) {
            upload(draft);
        }
    } else if is_plain && dice.chance(0.45) {
        if dice.chance(0.6) {
            outage(draft, dice);
        } else {
            upload(draft);
        }
    }
}

/// The server has nothing to say for a while before each answer. The connection is idle then, and
/// for long waits the client's kernel probes it.
fn long_polling(draft: &mut Draft, dice: &mut Dice) {
    let Some(asked) = draft.whole(&["transfer", "requests"]) else { return };
    let is_idle = dice.chance(0.5);
    let wait = if is_idle { dice.log(PROBED_FROM, 8.0) } else { draft.rtt * dice.log(0.5, 20.0) };
    let wait = wait.min(IDLE_MAX / ANSWERS_LEAST);
    let count = (IDLE_MAX / wait).floor().min(asked as f64).max(ANSWERS_LEAST);
    let millis = (wait * 1e3).ceil();
    draft.set(&["transfer", "server"], "builtin");
    draft.set(&["transfer", "answer_after"], format!("{millis}ms"));
    draft.set(&["transfer", "requests"], count as i64);
    let seconds = (draft.seconds() + 2.0 * wait * count).ceil();
    draft.set(&["transfer", "duration"], format!("{seconds}s"));
    if wait >= PROBED_FROM {
        draft.set(&["transfer", "keepalive"], "1s");
    }
    draft.relax_without(&["transfer", "answer_after"]);
}

/// For a short time the link carries nothing, and what it had to carry waits or is dropped.
fn outage(draft: &mut Draft, dice: &mut Dice) {
    let may = [
        Cause::Link,
        Cause::ReceiveWindow,
        Cause::ReceiverApplication,
        Cause::SendBuffer,
        Cause::SenderApplication,
    ];
    let taken = ["discipline", "changes"].map(|key| draft.has(&["link", "to_client", key]));
    if !may.contains(&draft.cause) || taken.contains(&true) {
        return;
    }
    let millis = draft.seconds() * 1e3;
    let from = (millis * dice.uniform(0.2, 0.6)).round();
    let until = from + (millis * dice.log(0.02, 0.08)).ceil();
    draft.set(&["link", "to_client", "changes"], format!("{from}ms down, {until}ms up"));
}

/// The sender opens the connection: our own program, which sets no buffers then. Its writes block,
/// and a blocking writer keeps up to four times `tcp_wmem` in flight in a guest (seen, and not
/// explained), so a send buffer is no limit that is known beforehand.
fn upload(draft: &mut Draft) {
    let may = [Cause::Link, Cause::Policer, Cause::ReceiveWindow, Cause::Loss];
    let own = ["receive_buffer", "send_buffer"].map(|key| draft.has(&["transfer", key]));
    let paced = ["read_rate", "write_rate"].map(|key| draft.has(&["transfer", key]));
    let several = draft.has(&["transfer", "connections"]);
    if !may.contains(&draft.cause) || own.contains(&true) || paced.contains(&true) || several {
        return;
    }
    for end in ["server", "client"] {
        draft.set(&["transfer", end], "builtin");
    }
    draft.remove(&["transfer", "size"]);
    draft.set(&["transfer", "upload"], true);
}
