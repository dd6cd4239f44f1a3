//! Samples on their way: JSON lines, deflated. A second of a connection is some 100 KB of JSON and
//! 5 KB deflated, so a slow path carries them in little time.

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use fullpipe_model::observe::Sample;
use std::io::{Read, Write};

/// How many samples a piece has at most.
pub(super) const PIECE: usize = 500;
/// The most that a piece may inflate to: 4 KB for each sample.
const INFLATED_MOST: u64 = 4096 * PIECE as u64;

/// Why a piece cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// It is not deflated data.
    #[error("read samples: {0}")]
    Deflate(#[from] std::io::Error),
    /// It inflates to more than samples take.
    #[error("read samples: more than {INFLATED_MOST} bytes in one piece")]
    TooLong,
    /// A line is no sample.
    #[error("read samples: {0}; are both ends the same version?")]
    Line(#[from] serde_json::Error),
}

/// Packs a piece.
pub(super) fn pack(samples: &[Sample]) -> Result<Vec<u8>, PackError> {
    let mut packed = DeflateEncoder::new(Vec::new(), Compression::fast());
    for sample in samples {
        serde_json::to_writer(&mut packed, sample)?;
        packed.write_all(b"\n")?;
    }
    Ok(packed.finish()?)
}

/// Reads a piece that another host sent.
///
/// # Errors
/// It is not what the other end packs, or inflates to more than that could.
pub fn unpack(bytes: &[u8]) -> Result<Vec<Sample>, PackError> {
    let mut text = Vec::new();
    let read = DeflateDecoder::new(bytes).take(INFLATED_MOST + 1).read_to_end(&mut text)?;
    if read as u64 > INFLATED_MOST {
        return Err(PackError::TooLong);
    }
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| Ok(serde_json::from_slice(line)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_model::observe::{TcpInfo, TcpState};
    use fullpipe_model::units::{Bytes, Duration, Instant};
    use proptest::prelude::*;

    fn sample(at: u64) -> Sample {
        Sample {
            rqueue: Bytes::new(at / 3),
            congestion_control: Some("cubic".into()),
            info: Some(TcpInfo { rtt: Duration::from_micros(at / 7), ..TcpInfo::default() }),
            ..Sample::new(
                Instant::from_nanos(at),
                "10.0.0.1:1".parse().unwrap(),
                "[2001:db8::1]:2".parse().unwrap(),
                TcpState::Established,
            )
        }
    }

    #[test]
    fn a_piece_comes_back_as_it_was_and_is_small() {
        let samples: Vec<Sample> = (0..PIECE as u64).map(|at| sample(at * 10_000_000)).collect();
        let packed = pack(&samples).unwrap();
        assert!(packed.len() < 100 * samples.len(), "{} bytes", packed.len());
        assert_eq!(unpack(&packed).unwrap(), samples);
        assert_eq!(unpack(&pack(&[]).unwrap()).unwrap(), []);
    }

    #[test]
    fn what_inflates_to_more_than_samples_is_refused() {
        let mut bomb = DeflateEncoder::new(Vec::new(), Compression::best());
        for _ in 0..INFLATED_MOST / 1000 {
            bomb.write_all(&[b'\n'; 1001]).unwrap();
        }
        assert!(matches!(unpack(&bomb.finish().unwrap()), Err(PackError::TooLong)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let _ = unpack(&bytes);
        }
    }
}
