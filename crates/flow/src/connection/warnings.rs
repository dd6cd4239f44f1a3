//! Warnings: reasons to doubt a connection's facts, from where and how the capture was taken.

use super::half::Half;
use super::labels::Scale;
use super::vantage::Warning;

/// The largest segment of jumbo frames. A packet with more payload was merged by the host.
const SEGMENT_MAX: u32 = 9000;

/// The warnings, where `opener` opened the connection and `answerer` answered.
pub(super) fn warnings(opener: &Half, answerer: &Half, has_cut_headers: bool) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let both = [(opener, answerer), (answerer, opener)];
    if both.iter().any(|(from, to)| sends_super_packets(from, to)) {
        warnings.push(Warning::OffloadSuperPackets);
    }
    if both.iter().any(|(from, to)| is_unseen(from, to)) {
        warnings.push(Warning::OneSided);
    } else if both.iter().any(|(half, _)| half.lacks_data()) {
        warnings.push(Warning::CaptureDropped);
    }
    if both.iter().any(|(half, _)| half.is_captured_twice()) {
        warnings.push(Warning::CapturedTwice);
    }
    if has_cut_headers {
        warnings.push(Warning::HeadersCut);
    }
    if opener.payload + answerer.payload == 0 {
        return warnings;
    }
    match (opener.memory.scale, answerer.memory.scale) {
        (Scale::Unknown, _) | (_, Scale::Unknown) => warnings.push(Warning::HandshakeMissing),
        (_, Scale::Unused) if opener.manner.offers_scale => {
            warnings.push(Warning::WindowScaleRefused)
        }
        _ => {}
    }
    warnings
}

/// Whether packets were larger than the segments that the other end accepts.
fn sends_super_packets(from: &Half, to: &Half) -> bool {
    from.payload_max > to.manner.mss().map_or(SEGMENT_MAX, u32::from)
}

/// Whether no packet of `from` was captured although the other end acknowledged its data.
fn is_unseen(from: &Half, to: &Half) -> bool {
    from.packets == 0 && from.una().is_some() && to.packets > 1
}
