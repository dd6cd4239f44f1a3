//! BPF programs, built instruction by instruction.
//!
//! They are a page long at most, and an object file would need a compiler to make it and a loader
//! to read it. Order of calls: [`Assembler::default`], an instruction at a time, and
//! [`Assembler::finish`].
//!
//! Source: Documentation/bpf/standardization/instruction-set.rst.

use super::call::Map;
use std::os::fd::AsRawFd;

/// Marks a 64-bit load whose value is a map's descriptor.
const BPF_PSEUDO_MAP_FD: u8 = 1;
/// Marks a 64-bit load whose value is the address of a map's only value.
const BPF_PSEUDO_MAP_VALUE: u8 = 2;

/// A register. `R1` to `R5` are arguments and are lost in a call, `R6` to `R9` keep their values,
/// `R10` is the end of the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "a register is its number")]
pub enum Register {
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    R9,
    R10,
}

/// The size of a memory access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// 1 byte.
    Byte = 0x10,
    /// 2 bytes.
    Half = 0x08,
    /// 4 bytes.
    Word = 0x00,
    /// 8 bytes.
    Double = 0x18,
}

/// A comparison of the lower 32 bits, unsigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Test {
    /// Equal.
    Equal = 0x10,
    /// Above.
    Above = 0x20,
    /// Different.
    Different = 0x50,
    /// Below.
    Below = 0xa0,
}

/// A place in the program to jump to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label(usize);

/// A program under construction. Jumps go forwards only, to labels that are set later.
#[derive(Debug, Default)]
pub struct Assembler {
    code: Vec<u64>,
    /// Position of each label.
    labels: Vec<Option<usize>>,
    /// Jumps: index of the instruction, and its label.
    jumps: Vec<(usize, Label)>,
}

impl Assembler {
    fn emit(&mut self, opcode: u8, to: Register, from: Register, offset: i16, immediate: i32) {
        let registers = to as u8 | (from as u8) << 4;
        let [o0, o1] = offset.to_ne_bytes();
        let [i0, i1, i2, i3] = immediate.to_ne_bytes();
        self.code.push(u64::from_ne_bytes([opcode, registers, o0, o1, i0, i1, i2, i3]));
    }

    /// `to = value`.
    pub fn set(&mut self, to: Register, value: i32) {
        self.emit(0xb7, to, Register::R0, 0, value);
    }

    /// `to = from`.
    pub fn copy(&mut self, to: Register, from: Register) {
        self.emit(0xbf, to, from, 0, 0);
    }

    /// `to += value`.
    pub fn add(&mut self, to: Register, value: i32) {
        self.emit(0x07, to, Register::R0, 0, value);
    }

    /// `to &= mask`, and its upper half becomes zero.
    pub fn and(&mut self, to: Register, mask: u32) {
        self.emit(0x54, to, Register::R0, 0, mask as i32);
    }

    /// `to <<= bits`.
    pub(crate) fn shift_left(&mut self, to: Register, bits: i32) {
        self.emit(0x67, to, Register::R0, 0, bits);
    }

    /// Converts `to` from network byte order.
    pub(crate) fn swap_from_network(&mut self, to: Register, size: Size) {
        let bits = match size {
            Size::Byte => return,
            Size::Half => 16,
            Size::Word => 32,
            Size::Double => 64,
        };
        self.emit(0xdc, to, Register::R0, 0, bits);
    }

    /// `to = *(base + offset)`.
    pub fn load(&mut self, size: Size, to: Register, base: Register, offset: i16) {
        self.emit(0x61 | size as u8, to, base, offset, 0);
    }

    /// `*(base + offset) = from`.
    pub fn store(&mut self, size: Size, base: Register, offset: i16, from: Register) {
        self.emit(0x63 | size as u8, base, from, offset, 0);
    }

    /// `to` = the map.
    pub(crate) fn map(&mut self, to: Register, map: &Map) {
        self.wide(to, BPF_PSEUDO_MAP_FD, map);
    }

    /// `to` = the address of the only value of an array.
    pub(crate) fn value_of(&mut self, to: Register, map: &Map) {
        self.wide(to, BPF_PSEUDO_MAP_VALUE, map);
    }

    fn wide(&mut self, to: Register, meaning: u8, map: &Map) {
        // This takes two instructions; the second one has the upper half of the value.
        let registers = to as u8 | meaning << 4;
        let [i0, i1, i2, i3] = map.as_raw_fd().to_ne_bytes();
        self.code.push(u64::from_ne_bytes([0x18, registers, 0, 0, i0, i1, i2, i3]));
        self.code.push(0);
    }

    /// `*(base + offset) += from`, 8 bytes, in one step for all CPUs.
    pub(crate) fn add_shared(&mut self, base: Register, offset: i16, from: Register) {
        self.emit(0xdb, base, from, offset, 0);
    }

    /// Calls helper function number `helper`.
    pub fn call(&mut self, helper: i32) {
        self.emit(0x85, Register::R0, Register::R0, 0, helper);
    }

    /// Ends the program; `R0` is its result.
    pub fn exit(&mut self) {
        self.emit(0x95, Register::R0, Register::R0, 0, 0);
    }

    /// Makes a label, to be set later.
    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// Sets a label here.
    pub fn here(&mut self, label: Label) {
        self.labels[label.0] = Some(self.code.len());
    }

    /// Continues at `label`.
    pub fn jump(&mut self, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.emit(0x05, Register::R0, Register::R0, 0, 0);
    }

    /// Continues at `label` if the test of the register against `value` holds.
    pub(crate) fn jump_if(&mut self, register: Register, test: Test, value: u32, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.emit(0x06 | test as u8, register, Register::R0, 0, value as i32);
    }

    /// The instructions; `None` if a label was not set or is too far away.
    pub fn finish(mut self) -> Option<Vec<u64>> {
        for (at, label) in self.jumps {
            let target = self.labels[label.0]?;
            let offset = i16::try_from(target.checked_sub(at + 1)?).ok()?;
            let mut bytes = self.code[at].to_ne_bytes();
            bytes[2..4].copy_from_slice(&offset.to_ne_bytes());
            self.code[at] = u64::from_ne_bytes(bytes);
        }
        Some(self.code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_reach_their_labels() {
        let mut assembler = Assembler::default();
        let end = assembler.label();
        assembler.jump_if(Register::R0, Test::Equal, 7, end);
        assembler.set(Register::R0, 1);
        assembler.jump(end);
        assembler.here(end);
        assembler.exit();
        let code = assembler.finish().unwrap();
        let offset =
            |at: usize| i16::from_ne_bytes(code[at].to_ne_bytes()[2..4].try_into().unwrap());
        assert_eq!((offset(0), offset(2), code.len()), (2, 0, 4));
    }

    #[test]
    fn a_label_that_is_nowhere_is_no_program() {
        let mut assembler = Assembler::default();
        let nowhere = assembler.label();
        assembler.jump(nowhere);
        assert!(assembler.finish().is_none());
    }
}
