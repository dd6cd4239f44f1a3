//! A line that says when the next look was taken: what `date` prints. Or the same in front of a
//! line, as `ts` of moreutils writes it.
//!
//! `date` in English, `date -Iseconds` and `-Ins`, `date +%s` with or without a fraction, `date
//! +%T`; in front of a line also in brackets, and without a year (`Nov 30 01:07:09`). Names of time
//! zones are passed over: only the time between looks counts, and a log is of one zone.

use crate::units::{Duration, Instant};

const SECOND: u64 = 1_000_000_000;
const DAY: u64 = 86_400;

/// When a look was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    at: Instant,
    /// Whether it says more than whole seconds.
    pub(super) has_fraction: bool,
    /// Whether it is a time of a day that it does not name.
    is_of_day: bool,
}

impl Stamp {
    /// The instant, for a look that follows one of `last`: at midnight a time of day begins anew.
    pub(super) fn after(self, last: Instant) -> Instant {
        let day = Duration::from_nanos(DAY * SECOND);
        if !self.is_of_day || self.at >= last {
            return self.at;
        }
        let days = last.since(self.at).as_nanos().div_ceil(day.as_nanos());
        self.at + day.saturating_mul(days)
    }
}

/// The stamp that a line is; `None` of any other line.
pub(super) fn read(line: &str) -> Option<Stamp> {
    const LONGEST: usize = 64;
    let line = line.trim_ascii();
    // A line of a socket is longer, and most lines are one.
    if line.is_empty() || line.len() > LONGEST || !line.is_ascii() {
        return None;
    }
    of_epoch(line).or_else(|| of_date(line)).or_else(|| {
        let time = TimeOfDay::read(line)?;
        Some(Stamp { is_of_day: true, ..stamp(0, time)? })
    })
}

/// What may be a stamp in front of a line, each with what stands behind it and one space: the first
/// words, the first two, and so on. A year may stand behind the time.
pub(super) fn in_front(line: &str) -> impl Iterator<Item = (Stamp, &str)> {
    /// `Sun 30 Nov 2025 01:07:09 AM UTC` has the most.
    const WORDS: usize = 7;
    let first = line.split(' ').next().unwrap_or(line).trim_start_matches('[');
    let may_be = first.starts_with(|one: char| one.is_ascii_digit())
        || month_of(first).is_some()
        || WEEKDAYS.iter().any(|day| first.starts_with(day));
    let ends = line.match_indices(' ').take(if may_be { WORDS } else { 0 });
    ends.filter_map(|(at, _)| {
        let words = line[..at].trim_start_matches('[').trim_end_matches([':', ']']);
        Some((read(words)?, &line[at + 1..]))
    })
}

const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/// Seconds since 1970, with or without a fraction: at least nine digits, so that no count is one.
fn of_epoch(line: &str) -> Option<Stamp> {
    let (seconds, fraction) = split_fraction(line);
    let is_time = (9..=11).contains(&seconds.len()) && is_digits(seconds);
    let nanos = nanos(fraction)?;
    let at = seconds.parse::<u64>().ok().filter(|_| is_time)?.checked_mul(SECOND)?;
    let at = Instant::from_nanos(at.checked_add(nanos)?);
    Some(Stamp { at, has_fraction: fraction.is_some(), is_of_day: false })
}

/// A date with a time, in the order of ISO 8601 or of `date`.
fn of_date(line: &str) -> Option<Stamp> {
    let mut words = line.split(|one: char| one.is_ascii_whitespace()).filter(|one| !one.is_empty());
    if let Some((year, rest)) = line.split_once('-').filter(|(year, _)| year.len() == 4) {
        let (month, rest) = rest.split_once('-')?;
        let (day, time) = rest.split_once(['T', ' '])?;
        let days = days(year.parse().ok()?, month.parse().ok()?, day.parse().ok()?)?;
        return stamp(days, TimeOfDay::read(time.trim_ascii_start())?);
    }
    // `Mon Nov 30 01:07:09 UTC 2026`, `Mon 30 Nov 2026 01:07:09 AM UTC`.
    let (mut day, mut month, mut year, mut time) = (None, None, None, None);
    let mut half = None;
    words.try_for_each(|word| {
        match word {
            "AM" => half = Some(0),
            "PM" => half = Some(12),
            _ if word.contains(':') => time = Some(TimeOfDay::read(word)?),
            _ if is_digits(word) && word.len() == 4 => year = Some(word.parse().ok()?),
            _ if is_digits(word) && word.len() < 3 => day = Some(word.parse().ok()?),
            _ if month.is_none() => month = month_of(word),
            _ => (),
        }
        Some(())
    })?;
    let mut time = time?;
    if let Some(half) = half {
        time.hours = time.hours % 12 + half;
    }
    stamp(days(year.unwrap_or(NO_YEAR), month?, day?)?, time)
}

/// The year of a date that names none: one with a 29th of February.
const NO_YEAR: u64 = 1972;

fn stamp(days: u64, time: TimeOfDay) -> Option<Stamp> {
    let TimeOfDay { hours, minutes, seconds, nanos, has_fraction, east } = time;
    let local = days * DAY + hours * 3600 + minutes * 60 + seconds;
    let seconds = local.checked_add_signed(-east)?;
    let at = seconds.checked_mul(SECOND)?.checked_add(nanos)?;
    Some(Stamp { at: Instant::from_nanos(at), has_fraction, is_of_day: false })
}

/// `01:07:09`, with or without a fraction and an offset.
#[derive(Debug, Clone, Copy)]
struct TimeOfDay {
    hours: u64,
    minutes: u64,
    seconds: u64,
    nanos: u64,
    has_fraction: bool,
    /// Seconds that the zone is before UTC.
    east: i64,
}

impl TimeOfDay {
    fn read(text: &str) -> Option<TimeOfDay> {
        let text = text.split_ascii_whitespace().next()?;
        let text = text.strip_suffix('Z').unwrap_or(text);
        let (clock, east) = match text.find(['+', '-']) {
            Some(at) => (&text[..at], offset(&text[at..])?),
            None => (text, 0),
        };
        let (clock, fraction) = split_fraction(clock);
        let mut parts = clock
            .split(':')
            .map(|part| part.parse::<u64>().ok().filter(|_| is_digits(part) && part.len() <= 2));
        let (hours, minutes, seconds) = (parts.next()??, parts.next()??, parts.next()??);
        let is_time = hours < 24 && minutes < 60 && seconds < 61 && parts.next().is_none();
        let (nanos, has_fraction) = (nanos(fraction)?, fraction.is_some());
        is_time.then_some(TimeOfDay { hours, minutes, seconds, nanos, has_fraction, east })
    }
}

/// `+01:00` or `-0330`, in seconds.
fn offset(text: &str) -> Option<i64> {
    let (sign, digits) = text.split_at(1);
    let digits: String = digits.chars().filter(|one| *one != ':').collect();
    let is_offset = is_digits(&digits) && matches!(digits.len(), 2 | 4);
    let number: i64 = digits.parse().ok().filter(|_| is_offset)?;
    let (hours, minutes) =
        if digits.len() == 2 { (number, 0) } else { (number / 100, number % 100) };
    let seconds = hours * 3600 + minutes * 60;
    Some(if sign == "-" { -seconds } else { seconds })
}

/// Days from 1970-01-01 to a date of the Gregorian calendar.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    let is_date = (1970..=9999).contains(&year) && (1..=12).contains(&month);
    if !is_date || !(1..=31).contains(&day) {
        return None;
    }
    // Years that begin in March end with the day that leap years add.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let before = year * 365 + year / 4 - year / 100 + year / 400;
    (before + (month * 153 + 2) / 5 + day - 1).checked_sub(719_468)
}

fn month_of(word: &str) -> Option<u64> {
    const NAMES: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let at = NAMES.iter().position(|name| word.starts_with(name))?;
    Some(at as u64 + 1)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The text before a decimal point or comma, and what follows it.
fn split_fraction(text: &str) -> (&str, Option<&str>) {
    text.split_once(['.', ',']).map_or((text, None), |(whole, part)| (whole, Some(part)))
}

/// A fraction of a second in nanoseconds.
fn nanos(fraction: Option<&str>) -> Option<u64> {
    let Some(digits) = fraction else { return Some(0) };
    let most = digits.get(..digits.len().min(9))?;
    let scale = 10_u64.pow(9 - most.len() as u32);
    most.parse::<u64>().ok().filter(|_| is_digits(digits)).map(|part| part * scale)
}
