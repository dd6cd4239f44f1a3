//! The host's TCP sockets, looked at again and again.
//!
//! [`Watch::look`] takes one sample of each connection in each network namespace that this process
//! may enter: one dump of `sock_diag` each, some 1.5 us a socket. Connections that do nothing cost
//! 100 bytes. For those that move data, the time since the last look goes to the limits that held
//! them, by the same rules as any verdict from sockets ([`fullpipe_flow::limit`]); the last
//! two minutes of looks are kept at one a second.
//!
//! Call [`Watch::open`] once, then [`Watch::look`] at the interval that suits: the first look only
//! says which sockets exist, and which moved data a moment ago. [`Watch::busy`] lists the
//! connections that moved or wait to move data, the one that loses most first.
//!
//! A verdict of a second look rests on counters alone. To decide in detail what holds a
//! connection, ask [`crate::why()`].

mod moment;
mod socket;

pub use moment::{LimitTimes, Moment};
pub use socket::{LastLook, SocketKey, WatchedSocket};

use crate::settings::ThisHost;
use fullpipe_kernel::network::netlink::Netlink;
use fullpipe_kernel::network::netns::NetNs;
use fullpipe_kernel::process::pods::PodNames;
use fullpipe_kernel::process::processes::{self, Descriptor, SocketOwners};
use fullpipe_kernel::socket::sock_diag::{HostSocket, SockDiag};
use fullpipe_kernel::{Refused, host::clock};
use fullpipe_model::observe::{Egress, Process};
use fullpipe_model::tune::HostSettings;
use fullpipe_model::units::{Duration, Instant};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// How many looks a connection's history has at most.
pub(crate) const MOMENTS: usize = 120;
/// The label of the caller's own namespace.
const OWN: &str = "host";
/// How many samples of all connections are kept at most by who watches for days: some 20 MB.
const SAMPLES_MOST: usize = 32_000;
/// A connection that moved nothing for this long is idle again, and its history goes.
const FORGET: Duration = Duration::from_secs(60);
/// The shortest time between two readings of all processes' descriptors, and how much longer than
/// such a reading it has to be: who watches all the time spends little on it.
const OWNERS_AGAIN: Duration = Duration::from_secs(2);

/// How much is kept of a busy connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeptLooks {
    /// Samples that decide about a moment: the best rate and the growth of the last looks count.
    pub(crate) samples: usize,
    /// Moments.
    pub(crate) moments: usize,
}

impl KeptLooks {
    /// What shows a connection's history.
    const HISTORY: KeptLooks = KeptLooks { samples: 8, moments: MOMENTS };

    /// What tells the last moment alone, of so many busy connections.
    fn last(busy: usize) -> KeptLooks {
        let samples = (SAMPLES_MOST / busy.max(1)).clamp(2, KeptLooks::HISTORY.samples);
        KeptLooks { samples, moments: 1 }
    }
}

/// Which network namespaces to look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Namespaces {
    /// Those of all processes, as far as they may be entered.
    #[default]
    All,
    /// The caller's own.
    Own,
}

/// A network namespace of the host.
struct WatchedNamespace {
    label: Arc<str>,
    inode: u64,
    diag: SockDiag,
    ns: NetNs,
    settings: Option<HostSettings>,
}

/// Watches the sockets of the host.
pub struct Watch {
    places: Vec<WatchedNamespace>,
    sockets: HashMap<SocketKey, WatchedSocket>,
    owners: SocketOwners,
    owners_read: Option<Instant>,
    processes: HashMap<u32, Option<Arc<Process>>>,
    pods: PodNames,
    hidden_namespaces: usize,
    looks: u64,
    kept: KeptLooks,
    /// The time until descriptors are read again.
    owners_again: Duration,
    /// What part of a core the reading of descriptors may take.
    owners_part: Option<f64>,
}

impl Watch {
    /// Opens the namespaces.
    ///
    /// # Errors
    /// The kernel has no `sock_diag`. A namespace that may not be entered is no error:
    /// [`Watch::namespaces`] counts them.
    pub fn open(namespaces: Namespaces) -> Result<Watch, Refused> {
        let found = match namespaces {
            Namespaces::All => NetNs::all(OWN)?,
            Namespaces::Own => vec![NetNs::current(OWN)?],
        };
        let (mut places, mut hidden_namespaces) = (Vec::new(), 0);
        for (at, ns) in found.into_iter().enumerate() {
            // The calling thread is in the first one already.
            let diag = if at == 0 { SockDiag::open() } else { SockDiag::open_in(&ns) };
            match diag {
                Ok(diag) => {
                    let (label, inode) = (ns.label().into(), ns.inode()?);
                    places.push(WatchedNamespace { label, inode, diag, ns, settings: None });
                }
                Err(refused) if at == 0 => return Err(refused),
                Err(_) => hidden_namespaces += 1,
            }
        }
        Ok(Watch {
            places,
            sockets: HashMap::new(),
            owners: SocketOwners::default(),
            owners_read: None,
            processes: HashMap::new(),
            pods: PodNames::of_node(),
            hidden_namespaces,
            looks: 0,
            kept: KeptLooks::HISTORY,
            owners_again: OWNERS_AGAIN,
            owners_part: None,
        })
    }

    /// Keeps of each connection what tells the last moment alone, and spends no more than `part` of
    /// a core on finding out whose the connections are: for who watches for days.
    pub fn spare(&mut self, part: f64) {
        (self.kept, self.owners_part) = (KeptLooks::last(0), Some(part));
    }

    /// Finds the namespaces that have been made since, and lets go of those that no process is in
    /// any more: a descriptor of one keeps it alive. Settings are read again when asked for.
    ///
    /// # Errors
    /// The caller's own namespace cannot be read.
    pub(crate) fn find_namespaces(&mut self) -> Result<(), Refused> {
        let (mut places, mut hidden) = (Vec::new(), 0);
        for ns in NetNs::all(OWN)? {
            let inode = ns.inode()?;
            if let Some(at) = self.places.iter().position(|place| place.inode == inode) {
                places.push(WatchedNamespace { settings: None, ..self.places.swap_remove(at) });
                continue;
            }
            match SockDiag::open_in(&ns) {
                Ok(diag) => {
                    let label = ns.label().into();
                    places.push(WatchedNamespace { label, inode, diag, ns, settings: None });
                }
                Err(_) => hidden += 1,
            }
        }
        (self.places, self.hidden_namespaces) = (places, hidden);
        Ok(())
    }

    /// Takes a sample of each connection.
    pub fn look(&mut self) -> Result<(), Refused> {
        self.looks += 1;
        let (looks, kept) = (self.looks, self.kept);
        for place in &mut self.places {
            let (sockets, label, namespace) = (&mut self.sockets, &place.label, place.inode);
            place.diag.each(&mut |socket: HostSocket| {
                let key = SocketKey { namespace, cookie: socket.cookie };
                match sockets.get_mut(&key) {
                    Some(known) => known.note(socket, looks, kept),
                    None => {
                        let new = WatchedSocket::new(key, Arc::clone(label), socket, looks, kept);
                        sockets.insert(key, new);
                    }
                }
            })?;
        }
        if self.owners_part.is_some() {
            let busy = self.sockets.values().filter(|socket| socket.is_busy()).count();
            self.kept = KeptLooks::last(busy);
        }
        let now = clock::now();
        self.sockets.retain(|_, socket| {
            socket.forget_if_idle(now, FORGET);
            socket.is_of(looks)
        });
        self.find_owners(now);
        Ok(())
    }

    /// The connections that moved data (shortly before they were first seen, too), had data waiting
    /// or waited for an answer in the last minute: the one that lost most time to a limit first.
    pub fn busy(&self) -> Vec<&WatchedSocket> {
        let mut busy: Vec<&WatchedSocket> =
            self.sockets.values().filter(|socket| socket.is_busy()).collect();
        busy.sort_by(|a, b| {
            let order = b.lost().cmp(&a.lost()).then_with(|| b.rate().cmp(&a.rate()));
            // The order of a hash map changes from run to run.
            order.then_with(|| a.key.cmp(&b.key))
        });
        busy
    }

    /// The connection with this key.
    pub fn socket(&self, key: SocketKey) -> Option<&WatchedSocket> {
        self.sockets.get(&key)
    }

    /// The connection whose own end is `local`, in whichever namespace; idle ones count as well.
    pub fn between(&self, local: SocketAddr, remote: SocketAddr) -> Option<&WatchedSocket> {
        self.sockets.values().find(|socket| (socket.local, socket.remote) == (local, remote))
    }

    /// Every connection, idle ones too.
    pub(crate) fn all(&self) -> impl Iterator<Item = &WatchedSocket> {
        self.sockets.values()
    }

    /// The settings of the namespace that a connection is in, as they were when first asked for.
    pub fn settings(&mut self, key: SocketKey) -> Option<HostSettings> {
        let at = self.places.iter().position(|place| place.inode == key.namespace)?;
        let place = &mut self.places[at];
        if place.settings.is_none() {
            // The calling thread is in the first namespace already.
            let read = if at == 0 { Ok(ThisHost::read()) } else { place.ns.run(ThisHost::read) };
            place.settings = read.ok()?.ok().map(|host| host.settings);
        }
        place.settings.clone()
    }

    /// How many connections there are, idle ones included.
    pub fn connections(&self) -> usize {
        self.sockets.len()
    }

    /// How many namespaces are watched, and how many of others could not be entered.
    pub fn namespaces(&self) -> (usize, usize) {
        (self.places.len(), self.hidden_namespaces)
    }

    /// Whether there are processes whose sockets cannot be told apart without root.
    pub fn has_hidden_processes(&self) -> bool {
        self.owners.has_hidden() || !processes::sees_all()
    }

    /// A descriptor of the connection's socket, where its process lets us know.
    pub fn descriptor(&self, key: SocketKey) -> Option<Descriptor> {
        self.owners.of(self.sockets.get(&key)?.inode?)
    }

    /// The `sock_diag` of the namespace that a connection is in.
    pub(crate) fn diag(&mut self, key: SocketKey) -> Option<&mut SockDiag> {
        let place = self.places.iter_mut().find(|place| place.inode == key.namespace);
        place.map(|place| &mut place.diag)
    }

    /// What packets of a connection pass on their way out of this host, where that can be read.
    pub(crate) fn egress(&self, key: SocketKey, peer: IpAddr) -> Option<Egress> {
        let place = self.places.iter().find(|place| place.inode == key.namespace)?;
        // A socket of IPv6 has a peer of IPv4 as ::ffff:192.0.2.1, for which there is no route.
        Netlink::open(&place.ns).ok()?.egress(peer.to_canonical()).ok().flatten()
    }

    /// Finds the processes of busy connections that have none yet.
    fn find_owners(&mut self, now: Instant) {
        let was_just_read =
            self.owners_read.is_some_and(|read| now.since(read) < self.owners_again);
        if self.name_owners(now) || was_just_read {
            return;
        }
        let start = clock::thread_cpu();
        self.owners = SocketOwners::read();
        self.owners_read = Some(now);
        let took = clock::thread_cpu().saturating_sub(start);
        let spared = self.owners_part.map_or(Duration::ZERO, |part| {
            Duration::from_secs_f64((took.as_secs_f64() / part).min(3600.0))
        });
        self.owners_again = OWNERS_AGAIN.max(spared);
        // A pid may belong to another process by now.
        self.processes.clear();
        self.name_owners(now);
    }

    /// Gives busy connections the processes that were read; whether each has one then.
    fn name_owners(&mut self, now: Instant) -> bool {
        let mut have_all = true;
        for socket in self.sockets.values_mut().filter(|socket| socket.lacks_process()) {
            let descriptor = socket.inode.and_then(|inode| self.owners.of(inode));
            socket.process = descriptor.and_then(|Descriptor { pid, .. }| {
                let process = self.processes.entry(pid);
                process.or_insert_with(|| named(pid, &mut self.pods, now)).clone()
            });
            have_all &= socket.process.is_some();
        }
        have_all
    }
}

/// The process with this id, with the name of its pod.
fn named(pid: u32, pods: &mut PodNames, now: Instant) -> Option<Arc<Process>> {
    let mut process = processes::process(pid)?;
    pods.name(&mut process, now);
    Some(Arc::new(process))
}

#[cfg(test)]
mod tests;
