//! What a socket and its host's settings show behind a limit.

use super::packets::{reordering, times};
use crate::diagnosis::{Allowed, SSH_CHANNEL, SocketCause};
use fullpipe_model::units::Bytes;

pub(super) fn claim(cause: &SocketCause) -> String {
    match *cause {
        SocketCause::WindowScaleMissing { allowed } => format!(
            "one of the SYNs offered no window scale, so no window is above 65,535 bytes{}",
            at_most(allowed)
        ),
        SocketCause::ReceiveBufferCapped { max, buffer, allowed } => {
            capped(["SO_RCVBUF", "net.core.rmem_max"], [max, buffer], allowed)
        }
        SocketCause::SendBufferCapped { max, buffer, allowed } => {
            capped(["SO_SNDBUF", "net.core.wmem_max"], [max, buffer], allowed)
        }
        SocketCause::ReceiveBufferFrozen { buffer, allowed } => {
            frozen("SO_RCVBUF", buffer, allowed)
        }
        SocketCause::SendBufferFrozen { buffer, allowed } => frozen("SO_SNDBUF", buffer, allowed),
        SocketCause::ReceiveBufferAtItsLargest { largest, allowed, .. } => {
            at_its_largest("net.ipv4.tcp_rmem", largest, allowed)
        }
        SocketCause::SendBufferAtItsLargest { largest, allowed, .. } => {
            at_its_largest("net.ipv4.tcp_wmem", largest, allowed)
        }
        SocketCause::WindowClamped { clamp, allowed } => {
            format!("TCP_WINDOW_CLAMP keeps the window at {clamp:#}{}", at_most(allowed))
        }
        SocketCause::ApplicationDoesNotRead { most } => {
            format!("the application does not read: up to {most:#} wait in its socket")
        }
        SocketCause::PacedByApplication { bound, rate } => format!(
            "the application set SO_MAX_PACING_RATE to {bound}, and the socket sends {rate}"
        ),
        SocketCause::SshChannelWindow { under_way, grants, allowed } => format!(
            "the window of SSH's channel holds the data: {under_way} of {SSH_CHANNEL:#} are under \
             way, and the end that receives granted more {grants} times{}",
            at_most(allowed)
        ),
        SocketCause::DelayedAck { rtt, path_rtt } => format!(
            "small writes wait for ACKs that the receiver delays: the round trip is {rtt}, the \
             path's {path_rtt}"
        ),
        SocketCause::NotsentLowat { lowat, in_flight } => format!(
            "TCP_NOTSENT_LOWAT lets {lowat:#} wait unsent, less than is in flight ({in_flight})"
        ),
        SocketCause::Reordering { needless, again } => reordering(needless, again),
        SocketCause::Timeouts { count: 1, rto } => {
            format!("one retransmission timeout; the timer is at {rto}")
        }
        SocketCause::Timeouts { count, rto } => {
            format!("{count} retransmission timeouts; the timer is at {rto}")
        }
        SocketCause::IdleRestart { count, most } => format!(
            "{} the congestion window fell after a pause (from up to {most} segments) and had to \
             grow again",
            times(count)
        ),
        SocketCause::SmallSegments { size, path_mtu: Some(mtu) } => {
            format!("segments carry {size:#} at most (the path's MTU is taken to be {mtu})")
        }
        SocketCause::SmallSegments { size, path_mtu: None } => {
            format!("segments carry {size:#} at most (that is what this end announced)")
        }
        SocketCause::DroppedOnArrival { count } => format!(
            "the host of this socket dropped {count} segments on arrival, because the socket's \
             memory was full"
        ),
    }
}

fn capped(names: [&str; 2], [max, buffer]: [Bytes; 2], allowed: Option<Allowed>) -> String {
    let ([option, sysctl], allowed) = (names, at_most(allowed));
    format!("the application set {option}, and {sysctl} ({max}) capped it at {buffer:#}{allowed}")
}

fn frozen(option: &str, buffer: Bytes, allowed: Option<Allowed>) -> String {
    format!("the application set {option}: its buffer stays at {buffer:#}{}", at_most(allowed))
}

fn at_its_largest(sysctl: &str, largest: Bytes, allowed: Option<Allowed>) -> String {
    let allowed = at_most(allowed);
    format!("autotuning reached the third value of {sysctl} ({largest:#}){allowed}")
}

fn at_most(allowed: Option<Allowed>) -> String {
    allowed.map_or(String::new(), |Allowed { rate, rtt }| format!(", at most {rate} over {rtt}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_model::units::Duration;

    #[test]
    fn one_of_a_kind_is_told_as_one() {
        for (count, timeouts, restarts) in [
            (1, "one retransmission timeout; the timer", "once the congestion window fell"),
            (2, "2 retransmission timeouts; the timer", "2 times the congestion window fell"),
        ] {
            let told = claim(&SocketCause::Timeouts { count, rto: Duration::from_millis(204) });
            assert!(told.starts_with(timeouts), "{told}");
            let told = claim(&SocketCause::IdleRestart { count: count.into(), most: 42 });
            assert!(told.starts_with(restarts), "{told}");
        }
    }
}
