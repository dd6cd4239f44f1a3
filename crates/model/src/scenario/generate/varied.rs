//! Parameters that turn a scenario into its variation.

use super::super::Cause;
use super::dice::Dice;
use super::draft::Draft;

/// Sets a window, a writer or a reader whose bound is a little above the link's.
pub(super) fn bound_above_link(draft: &mut Draft, dice: &mut Dice) {
    let above = dice.log(1.3, 3.0);
    let rate = format!("{}kbit", (draft.rate * above / 1e3).ceil());
    match dice.pick(&[0, 1, 2, 3]) {
        // A window is at least half of its buffer (`law::receive_buffer`).
        0 => {
            let buffer = (draft.bdp() * above * 2.0).max(draft.mss * 60.0).ceil();
            let initial = buffer.min(131_072.0);
            draft.sysctl("client", "net.ipv4.tcp_rmem", format!("4096 {initial} {buffer}"));
        }
        // Two thirds of a buffer are in flight (`law::send_buffer`).
        1 => {
            let buffer = (draft.bdp() * above * 1.5).max(262_144.0).ceil();
            draft.sysctl("server", "net.ipv4.tcp_wmem", format!("4096 16384 {buffer}"));
        }
        2 => {
            draft.set(&["transfer", "write_rate"], rate.clone());
            draft.relax_without(&["transfer", "write_rate"]);
        }
        _ => {
            draft.set(&["transfer", "read_rate"], rate.clone());
            draft.relax_without(&["transfer", "read_rate"]);
        }
    }
}

/// Makes several downloads at once. Each has its share of the link.
pub(super) fn share_link(draft: &mut Draft, dice: &mut Dice) {
    let connections = *dice.pick(&[2.0, 3.0, 4.0]);
    let size = (draft.expected / 8.0 * draft.seconds() / connections).max(100_000.0).ceil();
    draft.set(&["transfer", "size"], format!("{size}"));
    draft.set(&["transfer", "connections"], connections as i64);
    draft.set(&["transfer", "duration"], format!("{}s", 2.0 * draft.seconds()));
}

/// Makes responses that are much smaller than what the path holds. Each is requested once the
/// previous one has arrived.
pub(super) fn requests(draft: &mut Draft, dice: &mut Dice) {
    draft.congestion_control(dice, &["cubic", "reno", "bbr"]);
    draft.path(dice, 0.5, |path| path.bdp() >= 16.0 * path.mss);
    let queue = dice.log(0.5, 8.0);
    draft.queue(queue, 64.0);
    let size = dice.log(2000.0, (draft.bdp() / 2.0).max(4000.0)).ceil();
    let each = draft.rtt + size * 8.0 / draft.rate;
    let count = (draft.seconds() / each).clamp(12.0, 100.0).floor();
    draft.expected = size * 8.0 / each;
    draft.set(&["transfer", "size"], format!("{size}"));
    draft.set(&["transfer", "requests"], count as i64);
    draft.set(&["transfer", "duration"], format!("{}s", draft.seconds()));
    draft.relax_without(&["transfer", "requests"]);
    draft.relax(&["transfer", "size"], format!("{}", size * count));
}

/// For the first part of the time, the link carries less than the draft's cause allows. The cause
/// that binds for the larger part of the time becomes the scenario's cause.
pub(super) fn link_first(draft: &mut Draft, dice: &mut Dice) {
    let seconds = draft.seconds();
    let part = *dice.pick(&[0.3, 0.3, 0.7]);
    let slow = (draft.expected * dice.uniform(0.25, 0.5) / 1e3).ceil().max(64.0);
    let full = (draft.rate / 1e3).round();
    let until = (seconds * part * 1e3).round();
    let changes = |slow: f64| format!("1ms rate {slow}kbit, {until}ms rate {full}kbit");
    draft.set(&["link", "to_client", "changes"], changes(slow));
    draft.set(&["transfer", "duration"], format!("{seconds}s"));
    let own = draft.cause;
    if part > 0.5 {
        draft.becomes(Cause::Link, own);
        draft.relax(&["link", "to_client", "changes"], changes((1.5 * slow).min(full)));
    } else {
        draft.becomes(own, Cause::Link);
    }
}

/// The application first writes as fast as the link carries, and slowly later. The cause that binds
/// for the larger part of the time becomes the scenario's cause.
pub(super) fn bulk_then_trickle(draft: &mut Draft, dice: &mut Dice) {
    draft.congestion_control(dice, &["cubic", "reno", "bbr"]);
    draft.path(dice, 0.7, |path| path.bdp() >= 8.0 * path.mss && path.rate >= 1e6);
    let queue = dice.log(1.0, 8.0);
    draft.queue(queue, 64.0);
    let seconds = draft.seconds();
    let part = *dice.pick(&[0.3, 0.3, 0.7]);
    let share = dice.log(0.05, 0.5);
    let bulk = (draft.rate / 8.0 * seconds * part * 0.95).ceil();
    draft.expected = draft.rate * (part + (1.0 - part) * share);
    draft.set(&["transfer", "write_rate_after"], format!("{bulk}"));
    let [rate, relaxed] = [share, 2.0 * share]
        .map(|share| format!("{}kbit", (draft.rate * share / 1e3).ceil().max(64.0)));
    draft.set(&["transfer", "write_rate"], rate);
    draft.set(&["transfer", "duration"], format!("{seconds}s"));
    if part > 0.5 {
        draft.becomes(Cause::Link, Cause::SenderApplication);
        draft.relax(&["link", "rate"], format!("{}kbit", (draft.rate / 500.0).round()));
    } else {
        draft.becomes(Cause::SenderApplication, Cause::Link);
        draft.relax(&["transfer", "write_rate"], relaxed);
    }
}
