//! The socket's memory: the array that `INET_DIAG_SKMEMINFO` returns (`SK_MEMINFO_*` in
//! `linux/sock_diag.h`).

use crate::units::{Bytes, column};

/// What a socket's buffers contain and may contain. Amounts are the kernel's `truesize`: payload
/// plus bookkeeping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct SocketMemory {
    /// Memory of data received and not read.
    #[serde(rename = "rmem_alloc_bytes", with = "column::bytes")]
    pub rmem_alloc: Bytes,
    /// Receive buffer (`SO_RCVBUF`, as doubled by the kernel).
    #[serde(rename = "rcvbuf_bytes", with = "column::bytes")]
    pub rcvbuf: Bytes,
    /// Memory of segments handed to the device and not freed.
    #[serde(rename = "wmem_alloc_bytes", with = "column::bytes")]
    pub wmem_alloc: Bytes,
    /// Send buffer (`SO_SNDBUF`, as doubled by the kernel).
    #[serde(rename = "sndbuf_bytes", with = "column::bytes")]
    pub sndbuf: Bytes,
    /// Memory reserved ahead of use.
    #[serde(rename = "fwd_alloc_bytes", with = "column::bytes")]
    pub fwd_alloc: Bytes,
    /// Memory of the write queue: sent and not acknowledged, and not yet sent. This is what fills
    /// `sndbuf`.
    #[serde(rename = "wmem_queued_bytes", with = "column::bytes")]
    pub wmem_queued: Bytes,
    /// Memory of socket options.
    #[serde(rename = "optmem_bytes", with = "column::bytes")]
    pub optmem: Bytes,
    /// Memory of segments that wait while the application holds the socket's lock.
    #[serde(rename = "backlog_bytes", with = "column::bytes")]
    pub backlog: Bytes,
    /// Segments dropped because memory was short; since Linux 4.7.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drops: Option<u32>,
}

/// Why bytes are not a socket's memory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseMemoryError {
    /// There are fewer fields than any supported kernel returns.
    #[error(
        "reading SK_MEMINFO: {length} bytes, at least 32 expected; is this the payload of INET_DIAG_SKMEMINFO?"
    )]
    TooShort {
        /// Bytes given.
        length: usize,
    },
}

impl SocketMemory {
    /// Reads the kernel's array of native-endian `u32`. Fields after those known are ignored.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseMemoryError> {
        let mut fields = bytes
            .chunks_exact(4)
            .map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
        let mut next = || {
            let word = fields.next().ok_or(ParseMemoryError::TooShort { length: bytes.len() })?;
            Ok(Bytes::new(u64::from(word)))
        };
        Ok(SocketMemory {
            rmem_alloc: next()?,
            rcvbuf: next()?,
            wmem_alloc: next()?,
            sndbuf: next()?,
            fwd_alloc: next()?,
            wmem_queued: next()?,
            optmem: next()?,
            backlog: next()?,
            drops: fields.next(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_are_in_the_order_of_sock_diag_h() {
        let words: Vec<u8> = (1u32..=9).flat_map(u32::to_ne_bytes).collect();
        let memory = SocketMemory::parse(&words).unwrap();
        assert_eq!(memory.rmem_alloc, Bytes::new(1));
        assert_eq!(memory.sndbuf, Bytes::new(4));
        assert_eq!(memory.wmem_queued, Bytes::new(6));
        assert_eq!(memory.backlog, Bytes::new(8));
        assert_eq!(memory.drops, Some(9));
        assert_eq!(SocketMemory::parse(&words[..32]).unwrap().drops, None);
        assert_eq!(
            SocketMemory::parse(&words[..31]),
            Err(ParseMemoryError::TooShort { length: 31 })
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            prop_assert_eq!(SocketMemory::parse(&bytes).is_ok(), bytes.len() >= 32);
        }
    }
}
