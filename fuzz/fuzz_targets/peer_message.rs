//! What a peer sends over a control connection: frames, requests, answers, and packed samples.
#![no_main]

use fullpipe_peer::path_test::{Response, TestRequest, unpack};
use fullpipe_peer::record::{RecordRequest, RecordResponse};
use fullpipe_peer::{FrameReader, Kind, PrivateKey, PublicKey, Ticket};
use libfuzzer_sys::fuzz_target;

const MOST: usize = 1 << 16;

fuzz_target!(|bytes: &[u8]| {
    let mut reader = FrameReader::new(MOST);
    reader.push(bytes);
    while let Ok(Some(frame)) = reader.poll() {
        assert!(frame.payload.len() <= MOST);
        match frame.kind {
            Kind::Message => {
                if let Ok(request) = serde_json::from_slice::<TestRequest>(&frame.payload) {
                    let again = serde_json::to_vec(&request).unwrap();
                    assert_eq!(serde_json::from_slice::<TestRequest>(&again).unwrap(), request);
                }
                if let Ok(request) = serde_json::from_slice::<RecordRequest>(&frame.payload) {
                    let again = serde_json::to_vec(&request).unwrap();
                    assert_eq!(serde_json::from_slice::<RecordRequest>(&again).unwrap(), request);
                }
                let _ = serde_json::from_slice::<Response>(&frame.payload);
                let _ = serde_json::from_slice::<RecordResponse>(&frame.payload);
            }
            Kind::Recording => {}
            Kind::Samples => {
                let _ = unpack(&frame.payload);
            }
        }
    }
    let _ = unpack(bytes);
    if let Some(ticket) = bytes.first_chunk() {
        let _ = Ticket::parse(ticket);
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = (PublicKey::list(text), text.parse::<PrivateKey>());
    }
});
