//! Memory of TCP: how much all sockets hold together, who holds most, and whether a control group
//! keeps a process short of it.

use crate::watch::Watch;
use fullpipe_flow::diagnosis::MachineCause;
use fullpipe_flow::diagnosis::live::NotedGroup;
use fullpipe_model::units::Bytes;
use std::collections::HashMap;
use std::fs;
use std::path::Path;

/// A process that holds memory in its sockets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Holder {
    /// Its name and id.
    pub(crate) process: String,
    /// The memory of its busy sockets, both ways.
    pub(crate) memory: Bytes,
}

/// The memory that each process holds in its busy sockets.
pub(crate) fn holders(watch: &Watch) -> Vec<Holder> {
    let mut held: HashMap<u32, Holder> = HashMap::new();
    for socket in watch.busy() {
        let memory = socket.sample().and_then(|sample| sample.memory);
        let (Some(memory), Some(process)) = (memory, socket.process.as_deref()) else { continue };
        let holder = held.entry(process.pid).or_insert_with(|| {
            let process = format!("{} {}", process.name, process.pid);
            Holder { process, memory: Bytes::ZERO }
        });
        let both = memory.rmem_alloc.saturating_add(memory.wmem_queued);
        holder.memory = holder.memory.saturating_add(both);
    }
    held.into_values().collect()
}

/// The kernel counts in pages; its size is that of x86-64, and of most others.
const PAGE: u64 = 4096;
/// From this fraction of the point of pressure on it is worth a word.
const NEAR: f64 = 0.8;

/// Whether all TCP sockets together are near the bound at which the kernel begins to save memory
/// (the second value of `net.ipv4.tcp_mem`), and who of `holders` holds most.
pub(crate) fn memory_pressure(holders: &[Holder]) -> Option<MachineCause> {
    let sockstat = fs::read_to_string("/proc/thread-self/net/sockstat").ok()?;
    let bounds = fs::read_to_string("/proc/sys/net/ipv4/tcp_mem").ok()?;
    pressure(&sockstat, &bounds, holders)
}

fn pressure(sockstat: &str, bounds: &str, holders: &[Holder]) -> Option<MachineCause> {
    let line = sockstat.lines().find_map(|line| line.strip_prefix("TCP:"))?;
    let mut words = line.split_whitespace().skip_while(|word| *word != "mem").skip(1);
    let held: u64 = words.next()?.parse().ok()?;
    let bound: u64 = bounds.split_whitespace().nth(1)?.parse().ok()?;
    if bound == 0 || (held as f64) < NEAR * bound as f64 {
        return None;
    }
    let [held, bound] = [held, bound].map(|pages| Bytes::new(pages.saturating_mul(PAGE)));
    let most = holders.iter().max_by_key(|holder| holder.memory);
    Some(MachineCause::TcpMemory {
        held,
        bound,
        holder: most.map(|holder| (holder.process.clone(), holder.memory)),
    })
}

/// A group is short of memory from this fraction of its bound on.
const SHORT: f64 = 0.95;
/// Socket memory below this fraction of the bound is not what fills it.
const OF_SOCKETS: f64 = 0.05;

/// Whether the control group at `path` (below the mount of cgroup v2) is at its memory limit while
/// sockets hold a good part of that: the kernel then keeps windows small for its processes.
pub(crate) fn group_is_short(path: &str) -> Option<MachineCause> {
    group_shortage(path).as_ref().map(NotedGroup::cause)
}

/// The same with its numbers alone, for a recording.
pub(crate) fn group_shortage(path: &str) -> Option<NotedGroup> {
    let folder = Path::new("/sys/fs/cgroup").join(path.trim_start_matches('/'));
    let [max, current, stat] = ["memory.max", "memory.current", "memory.stat"]
        .map(|name| fs::read_to_string(folder.join(name)).ok());
    short(path, &max?, &current?, &stat?)
}

fn short(path: &str, max: &str, current: &str, stat: &str) -> Option<NotedGroup> {
    // "max" is no bound.
    let bound: u64 = max.trim().parse().ok()?;
    let current: u64 = current.trim().parse().ok()?;
    let sockets: u64 =
        stat.lines().find_map(|line| line.strip_prefix("sock "))?.trim().parse().ok()?;
    let is_short = current as f64 >= SHORT * bound as f64;
    (is_short && sockets as f64 >= OF_SOCKETS * bound as f64).then(|| NotedGroup {
        path: path.into(),
        used: Bytes::new(current),
        bound: Bytes::new(bound),
        sockets: Bytes::new(sockets),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pressure_names_who_holds_most() {
        let stat =
            "sockets: used 9\nTCP: inuse 5 orphan 0 tw 0 alloc 8 mem 900\nUDP: inuse 0 mem 0\n";
        let holder =
            |process: &str, memory| Holder { process: process.into(), memory: Bytes::new(memory) };
        let holders = [holder("nginx 7", 1000), holder("envoy 8", 2_000_000)];
        let found = pressure(stat, "500 1000 1500", &holders);
        let Some(MachineCause::TcpMemory { holder, .. }) = found else { panic!("{found:?}") };
        assert_eq!(holder, Some(("envoy 8".into(), Bytes::new(2_000_000))));
        assert_eq!(pressure(stat, "500 10000 15000", &holders), None);
        assert_eq!(pressure("", "1 2 3", &holders), None);
    }

    #[test]
    fn a_group_at_its_bound_is_short_only_if_sockets_fill_it() {
        let stat = |sock: u64| format!("anon 5\nsock {sock}\nshmem 0\n");
        assert!(short("/pod", "1000000", "990000", &stat(100_000)).is_some());
        assert_eq!(short("/pod", "1000000", "990000", &stat(100)), None);
        assert_eq!(short("/pod", "1000000", "500000", &stat(100_000)), None);
        assert_eq!(short("/pod", "max", "500000", &stat(100_000)), None);
    }
}
