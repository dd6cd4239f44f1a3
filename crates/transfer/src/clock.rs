//! The clock of this crate: `CLOCK_MONOTONIC`, which is comparable with the kernel's other records
//! of the same run.

use fullpipe_model::units::Instant;
use nix::time::{ClockId, clock_gettime};

/// Nanoseconds of `CLOCK_MONOTONIC`.
pub(crate) fn now() -> Instant {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every Linux has CLOCK_MONOTONIC");
    Instant::from_nanos(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
}
