//! Exemplars: for each bucket of the histogram of lost time a connection that fell into it, with
//! the part of the recording that `record --sockets` has of it.
//!
//! A part has no name until it is complete, a minute later. So what lost most of a bucket waits
//! until the recording has it, and is then told with its own time, as OpenMetrics allows. What the
//! recording does not have is never told: a link that leads nowhere helps nobody. There is at most
//! one that waits and one that is told a bucket.

use fullpipe_host::history::{Sighting, Sought, is_there, sightings};
use fullpipe_host::totals::Observation;
use fullpipe_kernel::host::clock;
use fullpipe_model::units::{Duration, Instant};
use std::fmt::Write;
use std::path::PathBuf;

/// The least time between two looks into the recording, and the part of a core that they may take.
const STEP: Duration = Duration::from_secs(5);
const SPARED: f64 = 0.001;
/// For how long a moment that waits may be replaced by one that lost more.
const CHOICE: Duration = Duration::from_secs(30);

/// The exemplars of a histogram's buckets.
pub struct Exemplars {
    ring: PathBuf,
    /// Upper bounds of all buckets but the last, which has none.
    bounds: &'static [f64],
    buckets: Vec<Bucket>,
    due: Instant,
}

#[derive(Default)]
struct Bucket {
    waiting: Option<Unplaced>,
    told: Option<Exemplar>,
}

/// What is looked for in the recording.
#[derive(Clone, Copy)]
struct Unplaced {
    /// When the bucket began to wait.
    since: Instant,
    seen: Observation,
}

impl Unplaced {
    /// How much time was lost.
    fn lost(&self) -> f64 {
        self.seen.lost_share * self.seen.length.as_secs_f64()
    }
}

struct Exemplar {
    part: String,
    seen: Observation,
}

impl Exemplars {
    /// None yet, of the recording in the folder `ring`; buckets end at `bounds`.
    pub fn new(ring: PathBuf, bounds: &'static [f64]) -> Exemplars {
        let buckets = (0..=bounds.len()).map(|_| Bucket::default()).collect();
        Exemplars { ring, bounds, buckets, due: Instant::ZERO }
    }

    /// Notes what a look found at `now`.
    pub fn note(&mut self, observed: &[Observation], now: Instant) {
        for seen in observed {
            let bucket = self.bounds.iter().position(|bound| seen.lost_share <= *bound);
            let waiting = &mut self.buckets[bucket.unwrap_or(self.bounds.len())].waiting;
            let since = waiting.map_or(now, |old| old.since);
            let new = Unplaced { since, seen: *seen };
            let may_change = now.since(since) < CHOICE;
            if waiting.is_none_or(|old| may_change && old.lost() < new.lost()) {
                *waiting = Some(new);
            }
        }
        if now >= self.due {
            let start = clock::thread_cpu();
            self.look(clock::realtime_offset());
            let cost = clock::thread_cpu().saturating_sub(start).as_secs_f64();
            self.due = now + Duration::from_secs_f64(cost / SPARED).max(STEP);
        }
    }

    /// Looks for what waits, and forgets what the recording has dropped. The clock of observations
    /// is `offset` behind the calendar's.
    fn look(&mut self, offset: Duration) {
        for bucket in &mut self.buckets {
            bucket.told.take_if(|told| !is_there(&self.ring, &told.part));
        }
        let waiting = self.buckets.iter().enumerate();
        let (indices, sought): (Vec<usize>, Vec<Sought>) = waiting
            .filter_map(|(index, bucket)| {
                let seen = bucket.waiting?.seen;
                Some((index, Sought { at: seen.at + offset, ends: seen.ends }))
            })
            .unzip();
        if sought.is_empty() {
            return;
        }
        // A folder that is not there, or not yet, has nothing.
        let found = sightings(&self.ring, &sought, clock::now() + offset);
        let found = found.unwrap_or_else(|_| vec![Sighting::Nowhere; sought.len()]);
        for ((index, sought), sighting) in indices.into_iter().zip(sought).zip(found) {
            let bucket = &mut self.buckets[index];
            match (sighting, bucket.waiting) {
                (Sighting::NotYet, _) | (_, None) => continue,
                (Sighting::Nowhere, _) => {}
                (Sighting::In(part), Some(Unplaced { seen, .. })) => {
                    let seen = Observation { at: sought.at, ..seen };
                    bucket.told = Some(Exemplar { part, seen });
                }
            }
            bucket.waiting = None;
        }
    }

    /// `text` with the exemplars behind the buckets of `histogram`, as OpenMetrics writes them.
    pub fn within(&self, text: &str, histogram: &str) -> String {
        let start = format!("{histogram}_bucket{{");
        let mut out = String::with_capacity(text.len() + 1024);
        let mut told = self.buckets.iter().map(|bucket| bucket.told.as_ref());
        for line in text.lines() {
            out.push_str(line);
            if line.starts_with(&start)
                && let Some(exemplar) = told.next().flatten()
            {
                exemplar.write(&mut out);
            }
            out.push('\n');
        }
        out
    }
}

impl Exemplar {
    fn write(&self, out: &mut String) {
        let Observation { lost_share, at, ends: (local, remote), .. } = self.seen;
        // A String takes everything.
        let _ = write!(
            out,
            " # {{recording=\"{}\",network_local_port=\"{}\",network_peer_port=\"{}\"}} \
             {lost_share} {}.{:03}",
            self.part,
            local.port(),
            remote.port(),
            at.as_nanos() / 1_000_000_000,
            at.as_nanos() / 1_000_000 % 1000,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_host::history::HistoryRing;
    use fullpipe_model::units::Bytes;
    use std::io::Write;

    const BOUNDS: &[f64] = &[0.0, 0.5];

    fn seen(lost_share: f64, seconds: u64, port: u16) -> Observation {
        let ends = (([192, 0, 2, 1], 443).into(), ([192, 0, 2, 2], port).into());
        let length = Duration::from_secs(seconds);
        Observation { goodput: 1.0, lost_share, at: clock::now(), length, ends }
    }

    /// A part that is complete now and has these connections of port 443.
    fn part(ports: &[u16]) -> Vec<u8> {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        for port in ports {
            let ends = format!("\"local\":\"192.0.2.1:443\",\"remote\":\"192.0.2.2:{port}\"");
            writeln!(out, "{{\"at_ns\":1,{ends},\"note\":{{}}}}").unwrap();
        }
        out.finish().unwrap()
    }

    fn text(exemplars: &Exemplars) -> Vec<String> {
        let text =
            "x_sum 7\nx_bucket{le=\"0.0\"} 1\nx_bucket{le=\"0.5\"} 2\nx_bucket{le=\"+Inf\"} 3\n";
        exemplars.within(text, "x").lines().map(Into::into).collect()
    }

    #[test]
    fn what_lost_most_is_told_once_the_recording_has_it_and_as_long_as_it_does() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("ring");
        let mut ring = HistoryRing::begin(&path, Bytes::new(100_000)).unwrap();
        let mut exemplars = Exemplars::new(path.clone(), BOUNDS);
        let now = clock::now();
        let offset = clock::realtime_offset();
        let all = [seen(0.4, 1, 1), seen(0.3, 2, 2), seen(0.2, 1, 3), seen(0.9, 1, 4)];
        exemplars.note(&all, now);
        exemplars.look(offset);
        assert!(text(&exemplars).iter().all(|line| !line.contains('#')), "nothing is recorded yet");
        // The part begins before them and is complete now; the one of port 4 was not kept.
        let begun = (now + offset).saturating_sub(Duration::from_secs(2));
        assert!(ring.add(begun, &part(&[1, 2, 3])).is_none());
        exemplars.look(offset);
        let lines = text(&exemplars);
        let (_, exemplar) = lines[2].split_once("2 # ").expect(&lines[2]);
        let (labels, rest) = exemplar.split_once("} ").unwrap();
        assert!(labels.contains("network_local_port=\"443\",network_peer_port=\"2\""), "{labels}");
        // OpenMetrics: names and values of the labels have at most 128 characters together.
        assert!(labels.len() <= 128, "{labels}");
        let (value, at) = rest.split_once(' ').unwrap();
        assert_eq!(value, "0.3");
        let at = Duration::from_secs_f64(at.parse().unwrap());
        assert!((Instant::ZERO + at).since(begun) < Duration::from_secs(60), "{at}");
        let name = labels.split('"').nth(1).unwrap();
        assert!(path.join(name).exists(), "{name}");
        assert!(!lines[1].contains('#') && !lines[3].contains('#'), "{lines:?}");
        // A part that the ring dropped is no place to lead to.
        std::fs::remove_file(path.join(name)).unwrap();
        exemplars.look(offset);
        assert!(text(&exemplars).iter().all(|line| !line.contains('#')));
    }
}
