//! A path and its two ends as they were measured: by a capture, or by the sockets of a host.
//!
//! `why` and `analyze` fill a [`MeasuredPath`]; `prove` rebuilds it in the lab, and `tune` plans
//! for it. Whatever was not seen is absent, never zero, so that whoever reads it has to say what is
//! assumed instead. Two optional quantities may be zero because that is an observation: no loss,
//! and no queue.
//!
//! [`MeasuredPath::find`] reads one from the JSON of another command, where it is a value by itself
//! or under the key `path` of a row.

mod find;

pub use find::MeasuredPathError;

use super::Path;
use crate::law::{Framing, KernelVersion};
use crate::limit::{End, Limit};
use crate::units::{Bytes, Duration, Probability, Rate, Window, column};
use serde::{Deserialize, Serialize};

/// A path, its two ends and the transfer over it, as they were measured.
///
/// ```
/// use fullpipe_model::tune::MeasuredPath;
/// let row = r#"{"pid": 1, "path": {"rtt_us": 50000, "goodput_bps": 80000000}}"#;
/// let path: MeasuredPath = row.parse().unwrap();
/// assert_eq!(path.rtt.to_string(), "50 ms");
/// assert_eq!(path.rate, None);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written")]
pub struct MeasuredPath {
    /// Rate of the bottleneck, as its link counts it; absent if nothing shows it, because something
    /// else limited the transfer all the time.
    #[serde(
        rename = "rate_bps",
        with = "column::rate_optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub rate: Option<Rate>,
    /// Least round-trip time.
    #[serde(rename = "rtt_us", with = "column::micros")]
    pub rtt: Duration,
    /// The most that stood in the bottleneck's queue. Its capacity is at least that, and about that
    /// if it dropped packets.
    #[serde(
        rename = "queue_bytes",
        with = "column::bytes_optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub queue: Option<Bytes>,
    /// Share of segments that the path lost while its link was not the limit: its own losses, not
    /// those of a full queue.
    #[serde(with = "fraction", skip_serializing_if = "Option::is_none")]
    pub loss: Option<Probability>,
    /// How many segments that share was counted from; absent where that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_segments: Option<u64>,
    /// How many segments the path lost together, on average; absent where that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_run: Option<f64>,
    /// Share of the data's segments that were lost while the link was the limit: what its queue or
    /// its policer dropped.
    #[serde(with = "fraction", skip_serializing_if = "Option::is_none")]
    pub overflow: Option<Probability>,
    /// Discipline of the bottleneck's queue, in the words of a scenario (`codel`); absent where it
    /// is not known, and then it may be a plain queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discipline: Option<String>,
    /// Whether the queue dropped data while it held much less than at other times, as CoDel and RED
    /// do; absent where too few losses show it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drops_early: Option<bool>,
    /// The bucket of a policer, where one holds the transfer at [`Self::rate`].
    #[serde(
        rename = "policer_bytes",
        with = "column::bytes_optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub policer: Option<Bytes>,
    /// The policer drops the tails of bursts: [`Self::rate`] is the mean of what its bucket lets
    /// pass, and its own rate, which paced data would have, is not known.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub drops_tails: bool,
    /// Payload over time: of the whole transfer where [`Self::payload`] is present, else after its
    /// start-up.
    #[serde(rename = "goodput_bps", with = "column::rate")]
    pub goodput: Rate,
    /// The most that a round trip carried of it, so that the path carries at least that.
    #[serde(
        rename = "peak_bps",
        with = "column::rate_optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub peak: Option<Rate>,
    /// What the transfer carried, where it was seen from its beginning to its end.
    #[serde(
        rename = "payload_bytes",
        with = "column::bytes_optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub payload: Option<Bytes>,
    /// How long the transfer was seen from its first data on; absent where it had begun before.
    #[serde(
        rename = "watched_us",
        with = "column::micros_optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub watched: Option<Duration>,
    /// What limited the transfer for the largest share of its time: `limit`, with its `cause`.
    #[serde(flatten)]
    pub limited_by: Limit,
    /// The window above TCP's that held the transfer, where that was the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub application_window: Option<MeasuredGrants>,
    /// How data is segmented and framed.
    pub framing: Framing,
    /// The end that sends the data.
    pub sender: MeasuredEnd,
    /// The end that receives the data.
    pub receiver: MeasuredEnd,
}

/// A window above TCP's, as it was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasuredGrants {
    /// What may be sent beyond what the receiving program has granted.
    #[serde(rename = "window_bytes", with = "column::bytes")]
    pub window: Bytes,
    /// What it grants at a time; absent where that was not seen.
    #[serde(
        rename = "step_bytes",
        with = "column::bytes_optional",
        skip_serializing_if = "Option::is_none",
        default
    )]
    pub step: Option<Bytes>,
    /// The end whose program sets it.
    pub host: End,
}

/// One end of a measured transfer. A capture shows little of it, a socket of a live host most.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MeasuredEnd {
    /// Its kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<KernelVersion>,
    /// Congestion control of its socket, by the kernel's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion_control: Option<String>,
    /// Size of the buffer that matters, at most: `sk_sndbuf` of the sender, `sk_rcvbuf` of the
    /// receiver.
    #[serde(
        rename = "buffer_bytes",
        with = "column::bytes_optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub buffer: Option<Bytes>,
    /// How large autotuning may make that buffer: the third value of `tcp_wmem` of the sender,
    /// `tcp_rmem` of the receiver.
    #[serde(
        rename = "largest_bytes",
        with = "column::bytes_optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub largest: Option<Bytes>,
    /// Whether the application set that buffer (SO_SNDBUF, SO_RCVBUF), which ends autotuning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frozen_by_application: Option<bool>,
    /// Of the sender, the most that it had in flight; of the receiver, the largest window that it
    /// advertised.
    #[serde(
        rename = "window_bytes",
        with = "column::window_optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub window: Option<Window>,
    /// Whether its SYN offered a window scale.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_scaling: Option<bool>,
    /// Whether its SYN permitted selective acknowledgements.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sack: Option<bool>,
    /// The rate of its application, where that is the limit.
    #[serde(
        rename = "application_rate_bps",
        with = "column::rate_optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub application_rate: Option<Rate>,
}

impl MeasuredPath {
    /// A measurement with nothing but the figures that each has.
    pub fn new(rtt: Duration, goodput: Rate, limited_by: Limit) -> Self {
        MeasuredPath {
            rate: None,
            rtt,
            queue: None,
            loss: None,
            lost_segments: None,
            loss_run: None,
            overflow: None,
            discipline: None,
            drops_early: None,
            policer: None,
            drops_tails: false,
            goodput,
            peak: None,
            payload: None,
            watched: None,
            limited_by,
            application_window: None,
            framing: Framing::IP_1500,
            sender: MeasuredEnd::default(),
            receiver: MeasuredEnd::default(),
        }
    }

    /// The path to fill, where its bottleneck is known.
    pub fn path(&self) -> Option<Path> {
        let path = Path { framing: self.framing, ..Path::new(self.rate?, self.rtt) };
        // What stood in the queue is the least that it can hold.
        Some(Path { queue: self.queue.map_or(path.queue, |stood| stood.max(path.queue)), ..path })
    }

    /// One end.
    pub fn end(&self, end: End) -> &MeasuredEnd {
        match end {
            End::Sender => &self.sender,
            End::Receiver => &self.receiver,
        }
    }
}

/// A path as it is written: the end's details, the framing and the limit may be missing.
#[derive(Deserialize)]
struct Written {
    #[serde(rename = "rate_bps", default, with = "column::rate_optional")]
    rate: Option<Rate>,
    #[serde(rename = "rtt_us", with = "column::micros")]
    rtt: Duration,
    #[serde(rename = "queue_bytes", default, with = "column::bytes_optional")]
    queue: Option<Bytes>,
    #[serde(default, with = "fraction")]
    loss: Option<Probability>,
    #[serde(default)]
    lost_segments: Option<u64>,
    #[serde(default)]
    loss_run: Option<f64>,
    #[serde(default, with = "fraction")]
    overflow: Option<Probability>,
    #[serde(default)]
    discipline: Option<String>,
    #[serde(default)]
    drops_early: Option<bool>,
    #[serde(rename = "policer_bytes", default, with = "column::bytes_optional")]
    policer: Option<Bytes>,
    #[serde(default)]
    drops_tails: bool,
    #[serde(rename = "goodput_bps", with = "column::rate")]
    goodput: Rate,
    #[serde(rename = "peak_bps", default, with = "column::rate_optional")]
    peak: Option<Rate>,
    #[serde(rename = "payload_bytes", default, with = "column::bytes_optional")]
    payload: Option<Bytes>,
    #[serde(rename = "watched_us", default, with = "column::micros_optional")]
    watched: Option<Duration>,
    #[serde(default)]
    limit: Option<String>,
    #[serde(default)]
    cause: Option<String>,
    #[serde(default)]
    application_window: Option<MeasuredGrants>,
    #[serde(default)]
    framing: Option<Framing>,
    #[serde(default)]
    sender: MeasuredEnd,
    #[serde(default)]
    receiver: MeasuredEnd,
}

/// The longest round trip that is believed; a satellite's takes less than a second.
const LONGEST: Duration = Duration::from_secs(3600);
/// A longer transfer is repeated as one whose beginning was not seen.
const DAY: Duration = Duration::from_secs(86_400);

/// Why a written path cannot have been measured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum Impossible {
    #[error("{0} is 0; a measured path has both a round-trip time and a goodput")]
    Zero(&'static str),
    #[error("rtt_us is {0}; no round trip takes more than {LONGEST}")]
    Long(Duration),
    #[error("'{0}' is not a limit")]
    Limit(String),
}

impl TryFrom<Written> for MeasuredPath {
    type Error = Impossible;

    fn try_from(written: Written) -> Result<Self, Impossible> {
        if written.rtt == Duration::ZERO {
            return Err(Impossible::Zero("rtt_us"));
        }
        if written.rtt > LONGEST {
            return Err(Impossible::Long(written.rtt));
        }
        if written.goodput == Rate::ZERO {
            return Err(Impossible::Zero("goodput_bps"));
        }
        let limited_by = match written.limit {
            Some(name) => {
                Limit::from_names(&name, written.cause.as_deref()).ok_or(Impossible::Limit(name))?
            }
            None => Limit::Unknown,
        };
        Ok(MeasuredPath {
            rate: written.rate.filter(|rate| *rate > Rate::ZERO),
            rtt: written.rtt,
            queue: written.queue,
            loss: written.loss,
            lost_segments: written.lost_segments,
            overflow: written.overflow,
            discipline: written.discipline,
            drops_early: written.drops_early,
            watched: written.watched.filter(|time| (Duration::ZERO..=DAY).contains(time)),
            loss_run: written.loss_run.filter(|run| run.is_finite() && *run >= 1.0),
            policer: written.policer.filter(|bucket| *bucket > Bytes::ZERO),
            drops_tails: written.drops_tails,
            goodput: written.goodput,
            peak: written.peak.filter(|rate| *rate > Rate::ZERO),
            payload: written.payload.filter(|payload| *payload > Bytes::ZERO),
            limited_by,
            application_window: written
                .application_window
                .filter(|granted| granted.window > Bytes::ZERO),
            framing: written.framing.unwrap_or(Framing::IP_1500),
            sender: written.sender.known(),
            receiver: written.receiver.known(),
        })
    }
}

impl MeasuredEnd {
    /// Without the zeros that other programs write for what they do not know.
    fn known(self) -> Self {
        MeasuredEnd {
            buffer: self.buffer.filter(|size| *size > Bytes::ZERO),
            largest: self.largest.filter(|size| *size > Bytes::ZERO),
            window: self.window.filter(|window| *window > Window::ZERO),
            application_rate: self.application_rate.filter(|rate| *rate > Rate::ZERO),
            ..self
        }
    }
}

/// A probability as a number from 0 to 1, as programs write it.
mod fraction {
    use crate::units::Probability;
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub fn serialize<S: Serializer>(loss: &Option<Probability>, s: S) -> Result<S::Ok, S::Error> {
        match loss {
            Some(loss) => s.serialize_some(&loss.get()),
            None => s.serialize_none(),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Probability>, D::Error> {
        let number = Option::<f64>::deserialize(d)?;
        number
            .map(|number| {
                Probability::new(number).ok_or_else(|| {
                    de::Error::custom(format!("{number} is not a share from 0 to 1"))
                })
            })
            .transpose()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::limit::Cause;
    use proptest::prelude::*;

    /// Any measured path, with each optional quantity present or not.
    pub fn any_path() -> impl Strategy<Value = MeasuredPath> {
        let sized = || prop::option::of((1..u64::MAX).prop_map(Bytes::new));
        let rates = || prop::option::of((1..u64::MAX).prop_map(Rate::from_bits_per_sec));
        let share = prop::option::of((0.0..=1.0_f64).prop_map(Probability::new));
        let path = (
            (rates(), 1..=LONGEST.as_micros(), sized(), share.clone(), 1..u64::MAX, sized()),
            prop::sample::select(&Limit::ALL[..]),
            (64..=65_535_u64, any::<bool>(), prop::option::of(1.0..1e6), sized()),
        );
        let lost = (
            prop::option::of(any::<u64>()),
            share,
            prop::option::of(prop::sample::select(vec!["codel", "red", "odd?"])),
            prop::option::of(any::<bool>()),
            prop::option::of(0..=DAY.as_micros()),
            prop::option::of((1..u64::MAX, sized(), any::<bool>())),
        );
        (path, lost, any_end(), any_end()).prop_map(|(path, lost, sender, receiver)| {
            let (path, limited_by, framing) = path;
            let (rate, rtt, queue, loss, goodput, payload) = path;
            let (lost_segments, overflow, discipline, drops_early, watched, granted) = lost;
            MeasuredPath {
                lost_segments,
                overflow: overflow.flatten(),
                discipline: discipline.map(Into::into),
                drops_early,
                peak: rate,
                watched: watched.map(Duration::from_micros),
                rate,
                queue,
                loss: loss.flatten(),
                loss_run: framing.2,
                policer: framing.3,
                drops_tails: framing.3.is_some_and(|bucket| bucket.get() % 2 == 0),
                application_window: granted.map(|(window, step, is_receivers)| MeasuredGrants {
                    window: Bytes::new(window),
                    step,
                    host: if is_receivers { End::Receiver } else { End::Sender },
                }),
                payload,
                framing: Framing {
                    mtu: Bytes::new(framing.0),
                    timestamps: framing.1,
                    ..Framing::IP_1500
                },
                sender,
                receiver,
                ..MeasuredPath::new(
                    Duration::from_micros(rtt),
                    Rate::from_bits_per_sec(goodput),
                    limited_by,
                )
            }
        })
    }

    fn any_end() -> impl Strategy<Value = MeasuredEnd> {
        let sized = || prop::option::of((1..u64::MAX).prop_map(Bytes::new));
        let names = prop::option::of(prop::sample::select(vec!["cubic", "reno", "bbr", "odd?"]));
        let kernel = prop::option::of((2..9_u16, 0..30_u16));
        let flags = (prop::option::of(any::<bool>()), prop::option::of(any::<bool>()));
        (kernel, names, sized(), sized(), flags, sized(), sized()).prop_map(
            |(kernel, name, buffer, largest, (frozen, scaling), window, rate)| MeasuredEnd {
                kernel: kernel.map(|(major, minor)| KernelVersion::new(major, minor)),
                congestion_control: name.map(Into::into),
                buffer,
                largest,
                frozen_by_application: frozen,
                window: window.map(Window::new),
                window_scaling: scaling,
                sack: frozen,
                application_rate: rate.map(|bytes| Rate::from_bits_per_sec(bytes.get())),
            },
        )
    }

    #[test]
    fn columns_say_their_unit_and_the_unknown_is_absent() {
        let mut path = MeasuredPath::new(
            Duration::from_millis(50),
            "80mbit".parse().unwrap(),
            Limit::CongestionWindow(Cause::Loss),
        );
        path.sender.buffer = Some(Bytes::new(87_040));
        path.loss = Probability::new(0.001);
        let json = serde_json::to_value(&path).unwrap();
        assert_eq!(
            json,
            serde_json::json!({
                "rtt_us": 50_000,
                "loss": 0.001,
                "goodput_bps": 80_000_000,
                "limit": "congestion_window",
                "cause": "loss",
                "framing": {
                    "mtu_bytes": 1500, "ip": "ipv4", "timestamps": true, "link_overhead_bytes": 0
                },
                "sender": {"buffer_bytes": 87_040},
                "receiver": {},
            })
        );
    }

    #[test]
    fn a_queue_that_stood_is_the_least_that_the_path_can_hold() {
        let mut path = MeasuredPath::new(
            Duration::from_millis(50),
            Rate::from_bits_per_sec(1),
            Limit::Unknown,
        );
        assert_eq!(path.path(), None, "no rate, no path");
        path.rate = Some("100mbit".parse().unwrap());
        assert_eq!(path.path().unwrap().queue, Bytes::new(625_000), "one BDP, as usual");
        path.queue = Some(Bytes::new(2_000_000));
        assert_eq!(path.path().unwrap().queue, Bytes::new(2_000_000));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(path in any_path()) {
            let json = serde_json::to_string(&path).unwrap();
            let read: MeasuredPath = serde_json::from_str(&json).unwrap();
            prop_assert_eq!(&read, &path);
            prop_assert_eq!(json.parse::<MeasuredPath>().unwrap(), path);
        }
    }
}
