//! What packets show behind a limit.

use crate::diagnosis::{
    AckPath, ApplicationWindow, DelayedAck, HTTP2_INITIAL, HostReordering, IdleRestart,
    KnownWindow, NoAnswer, PacketCause, PathMtu, Policer, ProtocolWindow, SFTP_BLOCK, SSH_CHANNEL,
    ScaleSign, Sharing, Timeouts, WindowScale,
};
use fullpipe_model::units::{Bytes, Duration};

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
    let times = if count == 1 { "once".into() } else { format!("{count} times") };
    format!(
        "retransmission timeouts: {times} the sender waited for its timer, {time} in all ({:.0} % of the time)",
        part * 100.0
    )
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
    let ApplicationWindow { count, time, part, bound, step, window, protocol } = cause;
    let part = part * 100.0;
    match step {
        Some(step) => format!(
            "window inside the application{}: its peer grants {bound} beyond what it has taken, \
             {step} with each message; {count} of these found all of it sent, of a receive window \
             of {window}, for {time} in all ({part:.0} % of the time)",
            named(protocol, bound)
        ),
        None => format!(
            "window inside the application: {count} times the sender stopped with {bound} in \
             flight at most, of a receive window of {window}, until the peer's application \
             answered, {time} in all ({part:.0} % of the time)"
        ),
    }
}

/// What the window is, in brackets.
fn named(protocol: ProtocolWindow, bound: Bytes) -> String {
    match protocol {
        ProtocolWindow::SshChannel(software) if protocol.is_usual(bound) => {
            let by = software.name().unwrap_or("the software that receives");
            format!(" (SSH's channel: {by} grants {SSH_CHANNEL:#})")
        }
        ProtocolWindow::SshChannel(software) => {
            let by = software.name().map_or(String::new(), |name| format!(", granted by {name}"));
            format!(" (SSH's channel{by})")
        }
        ProtocolWindow::SftpRequests(count) => {
            format!(" (SFTP: {count} requests of {SFTP_BLOCK:#} under way)")
        }
        ProtocolWindow::Http2 if protocol.is_usual(bound) => {
            format!(
                " (HTTP/2: the {} bytes of a receiver that grants no more)",
                HTTP2_INITIAL.get()
            )
        }
        ProtocolWindow::Http2 => {
            let like: Vec<_> = KnownWindow::http2_like(bound).map(KnownWindow::named).collect();
            let like = match like.is_empty() {
                true => String::new(),
                false => format!("; as large as the default of {}", like.join(", and of ")),
            };
            format!(
                " (HTTP/2, unless TLS hides another protocol: of a stream, or of the \
                 connection{like})"
            )
        }
        ProtocolWindow::Of(protocol) => format!(" ({})", protocol.words()),
        ProtocolWindow::Unknown => String::new(),
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
