//! The clock of all shells: `CLOCK_MONOTONIC` as the model's [`Instant`], and its offset to the
//! calendar.
//!
//! [`now`] stamps the packets, socket samples and intervals of a run, so they can be compared
//! without correction. A capture file needs the time since 1970: add [`realtime_offset`], read once
//! for each run, so that a step of the wall clock during a run does not show in the capture.

use fullpipe_model::units::{Duration, Instant};

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec for the kernel to fill; the clocks asked for exist on
    // every Linux.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The time since some point at or before boot. It never steps back and is the same for all
/// processes of the machine.
pub fn now() -> Instant {
    Instant::from_nanos(read(libc::CLOCK_MONOTONIC))
}

/// The processor time that the calling thread has taken.
pub fn thread_cpu() -> Duration {
    Duration::from_nanos(read(libc::CLOCK_THREAD_CPUTIME_ID))
}

/// The latest moment, not after `now` since 1970, at which the clocks of this machine's time zone
/// showed this time of day; `None` for a time that no day has.
pub fn latest_local(hour: u8, minute: u8, second: u8, now: Instant) -> Option<Instant> {
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let now = i64::try_from(now.as_nanos() / 1_000_000_000).ok()?;
    // SAFETY: a `tm` of zeroes is valid, and both pointers are to values of their types.
    let mut day: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    if unsafe { libc::localtime_r(&now, &mut day) }.is_null() {
        return None;
    }
    (0..=1).find_map(|days_ago| {
        let mut then = day;
        then.tm_mday -= days_ago;
        (then.tm_hour, then.tm_min, then.tm_sec) = (hour.into(), minute.into(), second.into());
        // Whether summer time held then is looked up.
        then.tm_isdst = -1;
        // SAFETY: `then` is a valid `tm`.
        let at = unsafe { libc::mktime(&mut then) };
        let at = u64::try_from(at).ok().filter(|_| at <= now)?;
        Some(Instant::from_nanos(at.checked_mul(1_000_000_000)?))
    })
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
    fn a_time_of_day_is_the_latest_one() {
        let now = now() + realtime_offset();
        let date = |at: Instant, form: &str| {
            let at = format!("@{}", at.as_nanos() / 1_000_000_000);
            let run = std::process::Command::new("date").args(["-d", &at, form]).output().unwrap();
            String::from_utf8(run.stdout).unwrap().trim().to_owned()
        };
        for (hour, minute) in [(0, 0), (3, 7), (12, 30), (23, 59)] {
            let at = latest_local(hour, minute, 0, now).unwrap();
            assert!(at <= now && now.since(at) < Duration::from_secs(25 * 3600));
            assert_eq!(date(at, "+%H:%M:%S"), format!("{hour:02}:{minute:02}:00"));
        }
        assert_eq!(latest_local(24, 0, 0, now), None);
        assert_eq!(latest_local(0, 60, 0, now), None);
    }

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
