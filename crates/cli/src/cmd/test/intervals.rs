//! Lines of progress, as users of iperf3 know them.

use crate::terminal::{layout, print};
use fullpipe_model::units::{Bytes, Duration, Rate, column};
use fullpipe_peer::path_test::{Progress, Spec, TestDirection};
use serde::Serialize;

/// What passed in an interval.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Interval {
    /// When it began, from the start of the run.
    #[serde(rename = "start_us", with = "column::micros")]
    pub start: Duration,
    /// How long it was.
    #[serde(rename = "length_us", with = "column::micros")]
    pub length: Duration,
    /// What the far host acknowledged.
    #[serde(rename = "forward_bytes", with = "column::bytes")]
    pub forward: Bytes,
    /// What was read here.
    #[serde(rename = "reverse_bytes", with = "column::bytes")]
    pub reverse: Bytes,
    /// Segments that this host sent again.
    pub retransmitted_segments: u64,
}

/// Cuts a run into intervals.
pub struct Intervals {
    length: Duration,
    direction: TestDirection,
    prints: bool,
    /// How far it was at the end of the last interval.
    last: Progress,
    /// How far it was when it was last looked at.
    seen: Progress,
    done: Vec<Interval>,
}

/// What is left of a run is an interval of its own from this part of one on.
const LEAST_PART: f64 = 0.2;

impl Intervals {
    /// For a run; an interval of zero is none.
    pub fn new(length: Duration, spec: &Spec, prints: bool) -> Intervals {
        let prints = prints && length > Duration::ZERO;
        Intervals {
            length,
            direction: spec.direction,
            prints,
            last: Progress::default(),
            seen: Progress::default(),
            done: Vec::new(),
        }
    }

    /// Notes how far the run is.
    pub fn note(&mut self, now: &Progress) -> std::io::Result<()> {
        self.seen = now.clone();
        let is_whole = now.elapsed.saturating_sub(self.last.elapsed) >= self.length;
        if is_whole && self.length > Duration::ZERO { self.cut() } else { Ok(()) }
    }

    /// Ends an interval where the run was last seen.
    fn cut(&mut self) -> std::io::Result<()> {
        let now = self.seen.clone();
        let length = now.elapsed.saturating_sub(self.last.elapsed);
        let interval = Interval {
            start: self.last.elapsed,
            length,
            forward: now.forward.saturating_sub(self.last.forward),
            reverse: now.reverse.saturating_sub(self.last.reverse),
            retransmitted_segments: now
                .retransmitted_segments
                .saturating_sub(self.last.retransmitted_segments),
        };
        if self.prints {
            let text: String = self.lines(&interval, &now, layout().width).into_iter().collect();
            print(&text)?;
        }
        self.done.push(interval);
        self.last = now;
        Ok(())
    }

    /// The intervals, with what is left of the run.
    pub fn done(mut self) -> std::io::Result<Vec<Interval>> {
        let left = self.seen.elapsed.saturating_sub(self.last.elapsed).as_secs_f64();
        if self.length > Duration::ZERO && left >= LEAST_PART * self.length.as_secs_f64() {
            self.cut()?;
        }
        Ok(self.done)
    }

    fn lines(&self, one: &Interval, now: &Progress, width: Option<u16>) -> Vec<String> {
        let (start, end) = (one.start.as_secs_f64(), (one.start + one.length).as_secs_f64());
        let line = |way: &str, bytes: Bytes, rest: &[String]| {
            let rate = bytes.per(one.length).unwrap_or(Rate::ZERO);
            let megabytes = bytes.as_f64() / 1e6;
            let passed = format!(
                "{way} {start:6.2}-{end:<6.2} s {megabytes:9.2} MB {:>15}",
                rate.to_string()
            );
            format!("{}\n", with_as_much_as_fits(passed, rest, width))
        };
        let mut lines = Vec::new();
        if self.direction != TestDirection::Reverse {
            let rtt = now
                .rtt
                .map_or_else(String::new, |rtt| format!("  rtt {:.1} ms", rtt.as_millis_f64()));
            let rest = [
                format!("  retr {:<5}", one.retransmitted_segments),
                format!(" cwnd {:.1} KB", now.cwnd.as_f64() / 1e3),
                rtt,
            ];
            lines.push(line("[to]  ", one.forward, &rest));
        }
        if self.direction != TestDirection::Forward {
            lines.push(line("[from]", one.reverse, &[]));
        }
        lines
    }
}

/// `line` with as many of the `rest` as fit behind it, the first ones before the others.
fn with_as_much_as_fits(mut line: String, rest: &[String], width: Option<u16>) -> String {
    for part in rest {
        if width.is_none_or(|width| line.len() + part.trim_end().len() <= usize::from(width)) {
            line += part;
        }
    }
    line.truncate(line.trim_end().len());
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_peer::path_test::Amount;

    #[test]
    fn a_line_has_what_fits_and_all_of_it_where_there_is_no_terminal() {
        let rest = ["  retr 4    ", " cwnd 17680.4 KB", "  rtt 0.1 ms"].map(String::from);
        let fitting = |width| with_as_much_as_fits("x".repeat(50), &rest, width);
        assert_eq!(fitting(None), format!("{}{}", "x".repeat(50), rest.concat()));
        assert_eq!(fitting(Some(60)), format!("{}  retr 4", "x".repeat(50)));
        assert_eq!(fitting(Some(75)), format!("{}  retr 4      rtt 0.1 ms", "x".repeat(50)));
        assert_eq!(fitting(Some(50)), "x".repeat(50));
        assert!((50..120).all(|width| fitting(Some(width)).len() <= usize::from(width)));
    }

    #[test]
    fn an_interval_has_what_passed_since_the_last() {
        let amount = Amount::Time(Duration::from_secs(3));
        let direction = TestDirection::Forward;
        let spec = Spec { direction, connections: 1, amount, congestion: None };
        let mut intervals = Intervals::new(Duration::from_secs(1), &spec, false);
        for (millis, bytes) in [(500, 10), (1000, 40), (1500, 50), (2050, 100), (2500, 130)] {
            let progress = Progress {
                elapsed: Duration::from_millis(millis),
                forward: Bytes::new(bytes),
                ..Progress::default()
            };
            intervals.note(&progress).unwrap();
        }
        let done = intervals.done().unwrap();
        let passed: Vec<u64> = done.iter().map(|one| one.forward.get()).collect();
        assert_eq!(passed, [40, 60, 30]);
        assert_eq!(done[1].length, Duration::from_millis(1050));
    }
}
