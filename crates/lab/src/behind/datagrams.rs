//! The gateway's datagrams: each pair of addresses has a socket of its own outside ([`super::gateway`]).

use super::meaning::{Meaning, PAUSE, spawn};
use fullpipe_kernel::netns::NetNs;
use fullpipe_kernel::outside::Outside;
use fullpipe_kernel::{Refused, transparent};
use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Pairs of addresses that datagrams go between at once.
const FLOWS_MAX: usize = 512;
/// A pair of addresses without a datagram for so long is forgotten.
const FLOW_IDLE: std::time::Duration = std::time::Duration::from_secs(120);

/// Datagrams between one pair of addresses.
struct Flow {
    far: Arc<UdpSocket>,
    ended: Arc<AtomicBool>,
}

pub(super) fn pass_datagrams(near: &UdpSocket, ns: &Arc<NetNs>, outside: &Outside, meaning: Meaning) {
    let mut flows: HashMap<(SocketAddr, SocketAddr), Flow> = HashMap::new();
    let mut buffer = vec![0; 65_536];
    loop {
        let Ok((length, sender, meant)) = transparent::receive(near, &mut buffer) else {
            std::thread::park_timeout(PAUSE);
            continue;
        };
        let ended = |flow: &Flow| flow.ended.load(Ordering::Relaxed);
        if flows.get(&(sender, meant)).is_none_or(ended) {
            flows.retain(|_, flow| !ended(flow));
            if flows.len() >= FLOWS_MAX {
                continue;
            }
            let Ok(flow) = open_flow(ns, outside, sender, meant, meaning) else { continue };
            flows.insert((sender, meant), flow);
        }
        if let Some(flow) = flows.get(&(sender, meant)) {
            // As in any network: what cannot be sent is lost.
            let _ = flow.far.send(&buffer[..length]);
        }
    }
}

fn open_flow(
    ns: &Arc<NetNs>,
    outside: &Outside,
    sender: SocketAddr,
    meant: SocketAddr,
    meaning: Meaning,
) -> Result<Flow, Refused> {
    let far = Arc::new(outside.udp(meaning.target(meant))?);
    let answers = transparent::reply_socket(ns, meant)?;
    let refused = |cause| Refused::new("set timeout of", "UDP socket", cause);
    far.set_read_timeout(Some(FLOW_IDLE)).map_err(refused)?;
    let ended = Arc::new(AtomicBool::new(false));
    let (from, over) = (Arc::clone(&far), Arc::clone(&ended));
    spawn("gateway-udp", move || {
        let mut buffer = vec![0; 65_536];
        while let Ok(length) = from.recv(&mut buffer) {
            let _ = answers.send_to(&buffer[..length], sender);
        }
        over.store(true, Ordering::Relaxed);
    })?;
    Ok(Flow { far, ended })
}
