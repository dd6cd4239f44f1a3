//! The packets of a connection of this host, beside the samples of its socket.
//!
//! [`Packets::start`] looks at every TCP packet of the calling thread's network namespace before
//! the connection is opened, so that its handshake is seen too. Packets are analysed as they pass
//! and not kept. [`Packets::finish`] gives what they say of the connection that is meant: a second
//! kind of evidence, made from other facts than the kernel's counters.
//!
//! It takes CAP_NET_RAW. A packet that passes several devices (a bridge and its port) is seen on
//! each, so each device has an analysis of its own, and the one that saw most of the connection
//! answers.

use fullpipe_flow::capture::LinkType;
use fullpipe_flow::diagnosis::DiagnosedConnection;
use fullpipe_flow::{Analyzer, Config};
use fullpipe_kernel::network::packet_filter::{Keep, PacketFilter};
use fullpipe_kernel::network::packet_ring::{self, Hardware, PacketRing, RETIRE_AFTER, SeenPacket};
use fullpipe_kernel::network::port::VNET_HDR_LEN;
use fullpipe_kernel::{Refused, process::wait};
use fullpipe_model::observe::canonical;
use fullpipe_model::units::{Bytes, Instant};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// What is looked at of a packet: Ethernet, a VLAN's tag, and IPv6 and TCP with their options.
const SNAPLEN: Bytes = Bytes::new(160);
/// Connections of the host that are open at a time and looked at, at most.
const OPEN_MAX: usize = 4096;
/// Connections of the host that are remembered on a device, at most.
const CONNECTIONS_MAX: usize = 1 << 16;

/// A thread that looks at the packets of this network namespace.
#[derive(Debug)]
pub struct Packets {
    stop: Arc<AtomicBool>,
    /// Nothing once it was joined.
    thread: Option<JoinHandle<Result<SeenPackets, Refused>>>,
}

impl Drop for Packets {
    /// The thread ends soon, whoever waits for it.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// What was seen, by the device's index.
type Analyses = BTreeMap<u32, Analyzer>;

/// What the thread hands over.
#[derive(Debug)]
struct SeenPackets {
    analyses: Analyses,
    missed: u64,
}

/// What packets say of a connection.
#[derive(Debug, Clone)]
pub struct Captured {
    /// The connection, with its diagnosis.
    pub connection: DiagnosedConnection,
    /// Packets of the whole host that passed too fast to be looked at.
    pub missed: u64,
}

impl Packets {
    /// Begins to look.
    ///
    /// # Errors
    /// The kernel refuses: it takes CAP_NET_RAW.
    pub fn start() -> Result<Packets, Refused> {
        // Index 0: every device, also one that a connection will take later.
        let filter = PacketFilter::tcp(Keep::Bytes(SNAPLEN));
        let ring = PacketRing::open_own("every device", 0, &filter, packet_ring::MEMORY)?;
        let stop = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&stop);
        let name = std::thread::Builder::new().name("packets".into());
        let thread = name
            .spawn(move || look(ring, &until))
            .map_err(|cause| Refused::new("look at packets", "thread", cause))?;
        Ok(Packets { stop, thread: Some(thread) })
    }

    /// Ends it. Gives what was seen of the connection between two addresses; `None` where none of
    /// its packets was.
    ///
    /// # Errors
    /// The kernel refuses to wait for packets.
    pub fn finish(mut self, a: SocketAddr, b: SocketAddr) -> Result<Option<Captured>, Refused> {
        self.stop.store(true, Ordering::Relaxed);
        let Some(thread) = self.thread.take() else { return Ok(None) };
        let seen = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let (a, b) = (canonical(a), canonical(b));
        let found = seen.analyses.into_values().flat_map(|one| one.finish().connections);
        let meant = found.filter(|one| {
            let ends = (one.connection.client, one.connection.server);
            ends == (a, b) || ends == (b, a)
        });
        let most = meant.max_by_key(packets);
        Ok(most.map(|connection| Captured { connection, missed: seen.missed }))
    }
}

/// How many packets of it were seen.
fn packets(one: &DiagnosedConnection) -> u64 {
    let (out, back) = (&one.connection.client_to_server, &one.connection.server_to_client);
    out.packets.saturating_add(back.packets)
}

fn look(mut ring: PacketRing, stop: &AtomicBool) -> Result<SeenPackets, Refused> {
    let mut analyses = Analyses::new();
    loop {
        // Seen before the wait: then the block that the kernel was filling is read as well.
        let is_last = stop.load(Ordering::Relaxed);
        wait::readable(ring.as_fd(), Some(RETIRE_AFTER.saturating_mul(2)))
            .map_err(|cause| Refused::new("wait for packets", "packet ring", cause))?;
        ring.read(|seen| add(&mut analyses, seen));
        if is_last {
            return Ok(SeenPackets { analyses, missed: ring.drops()? });
        }
    }
}

fn add(analyses: &mut Analyses, seen: SeenPacket<'_>) {
    // What loops back is seen twice, on its way out and on its way in.
    if seen.hardware == Hardware::Loopback && seen.outgoing {
        return;
    }
    let link = match seen.hardware {
        Hardware::Ethernet | Hardware::Loopback => LinkType::ETHERNET,
        Hardware::Other => LinkType::RAW,
    };
    let analyzer = analyses.entry(seen.device).or_insert_with(|| {
        let (max_open, max_connections) = (OPEN_MAX, CONNECTIONS_MAX);
        Analyzer::new(Config { max_open, max_connections, ..Config::default() })
    });
    let data = seen.frame.get(VNET_HDR_LEN..).unwrap_or_default();
    let length = seen.len.saturating_sub(VNET_HDR_LEN);
    analyzer.push(Instant::ZERO + seen.at, link, data, length);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    /// A connection over loopback is seen from its handshake to its last byte, once.
    #[test]
    #[allow(clippy::print_stderr, reason = "a skip is told to whoever reads the test's output")]
    fn a_connection_of_this_host_is_seen_as_a_whole() {
        const BYTES: usize = 300_000;
        let packets = match Packets::start() {
            Ok(packets) => packets,
            Err(error) if error.errno() == Some(1) => {
                eprintln!("SKIPPED: packets: {error}");
                return;
            }
            Err(error) => panic!("{error}"),
        };
        let listener = TcpListener::bind("[::ffff:127.0.0.1]:0").unwrap();
        let server = listener.local_addr().unwrap();
        let sends = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(&vec![1; BYTES]).unwrap();
        });
        let mut stream = TcpStream::connect(canonical(server)).unwrap();
        let client = stream.local_addr().unwrap();
        let mut got = Vec::new();
        stream.read_to_end(&mut got).unwrap();
        sends.join().unwrap();
        let seen = packets.finish(client, server).unwrap().expect("its packets were seen");
        let connection = &seen.connection.connection;
        assert_eq!((got.len(), connection.server), (BYTES, canonical(server)));
        assert!(connection.handshake_rtt.is_some(), "{connection:?}");
        let facts = &connection.server_to_client;
        if seen.missed == 0 {
            assert_eq!(facts.unique_payload.get(), BYTES as u64);
            // A busy machine sends some of it again; each packet seen twice would be twice as much.
            assert!(facts.payload.get() < 2 * BYTES as u64, "each packet once: {facts:?}");
        }
    }
}
