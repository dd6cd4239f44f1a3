//! Variations that do not affect the limit: programs, kernels, options, and impairments that are
//! too small to matter.

use super::super::Cause;
use super::dice::Dice;
use super::draft::Draft;

/// Servers and clients that work together; only the built-in ones can be slow or set buffers.
const PROGRAMS: [(&str, &str); 6] = [
    ("builtin", "builtin"),
    ("builtin", "builtin"),
    ("builtin", "curl"),
    ("nginx", "curl"),
    ("python", "curl"),
    ("iperf3", "iperf3"),
];

pub(super) fn draw(draft: &mut Draft, dice: &mut Dice) {
    programs(draft, dice);
    if dice.chance(0.2) {
        draft.set(&["kernel"], "6.1");
    }
    if dice.chance(0.12) {
        draft.sysctl("server", "net.ipv4.tcp_sack", 0);
    }
    if dice.chance(0.15) {
        draft.sysctl("server", "net.ipv4.tcp_timestamps", 0);
    }
    path(draft, dice);
}

fn programs(draft: &mut Draft, dice: &mut Dice) {
    let [repeated, parallel] = ["requests", "connections"].map(|key| draft.has(&["transfer", key]));
    let own_server = has_one_of(draft, ["write_rate", "write_block", "send_buffer"]);
    let own_client = has_one_of(draft, ["read_rate", "read_block", "receive_buffer"]);
    let sized = draft.has(&["transfer", "size"]);
    let fitting = PROGRAMS.into_iter().filter(|(server, client)| {
        (!own_server || *server == "builtin")
            && (!own_client || *client == "builtin")
            && (!sized || *server != "iperf3")
            && (!(repeated || parallel) || *client == "curl")
            && (!repeated || *server != "python")
    });
    let (server, client) = *dice.pick(&fitting.collect::<Vec<_>>());
    draft.set(&["transfer", "server"], server);
    draft.set(&["transfer", "client"], client);
    if sized {
        return;
    }
    if !draft.has(&["transfer", "duration"]) {
        draft.set(&["transfer", "duration"], format!("{}s", draft.seconds()));
    }
    if matches!(server, "nginx" | "python") {
        // A file; the duration ends the transfer if it is too large.
        let size = (draft.expected / 8.0 * draft.seconds()).max(100_000.0).ceil();
        draft.set(&["transfer", "size"], format!("{size}"));
    }
}

/// Whether the draft says something of the transfer for one of `keys`.
fn has_one_of(draft: &Draft, keys: [&str; 3]) -> bool {
    keys.iter().any(|key| draft.has(&["transfer", key]))
}

fn path(draft: &mut Draft, dice: &mut Dice) {
    // A slow return path that still carries every acknowledgement: one of 52 bytes for two
    // segments.
    if dice.chance(0.15) {
        let share = dice.log(0.06, 0.3);
        let rate = (draft.rate * share * 1448.0 / draft.mss.max(500.0)).max(128e3);
        draft.set(&["link", "to_server", "rate"], format!("{}kbit", (rate / 1e3).ceil()));
        draft.set(&["link", "to_server", "queue"], "1000packets");
    }
    let jitters = !matches!(draft.cause, Cause::SlowStart) && dice.chance(0.15);
    // iperf3 does not end under jitter in virtual time, because it polls the clock.
    if jitters && !draft.is(&["transfer", "server"], "iperf3") {
        // Too little to reorder packets of a full link, and far less than a standing queue.
        let jitter = (draft.rtt * 1e6 * dice.log(0.001, 0.02)).min(2000.0).ceil();
        let delay = (draft.rtt * 1e6 / 2.0).round();
        draft.set(&["link", "to_client", "delay"], format!("{delay}us {jitter}us"));
    }
    // Spurious retransmissions reduce a loss-based window; only BBR ignores them.
    if draft.congestion_control == "bbr" && dice.chance(0.1) {
        draft.set(&["link", "to_client", "reorder"], "0.1%");
    }
}
