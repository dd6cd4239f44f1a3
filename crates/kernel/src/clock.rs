//! The clock that all shells share: `CLOCK_MONOTONIC` as the model's [`Instant`], and the way from
//! there to the calendar.
//!
//! Packets, socket samples and intervals of a run are all stamped with [`now`], so that they can be
//! compared without correction. A capture file wants the time since 1970: add [`realtime_offset`],
//! taken once a run, so that a step of the wall clock in the middle of a run cannot tear the
//! capture.

use fullpipe_model::units::{Duration, Instant};

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec for the kernel to fill; the two clocks asked for exist on
    // every Linux.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The time since some point at or before boot; never steps back, is the same for all processes of
/// the machine.
pub fn now() -> Instant {
    Instant::from_nanos(read(libc::CLOCK_MONOTONIC))
}

/// What to add to [`now`] to get the time since 1970-01-01 UTC.
///
/// The wall clock is read between two readings of the monotonic clock; the closest of a few such
/// pairs counts, so the error is about the time of one reading (well under a microsecond on a
/// machine that is not suspended meanwhile).
pub fn realtime_offset() -> Duration {
    let pair = || {
        let before = read(libc::CLOCK_MONOTONIC);
        let wall = read(libc::CLOCK_REALTIME);
        let after = read(libc::CLOCK_MONOTONIC);
        (after - before, wall.saturating_sub(before + (after - before) / 2))
    };
    let (_, offset) = (0..8).map(|_| pair()).min().unwrap_or_else(pair);
    Duration::from_nanos(offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_passes_and_the_offset_leads_to_the_calendar() {
        let earlier = now();
        let offset = realtime_offset();
        let calendar = std::process::Command::new("date").arg("+%s").output().unwrap();
        let seconds: u64 = String::from_utf8(calendar.stdout).unwrap().trim().parse().unwrap();
        let ours = (now() + offset).as_nanos() / 1_000_000_000;
        assert!(now() > earlier);
        assert!(ours.abs_diff(seconds) <= 2, "{ours} against date's {seconds}");
    }
}
