//! What the two ends of a recording say to each other.

use fullpipe_model::units::{Bytes, Duration, column};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// The version of these messages. Two ends of different versions do not record.
pub(super) const VERSION: u16 = 1;
/// The most ports of a request.
const PORTS_MOST: usize = 16;
/// The shortest recording.
const LEAST: Duration = Duration::from_millis(100);

/// What the near end asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "record", deny_unknown_fields)]
pub enum RecordRequest {
    /// Begin, and say when every packet is seen. Whose packets is not asked: they are the peer's.
    Begin {
        /// The version of the messages.
        version: u16,
        /// Ports of which one must be at either end; any where there is none.
        ports: Vec<u16>,
        /// After so long the far end may forget it.
        #[serde(rename = "time_us", with = "column::micros")]
        time: Duration,
        /// The most that is kept.
        #[serde(rename = "size_bytes", with = "column::bytes")]
        size: Bytes,
    },
    /// End, and say what there is.
    End {},
    /// The next piece of it, as a frame of its own.
    Piece {},
}

/// What the far end answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "answer")]
pub enum RecordResponse {
    /// To `begin`.
    Recording {},
    /// To `end`.
    Recorded {
        /// Packets that are in it.
        packets: u64,
        /// Packets that its kernel dropped.
        dropped: u64,
        /// Whether it ended before, because there was no more room.
        is_full: bool,
        /// What the pieces have together: a pcapng file.
        #[serde(rename = "size_bytes", with = "column::bytes")]
        size: Bytes,
    },
    /// To anything: it is not done, and why.
    Refused {
        /// For the user.
        why: String,
    },
}

/// What is recorded for a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedPackets {
    /// The peer's address and this host's, which must be the ends of each packet.
    pub ends: [IpAddr; 2],
    /// Ports of which one must be at either end; any where there is none.
    pub ports: Vec<u16>,
    /// The most that is kept.
    pub size: Bytes,
}

/// What is wrong with a request, where recordings may last for `longest` and keep `most`.
pub(super) fn fault(
    [version, ports]: [usize; 2],
    (time, longest): (Duration, Duration),
    (size, most): (Bytes, Bytes),
) -> Option<String> {
    if version != usize::from(VERSION) {
        return Some(format!("it records by version {VERSION}, and was asked by {version}"));
    }
    if ports > PORTS_MOST {
        return Some(format!("{ports} ports: at most {PORTS_MOST} are possible"));
    }
    if !(LEAST..=longest).contains(&time) {
        return Some(format!("{time}: between {LEAST} and {longest} are possible"));
    }
    (size > most).then(|| format!("{size}: at most {most} are kept"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_request_beyond_its_bounds_is_refused_with_them() {
        let (minute, megabyte) = (Duration::from_secs(60), Bytes::new(1_000_000));
        let asked = |version, ports, time, size| {
            fault([version, ports], (time, minute), (size, megabyte)).unwrap_or_default()
        };
        assert_eq!(asked(1, 16, minute, megabyte), "");
        for (said, part) in [
            (asked(2, 0, minute, megabyte), "by version 1"),
            (asked(1, 17, minute, megabyte), "at most 16"),
            (asked(1, 0, Duration::from_secs(61), megabyte), "between 100 ms and"),
            (asked(1, 0, Duration::ZERO, megabyte), "between 100 ms and"),
            (asked(1, 0, minute, Bytes::new(1_000_001)), "are kept"),
        ] {
            assert!(said.contains(part), "{said}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_request_or_refused(bytes: Vec<u8>) {
            let _ = serde_json::from_slice::<RecordRequest>(&bytes);
            let _ = serde_json::from_slice::<RecordResponse>(&bytes);
        }

        #[test]
        fn a_request_survives_the_wire(version: u16, ports: Vec<u16>, micros in 0..u64::MAX / 1000, size: u64) {
            let (time, size) = (Duration::from_micros(micros), Bytes::new(size));
            for request in [
                RecordRequest::Begin { version, ports, time, size },
                RecordRequest::End {},
                RecordRequest::Piece {},
            ] {
                let text = serde_json::to_vec(&request).unwrap();
                prop_assert_eq!(serde_json::from_slice::<RecordRequest>(&text).unwrap(), request);
            }
        }
    }
}
