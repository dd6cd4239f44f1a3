//! The first frames of HTTP/2 in clear text (RFC 9113 sections 3.4, 4.1 and 6.5): what an end
//! grants each stream, and whether a client asks for gRPC.

use super::fields::Fields;
use fullpipe_model::units::Bytes;

/// What a client says before its first frame.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEADERS: usize = 1;
const SETTINGS: usize = 4;
const ACK: usize = 1;
const INITIAL_WINDOW: usize = 4;
/// What a stream may carry where an end does not say otherwise (RFC 9113 section 6.9.2).
const INITIAL_DEFAULT: u64 = 65_535;

/// The content type of gRPC as it is, and in the code of RFC 7541's appendix B.
const GRPC: &[u8] = b"application/grpc";
const GRPC_CODED: &[u8] = &[0x1d, 0x75, 0xd0, 0x62, 0x0d, 0x26, 0x3d, 0x4c, 0x4d, 0x65, 0x64];

/// What the first frames of an end say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct FirstFrames {
    /// What it grants each stream, by its settings.
    pub grants: Option<Bytes>,
    /// Its first request is one of gRPC; `None` where its first headers were not captured.
    pub is_grpc: Option<bool>,
}

/// Reads the frames that an end begins with.
pub(super) fn first_frames(payload: &[u8]) -> FirstFrames {
    let mut said = FirstFrames::default();
    let mut fields = Fields(payload.strip_prefix(PREFACE).unwrap_or(payload));
    while said.is_grpc.is_none() {
        let (Some(length), Some(kind)) = (fields.number::<3>(), fields.number::<1>()) else {
            break;
        };
        let (Some(flags), Some(_)) = (fields.number::<1>(), fields.take(4)) else { break };
        let Some(frame) = fields.take(length) else { break };
        match kind {
            SETTINGS if flags & ACK == 0 => said.grants = Some(initial_window(frame)),
            HEADERS => said.is_grpc = Some(has(frame, GRPC) || has(frame, GRPC_CODED)),
            _ => {}
        }
    }
    said
}

/// What settings grant a stream.
fn initial_window(settings: &[u8]) -> Bytes {
    let mut fields = Fields(settings);
    let mut window = INITIAL_DEFAULT;
    while let (Some(name), Some(value)) = (fields.number::<2>(), fields.number::<4>()) {
        if name == INITIAL_WINDOW {
            window = value as u64;
        }
    }
    Bytes::new(window)
}

fn has(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A frame without flags, of the first stream or the connection.
    fn frame(kind: u8, body: &[u8]) -> Vec<u8> {
        let length = (body.len() as u32).to_be_bytes();
        [&length[1..], &[kind, 0, 0, 0, 0, u8::from(kind == 1)], body].concat()
    }

    #[test]
    fn settings_and_the_content_type_are_found() {
        let settings = frame(4, &[0, 3, 0, 0, 0, 100, 0, 4, 0, 0x10, 0, 0]);
        let update = frame(8, &[0, 0, 1, 0]);
        // HPACK: an indexed method, then a literal name by index 31 (`content-type`).
        let plain = [&[0x83, 0x5f, 16][..], GRPC].concat();
        let coded = [&[0x83, 0x5f, 0x8b][..], GRPC_CODED].concat();
        for (headers, is_grpc) in [(&plain, true), (&coded, true), (&vec![0x82, 0x84], false)] {
            let bytes = [PREFACE, &settings, &update, &frame(1, headers)].concat();
            let said = first_frames(&bytes);
            assert_eq!(said.grants, Some(Bytes::new(1 << 20)));
            assert_eq!(said.is_grpc, Some(is_grpc));
            assert_eq!(first_frames(&bytes[..bytes.len() - 1]).is_grpc, None);
        }
        let nothing = frame(4, &[]);
        assert_eq!(first_frames(&nothing).grants, Some(Bytes::new(65_535)));
        assert_eq!(first_frames(PREFACE), FirstFrames::default());
    }

    proptest! {
        #[test]
        fn any_frames_are_read(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            first_frames(&bytes);
            first_frames(&[PREFACE, &bytes].concat());
        }
    }
}
