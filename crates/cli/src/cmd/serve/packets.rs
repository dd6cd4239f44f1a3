//! Recordings for peers, as `serve --allow-record` allows them.

use crate::failure::Failure;
use fullpipe_host::recording::{InMemory, RecordOptions, Recording};
use fullpipe_kernel::network::packet_filter::{Keep, PacketFilter};
use fullpipe_kernel::network::packet_ring::{self, PacketRing};
use fullpipe_peer::record::{PacketSource, RecordedPackets, RunningRecording, WantedPackets};
use std::sync::{Arc, Mutex};

/// Records packets of this host: their headers alone.
pub struct HostPackets(());

impl HostPackets {
    /// Looks whether this process may do that.
    ///
    /// # Errors
    /// It may not.
    pub fn new() -> Result<HostPackets, Failure> {
        let filter = PacketFilter::tcp(Keep::Headers);
        let opened = PacketRing::open_own("every device", 0, &filter, packet_ring::MEMORY);
        opened.map_err(Failure::of_kernel)?;
        Ok(HostPackets(()))
    }
}

impl PacketSource for HostPackets {
    fn start(&self, wanted: &WantedPackets) -> Result<Box<dyn RunningRecording>, String> {
        let WantedPackets { ends, ports, size } = wanted;
        let filter = PacketFilter::tcp_between(&ends[..1], ports, Keep::Headers);
        let filter = filter.map_err(|error| error.to_string())?;
        let between = Some(*ends);
        let options = RecordOptions { filter, device: None, new_only: false, between };
        let (place, file) = InMemory::new(*size);
        let recording = Recording::start(&options, Box::new(place));
        Ok(Box::new(HostRecording {
            recording: recording.map_err(|error| error.to_string())?,
            file,
        }))
    }
}

struct HostRecording {
    recording: Recording,
    file: Arc<Mutex<Vec<u8>>>,
}

impl RunningRecording for HostRecording {
    fn finish(self: Box<Self>) -> Result<RecordedPackets, String> {
        let HostRecording { recording, file } = *self;
        let recorded = recording.finish().map_err(|error| error.to_string())?;
        let file = std::mem::take(&mut *file.lock().unwrap_or_else(|held| held.into_inner()));
        let (packets, dropped, is_full) = (recorded.packets, recorded.dropped, recorded.is_full);
        Ok(RecordedPackets { packets, dropped, is_full, file })
    }
}
