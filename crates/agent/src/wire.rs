//! What passes between this process and the BPF program: words of 64 bits, in the order of the
//! structures `config` and `shown` of `bpf/window.bpf.c`.

use crate::connection::Connection;
use crate::options::AgentOptions;
use fullpipe_model::observe::canonical;
use fullpipe_model::tune::window_control::Phase;
use fullpipe_model::units::{Bytes, Duration, Window};
use std::net::{Ipv6Addr, SocketAddr};

/// `struct config`.
pub(crate) type Config = [u64; 12];
/// `struct shown`.
pub(crate) type ShownWords = [u64; 24];

/// `enum mode`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Mode {
    Watch = 0,
    Control = 1,
    Release = 2,
}

/// `group`: the number of the control group's folder.
pub(crate) fn config(options: &AgentOptions, mode: Mode, group: u64) -> Config {
    let law = &options.settings;
    [
        law.threshold.get(),
        law.threshold_time.as_micros(),
        law.step.get(),
        law.least.bytes().get(),
        law.most.bytes().get(),
        law.keep.bytes().get(),
        u64::from(law.hold_round_trips),
        mode as u64,
        u64::from(options.loopback),
        u64::from(options.unfreeze),
        options.most_buffer.get(),
        group,
    ]
}

pub(crate) fn connection(shown: &ShownWords) -> Connection {
    let &[
        local_high,
        local_low,
        remote_high,
        remote_low,
        ports,
        window,
        drained,
        drained_in_us,
        queue,
        queue_peak,
        queue_mean,
        rtt_us,
        least_rtt_us,
        phase,
        reads,
        is_frozen,
        buffer,
        promised,
        out_of_order,
        errors,
        acknowledgements,
        _seen,
        is_closed,
        two_segments,
    ] = shown;
    Connection {
        local: address(local_high, local_low, (ports >> 32) as u16),
        remote: address(remote_high, remote_low, ports as u16),
        phase: match phase {
            0 => Phase::Start,
            1 => Phase::Hold,
            _ => Phase::Steady,
        },
        is_slow_reader: reads > 0,
        two_segments: Window::new(Bytes::new(two_segments)),
        window: Window::new(Bytes::new(window)),
        promised: Window::new(Bytes::new(promised)),
        out_of_order: Bytes::new(out_of_order),
        drain: Bytes::new(drained).per(Duration::from_micros(drained_in_us)),
        queue: Bytes::new(queue),
        queue_mean: Bytes::new(queue_mean),
        queue_peak: Bytes::new(queue_peak),
        buffer: Bytes::new(buffer),
        rtt: Duration::from_micros(rtt_us),
        least_rtt: Duration::from_micros(least_rtt_us),
        acknowledgements,
        refusals: errors,
        is_frozen: is_frozen != 0,
        is_closed: is_closed != 0,
    }
}

fn address(high: u64, low: u64, port: u16) -> SocketAddr {
    let address = Ipv6Addr::from(u128::from(high) << 64 | u128::from(low));
    canonical(SocketAddr::new(address.into(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_a_connection() {
        let mut shown: ShownWords = std::array::from_fn(|index| index as u64 + 100);
        shown[..5].copy_from_slice(&[0, 0xffff_0a4d_0002, 1 << 61, 1, 443 << 32 | 50_000]);
        shown[6..8].copy_from_slice(&[250_000, 1_000_000]);
        shown[13..15].copy_from_slice(&[1, 0]);
        let connection = connection(&shown);
        assert_eq!(connection.local, "10.77.0.2:443".parse().unwrap());
        assert_eq!(connection.remote, "[2000::1]:50000".parse().unwrap());
        assert_eq!(connection.drain.unwrap().to_string(), "2 Mbit/s");
        assert_eq!(connection.phase, Phase::Hold);
        assert!(!connection.is_slow_reader);
        assert_eq!(connection.window.bytes().get(), 105);
        assert!(connection.is_closed);
        assert_eq!(connection.two_segments.bytes().get(), 123);
    }
}
