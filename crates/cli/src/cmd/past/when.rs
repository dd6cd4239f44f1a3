//! The time that `--at` means: a time of day, a date with a time (RFC 3339), or how long ago.

use crate::sentence::Sentence;
use fullpipe_kernel::host::clock;
use fullpipe_model::units::{Duration, Instant};
use std::time::{SystemTime, UNIX_EPOCH};

/// When something began, as it is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// So long ago.
    Ago(Duration),
    /// The latest moment at which the clocks here showed this: hour, minute, second.
    Clock(u8, u8, u8),
    /// This moment, since 1970.
    Moment(Instant),
}

impl When {
    /// The moment that is meant, since 1970; `None` where there is none before `now`.
    pub fn before(self, now: Instant) -> Option<Instant> {
        match self {
            When::Ago(time) => Some(now.saturating_sub(time)),
            When::Clock(hour, minute, second) => clock::latest_local(hour, minute, second, now),
            When::Moment(at) => (at < now).then_some(at),
        }
    }
}

/// Reads it.
///
/// # Errors
/// It is none of the three.
pub fn when(text: &str) -> Result<When, Sentence> {
    let found = match text.strip_prefix('-') {
        Some(ago) => ago.parse().ok().map(When::Ago),
        None => time_of_day(text).or_else(|| moment(text)),
    };
    found.ok_or_else(|| {
        Sentence::new(
            format!(
                "'{text}' is no time; use 03:00, 2026-11-30T03:00:00Z, 2026-11-30T03:00:00+08:00 or -10m"
            ),
            format!(
                "'{text}' 不是时间；请用 03:00、2026-11-30T03:00:00Z、2026-11-30T03:00:00+08:00 或 -10m"
            ),
        )
    })
}

/// `03:00` or `03:00:30`.
fn time_of_day(text: &str) -> Option<When> {
    let mut parts = text.split(':').map(two_digits);
    let (hour, minute) = (parts.next()??, parts.next()??);
    let second = parts.next().unwrap_or(Some(0))?;
    let is_one = parts.next().is_none() && hour < 24 && minute < 60 && second < 60;
    is_one.then_some(When::Clock(hour, minute, second))
}

fn two_digits(text: &str) -> Option<u8> {
    (text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| text.parse().ok())?
}

/// A date and a time with their distance to UTC.
fn moment(text: &str) -> Option<When> {
    let (utc, ahead) = match text.strip_suffix(['Z', 'z']) {
        Some(utc) => (utc, 0),
        None => {
            let at = text.len().checked_sub("+08:00".len())?;
            let (utc, zone) = (text.get(..at)?, text.get(at..)?);
            let (hours, minutes) = zone.get(1..)?.split_once(':')?;
            let (hours, minutes) = (two_digits(hours)?, two_digits(minutes)?);
            let seconds = i64::from(hours) * 3600 + i64::from(minutes) * 60;
            let is_one = hours < 24 && minutes < 60;
            match zone.as_bytes().first().filter(|_| is_one)? {
                b'+' => (utc, seconds),
                b'-' => (utc, -seconds),
                _ => return None,
            }
        }
    };
    let time = humantime::parse_rfc3339(&format!("{utc}Z")).ok()?;
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    let nanos = i64::try_from(since.as_nanos()).ok()?.checked_sub(ahead * 1_000_000_000)?;
    Some(When::Moment(Instant::from_nanos(u64::try_from(nanos).ok()?)))
}

/// A moment since 1970, to the second, in UTC.
pub fn calendar(at: Instant) -> String {
    let time: SystemTime = UNIX_EPOCH + std::time::Duration::from_nanos(at.as_nanos());
    humantime::format_rfc3339_seconds(time).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_can_be_typed_is_read() {
        assert_eq!(when("03:00").ok(), Some(When::Clock(3, 0, 0)));
        assert_eq!(when("23:59:58").ok(), Some(When::Clock(23, 59, 58)));
        assert_eq!(when("-10m").ok(), Some(When::Ago(Duration::from_secs(600))));
        // By `date -d TEXT +%s`.
        let at = Some(When::Moment(Instant::from_nanos(1_795_998_000_000_000_000)));
        for text in
            ["2026-11-30T00:20:00Z", "2026-11-30T08:20:00+08:00", "2026-11-29T20:50:00-03:30"]
        {
            assert_eq!(when(text).ok(), at, "{text}");
        }
        for text in ["", "-", "3", "3:00", "24:00", "03:60", "03:00:60", "1:2:3:4", "-x", "noon"] {
            assert!(when(text).is_err(), "{text}");
        }
        assert!(when("2026-11-30T03:00:00").is_err(), "nobody knows in which zone");
    }

    #[test]
    fn what_has_not_come_yet_is_no_time_of_a_recording() {
        let now = Instant::from_nanos(2_000_000_000);
        assert_eq!(When::Moment(now).before(now), None);
        assert_eq!(
            When::Ago(Duration::from_secs(1)).before(now).unwrap().as_nanos(),
            1_000_000_000
        );
        assert_eq!(calendar(now), "1970-01-01T00:00:02Z");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[-+0-9:TZ.]{0,30}|\\PC{0,20}") {
            let _ = when(&text);
        }
    }
}
