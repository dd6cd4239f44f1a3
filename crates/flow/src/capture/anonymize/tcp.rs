//! A TCP header written anew, and the first words of its payload.

use super::sums::{Pseudo, Sum};
use super::words::{KAFKA, words};
use super::written::WrittenPacket;
use std::ops::Range;

const TCP: u8 = 6;
/// The fixed part of a header, and where in it the checksum is.
const FIXED: usize = 20;
const CHECKSUM: Range<usize> = 16..18;

impl WrittenPacket<'_> {
    /// Writes the header at `at`, of a segment that had `length` bytes by its IP header; the
    /// addresses stand at `addresses`. Of a fragment `is_whole` is false.
    pub fn tcp(&mut self, at: usize, length: usize, addresses: Range<usize>, is_whole: bool) {
        let end = at.saturating_add(length).min(self.from.len());
        let Some(tcp) = self.from.get(at..end) else { return };
        self.copy(at..at + CHECKSUM.start.min(tcp.len()));
        if let Some(ports) = self.ports {
            for side in [0, 2] {
                if let Some([high, low]) = tcp.get(side..side + 2) {
                    let port = ports.port(u16::from_be_bytes([*high, *low]));
                    self.put(at + side, &port.to_be_bytes());
                }
            }
        }
        self.copy(at + CHECKSUM.end..at + FIXED.min(tcp.len()).max(CHECKSUM.end));
        self.zero_until(at + FIXED.min(tcp.len()));
        let header = tcp.get(12).map_or(0, |offset| usize::from(offset >> 4) * 4);
        let options = at + FIXED..at + header.min(tcp.len());
        if options.start <= options.end {
            self.copy(options.clone());
            scrub(&mut self.out[options]);
        }
        if let Some(payload) = tcp.get(header.max(FIXED)..).filter(|_| header >= FIXED) {
            let words = words(payload);
            self.put(at + header, words);
            if words == KAFKA && self.keeps_payload {
                // It is told by its length, which the packet's length says, too.
                self.copy(at + header..at + header + 4);
            }
            self.payload = at + header;
        }
        let pseudo = Pseudo { addresses, protocol: TCP, length };
        let is_whole = is_whole && at + length <= self.from.len();
        let sum = Sum::read(self.from, at + CHECKSUM.start, at..end, Some(pseudo), is_whole);
        self.sums.extend(sum);
    }
}

/// Leaves of a header's options what the analysis reads. Others become no operations.
///
/// The maximum segment size, the window's scale, selective acknowledgements and time stamps stay as
/// they are. Of Fast Open and multipath, the kind and the length stay, and what kind of a multipath
/// option it is: cookies, keys and addresses become zeroes. What cannot be read does, too.
fn scrub(options: &mut [u8]) {
    const END: u8 = 0;
    const NO_OPERATION: u8 = 1;
    let mut at = 0;
    while let Some(kind) = options.get(at).copied() {
        if kind == NO_OPERATION {
            at += 1;
            continue;
        }
        let length = options.get(at + 1).map_or(0, |length| usize::from(*length));
        if kind == END || length < 2 || at + length > options.len() {
            break;
        }
        let option = &mut options[at..at + length];
        match (kind, length) {
            (2, 4) | (3, 3) | (4, 2) | (8, 10) => {}
            (5, length) if (length - 2) % 8 == 0 => {}
            (30, 3..) => {
                option[2] &= 0xf0;
                option[3..].fill(0);
            }
            (34, _) => option[2..].fill(0),
            // Fast Open before it had a number, by its experiment's identifier.
            (254, 4..) if option[2..4] == [0xf9, 0x89] => option[4..].fill(0),
            _ => option.fill(NO_OPERATION),
        }
        at += length;
    }
    // What is behind the end, or an option that the capture cut.
    options[at..].fill(END);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::segment::TcpOptions;
    use proptest::prelude::*;

    #[test]
    fn secrets_in_options_are_overwritten_in_place() {
        let mut options = [
            &[2, 4, 5, 0xb4, 1][..],
            &[19, 18, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9],
            &[34, 10, 7, 7, 7, 7, 7, 7, 7, 7],
            &[30, 4, 0x31, 8],
            &[0, 66, 66],
        ]
        .concat();
        scrub(&mut options);
        let expected = [
            &[2, 4, 5, 0xb4, 1][..],
            &[1; 18],
            &[34, 10, 0, 0, 0, 0, 0, 0, 0, 0],
            &[30, 4, 0x30, 0],
            &[0; 3],
        ]
        .concat();
        assert_eq!(options, expected);
    }

    fn options() -> impl Strategy<Value = Vec<u8>> {
        let option = prop_oneof![
            Just(vec![1]),
            Just(vec![2, 4, 5, 0xb4]),
            Just(vec![3, 3, 7]),
            Just(vec![4, 2]),
            Just(vec![34, 6, 1, 2, 3, 4]),
            Just(vec![254, 6, 0xf9, 0x89, 3, 4]),
            Just(vec![30, 4, 0x20, 4]),
            any::<[u8; 8]>().prop_map(|value| [&[8, 10][..], &value].concat()),
            any::<[u8; 16]>().prop_map(|value| [&[5, 18][..], &value].concat()),
            any::<Vec<u8>>(),
        ];
        prop::collection::vec(option, 0..5).prop_map(|options| options.concat())
    }

    proptest! {
        #[test]
        fn what_is_read_of_options_stays(mut options in options()) {
            options.truncate(40);
            let (before, length) = (TcpOptions::parse(&options), options.len());
            scrub(&mut options);
            prop_assert_eq!(TcpOptions::parse(&options), before);
            prop_assert_eq!(options.len(), length);
        }
    }
}
