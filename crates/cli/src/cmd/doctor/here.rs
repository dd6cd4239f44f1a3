//! What the commands need that look at this machine, or change it.

use super::{Ability, Obstacle};
use crate::cmd::window::cgroup;
use fullpipe_agent::Agent;
use fullpipe_kernel::host::Host;
use fullpipe_kernel::host::sysctl::{self, Name};
use fullpipe_kernel::network::netns::NetNs;
use fullpipe_kernel::network::packet_filter::{Keep, PacketFilter};
use fullpipe_kernel::network::packet_ring::{self, PacketRing};
use fullpipe_kernel::process::processes::{self, Descriptor};
use fullpipe_kernel::socket::sock_diag::SockDiag;
use fullpipe_kernel::socket::socket_options;
use fullpipe_lab::Kernel;
use std::net::TcpListener;
use std::os::fd::AsRawFd;

const BY_ROOT: &str = "run it as root (sudo)";

/// What works on the machine itself.
pub fn abilities() -> Vec<Ability> {
    vec![
        Ability::of("sockets", "why, top, export", sockets()),
        Ability::of("other_network_namespaces", "why, top, export: containers", namespaces()),
        Ability::of("other_processes", "why, top, export: whose a connection is", processes()),
        Ability::of("socket_options", "why: what an application asked for", socket_options()),
        Ability::of("packets", "record, why URL", packets()),
        Ability::of("window_agent", "window", agent()),
        Ability::of("control_groups", "window run", control_groups()),
        Ability::of("settings", "tune apply", settings()),
        Ability::of("congestion_controls", "test, lab run, relay", congestion_controls()),
        Ability::of("guest_kernels", "prove, lab run --engine virtual", guest_kernels()),
        Ability::of("clock", "lab run and test in real time", clock()),
        Ability::of("quiet", "lab run and test in real time", quiet()),
    ]
}

/// The sockets of this network namespace, by sock_diag.
fn sockets() -> Result<String, Obstacle> {
    let mut connections = 0;
    SockDiag::open()?.each(&mut |_| connections += 1)?;
    Ok(format!("{connections} connections in this network namespace"))
}

/// Those of other network namespaces.
fn namespaces() -> Result<String, Obstacle> {
    let all = NetNs::all("this host")?;
    // The first one is the own.
    let others = &all[1..];
    for namespace in others {
        SockDiag::open_in(namespace)?;
    }
    if others.is_empty() && !processes::sees_all() {
        return Err(Obstacle::new("those of other users' processes cannot be seen", BY_ROOT));
    }
    Ok(format!("{} beside this one", others.len()))
}

fn processes() -> Result<&'static str, Obstacle> {
    if processes::sees_all() {
        return Ok("the descriptors of every process can be read");
    }
    let advice = "run it as root (sudo), or with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH";
    Err(Obstacle::new("only this user's processes can be looked into", advice))
}

/// Those of a socket of our own, by the way that leads to others', which containers may forbid.
fn socket_options() -> Result<&'static str, Obstacle> {
    let socket = TcpListener::bind("127.0.0.1:0").map_err(|cause| {
        Obstacle::new(format!("open a socket on loopback: {cause}"), "bring up the device lo")
    })?;
    let number = u32::try_from(socket.as_raw_fd()).unwrap_or_default();
    socket_options::read(Descriptor { pid: std::process::id(), number })?;
    Ok("a socket was looked into by pidfd_getfd")
}

/// A packet socket on loopback, which is everywhere.
fn packets() -> Result<&'static str, Obstacle> {
    let filter = PacketFilter::tcp(Keep::Headers);
    let opened = PacketRing::open_own("lo", 0, &filter, packet_ring::MEMORY);
    match opened {
        Ok(_) => Ok("a packet socket was opened"),
        Err(refused) => Err(Obstacle {
            advice: Some(
                "run it as root (sudo), or with CAP_NET_RAW; without it, nothing is recorded and \
                 sockets alone answer"
                    .into(),
            ),
            ..refused.into()
        }),
    }
}

fn agent() -> Result<&'static str, Obstacle> {
    Agent::check()?;
    Ok("the kernel takes the BPF program")
}

fn control_groups() -> Result<String, Obstacle> {
    let home = cgroup::check().map_err(|failure| Obstacle::whole(failure.message()))?;
    Ok(format!("groups can be made in {}", home.display()))
}

/// Whether a setting may be written; nothing is.
fn settings() -> Result<&'static str, Obstacle> {
    sysctl::may_write_own(&name("net.ipv4.tcp_rmem"))?;
    Ok("net.ipv4.tcp_rmem may be set")
}

fn name(sysctl: &str) -> Name {
    sysctl.parse().expect("the name of a sysctl")
}

/// Which ones there are. BBR is what findings advise against loss.
fn congestion_controls() -> Result<String, Obstacle> {
    let allowed = sysctl::read_own(&name("net.ipv4.tcp_allowed_congestion_control"))?;
    let available = sysctl::read_own(&name("net.ipv4.tcp_available_congestion_control"))?;
    let (allowed, available) = (allowed.unwrap_or_default(), available.unwrap_or_default());
    let found = format!("there are {}; everybody may use {}", available.trim(), allowed.trim());
    if available.split_whitespace().any(|one| one == "bbr") {
        return Ok(found);
    }
    Err(Obstacle::new(found, "load bbr as root: modprobe tcp_bbr"))
}

fn guest_kernels() -> Result<String, Obstacle> {
    let kernels = Kernel::cached().map_err(Obstacle::whole)?;
    if kernels.is_empty() {
        let advice = "build them, some 6 minutes each, once (fullpipe lab kernel build), or \
                      install a release's (fullpipe lab kernel install FILE)";
        return Err(Obstacle::new("this user has none", advice));
    }
    let releases: Vec<String> = kernels.into_iter().map(|one| one.release).collect();
    Ok(releases.join(", "))
}

/// A clock that is read without a trap: figures in real time rest on it.
fn clock() -> Result<String, Obstacle> {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let source = std::fs::read_to_string(path).unwrap_or_default();
    match source.trim() {
        slow @ ("hpet" | "acpi_pm" | "pit" | "jiffies") => Err(Obstacle::new(
            format!("the clock source is {slow}, which is slow to read"),
            "boot with clocksource=tsc where the CPU's is stable",
        )),
        "" => Ok("the kernel does not say which clock it reads".into()),
        source => Ok(format!("the clock source is {source}")),
    }
}

/// What other programs leave of the CPUs: a run among them measures them, too.
fn quiet() -> Result<String, Obstacle> {
    let Host { cpus, load_average, .. } = Host::read();
    let Some(load) = load_average else {
        return Ok("the kernel does not say how busy it is".into());
    };
    let found = format!("{load:.1} programs wanted to run in the last minute");
    if load < cpus as f64 {
        return Ok(found);
    }
    let advice = "end others, or run in virtual time (lab run --engine virtual), which they do \
                  not disturb";
    Err(Obstacle::new(found, advice))
}
