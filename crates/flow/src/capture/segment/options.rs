//! The options of a TCP header that matter for performance.

use super::SequenceNumber;
use fullpipe_model::units::Bytes;

/// The options of one segment; malformed and cut options are absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TcpOptions {
    /// Maximum segment size (RFC 9293).
    pub mss: Option<Bytes>,
    /// Shift count of the window scale option (RFC 7323), as sent: values above 14 mean 14.
    pub window_scale: Option<u8>,
    /// SACK permitted (RFC 2018).
    pub sack_permitted: bool,
    /// SACK blocks (RFC 2018); the first may be a DSACK (RFC 2883).
    pub sack: SackBlocks,
    /// Timestamps (RFC 7323): TSval and TSecr.
    pub timestamps: Option<(u32, u32)>,
    /// TCP Fast Open (RFC 7413): bytes of its cookie; none in a request for one.
    pub fast_open: Option<u8>,
    /// Multipath TCP (RFC 8684), whatever its contents.
    pub multipath: bool,
}

/// Up to four ranges of data that were received above a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SackBlocks {
    blocks: [(SequenceNumber, SequenceNumber); 4],
    count: u8,
}

impl SackBlocks {
    /// The ranges: first number, and number after the last.
    pub fn as_slice(&self) -> &[(SequenceNumber, SequenceNumber)] {
        &self.blocks[..usize::from(self.count)]
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a range; a fifth cannot be in a header and is ignored.
    pub fn push(&mut self, left: SequenceNumber, right: SequenceNumber) {
        if let Some(block) = self.blocks.get_mut(usize::from(self.count)) {
            *block = (left, right);
            self.count += 1;
        }
    }
}

impl TcpOptions {
    /// Reads the bytes after the fixed header.
    pub fn parse(mut bytes: &[u8]) -> Self {
        const END: u8 = 0;
        const NO_OPERATION: u8 = 1;
        let mut options = TcpOptions::default();
        while let [kind, rest @ ..] = bytes {
            bytes = match *kind {
                END => break,
                NO_OPERATION => rest,
                kind => {
                    let Some(length) = rest.first().map(|length| usize::from(*length)) else {
                        break;
                    };
                    let Some(value) = bytes.get(2..length) else { break };
                    options.read(kind, value);
                    &bytes[length..]
                }
            };
        }
        options
    }

    fn read(&mut self, kind: u8, value: &[u8]) {
        match (kind, value.len()) {
            (2, 2) => self.mss = Some(Bytes::new(u16::from_be_bytes([value[0], value[1]]).into())),
            (3, 1) => self.window_scale = Some(value[0]),
            (4, 0) => self.sack_permitted = true,
            (5, length) if length % 8 == 0 => {
                for (left, right) in pairs(value) {
                    self.sack.push(SequenceNumber(left), SequenceNumber(right));
                }
            }
            (8, 8) => self.timestamps = pairs(value).next(),
            (30, 1..) => self.multipath = true,
            (34, cookie) => self.fast_open = Some(cookie as u8),
            // Before the option had a number of its own, it was an experiment (RFC 6994) with this
            // identifier.
            (254, 2..) if value[..2] == [0xf9, 0x89] => {
                self.fast_open = Some(value.len() as u8 - 2)
            }
            _ => {}
        }
    }
}

/// The numbers of four bytes in an option, two and two.
fn pairs(value: &[u8]) -> impl Iterator<Item = (u32, u32)> {
    let pairs = value.as_chunks().0.iter();
    pairs.map(|[a, b, c, d, e, f, g, h]| {
        (u32::from_be_bytes([*a, *b, *c, *d]), u32::from_be_bytes([*e, *f, *g, *h]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_syn_of_linux() {
        let bytes = [2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 1, 3, 3, 7];
        let options = TcpOptions::parse(&bytes);
        assert_eq!(options.mss, Some(Bytes::new(1460)));
        assert_eq!(options.window_scale, Some(7));
        assert!(options.sack_permitted);
        assert_eq!(options.timestamps, Some((1, 2)));
    }

    #[test]
    fn sack_blocks_in_order() {
        let bytes = [1, 1, 5, 18, 0, 0, 0, 5, 0, 0, 0, 9, 0, 0, 0, 12, 0, 0, 0, 20];
        let blocks = TcpOptions::parse(&bytes).sack;
        let expected =
            [(5, 9), (12, 20)].map(|(left, right)| (SequenceNumber(left), SequenceNumber(right)));
        assert_eq!(blocks.as_slice(), expected);
    }

    #[test]
    fn fast_open_by_number_and_by_experiment() {
        assert_eq!(TcpOptions::parse(&[34, 2]).fast_open, Some(0));
        assert_eq!(TcpOptions::parse(&[34, 6, 1, 2, 3, 4]).fast_open, Some(4));
        assert_eq!(TcpOptions::parse(&[254, 8, 0xf9, 0x89, 1, 2, 3, 4]).fast_open, Some(4));
        assert_eq!(TcpOptions::parse(&[254, 4, 0xe2, 0xd4]).fast_open, None);
        assert!(TcpOptions::parse(&[30, 4, 0, 1]).multipath);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>) {
            let _ = TcpOptions::parse(&bytes);
        }
    }
}
