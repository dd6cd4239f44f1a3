//! pcapng: blocks, each with a type, a length, a body, and the length again.

use super::step::Step;
use super::{LinkType, MAX_RECORD};
use pcap_parser::pcapng::{Block, OptionCode, parse_block_be, parse_block_le};

/// Type of the section header block, the same in both byte orders.
pub(super) const MAGIC: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;
const DECRYPTION_SECRETS: u32 = 10;
/// Secrets in the form of NSS's key log, and the longest of them that are read.
const TLS_KEY_LOG: u32 = 0x544c_534b;
const SECRETS_MOST: usize = 64 << 20;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// The most interfaces of one section that are remembered, so that a hostile file cannot fill the
/// memory with descriptions.
const MAX_INTERFACES: usize = 1 << 16;

/// What the current section has said so far.
#[derive(Debug, Default)]
pub(super) struct State {
    big_endian: bool,
    interfaces: Vec<Interface>,
    /// Interfaces of earlier sections.
    interfaces_before: usize,
    /// The interface of the last packet, among those of all sections.
    last_interface: usize,
    /// Packets that earlier sections say were dropped.
    dropped_before: Option<u64>,
}

#[derive(Debug)]
struct Interface {
    link_type: LinkType,
    snaplen: usize,
    /// Timestamps' units in a second.
    resolution: u64,
    /// Seconds to add.
    offset: i64,
    /// How many packets it dropped; its statistics count from its start, so the last ones count.
    dropped: Option<u64>,
}

/// What a packet block says of its packet.
struct PacketFields {
    /// The number of its interface in the section.
    interface: usize,
    /// In the interface's units.
    timestamp: u64,
    captured: usize,
    original: usize,
    /// Where in the block the packet starts.
    start: usize,
}

impl State {
    pub fn step(&mut self, bytes: &[u8]) -> Step {
        let Some(head) = bytes.first_chunk::<12>() else { return Step::Need(12) };
        let [kind, total_length, order] =
            [0, 4, 8].map(|at| [head[at], head[at + 1], head[at + 2], head[at + 3]]);
        if kind == MAGIC {
            match (u32::from_le_bytes(order), u32::from_be_bytes(order)) {
                (BYTE_ORDER, _) => self.big_endian = false,
                (_, BYTE_ORDER) => self.big_endian = true,
                _ => return Step::Bad("is a section header without a byte order"),
            }
        }
        let kind = self.word(kind);
        let length = self.word(total_length) as usize;
        if length < 12 || !length.is_multiple_of(4) || length > MAX_RECORD {
            return Step::Bad("has a length that cannot be");
        }
        let interesting = matches!(
            kind,
            SECTION_HEADER
                | INTERFACE_DESCRIPTION
                | OBSOLETE_PACKET
                | SIMPLE_PACKET
                | INTERFACE_STATISTICS
                | ENHANCED_PACKET
        ) || (kind == DECRYPTION_SECRETS && length <= SECRETS_MOST);
        if !interesting {
            return Step::Other { record: length };
        }
        let Some(block) = bytes.get(..length) else { return Step::Need(length) };
        if block[length - 4..] != total_length {
            return Step::Bad("does not repeat its length at its end");
        }
        match kind {
            SECTION_HEADER => {
                self.dropped_before = self.dropped();
                self.interfaces_before += self.interfaces.len();
                self.interfaces.clear();
            }
            INTERFACE_STATISTICS => self.note_statistics(block),
            DECRYPTION_SECRETS => return self.secrets(block),
            INTERFACE_DESCRIPTION => {
                if let Err(problem) = self.add_interface(block) {
                    return Step::Bad(problem);
                }
            }
            _ => return self.packet(kind, block),
        }
        Step::Other { record: length }
    }

    fn word(&self, word: [u8; 4]) -> u32 {
        if self.big_endian { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
    }

    fn add_interface(&mut self, block: &[u8]) -> Result<(), &'static str> {
        if self.interfaces.len() >= MAX_INTERFACES {
            return Err("describes more than 65536 interfaces");
        }
        let parsed = if self.big_endian { parse_block_be(block) } else { parse_block_le(block) };
        let Ok((_, Block::InterfaceDescription(description))) = parsed else {
            return Err("is an interface description that cannot be read");
        };
        self.interfaces.push(Interface {
            link_type: LinkType(description.linktype.0 as u16),
            snaplen: description.snaplen as usize,
            resolution: description.ts_resolution().filter(|units| *units > 0).unwrap_or(1_000_000),
            offset: description.ts_offset(),
            dropped: None,
        });
        Ok(())
    }

    /// The byte order of the section.
    pub fn is_big_endian(&self) -> bool {
        self.big_endian
    }

    /// Whether packets come from more than one interface, which may write them in any order.
    pub fn has_several_interfaces(&self) -> bool {
        self.interfaces.len() > 1
    }

    /// The interface of the last packet, counted over all sections.
    pub fn last_interface(&self) -> usize {
        self.last_interface
    }

    /// How many interfaces all sections have described.
    pub fn interface_count(&self) -> usize {
        self.interfaces_before + self.interfaces.len()
    }

    /// The link type of an interface of this section, by its number over all.
    pub fn link_type(&self, number: usize) -> Option<LinkType> {
        let here = number.checked_sub(self.interfaces_before)?;
        self.interfaces.get(here).map(|interface| interface.link_type)
    }

    /// How many packets the capture dropped, by its own counters.
    pub fn dropped(&self) -> Option<u64> {
        let here = self.interfaces.iter().filter_map(|interface| interface.dropped);
        here.chain(self.dropped_before).reduce(u64::saturating_add)
    }

    /// Reads the counters of an interface's statistics. What is no such block has none.
    fn note_statistics(&mut self, block: &[u8]) {
        let parsed = if self.big_endian { parse_block_be(block) } else { parse_block_le(block) };
        let Ok((_, Block::InterfaceStatistics(statistics))) = parsed else { return };
        // Dropped for want of room by the interface, and by the system on the way to the program
        // that captures. The library's own getters take every file for little-endian.
        let drops = statistics
            .options
            .iter()
            .filter(|option| matches!(option.code, OptionCode::IsbIfDrop | OptionCode::IsbOsDrop));
        let counts = drops.filter_map(|option| option.value().first_chunk::<8>());
        let counts = counts.map(|count| match self.big_endian {
            true => u64::from_be_bytes(*count),
            false => u64::from_le_bytes(*count),
        });
        let dropped = counts.reduce(u64::saturating_add);
        if let Some(interface) = self.interfaces.get_mut(statistics.if_id as usize) {
            interface.dropped = dropped.or(interface.dropped);
        }
    }

    /// The key log in a block of decryption secrets. One of other secrets, or one that says more
    /// than it has, is passed over.
    fn secrets(&self, block: &[u8]) -> Step {
        const START: usize = 16;
        let record = block.len();
        let fields = self.word_at(block, 8).zip(self.word_at(block, 12));
        match fields {
            Some((TLS_KEY_LOG, length)) if length as usize + START + 4 <= record => {
                Step::Secrets { record, data: START..START + length as usize }
            }
            _ => Step::Other { record },
        }
    }

    /// The number at a place of a block.
    fn word_at(&self, block: &[u8], at: usize) -> Option<u32> {
        block.get(at..)?.first_chunk().map(|word| self.word(*word))
    }

    /// What a packet block says before its packet; `None` where it is too short for that.
    #[inline]
    fn fields(&self, kind: u32, block: &[u8]) -> Option<PacketFields> {
        let first = self.word_at(block, 8)?;
        if kind == SIMPLE_PACKET {
            let (captured, original) = (usize::MAX, first as usize);
            return Some(PacketFields {
                interface: 0,
                timestamp: 0,
                captured,
                original,
                start: 12,
            });
        }
        let interface = match (kind, self.big_endian) {
            // Two bytes of interface, two of a count of drops.
            (OBSOLETE_PACKET, true) => first >> 16,
            (OBSOLETE_PACKET, false) => first & 0xffff,
            _ => first,
        };
        let (high, low) = (self.word_at(block, 12)?, self.word_at(block, 16)?);
        Some(PacketFields {
            interface: interface as usize,
            timestamp: u64::from(high) << 32 | u64::from(low),
            captured: self.word_at(block, 20)? as usize,
            original: self.word_at(block, 24)? as usize,
            start: 28,
        })
    }

    fn packet(&mut self, kind: u32, block: &[u8]) -> Step {
        let record = block.len();
        let Some(fields) = self.fields(kind, block) else {
            return Step::Bad("is a packet block that is too short");
        };
        let PacketFields { interface, timestamp, captured, original, start } = fields;
        self.last_interface = self.interfaces_before + interface;
        let Some(interface) = self.interfaces.get(interface) else {
            return Step::Bad("belongs to an interface that was not described");
        };
        // A simple packet block does not say how much of the packet was captured: it is as much as
        // the snap length allows.
        let snaplen = if interface.snaplen == 0 { usize::MAX } else { interface.snaplen };
        let captured =
            if kind == SIMPLE_PACKET { original.min(snaplen).min(record - 16) } else { captured };
        if captured > record - start - 4 {
            return Step::Bad("holds less than the packet that it claims");
        }
        let at = interface.nanos(timestamp);
        let original = original.max(captured);
        Step::Packet {
            record,
            data: start..start + captured,
            at,
            link_type: interface.link_type,
            original,
        }
    }
}

impl Interface {
    fn nanos(&self, timestamp: u64) -> u64 {
        let nanos = i128::from(timestamp) * 1_000_000_000 / i128::from(self.resolution);
        let nanos = nanos + i128::from(self.offset) * 1_000_000_000;
        u64::try_from(nanos.max(0)).unwrap_or(u64::MAX)
    }
}
