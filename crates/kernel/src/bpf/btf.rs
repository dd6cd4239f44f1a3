//! What the running kernel's structures look like: the types that it describes itself (BTF).
//!
//! [`Types::of_kernel`] reads the description, [`Types::structure`] finds a structure in it by its
//! name. Only structures and their members are looked at; everything else is passed over by its
//! length.
//!
//! Source: Documentation/bpf/btf.rst, linux/btf.h.

use crate::Refused;
use std::fs;
use std::io;

/// Where the kernel shows its own types.
const FILE: &str = "/sys/kernel/btf/vmlinux";
const MAGIC: u16 = 0xeb9f;
/// `struct btf_type` without what follows it.
const TYPE: usize = 12;
/// `struct btf_member`.
const MEMBER: usize = 12;
const KIND_INT: u8 = 1;
const KIND_STRUCT: u8 = 4;

/// Types as the kernel describes them.
pub(crate) struct Types {
    bytes: Vec<u8>,
    /// Where the types are in it, and where the names.
    types: std::ops::Range<usize>,
    names: std::ops::Range<usize>,
}

/// A structure of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Structure {
    /// The number of its type.
    pub(crate) id: u32,
    /// Its length in bytes.
    pub(crate) size: u32,
    members: Vec<Member>,
}

/// A member of a structure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    name: String,
    /// Its number among the members.
    pub(crate) number: u32,
    /// Where it begins, in bytes.
    pub(crate) offset: u32,
}

impl Structure {
    /// The member with this name.
    pub(crate) fn member(&self, name: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.name == name)
    }

    /// Where that begins, in bytes, as instructions take it.
    pub(crate) fn offset(&self, name: &str) -> Option<i16> {
        i16::try_from(self.member(name)?.offset).ok()
    }
}

impl Types {
    /// The running kernel's.
    pub(crate) fn of_kernel() -> Result<Types, Refused> {
        let types = fs::read(FILE).and_then(|bytes| {
            Types::parse(bytes)
                .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "it is no BTF"))
        });
        types.map_err(|cause| {
            let advice = "it needs a kernel with CONFIG_DEBUG_INFO_BTF (Debian, Ubuntu, Fedora and \
                          RHEL have it)";
            Refused::new("read the kernel's types", FILE, cause).hint(advice)
        })
    }

    fn parse(bytes: Vec<u8>) -> Option<Types> {
        let half = bytes.get(..2)?;
        if u16::from_ne_bytes([half[0], half[1]]) != MAGIC {
            return None;
        }
        let number = |at| word(&bytes, at).map(|word| word as usize);
        let header = number(4)?;
        let section = |at: usize| -> Option<std::ops::Range<usize>> {
            let start = header.checked_add(number(at)?)?;
            let end = start.checked_add(number(at + 4)?)?;
            (end <= bytes.len()).then_some(start..end)
        };
        let (types, names) = (section(8)?, section(16)?);
        Some(Types { bytes, types, names })
    }

    /// The first structure with this name.
    pub(crate) fn structure(&self, name: &str) -> Option<Structure> {
        let types = self.bytes.get(self.types.clone())?;
        let (mut at, mut id) = (0, 0);
        while at < types.len() {
            // Number 0 is void, which is not written down.
            id += 1;
            let info = word(types, at + 4)?;
            let (kind, count) = ((info >> 24 & 0x1f) as u8, (info & 0xffff) as usize);
            if kind == KIND_STRUCT && self.name(word(types, at)?)? == name.as_bytes() {
                let with_bits = info >> 31 == 1;
                let members = types.get(at + TYPE..)?;
                let members =
                    (0..count).map(|number| self.one_member(members, number as u32, with_bits));
                let members = members.collect::<Option<_>>()?;
                return Some(Structure { id, size: word(types, at + 8)?, members });
            }
            at += TYPE + following(kind, count)?;
        }
        None
    }

    /// `with_bits`: the upper 8 bits of an offset are the width of a bit field.
    fn one_member(&self, members: &[u8], number: u32, with_bits: bool) -> Option<Member> {
        let member = members.get(number as usize * MEMBER..)?;
        let name = String::from_utf8_lossy(self.name(word(member, 0)?)?).into_owned();
        let offset = word(member, 8)?;
        let bits = if with_bits { offset & 0x00ff_ffff } else { offset };
        Some(Member { name, number, offset: bits / 8 })
    }

    fn name(&self, offset: u32) -> Option<&[u8]> {
        let from = self.bytes.get(self.names.clone())?.get(offset as usize..)?;
        from.split(|byte| *byte == 0).next()
    }
}

/// The length of what follows a type of this kind, by linux/btf.h; `None` for an unknown kind.
fn following(kind: u8, count: usize) -> Option<usize> {
    match kind {
        KIND_INT => Some(4),
        // Array.
        3 => Some(12),
        // Structure, union, section of data, enumeration of 64 bits.
        KIND_STRUCT | 5 | 15 | 19 => Some(count * 12),
        // Enumeration, prototype of a function.
        6 | 13 => Some(count * 8),
        // Pointer, forward declaration, name, qualifiers, function, floating point, tag of a type.
        2 | 7..=12 | 16 | 18 => Some(0),
        // Variable, tag of a declaration.
        14 | 17 => Some(4),
        _ => None,
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_ne_bytes(*word))
}

/// A description with an integer and nothing else: for calls that want one of the caller's own
/// types where there are none.
pub(crate) fn nothing() -> Vec<u8> {
    let names = b"\0int\0";
    let types: [u32; 4] = [1, u32::from(KIND_INT) << 24, 4, 32];
    let lengths = [24, 0, size_of_val(&types) as u32, size_of_val(&types) as u32, 5];
    let mut bytes = MAGIC.to_ne_bytes().to_vec();
    // Version 1, no flags.
    bytes.extend([1, 0]);
    bytes.extend(lengths.iter().chain(&types).flat_map(|word| word.to_ne_bytes()));
    bytes.extend(names);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Types: an integer, and `struct pair { int a, b; }`.
    fn pair() -> Vec<u8> {
        let names = b"\0int\0pair\0a\0b\0";
        let types: [u32; 13] = [1, 1 << 24, 4, 32, 5, 4 << 24 | 2, 8, 10, 1, 0, 12, 1, 0x0200_0020];
        let length = size_of_val(&types) as u32;
        let words = [24, 0, length, length, names.len() as u32];
        let mut bytes = [&MAGIC.to_ne_bytes()[..], &[1, 0]].concat();
        bytes.extend(words.iter().chain(&types).flat_map(|word| word.to_ne_bytes()));
        bytes.extend(names);
        bytes
    }

    #[test]
    fn a_structure_is_found_behind_other_types() {
        let types = Types::parse(pair()).unwrap();
        let found = types.structure("pair").unwrap();
        assert_eq!((found.id, found.size), (2, 8));
        assert_eq!(found.member("a").map(|one| (one.number, one.offset)), Some((0, 0)));
        assert_eq!(found.member("c"), None);
        assert_eq!(types.structure("int"), None, "it is no structure");
        // Bit 31 of `info` says that an offset has the width of a bit field in it.
        let mut bytes = pair();
        bytes[24 + 16 + 7] |= 0x80;
        let found = Types::parse(bytes).unwrap().structure("pair").unwrap();
        assert_eq!(found.member("b").map(|one| one.offset), Some(4));
    }

    #[test]
    fn a_description_of_nothing_has_a_type() {
        let types = Types::parse(nothing()).unwrap();
        assert_eq!((types.types.len(), types.structure("int")), (16, None));
    }

    #[test]
    fn the_running_kernel_describes_its_sockets() {
        // A kernel without BTF is told by the trials from outside.
        let Ok(types) = Types::of_kernel() else { return };
        let sock = types.structure("tcp_sock").unwrap();
        let cwnd = sock.member("snd_cwnd").unwrap();
        assert!(cwnd.offset > 0 && cwnd.offset + 4 <= sock.size, "{cwnd:?}");
    }

    proptest! {
        #[test]
        fn damaged_descriptions_are_no_panic(
            at in 0_usize..90, byte: u8, length in 0_usize..100,
        ) {
            let mut bytes = pair();
            bytes.truncate(length);
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
            if let Some(types) = Types::parse(bytes) {
                let _ = types.structure("pair");
            }
        }
    }
}
