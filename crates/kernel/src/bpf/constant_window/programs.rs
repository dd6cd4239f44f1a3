//! The programs of a constant congestion window, instruction by instruction.

use crate::bpf::btf::Types;
use crate::bpf::{Assembler, Map, Register, Size, Test};

use Register::{R0, R1, R2, R3, R4, R5, R6, R10};

/// linux/bpf.h: `bpf_setsockopt`, `BPF_SOCK_OPS_{ACTIVE,PASSIVE}_ESTABLISHED_CB`.
const BPF_SETSOCKOPT: i32 = 49;
const ESTABLISHED: [u32; 2] = [4, 5];
/// `TCP_CA_NAME_MAX` of the kernel.
pub(super) const NAME: usize = 16;
/// The name on the stack.
const PLACE: i16 = -(NAME as i16);

/// Where the kernel keeps what a congestion control may set.
pub(super) struct Fields {
    cwnd: i16,
    ssthresh: i16,
    pacing_rate: i16,
}

impl Fields {
    pub(super) fn of(types: &Types) -> Option<Fields> {
        let (socket, common) = (types.structure("tcp_sock")?, types.structure("sock")?);
        Some(Fields {
            cwnd: socket.offset("snd_cwnd")?,
            ssthresh: socket.offset("snd_ssthresh")?,
            // A `tcp_sock` begins with its `sock`.
            pacing_rate: common.offset("sk_pacing_rate")?,
        })
    }
}

/// Sets the window of the socket that is its first argument, and leaves pacing out.
pub(super) fn set(segments: i32, fields: &Fields) -> Option<Vec<u64>> {
    let mut a = Assembler::default();
    a.load(Size::Double, R1, R1, 0);
    a.set(R0, segments);
    a.store(Size::Word, R1, fields.cwnd, R0);
    a.store(Size::Word, R1, fields.ssthresh, R0);
    // As large as it can be: there is no pacing.
    a.set(R2, -1);
    a.store(Size::Double, R1, fields.pacing_rate, R2);
    a.set(R0, 0);
    a.exit();
    a.finish()
}

/// Answers with the window.
pub(super) fn answer(segments: i32) -> Option<Vec<u64>> {
    let mut a = Assembler::default();
    a.set(R0, segments);
    a.exit();
    a.finish()
}

/// Gives each connection that is established the congestion control with this name, and counts how
/// many took it and how many did not.
pub(super) fn choose(name: &[u8; NAME], counts: &Map) -> Option<Vec<u64>> {
    let mut a = Assembler::default();
    let (established, refused, end) = (a.label(), a.label(), a.label());
    a.load(Size::Word, R0, R1, 0);
    for operation in ESTABLISHED {
        a.jump_if(R0, Test::Equal, operation, established);
    }
    a.jump(end);
    a.here(established);
    for (word, place) in name.as_chunks::<4>().0.iter().zip((PLACE..).step_by(4)) {
        a.set(R6, i32::from_ne_bytes(*word));
        a.store(Size::Word, R10, place, R6);
    }
    a.set(R2, libc::IPPROTO_TCP);
    a.set(R3, libc::TCP_CONGESTION);
    a.copy(R4, R10);
    a.add(R4, PLACE.into());
    a.set(R5, NAME as i32);
    a.call(BPF_SETSOCKOPT);
    a.value_of(R1, counts);
    a.set(R2, 1);
    a.jump_if(R0, Test::Different, 0, refused);
    a.add_shared(R1, 0, R2);
    a.jump(end);
    a.here(refused);
    a.add_shared(R1, 8, R2);
    a.here(end);
    a.set(R0, 1);
    a.exit();
    a.finish()
}
