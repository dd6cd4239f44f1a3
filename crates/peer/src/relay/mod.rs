//! The relay: one user connection over several carriers, in order and whole.
//!
//! [`Session`] is the protocol, sans-IO; the guide has it in words (`docs/src/relay-protocol.md`).
//! A user's stream is cut into chunks with an offset; any carrier takes a chunk when it has room;
//! the other end puts them together again in bounded memory, and grants credit as its user reads.
//! [`Relay`] and [`FarEnd`] are the two ends with sockets and a clock.
//!
//! ```
//! use fullpipe_model::units::Instant;
//! use fullpipe_peer::relay::{Event, Read, Role, Session, SessionLimits};
//! let now = Instant::ZERO;
//! let mut near = Session::new(now, Role::Initiator, SessionLimits::default());
//! let mut far = Session::new(now, Role::FarEnd, SessionLimits::default());
//! let (near_end, far_end) = (near.attach(now), far.attach(now));
//! // A carrier that carries everything at once.
//! let mut carry = |near: &mut Session, far: &mut Session| loop {
//!     let (there, back) = (near.poll_frame(now, near_end), far.poll_frame(now, far_end));
//!     if there.is_none() && back.is_none() {
//!         return;
//!     }
//!     there.map(|frame| far.push(now, far_end, frame).unwrap());
//!     back.map(|frame| near.push(now, near_end, frame).unwrap());
//! };
//! let stream = near.open("db.example:5432").unwrap();
//! carry(&mut near, &mut far);
//! assert!(matches!(far.poll_event(), Some(Event::Incoming { .. })));
//! far.accept(stream);
//! carry(&mut near, &mut far);
//! near.write(stream, "hello".into());
//! near.finish(stream);
//! carry(&mut near, &mut far);
//! assert_eq!(far.read(now, stream), Read::Data("hello".into()));
//! assert_eq!(far.read(now, stream), Read::End);
//! ```

mod carrier;
mod driver;
mod frame;
mod reassembly;
mod send_buffer;
mod session;
mod turns;
mod violation;
mod window;

pub use carrier::{CarrierId, CarrierState};
pub use driver::{
    AllowList, CarrierSockets, CarrierStatus, Carriers, Entry, FarEnd, FarEndOptions, Moved,
    Observer, Over, ParseAllowError, ProxyHandshake, ProxyKind, ProxyStep, Relay, RelayError,
    RelayOptions, RelayStatus, SessionStatus,
};
pub use frame::{
    CHUNK, CloseReason, FRAME_MAX, Frame, FrameError, HEADER, Hello, Refusal, ResetReason,
    SessionId, StreamId, VERSION, decode,
};
pub use session::{Event, Read, Role, Session, SessionLimits, SessionState};
pub use violation::Violation;
