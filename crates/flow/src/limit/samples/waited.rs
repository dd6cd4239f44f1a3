//! When the sender's TCP waited for its application, by its socket.
//!
//! Where nothing is unsent, both windows have room, nothing is being repaired and the writer is not
//! blocked, only the application can make TCP send. This is what delivery rate estimation calls
//! application-limited (draft-cheng-iccrg-delivery-rate-estimation, section 3.4).
//!
//! A writer is blocked from when its queue has filled the send buffer until a third of it is free
//! (`sk_stream_memory_free` and `sk_stream_is_writeable`).

use super::{fills, nothing_to_send};
use crate::limit::waited::{Pause, Waited};
use fullpipe_model::observe::{Sample, SocketMemory, TcpInfo};

/// Fewer samples while data was sent are no measurement of a part of the time.
const SAMPLES_LEAST: usize = 20;
/// A queue has filled the buffer from here on: samples miss the very moment.
const FILLED: f64 = 0.9;
/// A writer may write again where its queue takes less than this part of the buffer.
const WRITABLE: f64 = 2.0 / 3.0;

/// By the samples between the first data and the last. `None` where they are too few, or do not say
/// how much is unsent.
pub(super) fn waited(sender: &[Sample]) -> Option<Waited> {
    let from = sender.iter().position(|one| sent(one).is_some_and(|sent| sent > 0))?;
    let all = sender.iter().rev().find_map(sent)?;
    let to = sender.iter().position(|one| sent(one) == Some(all))?;
    let sending = sender.get(from..=to).filter(|sending| sending.len() > SAMPLES_LEAST)?;
    let mut writer = Writer::default();
    let mut pauses: Vec<Pause> = Vec::new();
    let (mut begin, mut is_waiting) = (0.0, false);
    for sample in sending {
        let end = sample.at.since(sending[0].at).as_secs_f64();
        let waits = writer.waits(sample.info.as_ref()?, sample.memory?);
        match pauses.last_mut() {
            Some(pause) if waits && is_waiting => pause.end = end,
            _ if waits => pauses.push(Pause { begin, end }),
            _ => (),
        }
        (begin, is_waiting) = (end, waits);
    }
    Some(Waited::new(&pauses, begin))
}

/// Segments of data that the socket had sent.
fn sent(sample: &Sample) -> Option<u32> {
    sample.info.as_ref()?.data_segs_out
}

/// Whether the application that writes is blocked.
#[derive(Default)]
struct Writer {
    is_blocked: bool,
}

impl Writer {
    /// Whether only the application can make TCP send.
    fn waits(&mut self, info: &TcpInfo, memory: SocketMemory) -> bool {
        let queued = memory.wmem_queued.as_f64() / memory.sndbuf.as_f64().max(1.0);
        if queued >= FILLED {
            self.is_blocked = true;
        } else if queued < WRITABLE {
            self.is_blocked = false;
        }
        let window = info.snd_wnd.map(|window| window.bytes());
        let has_room = window.is_none_or(|window| info.in_flight() + info.snd_mss <= window);
        nothing_to_send(info)
            && !fills(info)
            && has_room
            && !info.ca_state.repairs_loss()
            && !self.is_blocked
    }
}
