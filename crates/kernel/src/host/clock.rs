//! The clock of all shells: `CLOCK_MONOTONIC` as the model's [`Instant`], and its offset to the
//! calendar.
//!
//! [`now`] stamps the packets, socket samples and intervals of a run, so they can be compared
//! without correction. A capture file needs the time since 1970: add [`realtime_offset`], read once
//! for each run, so that a step of the wall clock during a run does not show in the capture.

use fullpipe_model::units::{Duration, Instant};

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec for the kernel to fill; the two clocks asked for exist on
    // every Linux.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The time since some point at or before boot. It never steps back and is the same for all
/// processes of the machine.
pub fn now() -> Instant {
    Instant::from_nanos(read(libc::CLOCK_MONOTONIC))
}

/// The difference between [`now`] and the time since 1970-01-01 UTC.
///
/// The wall clock is read between two readings of the monotonic clock. The closest of a few such
/// pairs counts, so the error is about the time of one reading (well below a microsecond unless the
/// machine is suspended in between).
pub fn realtime_offset() -> Duration {
    let (_, offset) = (0..8).map(|_| read_pair()).min().unwrap_or_else(read_pair);
    Duration::from_nanos(offset)
}

/// How long a pair of readings took, and the offset that it shows, both in nanoseconds.
fn read_pair() -> (u64, u64) {
    let before = read(libc::CLOCK_MONOTONIC);
    let wall = read(libc::CLOCK_REALTIME);
    let after = read(libc::CLOCK_MONOTONIC);
    (after - before, wall.saturating_sub(before + (after - before) / 2))
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
