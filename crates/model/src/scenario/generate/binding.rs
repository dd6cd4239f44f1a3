//! Parameters for each cause that make it the limit: it holds the transfer well below every other
//! bound. For the link, every other bound is well above it.

use super::super::Cause;
use super::dice::Dice;
use super::draft::Draft;
use super::variation::Variation;
use super::varied;

const ANY: [&str; 3] = ["cubic", "reno", "bbr"];
const LOSS_BASED: [&str; 2] = ["cubic", "reno"];
/// In segments: a smaller buffer is limited by how segments are accounted, not by its size.
const SEGMENTS_MIN: f64 = 20.0;
/// Below this, a whole write of the application exceeds the send buffer (`law::send_buffer`).
const SEND_WINDOW_MIN: f64 = 150e3;
/// The most seconds that a transfer may need for its buffer to be full for a good part of it.
const FILLS_MAX: f64 = 120.0;
/// Segments that fit into the first receive window of 64 KB; the kernel's own first window is 10.
const INITIAL_WINDOW_RELAXED: i64 = 40;

/// Draws parameters that make the draft's cause the limit.
pub(super) fn draw(draft: &mut Draft, dice: &mut Dice) {
    match draft.cause {
        Cause::SenderApplication if draft.variation == Variation::Requests => {
            varied::requests(draft, dice);
        }
        Cause::SenderApplication if draft.variation == Variation::Sequence => {
            varied::bulk_then_trickle(draft, dice);
        }
        Cause::Link => link(draft, dice),
        Cause::Policer => policer(draft, dice),
        Cause::ReceiveWindow => receive_window(draft, dice),
        Cause::ReceiverApplication => receiver_application(draft, dice),
        Cause::SendBuffer => send_buffer(draft, dice),
        Cause::SenderApplication => sender_application(draft, dice),
        Cause::Loss => loss(draft, dice),
        Cause::SlowStart => slow_start(draft, dice),
    }
    match (draft.variation, draft.cause) {
        (Variation::Close, Cause::Link | Cause::Policer) => {
            varied::bound_above_link(draft, dice);
        }
        (Variation::Shared, _) => varied::share_link(draft, dice),
        (Variation::Sequence, _) if draft.also.is_none() => {
            varied::link_first(draft, dice);
        }
        _ => {}
    }
    draft.generous_buffers();
}

fn link(draft: &mut Draft, dice: &mut Dice) {
    draft.congestion_control(dice, &ANY);
    let segments = match draft.variation {
        // The path must hold some segments of each download, and more than the applications of a
        // lab write at a time.
        Variation::Shared | Variation::Close => 12.0,
        _ => 2.0,
    };
    draft.path(dice, 1.0, |path| path.bdp() >= segments * path.mss);
    // A queue that is too short for the congestion control's decrease leaves the link idle.
    let least = match draft.congestion_control {
        "reno" => 1.0,
        "cubic" => 0.5,
        _ => 0.1,
    };
    let discipline = *dice.pick(&["droptail", "droptail", "codel", "fq_codel", "red"]);
    let queue =
        if discipline == "droptail" { dice.log(least, 8.0) } else { dice.uniform(4.0, 8.0) };
    draft.queue(queue, 32.0);
    match discipline {
        "codel" | "fq_codel" => {
            // RFC 8289: an interval of about the worst round trip, a target of 5 to 10 % of it.
            let interval = (draft.rtt * 1e3).max(100.0).ceil();
            let target = (interval / 10.0).ceil();
            let text = format!("{discipline} target {target}ms interval {interval}ms");
            draft.set(&["link", "to_client", "discipline"], text);
        }
        "red" => draft.set(&["link", "to_client", "discipline"], "red"),
        _ if draft.variation == Variation::Plain => changing_rate(draft, dice),
        _ => {}
    }
    relax_rate(draft);
}

/// Doubles the rate, and keeps the queue at the same number of BDPs.
fn relax_rate(draft: &mut Draft) {
    draft.relax(&["link", "rate"], format!("{}kbit", (draft.rate / 500.0).round()));
    draft.relax(&["link", "queue"], format!("{}", (2.0 * draft.queue * draft.bdp()).ceil()));
}

/// Sometimes changes the rate during the transfer.
fn changing_rate(draft: &mut Draft, dice: &mut Dice) {
    if !dice.chance(0.25) {
        return;
    }
    let third = (draft.seconds() * 1e3 / 3.0).round();
    let [one, two] = [(); 2].map(|()| (draft.rate / 1e3 * dice.log(0.3, 1.0)).round().max(256.0));
    let [changes, relaxed] = [1.0, 2.0].map(|factor| {
        let [one, two] = [one * factor, two * factor];
        format!("{third}ms rate {one}kbit, {}ms rate {two}kbit", 2.0 * third)
    });
    draft.set(&["link", "to_client", "changes"], changes);
    draft.relax(&["link", "to_client", "changes"], relaxed);
}

fn policer(draft: &mut Draft, dice: &mut Dice) {
    draft.congestion_control(dice, &ANY);
    draft.path(dice, 1.0, |path| path.bdp() >= 4.0 * path.mss);
    let bucket = dice.log(0.5, 4.0);
    draft.queue(bucket, 32.0);
    draft.set(&["link", "to_client", "discipline"], "police");
    relax_rate(draft);
}

fn receive_window(draft: &mut Draft, dice: &mut Dice) {
    draft.congestion_control(dice, &ANY);
    let is_close = draft.variation == Variation::Close;
    let unscaled = !is_close && dice.chance(0.2);
    let share = if is_close { dice.uniform(0.8, 1.2) } else { dice.log(0.12, 0.5) };
    draft.path(dice, share, |path| {
        let least = if unscaled { 65_535.0 } else { SEGMENTS_MIN * path.mss };
        path.bdp() * share >= least
    });
    let queue = dice.log(0.5, 4.0);
    draft.queue(queue, 64.0);
    // The window is half of the buffer or somewhat more (`law::receive_buffer`).
    let buffer = (draft.bdp() * share).ceil();
    if unscaled {
        draft.sysctl("client", "net.ipv4.tcp_window_scaling", 0);
        draft.relax_without(&["hosts", "client", "sysctl", "net.ipv4.tcp_window_scaling"]);
    } else if dice.chance(0.4) {
        // The kernel doubles the application's request.
        draft.set(&["transfer", "receive_buffer"], format!("{}", (buffer / 2.0).ceil()));
        draft.relax_without(&["transfer", "receive_buffer"]);
    } else {
        let initial = buffer.min(131_072.0);
        draft.sysctl("client", "net.ipv4.tcp_rmem", format!("4096 {initial} {buffer}"));
        let room = format!("4096 131072 {}", draft.room());
        draft.relax(&["hosts", "client", "sysctl", "net.ipv4.tcp_rmem"], room);
    }
}

fn receiver_application(draft: &mut Draft, dice: &mut Dice) {
    draft.congestion_control(dice, &ANY);
    let is_close = draft.variation == Variation::Close;
    let share = if is_close { dice.uniform(0.75, 0.92) } else { dice.uniform(0.1, 0.75) };
    draft.path(dice, share, |path| {
        let is_soon = !is_close || seconds_to_fill(path, share) <= FILLS_MAX;
        path.bdp() >= 8.0 * path.mss && path.rate * share >= 64e3 && is_soon
    });
    let queue = dice.log(0.5, 4.0);
    draft.queue(queue, 64.0);
    let (buffer, fills) = (buffer_to_fill(draft), seconds_to_fill(draft, share));
    draft.sysctl("client", "net.ipv4.tcp_rmem", format!("4096 131072 {buffer}"));
    draft.set(&["transfer", "read_rate"], format!("{}kbit", (draft.expected / 1e3).round()));
    draft.relax(&["transfer", "read_rate"], format!("{}kbit", (draft.expected / 500.0).round()));
    if dice.chance(0.4) {
        let block = dice.log(4096.0, 262_144.0).min(draft.expected / 8.0 * draft.seconds() / 20.0);
        draft.set(&["transfer", "read_block"], format!("{}", block.ceil().max(1024.0)));
    }
    if fills > draft.seconds() {
        draft.set(&["transfer", "duration"], format!("{fills}s"));
    }
}

/// A buffer that is large enough for the path and small enough to fill soon.
fn buffer_to_fill(path: &Draft) -> f64 {
    (3.0 * path.bdp()).max(131_072.0).max(SEGMENTS_MIN * 2.0 * path.mss).ceil()
}

/// How long it takes to fill that where the application reads `share` of the rate.
fn seconds_to_fill(path: &Draft, share: f64) -> f64 {
    (4.0 * buffer_to_fill(path) * 8.0 / (path.rate * (1.0 - share))).ceil()
}

fn send_buffer(draft: &mut Draft, dice: &mut Dice) {
    draft.congestion_control(dice, &ANY);
    let is_close = draft.variation == Variation::Close;
    let share = if is_close { dice.uniform(0.5, 0.85) } else { dice.log(0.12, 0.5) };
    draft.path(dice, share, |path| {
        path.bdp() * share >= SEND_WINDOW_MIN.max(SEGMENTS_MIN * path.mss)
    });
    let queue = dice.log(1.0, 4.0);
    draft.queue(queue, 64.0);
    // Two thirds of the buffer are in flight (`law::send_buffer`).
    let buffer = (draft.bdp() * share * 1.5).ceil();
    if dice.chance(0.4) {
        draft.set(&["transfer", "send_buffer"], format!("{}", (buffer / 2.0).ceil()));
        draft.relax_without(&["transfer", "send_buffer"]);
    } else {
        draft.sysctl("server", "net.ipv4.tcp_wmem", format!("4096 16384 {buffer}"));
        let room = format!("4096 16384 {}", draft.room());
        draft.relax(&["hosts", "server", "sysctl", "net.ipv4.tcp_wmem"], room);
    }
}

fn sender_application(draft: &mut Draft, dice: &mut Dice) {
    draft.congestion_control(dice, &ANY);
    let share = dice.uniform(0.1, 0.88);
    draft.path(dice, share, |path| path.bdp() >= 2.0 * path.mss && path.rate * share >= 64e3);
    let queue = dice.log(0.5, 8.0);
    draft.queue(queue, 64.0);
    draft.set(&["transfer", "write_rate"], format!("{}kbit", (draft.expected / 1e3).round()));
    draft.relax(&["transfer", "write_rate"], format!("{}kbit", (draft.expected / 500.0).round()));
    if dice.chance(0.4) {
        // The block must be smaller than the BDP, or else the link limits each block for a while.
        let block = dice.log(2048.0, 262_144.0).min(draft.bdp() / 2.0);
        draft.set(&["transfer", "write_block"], format!("{}", block.ceil().max(1024.0)));
    }
    if draft.congestion_control == "bbr" && dice.chance(0.3) {
        let loss = dice.log(0.05, 1.0);
        draft.set(&["link", "to_client", "loss"], format!("{loss:.3}%"));
    }
}

/// Segments in flight under a loss of probability `p`.
fn window_under_loss(draft: &Draft, p: f64) -> f64 {
    // Mathis and others (CCR 27(3), 1997); RFC 9438 section 5.1 for CUBIC's own region.
    let reno = 1.22 / p.sqrt();
    let cubic = 1.054 * (draft.rtt / p).powf(0.75);
    if draft.congestion_control == "cubic" { reno.max(cubic) } else { reno }
}

fn loss(draft: &mut Draft, dice: &mut Dice) {
    draft.congestion_control(dice, &LOSS_BASED);
    let probability = dice.log(0.002, 0.04);
    // Several losses in one burst count once.
    let leaves = dice.chance(0.3).then(|| dice.uniform(0.3, 0.8));
    let events = probability * leaves.unwrap_or(1.0);
    draft.path(dice, 0.4, |path| path.bdp() * 0.35 >= window_under_loss(path, events) * path.mss);
    draft.expected = window_under_loss(draft, events) * draft.mss * 8.0 / draft.rtt;
    let queue = dice.log(0.5, 4.0);
    draft.queue(queue, 64.0);
    let text = match leaves {
        Some(leaves) => {
            let enters = probability * leaves / (1.0 - probability);
            format!("gemodel {:.4}% {:.1}%", enters * 100.0, leaves * 100.0)
        }
        None => format!("{:.3}%", probability * 100.0),
    };
    draft.set(&["link", "to_client", "loss"], text);
    draft.relax_without(&["link", "to_client", "loss"]);
}

fn slow_start(draft: &mut Draft, dice: &mut Dice) {
    draft.congestion_control(dice, &ANY);
    draft.path(dice, 0.2, |path| path.bdp() >= 300.0 * path.mss);
    let queue = dice.log(1.0, 4.0);
    draft.queue(queue, 64.0);
    // The congestion window reaches half a BDP after one BDP was sent.
    let share = dice.uniform(0.5, 1.0);
    draft.set(&["transfer", "size"], format!("{}", (share * draft.bdp()).ceil()));
    draft.relax(&["hosts", "server", "initcwnd"], INITIAL_WINDOW_RELAXED);
    let room = draft.room();
    let initial = (2.0 * draft.bdp()).max(1_048_576.0).ceil();
    draft.sysctl("client", "net.ipv4.tcp_rmem", format!("4096 {initial} {room}"));
}
