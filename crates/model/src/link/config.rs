//! The configuration of one direction of a path.

use super::changes::{Changes, Steps};
use super::distribution::{Distribution, Table};
use super::slot::Spacing;
use super::trace::Trace;
use super::{Capacity, Chance, Delay, Discipline, Loss, Overhead, QueueLimit, Reorder, Slot};
use crate::units::{Bytes, Duration, Probability, Rate};

/// By default a queue has room for at least this many full-size packets: a short path has a tiny
/// BDP, but no real queue is that short.
const DEFAULT_QUEUE_PACKETS_MIN: u64 = 64;

/// The size of a packet if only the number of packets is known (the usual MTU of Ethernet).
const FULL_PACKET: u64 = 1500;

/// The highest rate that is not taken for a typing error.
const RATE_MAX: Rate = Rate::from_bits_per_sec(1_000_000_000_000);
const DELAY_MAX: Duration = Duration::from_secs(60);
/// The shortest period of repeated changes, so that no packet crosses a million changes.
const CHANGE_MIN: Duration = Duration::from_millis(1);

/// One direction of a path. The default is a path that does nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Config {
    /// Propagation delay, one way, and its jitter.
    pub delay: Delay,
    /// Rate in bits of IP packets per second; `None`: no serialisation time.
    pub rate: Option<Rate>,
    /// Bytes of the rate that a packet takes in addition to its own.
    pub overhead: Overhead,
    /// The room of the queue in front of the transmitter.
    pub queue: QueueLimit,
    /// The queue discipline.
    pub discipline: Discipline,
    /// Which packets are lost.
    pub loss: Loss,
    /// Which packets are duplicated.
    pub duplicate: Chance,
    /// Which packets get a flipped bit.
    pub corrupt: Chance,
    /// Which packets skip the delay.
    pub reorder: Option<Reorder>,
    /// Bursts in which packets leave.
    pub slot: Option<Slot>,
    /// How rate and delay change over time.
    pub changes: Option<Changes>,
}

/// Why a direction cannot be emulated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A rate of zero carries nothing.
    #[error(
        "link rate 0 carries nothing: leave `rate` out for a link without one, or use loss = \"100%\""
    )]
    NoRate,
    /// Faster than any real link.
    #[error("link rate {0} is above {RATE_MAX}, the highest possible")]
    Rate(Rate),
    /// Longer than any real path.
    #[error("link delay {0} is above {DELAY_MAX}, the longest possible")]
    Delay(Duration),
    /// A queue in time or BDP needs a rate.
    #[error("link queue {0} needs a rate: without one nothing ever queues")]
    QueueWithoutRate(QueueLimit),
    /// The queue cannot hold a packet.
    #[error("link queue {0} holds less than one packet of {FULL_PACKET} bytes")]
    QueueTooSmall(QueueLimit),
    /// A combination of values without a meaning.
    #[error("link {0}")]
    Senseless(String),
    /// A file named by a word has not been read.
    #[error(
        "link {word} file:{path} has not been read: a file can be named only where files are read"
    )]
    FileNotRead {
        /// The word.
        word: &'static str,
        /// The file.
        path: String,
    },
    /// A file named by a word cannot be used.
    #[error("read {path} for link {word}: {problem}")]
    File {
        /// The word.
        word: &'static str,
        /// The file.
        path: String,
        /// The problem.
        problem: String,
    },
}

impl Config {
    /// Checks bounds and combinations. Every configuration from outside passes through here.
    ///
    /// # Errors
    /// Values that are impossible, with the reason.
    pub fn checked(self) -> Result<Self, ConfigError> {
        let rate = self.mean_rate();
        match rate {
            Some(Rate::ZERO) => return Err(ConfigError::NoRate),
            Some(rate) if rate > RATE_MAX => return Err(ConfigError::Rate(rate)),
            None if matches!(self.queue, QueueLimit::Time(_)) => {
                return Err(ConfigError::QueueWithoutRate(self.queue));
            }
            _ => {}
        }
        let holds = match (self.queue, rate) {
            (QueueLimit::Bytes(bytes), _) => bytes.get(),
            (QueueLimit::Packets(packets), _) => packets.saturating_mul(FULL_PACKET),
            (QueueLimit::Time(time), Some(rate)) => rate.over(time).get(),
            (QueueLimit::BdpPercent(percent), _) => u64::from(percent) * FULL_PACKET,
            (QueueLimit::Time(_), None) => FULL_PACKET,
        };
        if holds < FULL_PACKET {
            return Err(ConfigError::QueueTooSmall(self.queue));
        }
        self.check_delay()?;
        self.check_reorder()?;
        self.check_discipline()?;
        self.check_slot()?;
        self.check_changes()?;
        self.check_overhead()?;
        Ok(self)
    }

    fn check_delay(&self) -> Result<(), ConfigError> {
        let Delay { base, jitter, correlation, distribution } = &self.delay;
        if *base > DELAY_MAX {
            return Err(ConfigError::Delay(*base));
        }
        if let Distribution::File(path) = distribution {
            return Err(ConfigError::FileNotRead { word: "delay", path: path.clone() });
        }
        if jitter > base {
            return senseless(format!(
                "delay {base} with jitter {jitter}: jitter larger than the delay would have packets arrive before they \
                 were sent; raise the delay or lower the jitter"
            ));
        }
        if *jitter == Duration::ZERO
            && (*correlation > Probability::ZERO || *distribution != Distribution::Uniform)
        {
            return senseless(
                "delay has a correlation or a distribution but no jitter: there is nothing to spread; write for \
                 example \"100ms 10ms 30% distribution normal\""
                    .into(),
            );
        }
        Ok(())
    }

    fn check_reorder(&self) -> Result<(), ConfigError> {
        let late =
            self.delay.base > Duration::ZERO || self.changes.as_ref().is_some_and(Changes::delays);
        match self.reorder {
            Some(reorder) if !late => senseless(format!(
                "reorder {reorder} without a delay: a reordered packet overtakes those that wait for theirs; add delay, \
                 for example 10ms"
            )),
            _ => Ok(()),
        }
    }

    fn check_discipline(&self) -> Result<(), ConfigError> {
        if self.discipline != Discipline::DropTail && self.mean_rate().is_none() {
            return senseless(format!(
                "discipline {} needs a rate: without one nothing ever queues",
                self.discipline
            ));
        }
        match self.discipline {
            Discipline::Codel(codel) => check_codel(&codel.target, &codel.interval),
            Discipline::FqCodel(fq) => {
                if fq.quantum < Bytes::new(64) || fq.quantum > Bytes::new(1 << 20) {
                    return senseless(format!(
                        "discipline fq_codel quantum {} must be between 64 B and 1 MiB",
                        fq.quantum
                    ));
                }
                if fq.flows.get() > 65_536 {
                    return senseless(format!(
                        "discipline fq_codel flows {} must be at most 65536",
                        fq.flows
                    ));
                }
                check_codel(&fq.codel.target, &fq.codel.interval)
            }
            Discipline::Red(red) => match (red.min, red.max) {
                (Some(min), Some(max)) if min >= max => {
                    senseless(format!("discipline red min {min} must be below max {max}"))
                }
                (Some(min), None) => {
                    senseless(format!("discipline red min {min} without max: give both"))
                }
                (_, Some(max)) if max < Bytes::new(FULL_PACKET) => senseless(format!(
                    "discipline red max {max} is less than one packet of {FULL_PACKET} bytes"
                )),
                _ => Ok(()),
            },
            Discipline::DropTail | Discipline::Police | Discipline::Mark(_) => Ok(()),
        }
    }

    fn check_slot(&self) -> Result<(), ConfigError> {
        let Some(slot) = &self.slot else { return Ok(()) };
        let longest = match &slot.spacing {
            Spacing::Between { min, max } if min > max => {
                return senseless(format!("slot shortest {min} is longer than its longest {max}"));
            }
            Spacing::Between { max, .. } => *max,
            Spacing::Distributed { distribution: Distribution::File(path), .. } => {
                return Err(ConfigError::FileNotRead { word: "slot", path: path.clone() });
            }
            Spacing::Distributed { delay, jitter, .. } if jitter > delay => {
                return senseless(format!(
                    "slot delay {delay} with jitter {jitter}: the jitter must not be larger"
                ));
            }
            Spacing::Distributed { delay, .. } => *delay,
        };
        if longest == Duration::ZERO {
            return senseless(
                "slot of no length holds nothing back: give it one, for example 20ms".into(),
            );
        }
        if longest > DELAY_MAX {
            return senseless(format!("slot {longest} is above {DELAY_MAX}, the longest possible"));
        }
        if slot.bytes == Some(Bytes::ZERO) {
            return senseless(
                "slot of 0 bytes lets nothing through: leave `bytes` out for no such bound".into(),
            );
        }
        Ok(())
    }

    fn check_overhead(&self) -> Result<(), ConfigError> {
        if self.overhead == Overhead::NONE {
            return Ok(());
        }
        if self.rate.is_none() {
            return senseless(
                "overhead without a rate: there is nothing that it takes from".into(),
            );
        }
        if matches!(self.changes, Some(Changes::Trace(_))) {
            return senseless(
                "overhead with a trace: a trace says what leaves, overhead included".into(),
            );
        }
        if self.overhead.on_wire(Bytes::new(FULL_PACKET)) == Bytes::ZERO {
            return senseless(
                "overhead so negative that a packet takes nothing of the rate".into(),
            );
        }
        if self.overhead.cell.is_none() && self.overhead.cell_overhead != 0 {
            return senseless("rate has a cell overhead but no cell size".into());
        }
        Ok(())
    }

    fn check_changes(&self) -> Result<(), ConfigError> {
        match &self.changes {
            None => Ok(()),
            Some(Changes::TraceFile(path)) => {
                Err(ConfigError::FileNotRead { word: "changes trace", path: path.clone() })
            }
            Some(Changes::Trace(_)) if self.rate.is_some() => {
                senseless("rate beside a trace: the trace is the rate; leave `rate` out".into())
            }
            Some(Changes::Trace(_)) => Ok(()),
            Some(Changes::Steps(steps)) => self.check_steps(steps),
            Some(Changes::Handover(handover)) => {
                let interval = handover.interval;
                if handover.outage > Duration::ZERO && self.rate.is_none() {
                    return senseless(
                        "changes handover with an outage needs a rate: without one nothing waits"
                            .into(),
                    );
                }
                if interval < CHANGE_MIN || handover.outage >= interval {
                    return senseless(format!(
                        "changes handover {interval} with an outage of {}: the interval must be at least {CHANGE_MIN} \
                         and longer than the outage",
                        handover.outage
                    ));
                }
                if handover.delay_min > handover.delay_max {
                    return senseless(
                        "changes handover: the shortest delay is longer than the longest".into(),
                    );
                }
                if handover.delay_max > DELAY_MAX {
                    Err(ConfigError::Delay(handover.delay_max))
                } else {
                    Ok(())
                }
            }
        }
    }

    fn check_steps(&self, Steps { steps, every }: &Steps) -> Result<(), ConfigError> {
        if steps.windows(2).any(|pair| pair[0].at >= pair[1].at) {
            return senseless("changes: each must be later than the one before".into());
        }
        for step in steps {
            match step.rate {
                Some(Rate::ZERO) => {
                    return senseless("changes: rate 0 carries nothing; write `down`".into());
                }
                Some(rate) if rate > RATE_MAX => return Err(ConfigError::Rate(rate)),
                _ => {}
            }
            if step.delay.is_some_and(|delay| delay > DELAY_MAX) {
                return Err(ConfigError::Delay(step.delay.unwrap_or_default()));
            }
        }
        if self.rate.is_none() && steps.iter().any(|step| step.rate.is_some() || step.up.is_some())
        {
            return senseless(
                "changes of rate, or down and up, need a `rate` to begin with".into(),
            );
        }
        let Some(every) = *every else { return Ok(()) };
        if every < CHANGE_MIN || steps.last().is_some_and(|last| last.at >= every) {
            return senseless(format!(
                "changes every {every}: must be at least {CHANGE_MIN} and later than the last change"
            ));
        }
        let starts_down = steps
            .first()
            .is_some_and(|first| first.at == Duration::ZERO && first.up == Some(false));
        if starts_down && !steps.iter().any(|step| step.up == Some(true)) {
            return senseless(format!("changes every {every}: it is down all the time"));
        }
        Ok(())
    }

    /// The configuration with the files that it names, read by `read`. Without files it is
    /// unchanged.
    ///
    /// # Errors
    /// A file that `read` cannot provide (its answer says why) or that has the wrong contents.
    pub fn resolved(
        mut self,
        read: &mut dyn FnMut(&str) -> Result<Vec<u8>, String>,
    ) -> Result<Self, ConfigError> {
        read_table("delay", &mut self.delay.distribution, read)?;
        if let Some(Slot { spacing: Spacing::Distributed { distribution, .. }, .. }) =
            &mut self.slot
        {
            read_table("slot", distribution, read)?;
        }
        if let Some(Changes::TraceFile(path)) = &self.changes {
            let trace =
                read(path).and_then(|text| Trace::parse(&text).map_err(|error| error.to_string()));
            let trace = trace.map_err(|problem| ConfigError::File {
                word: "changes trace",
                path: path.clone(),
                problem,
            })?;
            self.changes = Some(Changes::Trace(trace));
        }
        Ok(self)
    }

    /// The rate; for a trace, its mean rate.
    pub fn mean_rate(&self) -> Option<Rate> {
        match &self.changes {
            Some(Changes::Trace(trace)) => Some(trace.mean_rate()),
            _ => self.rate,
        }
    }

    /// The room of the queue on a path of `rtt`.
    pub fn capacity(&self, rtt: Duration) -> Capacity {
        self.room(self.queue, rtt)
    }

    /// What `limit` means on a path of `rtt`.
    pub(super) fn room(&self, limit: QueueLimit, rtt: Duration) -> Capacity {
        let Some(rate) = self.mean_rate() else {
            return Capacity::Unlimited;
        };
        match limit {
            QueueLimit::Bytes(bytes) => Capacity::Bytes(bytes),
            QueueLimit::Packets(packets) => Capacity::Packets(packets),
            QueueLimit::Time(time) => Capacity::Bytes(rate.over(time)),
            QueueLimit::BdpPercent(percent) => {
                let bytes = u128::from(rate.over(rtt).get()) * u128::from(percent) / 100;
                let floor = DEFAULT_QUEUE_PACKETS_MIN * FULL_PACKET;
                Capacity::Bytes(Bytes::new(u64::try_from(bytes).unwrap_or(u64::MAX).max(floor)))
            }
        }
    }

    /// The longest propagation delay, as far as it is bounded; for a distribution, four standard
    /// deviations.
    pub fn delay_max(&self) -> Duration {
        let jitter = match self.delay.distribution {
            Distribution::Uniform => self.delay.jitter,
            _ => self.delay.jitter.saturating_mul(4),
        };
        let changed = match &self.changes {
            Some(Changes::Handover(handover)) => handover.delay_max,
            Some(Changes::Steps(steps)) => {
                steps.steps.iter().filter_map(|step| step.delay).max().unwrap_or_default()
            }
            _ => Duration::ZERO,
        };
        let slot = match &self.slot {
            Some(Slot { spacing: Spacing::Between { max, .. }, .. }) => *max,
            Some(Slot { spacing: Spacing::Distributed { delay, jitter, .. }, .. }) => {
                delay.saturating_add(jitter.saturating_mul(4))
            }
            None => Duration::ZERO,
        };
        self.delay.base.max(changed).saturating_add(jitter).saturating_add(slot)
    }

    /// The highest rate that it ever has.
    pub fn rate_max(&self) -> Option<Rate> {
        let changed = match &self.changes {
            Some(Changes::Steps(steps)) => steps.steps.iter().filter_map(|step| step.rate).max(),
            _ => None,
        };
        self.mean_rate().max(changed)
    }

    /// Bytes that can be on this direction at once, waiting or propagating; `None` without a rate.
    pub fn bytes_in_flight(&self, rtt: Duration) -> Option<Bytes> {
        let rate = self.rate_max()?;
        let queue = match self.capacity(rtt) {
            Capacity::Bytes(bytes) => bytes,
            Capacity::Packets(packets) => Bytes::new(packets.saturating_mul(FULL_PACKET)),
            Capacity::Unlimited => return None,
        };
        Some(rate.over(self.delay_max()).saturating_add(queue))
    }

    /// The number of full-size packets to allocate room for, within reason.
    pub(super) fn packets_in_flight(&self, capacity: Capacity) -> usize {
        const MOST: u64 = 1 << 20;
        let queue = match capacity {
            Capacity::Bytes(bytes) => bytes.get() / FULL_PACKET,
            Capacity::Packets(packets) => packets,
            Capacity::Unlimited => 4096,
        };
        let wire =
            self.rate_max().map_or(4096, |rate| rate.over(self.delay_max()).get() / FULL_PACKET);
        queue.saturating_add(wire).saturating_add(64).min(MOST) as usize
    }
}

/// Replaces the file that a distribution names by what `read` finds in it.
fn read_table(
    word: &'static str,
    distribution: &mut Distribution,
    read: &mut dyn FnMut(&str) -> Result<Vec<u8>, String>,
) -> Result<(), ConfigError> {
    let Distribution::File(path) = distribution else { return Ok(()) };
    let table = read(path).and_then(|text| Table::parse(&text).map_err(|error| error.to_string()));
    let table = table.map_err(|problem| ConfigError::File { word, path: path.clone(), problem })?;
    *distribution = Distribution::Table(table);
    Ok(())
}

fn senseless(problem: String) -> Result<(), ConfigError> {
    Err(ConfigError::Senseless(problem))
}

fn check_codel(target: &Duration, interval: &Duration) -> Result<(), ConfigError> {
    if *target == Duration::ZERO || *interval == Duration::ZERO || target >= interval {
        return senseless(format!(
            "discipline codel target {target} must be above 0 and below its interval {interval} (RFC 8289: 5 to 10 % of \
             it)"
        ));
    }
    Ok(())
}
