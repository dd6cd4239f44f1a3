//! Bytes of a carrier: they are frames, which are written as they were read, or refused; and either
//! end of a session takes the frames or cuts the peer with a reason, in bounded memory.
#![no_main]

use bytes::BytesMut;
use fullpipe_model::units::Instant;
use fullpipe_peer::relay::{
    Event, FRAME_MAX, Frame, Read, Role, Session, SessionLimits, decode,
};
use libfuzzer_sys::fuzz_target;

fn frames(bytes: &[u8]) -> Vec<Frame> {
    let mut received = BytesMut::from(bytes);
    let mut frames = Vec::new();
    loop {
        let before = received.clone();
        match decode(&mut received) {
            Ok(Some(frame)) => {
                let mut written = BytesMut::new();
                frame.encode(&mut written);
                assert_eq!(written[..], before[..before.len() - received.len()]);
                frames.push(frame);
            }
            Ok(None) => {
                assert!(received.len() < FRAME_MAX);
                return frames;
            }
            Err(error) => {
                assert!(error.to_string().starts_with("read frame: "));
                return frames;
            }
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let frames = frames(bytes);
    let now = Instant::ZERO;
    for role in [Role::Initiator, Role::FarEnd] {
        let mut session = Session::new(now, role, SessionLimits::default());
        let carrier = session.attach(now);
        for _ in 0..3 {
            let _ = session.open("x:1");
        }
        for frame in frames.clone() {
            if let Err(violation) = session.push(now, carrier, frame) {
                assert!(!violation.to_string().is_empty());
                break;
            }
            while let Some(event) = session.poll_event() {
                match event {
                    Event::Incoming { stream, .. } => session.accept(stream),
                    Event::Readable(stream) => {
                        while matches!(session.read(now, stream), Read::Data(_)) {}
                    }
                    _ => {}
                }
            }
            while session.poll_frame(now, carrier).is_some() {}
            let state = session.state(now);
            assert!(state.unread + state.behind_gap <= session.receive_bound());
        }
    }
});
