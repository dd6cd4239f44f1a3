//! Puts IP fragments together, in bounded memory.
//!
//! The analysis needs the length of a packet and its first bytes. So a fragment that the capture
//! cut is filled up with zeroes, and a snap length does not hide a packet. If fragments overlap,
//! the first one counts.

use super::tunnel::Fragment;
use std::collections::VecDeque;

/// The most incomplete packets at a time; beyond that the oldest is dropped. With [`MAX_PACKET`]
/// this bounds the memory.
const MAX_INCOMPLETE: usize = 256;
/// The lengths in IP headers have 16 bits.
const MAX_PACKET: usize = 65_535;

#[derive(Debug, Default)]
pub(super) struct Fragments {
    incomplete: VecDeque<Incomplete>,
}

#[derive(Debug)]
struct Incomplete {
    addresses: Vec<u8>,
    identification: u32,
    protocol: u8,
    /// The headers of the fragment with offset 0, with the protocol of the payload put in.
    headers: Option<Vec<u8>>,
    data: Vec<u8>,
    /// The parts of `data` that have arrived: ranges in order that do not touch each other.
    there: Vec<(usize, usize)>,
    /// Length of the data, known from the last fragment.
    total: Option<usize>,
}

impl Fragments {
    /// Adds a fragment; returns the whole packet if this fragment was the missing one.
    pub fn add(&mut self, fragment: &Fragment<'_>) -> Option<Vec<u8>> {
        let end = fragment.offset + fragment.length;
        if end + fragment.headers.len() > MAX_PACKET || fragment.length == 0 {
            return None;
        }
        let index =
            self.incomplete.iter().position(|one| one.is_of(fragment)).unwrap_or_else(|| {
                if self.incomplete.len() >= MAX_INCOMPLETE {
                    self.incomplete.pop_front();
                }
                self.incomplete.push_back(Incomplete::new(fragment));
                self.incomplete.len() - 1
            });
        let packet = &mut self.incomplete[index];
        packet.add(fragment, end);
        if !packet.is_complete() {
            return None;
        }
        self.incomplete.remove(index)?.into_packet()
    }

    /// Memory in use for data.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.incomplete.iter().map(|packet| packet.data.capacity()).sum()
    }
}

impl Incomplete {
    fn new(fragment: &Fragment<'_>) -> Self {
        Incomplete {
            addresses: fragment.addresses.to_vec(),
            identification: fragment.identification,
            protocol: fragment.protocol,
            headers: None,
            data: Vec::new(),
            there: Vec::new(),
            total: None,
        }
    }

    fn is_of(&self, fragment: &Fragment<'_>) -> bool {
        self.identification == fragment.identification
            && self.protocol == fragment.protocol
            && self.addresses == fragment.addresses
    }

    fn add(&mut self, fragment: &Fragment<'_>, end: usize) {
        if fragment.offset == 0 && self.headers.is_none() {
            let mut headers = fragment.headers.to_vec();
            headers[fragment.protocol_at] = fragment.protocol;
            self.headers = Some(headers);
        }
        if !fragment.more {
            self.total.get_or_insert(end);
        }
        if self.there.iter().any(|(start, stop)| fragment.offset < *stop && *start < end) {
            return;
        }
        if self.data.len() < end {
            self.data.resize(end, 0);
        }
        let kept = fragment.data.len().min(fragment.length);
        self.data[fragment.offset..fragment.offset + kept].copy_from_slice(&fragment.data[..kept]);
        self.there.push((fragment.offset, end));
        self.there.sort_unstable();
        self.there.dedup_by(|next, before| {
            let touches = before.1 == next.0;
            if touches {
                before.1 = next.1;
            }
            touches
        });
    }

    fn is_complete(&self) -> bool {
        self.headers.is_some() && self.total.is_some_and(|total| self.there == [(0, total)])
    }

    fn into_packet(mut self) -> Option<Vec<u8>> {
        let mut packet = self.headers?;
        self.data.truncate(self.total?);
        packet.append(&mut self.data);
        if packet[0] >> 4 == 4 {
            let length = u16::try_from(packet.len()).ok()?;
            packet[2..4].copy_from_slice(&length.to_be_bytes());
            // It is no fragment any more; the identification stays.
            packet[6..8].copy_from_slice(&[0, 0]);
        } else {
            let length = u16::try_from(packet.len() - 40).ok()?;
            packet[4..6].copy_from_slice(&length.to_be_bytes());
        }
        Some(packet)
    }
}
