//! Checksums: what was right stays right, what was wrong stays wrong.
//!
//! No checksum is carried over: it is a sum over the addresses and the payload, and says something
//! of them. A right one is computed anew; one that is wrong becomes wrong by the same amount
//! everywhere; one that is not filled in (0) stays so. Where the packet is not there whole, nobody
//! can tell, and it becomes what is right for zeroes.

use etherparse::checksum::Sum16BitWords;
use std::ops::Range;

/// Makes a right checksum a wrong one, in one's complement, too.
const WRONG: u16 = 0x5555;

/// What a checksum covers beside the bytes themselves.
#[derive(Debug, Clone)]
pub(super) struct Pseudo {
    /// Where both addresses are.
    pub addresses: Range<usize>,
    pub protocol: u8,
    /// Length by the IP header, however much was captured.
    pub length: usize,
}

/// A checksum that is to be written when everything it covers is.
#[derive(Debug)]
pub(super) struct Sum {
    field: usize,
    range: Range<usize>,
    pseudo: Option<Pseudo>,
    was: Was,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Was {
    Right,
    Wrong,
    NotFilledIn,
}

impl Sum {
    /// Reads the checksum at `field`, over `range` and perhaps addresses; `is_whole`: all that it
    /// covers was captured. `None` where the field itself was not.
    pub fn read(
        bytes: &[u8],
        field: usize,
        range: Range<usize>,
        pseudo: Option<Pseudo>,
        is_whole: bool,
    ) -> Option<Sum> {
        let value = bytes.get(field..field + 2).filter(|_| field + 2 <= range.end)?;
        let is_zero = value == [0, 0];
        let sum = Sum { field, range, pseudo, was: Was::Right };
        let was = match sum.over(bytes)? {
            _ if !is_whole => Was::Right,
            0 => Was::Right,
            _ if is_zero => Was::NotFilledIn,
            _ => Was::Wrong,
        };
        Some(Sum { was, ..sum })
    }

    /// A field where 0 says that there is no checksum: it stays so.
    pub fn may_be_absent(mut self, bytes: &[u8]) -> Sum {
        if bytes.get(self.field..self.field + 2) == Some(&[0, 0]) {
            self.was = Was::NotFilledIn;
        }
        self
    }

    /// Writes it; everything else that it covers is there, but for zeroes at the end.
    pub fn write(&self, bytes: &mut [u8]) {
        let Some(field) = bytes.get_mut(self.field..self.field + 2) else { return };
        field.fill(0);
        if self.was == Was::NotFilledIn {
            return;
        }
        let right = self.over(bytes).unwrap_or(0);
        let value = if self.was == Was::Wrong { right ^ WRONG } else { right };
        bytes[self.field..self.field + 2].copy_from_slice(&value.to_be_bytes());
    }

    /// The complement of the sum; 0 where the checksum among the bytes is right.
    fn over(&self, bytes: &[u8]) -> Option<u16> {
        let end = self.range.end.min(bytes.len());
        let mut sum = Sum16BitWords::new().add_slice(bytes.get(self.range.start..end)?);
        if let Some(Pseudo { addresses, protocol, length }) = &self.pseudo {
            let length = u32::try_from(*length).unwrap_or(u32::MAX).to_be_bytes();
            sum = sum.add_slice(bytes.get(addresses.clone())?);
            sum = sum.add_4bytes(length).add_2bytes([0, *protocol]);
        }
        Some(sum.ones_complement().to_be())
    }
}
