//! What was not measured of a path, and what the lab has instead.

use crate::change::Knob;
use crate::law::KernelVersion;
use crate::limit::End;
use crate::units::{Bytes, Probability, Rate, Window};
use std::fmt;

/// Something that was not measured, and what is assumed. It is written as a sentence in English
/// ([`fmt::Display`]); what was read again is [`Assumption::Told`], and two of them are the same if
/// they say the same.
#[derive(Debug, Clone)]
pub enum Assumption {
    /// The path is of IPv6.
    Ipv4,
    /// Nothing shows what it carries beyond this.
    Rate {
        /// What was seen.
        seen: Rate,
        /// The lab's.
        lab: Rate,
    },
    /// Its queue was never full.
    LongerQueue {
        /// What stood in it.
        stood: Bytes,
        /// The lab's.
        lab: Bytes,
    },
    /// Nobody saw its queue; the lab's.
    Queue(Bytes),
    /// Segments were lost, which did not limit the transfer.
    HarmlessLoss(Probability),
    /// The same, as it carried more than loss at random allows.
    LossWithinRate(Probability),
    /// Each segment is lost with this probability.
    Loss(Probability),
    /// Segments are lost in a row.
    LossInRuns(Probability, f64),
    /// What the receiving program grants at a time.
    Grants(Bytes),
    /// The sender's congestion control.
    CongestionControl(String),
    /// Whether the application sets the buffer of an end.
    BufferAsked(End),
    /// The send buffer, by the law.
    SendBuffer(Bytes),
    /// The receive window, by the law.
    ReceiveWindow(Window),
    /// The buffer of an end, which is large enough.
    LargeBuffer(End),
    /// What the application writes at a time, by the law.
    Write(Bytes),
    /// The receiver's kernel makes another window of its buffer.
    OtherWindow {
        /// The lab's kernel.
        kernel: KernelVersion,
        /// The lab's buffer.
        buffer: Bytes,
    },
    /// A setting of an end belongs to its whole machine.
    OfTheMachine(Knob, End),
    /// Whether a program lets one set its window.
    ProgramWindow,
    /// Which congestion control repeats the measurement best.
    BestControl(String),
    /// Which discipline does; `None`: a plain queue.
    BestDiscipline(Option<String>),
    /// Which bucket of a policer does.
    BestBucket(Bytes),
    /// Which share of loss does, of those that so many lost segments allow.
    BestLoss(u64, Probability),
    /// A sentence that was read.
    Told(String),
}

impl fmt::Display for Assumption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Assumption::Ipv4 => f.write_str(
                "the lab's path is IPv4, with packets 20 bytes shorter than the IPv6 ones",
            ),
            Assumption::Rate { seen, lab } => write!(
                f,
                "nothing shows what the path carries beyond {seen}: the lab's link carries {lab}"
            ),
            Assumption::LongerQueue { stood, lab } => write!(
                f,
                "at most {stood} stood in the path's queue, which may hold more: the lab's holds {lab}"
            ),
            Assumption::Queue(lab) => {
                write!(f, "nobody saw the path's queue: the lab's holds {lab}")
            }
            Assumption::HarmlessLoss(seen) => write!(
                f,
                "the lost segments ({seen}) did not limit the transfer: the lab loses only what a full queue drops"
            ),
            Assumption::LossWithinRate(seen) => write!(
                f,
                "the lost segments ({seen}) did not limit the transfer, which carried more than loss at random allows: \
                 the lab loses only what a full queue drops"
            ),
            Assumption::Loss(seen) => {
                write!(f, "each segment is lost with the same probability, {seen}")
            }
            Assumption::LossInRuns(seen, run) => {
                write!(f, "{seen} of the segments are lost, at random, {run:.1} in a row")
            }
            Assumption::Grants(step) => write!(
                f,
                "what the receiving program grants at a time was not seen: {step} is assumed"
            ),
            Assumption::CongestionControl(name) => {
                write!(f, "the sender's congestion control was not seen: {name} is assumed")
            }
            Assumption::BufferAsked(end) => {
                let option = option(*end);
                write!(
                    f,
                    "whether the application sets {option} was not seen: if it does, no sysctl helps until it leaves that to \
                     the kernel"
                )
            }
            other => other.of_buffers(f),
        }
    }
}

/// What sets the buffer of an end.
fn option(end: End) -> &'static str {
    match end {
        End::Sender => "SO_SNDBUF",
        End::Receiver => "SO_RCVBUF",
    }
}

impl Assumption {
    /// Those of buffers, and what was chosen because it repeats the measurement.
    fn of_buffers(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Assumption::SendBuffer(buffer) => write!(
                f,
                "the send buffer was not seen: one of {buffer:#} gives the measured goodput by the law, so the lab's \
                 agreement says nothing of its size"
            ),
            Assumption::ReceiveWindow(window) => write!(
                f,
                "the receive window was not seen: one of {window} gives the measured goodput by the law, so the \
                 lab's agreement says nothing of its size"
            ),
            Assumption::LargeBuffer(end) => {
                write!(f, "the {end}'s buffer was not seen: the lab's is large enough")
            }
            Assumption::Write(write) => write!(
                f,
                "what the application writes at a time was not seen: {write:#} by the law"
            ),
            Assumption::OtherWindow { kernel, buffer } => write!(
                f,
                "the receiver's kernel makes another window of its buffer than the lab's {kernel}: the lab's buffer of {buffer:#} \
                 advertises the same window"
            ),
            Assumption::OfTheMachine(knob, end) => write!(
                f,
                "{knob} of the {end} belongs to the whole machine, so the lab does not try it"
            ),
            Assumption::ProgramWindow => f.write_str(
                "whether its program lets one set that window was not seen: HTTP/2's receivers \
                 and `sftp -R` do; OpenSSH's channel is fixed, and several transfers side by \
                 side, or HPN-SSH, take its place",
            ),
            Assumption::BestControl(name) => write!(
                f,
                "the sender's congestion control was not seen: of the usual ones, {name} repeats the measurement best"
            ),
            Assumption::BestDiscipline(queue) => write!(
                f,
                "the queue drops before it is as full as it was at times: {} repeats the measurement best",
                queue.as_deref().unwrap_or("a plain queue")
            ),
            Assumption::BestBucket(bucket) => write!(
                f,
                "the policer's bucket shows only as far as it was used up: one of {bucket} repeats the measurement best"
            ),
            Assumption::BestLoss(lost, share) => write!(
                f,
                "{lost} lost segments tell the path's loss only roughly: of the shares that they allow, {share} repeats the \
                 measurement best"
            ),
            Assumption::Told(told) => f.write_str(told),
            // Those of the path are written by their caller.
            _ => Ok(()),
        }
    }
}

impl PartialEq for Assumption {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl serde::Serialize for Assumption {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Assumption {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d).map(Assumption::Told)
    }
}
