//! What the kernel said of a socket over time, for the graphs: [`SocketSeries`], from samples.

use super::differences::{Differences, number};
use fullpipe_model::observe::Sample;
use fullpipe_model::units::{Duration, Instant};
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::collections::BTreeSet;

/// The kernel's slow-start threshold before any loss (`TCP_INFINITE_SSTHRESH`, include/net/tcp.h).
const INFINITE: u32 = 0x7fff_ffff;

/// Whose socket was sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    /// The end that opened the connection.
    Client,
    /// The other end.
    Server,
}

/// Samples of one socket, for the graphs. Where there are too many, those with the extremes of each
/// column in each stretch of time are kept.
///
/// It serialises as the type of the same name in the page's contract, web/src/data.ts.
#[derive(Debug, Clone, serde::Serialize)]
pub struct SocketSeries {
    end: Owner,
    congestion_control: Option<String>,
    #[serde(rename = "time_us", serialize_with = "as_differences")]
    time: Vec<i64>,
    columns: SampleColumns,
}

/// The columns, each with a value a sample, or `None` where the kernel did not say.
#[derive(Debug, Clone, Default)]
struct SampleColumns(Vec<(&'static str, Vec<Option<u64>>)>);

/// A column's name, and how a sample gives its value.
type SampleColumn = (&'static str, fn(&Sample) -> Option<u64>);

const COLUMNS: [SampleColumn; 8] = [
    ("cwnd_bytes", |sample| segments(sample, |info| Some(info.snd_cwnd))),
    ("ssthresh_bytes", |sample| {
        segments(sample, |info| Some(info.snd_ssthresh).filter(|segments| *segments < INFINITE))
    }),
    ("rtt_us", |sample| {
        let rtt = sample.info.as_ref()?.rtt;
        Some(rtt.as_micros()).filter(|_| rtt > Duration::ZERO)
    }),
    ("send_queue_bytes", |sample| Some(sample.wqueue.get())),
    ("notsent_bytes", |sample| sample.info.as_ref()?.notsent_bytes.map(|bytes| bytes.get())),
    ("receive_queue_bytes", |sample| Some(sample.rqueue.get())),
    ("receive_buffer_bytes", |sample| Some(sample.memory?.rcvbuf.get())),
    ("read_bytes", |sample| {
        let received = sample.info.as_ref()?.bytes_received?;
        Some(received.saturating_sub(sample.rqueue).get())
    }),
];

/// A number of segments in bytes.
fn segments(
    sample: &Sample,
    of: impl Fn(&fullpipe_model::observe::TcpInfo) -> Option<u32>,
) -> Option<u64> {
    let info = sample.info.as_ref()?;
    Some(u64::from(of(info)?).saturating_mul(info.snd_mss.get()))
}

impl SocketSeries {
    /// The series of one socket's samples, which are in order of time. Times count from `start`,
    /// which is the connection's first packet where there is a capture. At most `most` samples are
    /// kept, and never fewer than the extremes of the whole.
    pub fn new(end: Owner, samples: &[Sample], start: Instant, most: usize) -> Self {
        let kept: Vec<&Sample> =
            kept(samples, most).into_iter().map(|index| &samples[index]).collect();
        let known = COLUMNS
            .map(|(name, of)| (name, kept.iter().map(|sample| of(sample)).collect::<Vec<_>>()))
            .into_iter();
        SocketSeries {
            end,
            congestion_control: samples.iter().find_map(|one| one.congestion_control.clone()),
            time: kept.iter().map(|sample| micros_after(start, sample.at)).collect(),
            columns: SampleColumns(
                known.filter(|(_, values)| values.iter().any(Option::is_some)).collect(),
            ),
        }
    }
}

/// The time from `start` to `at` in µs; negative where that is before.
fn micros_after(start: Instant, at: Instant) -> i64 {
    number(at.since(start).as_micros()) - number(start.since(at).as_micros())
}

/// The indices of the samples that are kept.
fn kept(samples: &[Sample], most: usize) -> BTreeSet<usize> {
    if samples.len() <= most {
        return (0..samples.len()).collect();
    }
    let mut stretches = (most / 2).max(1);
    loop {
        let kept = extremes(samples, stretches);
        if kept.len() <= most || stretches == 1 {
            return kept;
        }
        // Fewer stretches, by as much as there were too many, and at least one.
        stretches = (stretches * most / kept.len()).min(stretches - 1).max(1);
    }
}

/// The samples with the extremes of each column in each of so many stretches, the first and the
/// last.
fn extremes(samples: &[Sample], stretches: usize) -> BTreeSet<usize> {
    let length = samples.len().div_ceil(stretches).max(1);
    let mut kept = BTreeSet::from([0, samples.len().saturating_sub(1)]);
    for first in (0..samples.len()).step_by(length) {
        let stretch = first..(first + length).min(samples.len());
        for (_, of) in COLUMNS {
            let known = stretch.clone().filter_map(|index| Some((of(&samples[index])?, index)));
            let ends = [known.clone().min(), known.max()];
            kept.extend(ends.into_iter().flatten().map(|(_, index)| index));
        }
    }
    kept
}

fn as_differences<S: Serializer>(times: &[i64], s: S) -> Result<S::Ok, S::Error> {
    Differences(times.iter().copied()).serialize(s)
}

impl Serialize for SampleColumns {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(Some(self.0.len()))?;
        for (name, values) in &self.0 {
            map.serialize_entry(name, values)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_model::observe::{TcpInfo, TcpState};
    use fullpipe_model::units::Bytes;
    use proptest::prelude::*;

    fn sample(millis: u64, wqueue: u64) -> Sample {
        let info = TcpInfo {
            snd_cwnd: 10,
            snd_ssthresh: INFINITE,
            snd_mss: Bytes::new(1448),
            rtt: Duration::from_millis(20),
            ..TcpInfo::default()
        };
        Sample {
            wqueue: Bytes::new(wqueue),
            congestion_control: Some("cubic".into()),
            info: Some(info),
            ..Sample::new(
                Instant::ZERO + Duration::from_millis(millis),
                ([192, 0, 2, 1], 80).into(),
                ([192, 0, 2, 2], 40_000).into(),
                TcpState::Established,
            )
        }
    }

    #[test]
    fn what_the_kernel_does_not_say_is_absent() {
        let samples = [sample(10, 5), sample(30, 7)];
        let start = Instant::ZERO + Duration::from_millis(20);
        let series = SocketSeries::new(Owner::Server, &samples, start, 100);
        let json = serde_json::to_value(&series).unwrap();
        assert_eq!(
            json,
            serde_json::json!({
                "end": "server",
                "congestion_control": "cubic",
                "time_us": [-10_000, 20_000],
                "columns": {
                    "cwnd_bytes": [14_480, 14_480],
                    "rtt_us": [20_000, 20_000],
                    "send_queue_bytes": [5, 7],
                    "receive_queue_bytes": [0, 0],
                }
            })
        );
    }

    proptest! {
        #[test]
        fn fewer_samples_have_the_same_extremes(
            queues in prop::collection::vec(0_u64..1000, 1..400),
            most in 20_usize..200,
        ) {
            let timed = queues.iter().zip(0..);
            let samples: Vec<Sample> = timed.map(|(queue, ms)| sample(ms, *queue)).collect();
            let kept = kept(&samples, most);
            prop_assert!(kept.len() <= most);
            let of_kept = || kept.iter().map(|index| queues[*index]);
            prop_assert_eq!(of_kept().min(), queues.iter().copied().min());
            prop_assert_eq!(of_kept().max(), queues.iter().copied().max());
            prop_assert_eq!(kept.last(), Some(&(queues.len() - 1)));
        }
    }
}
