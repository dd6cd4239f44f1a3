//! What is known of the hosts, and the remedies that fit them. A remedy names no sysctl where the
//! handshake or the application fixed a size, and no congestion control that may be in use already.

use crate::connection::{Connection, Direction};
use crate::finding::{Finding, OnLoss, Remedy};
use crate::limit::{Cause, Interval, Limit, Verdict};
use fullpipe_model::observe::Sample;
use fullpipe_model::units::Bytes;

/// What is known of the hosts of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KnownHosts {
    /// A SYN lacks the window scale option: no window is larger than 65,535 bytes.
    pub is_unscaled: bool,
    /// The size of the send buffer never changed, so the application set it.
    pub is_send_buffer_fixed: bool,
    /// What the sender's congestion control does on loss.
    pub on_loss: OnLoss,
}

/// Largest fraction of the data in flight that remains after a loss where congestion control slows
/// down. Cubic reduces it to 0.7 (RFC 9438 section 4.6), reno to 0.5. Loss limited 118 of 246
/// generated transfers (seeds 2, 3 and 5), none of them with bbr; 107 of those have at most this.
const FALLS_TO: f64 = 0.80;
/// Intervals compared before and after a loss, and the least number of losses for a guess.
const BEFORE: usize = 3;
const AFTER: usize = 4;
const LOSSES_LEAST: usize = 3;
/// The largest window without a scale.
const UNSCALED_MOST: u64 = 65_535;

impl KnownHosts {
    /// What a capture shows of the hosts.
    pub(super) fn captured(
        connection: &Connection,
        direction: Direction,
        verdict: &Verdict,
    ) -> Self {
        let receiver = match direction {
            Direction::ClientToServer => &connection.server_to_client,
            Direction::ServerToClient => &connection.client_to_server,
        };
        // A scale of zero may also be offered.
        let both = [&connection.client_to_server, &connection.server_to_client];
        let offers = both.into_iter().all(|facts| facts.manner.window_scale_offered);
        let is_unscaled = receiver.window.scale == Some(0) && !offers;
        let on_loss = on_loss(&verdict.intervals);
        KnownHosts { is_unscaled, is_send_buffer_fixed: false, on_loss }
    }

    /// What samples of the sender's socket show of the hosts.
    pub(super) fn sampled(samples: &[Sample]) -> Self {
        let name = samples.iter().find_map(|sample| sample.congestion_control.as_deref());
        let on_loss = match name {
            Some(name) if name.starts_with("bbr") => OnLoss::RunsBbr,
            Some("cubic" | "reno") => OnLoss::SlowsDown,
            _ => OnLoss::Unknown,
        };
        // The kernel grows a send buffer with the congestion window (`tcp_sndbuf_expand`), unless
        // the application set its size.
        let mut sizes = samples.iter().filter_map(|sample| Some(sample.memory?.sndbuf));
        let first = sizes.next();
        let is_send_buffer_fixed =
            first.is_some_and(|first| first > Bytes::ZERO && sizes.all(|size| size == first));
        KnownHosts { is_unscaled: false, is_send_buffer_fixed, on_loss }
    }

    /// Gives the finding the remedy that fits these hosts.
    pub(super) fn fit(self, finding: Finding) -> Finding {
        let remedy = match finding.limit {
            Limit::ReceiveWindow if self.is_unscaled && is_largest_unscaled(&finding) => {
                Remedy::ScaleWindow
            }
            Limit::SendBuffer if self.is_send_buffer_fixed => Remedy::FreeSendBuffer,
            Limit::CongestionWindow(Cause::Loss) => Remedy::RemoveLoss(self.on_loss),
            _ => return finding,
        };
        let changes = match finding.limit {
            Limit::CongestionWindow(_) => finding.changes,
            _ => Vec::new(),
        };
        Finding { remedy, changes, ..finding }
    }
}

/// Whether the window that limited was as large as one can be without a scale. A smaller window is
/// limited by the buffer.
fn is_largest_unscaled(finding: &Finding) -> bool {
    let bytes = finding.evidence.window.map_or(0, |window| window.bytes().get());
    (UNSCALED_MOST * 3 / 4..=UNSCALED_MOST).contains(&bytes)
}

/// How the data in flight changed after losses that had none shortly before them.
fn on_loss(intervals: &[Interval]) -> OnLoss {
    let flights: Vec<f64> = intervals.iter().map(|one| one.evidence.in_flight.as_f64()).collect();
    let mut parts = Vec::new();
    for at in BEFORE..intervals.len().saturating_sub(AFTER + 1) {
        let before = at - BEFORE;
        if !intervals[at].is_lossy() || intervals[before..at].iter().any(Interval::is_lossy) {
            continue;
        }
        let most = flights[before..=at].iter().copied().fold(0.0, f64::max);
        let mut after = flights[at + 2..at + 2 + AFTER].to_vec();
        after.sort_by(f64::total_cmp);
        if most > 0.0 {
            parts.push((after[AFTER / 2 - 1] + after[AFTER / 2]) / 2.0 / most);
        }
    }
    parts.sort_by(f64::total_cmp);
    match parts.get(parts.len() / 2) {
        Some(median) if parts.len() >= LOSSES_LEAST && *median <= FALLS_TO => OnLoss::SlowsDown,
        Some(_) if parts.len() >= LOSSES_LEAST => OnLoss::GoesOn,
        _ => OnLoss::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_model::observe::{SocketMemory, TcpState};
    use fullpipe_model::units::Instant;

    fn sample(congestion_control: &str, sndbuf: u64) -> Sample {
        Sample {
            congestion_control: Some(congestion_control.into()),
            memory: Some(SocketMemory { sndbuf: Bytes::new(sndbuf), ..SocketMemory::default() }),
            ..Sample::new(
                Instant::ZERO,
                "192.0.2.1:1".parse().unwrap(),
                "192.0.2.2:2".parse().unwrap(),
                TcpState::Established,
            )
        }
    }

    #[test]
    fn a_socket_tells_its_congestion_control_and_whether_its_buffer_grows() {
        let fixed = KnownHosts::sampled(&[sample("bbr", 100_000), sample("bbr", 100_000)]);
        assert_eq!((fixed.on_loss, fixed.is_send_buffer_fixed), (OnLoss::RunsBbr, true));
        let grows = KnownHosts::sampled(&[sample("cubic", 87_040), sample("cubic", 300_000)]);
        assert_eq!((grows.on_loss, grows.is_send_buffer_fixed), (OnLoss::SlowsDown, false));
        assert_eq!(KnownHosts::sampled(&[]), KnownHosts::default());
    }
}
