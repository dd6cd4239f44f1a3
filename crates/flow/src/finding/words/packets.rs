//! What packets show behind a limit.

use crate::capture::segment::SshSoftware;
use crate::diagnosis::{
    AckPath, ApplicationWindow, DelayedAck, HTTP2_INITIAL, HostReordering, IdleRestart,
    NeededWindow, NoAnswer, PacketCause, PathMtu, Policer, ProtocolWindow, Reordering, SFTP_BLOCK,
    ScaleSign, Sharing, Timeouts, WaitedWindow, WindowScale,
};
use crate::windows::{KnownWindow, is_about};
use fullpipe_model::units::{Bytes, Duration};
use std::fmt::Display;

pub(super) fn claim(cause: PacketCause) -> String {
    match cause {
        PacketCause::NoAnswer(cause) => no_answer(cause),
        PacketCause::PathMtu(cause) => path_mtu(cause),
        PacketCause::WindowScale(cause) => window_scale(cause),
        PacketCause::Policer(cause) => policer(cause),
        PacketCause::Sharing(cause) => sharing(cause),
        PacketCause::Timeouts(cause) => timeouts(cause),
        PacketCause::IdleRestart(cause) => idle_restart(cause),
        PacketCause::DelayedAck(cause) => delayed_ack(cause),
        PacketCause::ApplicationWindow(cause) => application_window(cause),
        PacketCause::AckPath(cause) => ack_path(cause),
        PacketCause::HostReordering(cause) => host_reordering(cause),
        PacketCause::Reordering(Reordering { needless, again }) => reordering(needless, again),
    }
}

fn no_answer(cause: NoAnswer) -> String {
    let NoAnswer { attempts, time, is_half_open } = cause;
    if is_half_open {
        format!("no answer: the SYN was answered {attempts} times in {time}, and nothing came back")
    } else {
        format!("no answer: the SYN was sent {attempts} times in {time}, and nothing came back")
    }
}

fn path_mtu(cause: PathMtu) -> String {
    let PathMtu { lost, count, passed, time, is_missing } = cause;
    if is_missing {
        format!(
            "probably a path MTU black hole: {count} segments of {lost} are missing, and none larger than {passed} \
             arrived"
        )
    } else {
        format!(
            "path MTU black hole: segments of {passed} arrive, and none of {count} of {lost} did, however often they \
             were sent again in {time}"
        )
    }
}

fn window_scale(cause: WindowScale) -> String {
    let WindowScale { taken, meant, sign } = cause;
    match sign {
        ScaleSign::Rewritten => format!(
            "rewritten window scale: the receiver means windows of {meant}, as its SYN said, and a device between the \
             ends makes {taken} of them"
        ),
        ScaleSign::StopsAtField => format!(
            "rewritten window scale: the sender stops at {taken}, the number in the window field, where the receiver \
             means {meant}: a device between the ends changed the scale"
        ),
        ScaleSign::Dropped => format!(
            "window scale not known to a device between the ends: nothing arrived that was sent beyond {taken}, the \
             number in the window field, where the receiver means {meant}"
        ),
    }
}

fn policer(cause: Policer) -> String {
    let Policer { likely, rate, bucket, queue, drops_tails } = cause;
    let likely = format!("({:.0} % likely)", likely * 100.0);
    if drops_tails {
        return format!(
            "policer: the path drops the tails of bursts, without a queue ({queue} of delay): about {bucket} pass at \
             once, which makes {rate} in the mean, and its own rate may be higher {likely}"
        );
    }
    let burst = match bucket {
        Bytes::ZERO => String::new(),
        bucket => format!(", passed bursts of at least {bucket} before that,"),
    };
    format!(
        "policer: the path drops without a queue ({queue} of delay){burst} and carried {rate} since {likely}"
    )
}

fn sharing(cause: Sharing) -> String {
    let Sharing { connections, total, part } = cause;
    format!(
        "several connections share it: {connections} at a time carried {total} together, steadily, and this one \
         {:.0} % of that",
        part * 100.0
    )
}

fn timeouts(cause: Timeouts) -> String {
    let Timeouts { count, time, part } = cause;
    let times = times(count);
    format!(
        "retransmission timeouts: {times} the sender waited for its timer, {time} in all ({:.0} % of the time)",
        part * 100.0
    )
}

pub(super) fn times(count: u64) -> String {
    if count == 1 { "once".into() } else { format!("{count} times") }
}

fn idle_restart(cause: IdleRestart) -> String {
    let IdleRestart { count, time, part, before, after } = cause;
    let pauses = if count == 1 { "a pause".into() } else { format!("{count} pauses") };
    format!(
        "idle restart: after {pauses} the congestion window began anew ({before} were in flight before, {after} \
         after), and grew for {time} ({:.0} % of the time)",
        part * 100.0
    )
}

fn delayed_ack(cause: DelayedAck) -> String {
    let DelayedAck { count, time, part } = cause;
    let each = Duration::from_nanos(time.as_nanos() / count.max(1));
    format!(
        "delayed ACK and Nagle: {count} times a small write waited for an ACK that the receiver delayed by {each}, \
         {time} in all ({:.0} % of the time)",
        part * 100.0
    )
}

fn application_window(cause: ApplicationWindow) -> String {
    if let Some(waited) = cause.waited {
        return waited_window(cause, waited);
    }
    let ApplicationWindow { count, time, part, bound, step, window, .. } = cause;
    let part = part * 100.0;
    match step {
        Some(step) => format!(
            "window inside the application{}: its peer grants {bound} beyond what it has taken, \
             {step} with each message; {count} of these found all of it sent, of a receive window \
             of {window}, for {time} in all ({part:.0} % of the time)",
            named(&cause)
        ),
        None => format!(
            "window inside the application{}: {count} times the sender stopped with {bound} in \
             flight at most, of a receive window of {window}, until the peer's application \
             answered, {time} in all ({part:.0} % of the time)",
            named(&cause)
        ),
    }
}

/// A window of HTTP/2 that its frames show.
fn waited_window(cause: ApplicationWindow, waited: WaitedWindow) -> String {
    let ApplicationWindow { count, time, bound, .. } = cause;
    let WaitedWindow { stream, part, needed } = waited;
    let who = if stream == 0 { "the connection".to_owned() } else { format!("stream {stream}") };
    let needed = needed.map_or(String::new(), |NeededWindow { window, rate, rtt }| {
        format!("; the path needs {window} ({rate} at {rtt})")
    });
    format!(
        "window of HTTP/2, by its frames: {who} waited {:.0} % of the time for its window of {} \
         bytes, {count} times; nothing was sent meanwhile for {time} in all{}{needed}",
        part * 100.0,
        with_commas(bound.get()),
        as_large_as(&cause).unwrap_or_default(),
    )
}

/// A number to the last digit, in groups of three.
pub fn with_commas(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| group.iter().copied().map(char::from).collect::<String>());
    groups.collect::<Vec<_>>().join(",")
}

/// What the window is and who grants it, in brackets.
fn named(cause: &ApplicationWindow) -> String {
    let ApplicationWindow { protocol, granter, .. } = *cause;
    match protocol {
        ProtocolWindow::SshChannel(software) => {
            format!(" (SSH's channel{})", of_ssh(cause, software))
        }
        ProtocolWindow::SftpRequests(count) => {
            let by = granter.program.map_or(String::new(), |by| format!(", asked by {by}"));
            format!(" (SFTP: {count} requests of {SFTP_BLOCK:#} under way{by})")
        }
        ProtocolWindow::Http2 => format!(" (HTTP/2{})", of_http2(cause)),
        ProtocolWindow::Of(protocol) => {
            let by_port = if granter.is_by_port { ", by the port alone" } else { "" };
            let by = granter.program.map_or(String::new(), |by| format!(", asked by {by}"));
            format!(
                " ({}{by_port}{by}{})",
                protocol.words(),
                as_large_as(cause).unwrap_or_default()
            )
        }
        ProtocolWindow::Unknown => match granter.program {
            Some(by) => format!(" (granted by {by}, in a protocol that is not known)"),
            None => " (unknown protocol and implementation)".to_owned(),
        },
    }
}

/// Who grants a channel of SSH, and whether that is its default.
fn of_ssh(cause: &ApplicationWindow, software: SshSoftware) -> String {
    let ApplicationWindow { bound, protocol, granter, .. } = *cause;
    match (granter.program, granter.default(protocol, bound)) {
        (Some(by), Some(known)) if known.is_as_large_as(bound) => {
            format!(": {by} grants {:#}, {}", known.window, changed_by(known))
        }
        (Some(by), Some(known)) => {
            format!(", granted by {by}, whose default is {:#}, {}", known.window, changed_by(known))
        }
        (Some(by), None) if software == SshSoftware::Other => {
            format!(", granted by {by}: unknown implementation")
        }
        (Some(by), None) => format!(", granted by {by}"),
        (None, _) if granter.is_by_port => {
            let like = as_large_as(cause).unwrap_or_default();
            format!(", by the port alone: unknown implementation{like}")
        }
        (None, _) => {
            let like = as_large_as(cause).unwrap_or_default();
            format!(": unknown implementation{like}")
        }
    }
}

/// Who grants a stream or a connection of HTTP/2.
fn of_http2(cause: &ApplicationWindow) -> String {
    let ApplicationWindow { bound, protocol, granter, .. } = *cause;
    if let Some(says) = granter.says.filter(|says| is_about(bound, *says)) {
        let by = granter.program.map_or(String::new(), |by| format!(" of {by}"));
        return format!(": the settings{by} grant each stream {} B{}", says.get(), {
            as_large_as(cause).unwrap_or_default()
        });
    }
    match (granter.program, granter.default(protocol, bound)) {
        (Some(by), Some(known)) if known.is_as_large_as(bound) => {
            format!(": {by} grants {:#}, {}", known.window, changed_by(known))
        }
        _ if protocol.is_usual(bound) => {
            format!(": the {} bytes of a receiver that grants no more", HTTP2_INITIAL.get())
        }
        _ => {
            let like = as_large_as(cause).unwrap_or_else(|| "; unknown implementation".to_owned());
            let unless = if granter.is_hidden { ", unless TLS hides another protocol" } else { "" };
            format!("{unless}: of a stream, or of the connection{like}")
        }
    }
}

/// The defaults that are as large; `None` where there are none.
fn as_large_as(cause: &ApplicationWindow) -> Option<String> {
    let like = cause.granter.like(cause.protocol, cause.bound).map(|known| {
        let own = if known.is_own { " (an entry of your own)" } else { "" };
        format!("{}{own}", known.named())
    });
    let like: Vec<String> = like.collect();
    (!like.is_empty()).then(|| format!("; as large as the default of {}", like.join(", and of ")))
}

/// What changes a default, and whose entry says so.
fn changed_by(known: KnownWindow) -> String {
    let own = if known.is_own { " (an entry of your own)" } else { "" };
    match known.setting {
        Some(setting) => format!("which `{setting}` changes{own}"),
        None => format!("which no setting is known to change{own}"),
    }
}

fn ack_path(cause: AckPath) -> String {
    let AckPath { wait, excess, shortest, stretched, .. } = cause;
    format!(
        "ACK path: by their timestamps ACKs waited {wait} on their way back, of {excess} by which round trips were \
         longer than the shortest ({shortest}); {:.0} % of them stood for more than two segments",
        stretched * 100.0
    )
}

/// What packets and sockets show alike.
pub(super) fn reordering(needless: impl Display, again: impl Display) -> String {
    format!("{needless} of {again} retransmissions were not needed: the path reorders packets")
}

fn host_reordering(cause: HostReordering) -> String {
    let HostReordering { count, share } = cause;
    format!(
        "order lost at the sender's own host: {count} segments ({:.2} %) left it in the wrong order, \
         before any path",
        share * 100.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_model::units::Rate;

    #[test]
    fn a_number_is_told_to_its_last_digit() {
        for (number, told) in [(0, "0"), (999, "999"), (65_535, "65,535"), (1 << 20, "1,048,576")] {
            assert_eq!(with_commas(number), told);
        }
    }

    #[test]
    fn a_bucket_that_nothing_showed_is_not_named() {
        let rate = Rate::from_bits_per_sec(8_000_000);
        let shown = Policer {
            likely: 0.97,
            rate,
            bucket: Bytes::new(60_000),
            drops_tails: false,
            queue: Duration::ZERO,
        };
        let unseen = Policer { bucket: Bytes::ZERO, ..shown };
        let [shown, unseen] = [shown, unseen].map(policer);
        assert!(shown.contains("bursts of at least 60 kB"), "{shown}");
        assert!(!unseen.contains(" B") && unseen.contains("carried 8 Mbit/s"), "{unseen}");
    }
}
