//! What the commands need that look at this machine, or change it.

use super::{Ability, Obstacle};
use crate::cmd::window::cgroup;
use crate::sentence::Sentence;
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

fn by_root() -> Sentence {
    Sentence::new("run it as root (sudo)", "请以 root 运行（sudo）")
}

/// What works on the machine itself.
pub fn abilities() -> Vec<Ability> {
    let watch = Sentence::as_is("why, top, export");
    let contained = Sentence::new("why, top, export: containers", "why, top, export：容器");
    let whose = Sentence::new(
        "why, top, export: whose a connection is",
        "why, top, export：连接属于哪个进程",
    );
    let asked = Sentence::new("why: what an application asked for", "why：应用设置了什么");
    let real = Sentence::new("lab run and test in real time", "lab run 和 test，实时");
    vec![
        Ability::of(("sockets", "套接字"), watch, sockets()),
        Ability::of(("other_network_namespaces", "其他网络命名空间"), contained, namespaces()),
        Ability::of(("other_processes", "其他进程"), whose, processes()),
        Ability::of(("socket_options", "套接字选项"), asked, socket_options()),
        Ability::of(("packets", "数据包"), Sentence::as_is("record, why URL"), packets()),
        Ability::of(("window_agent", "窗口代理"), Sentence::as_is("window"), agent()),
        Ability::of(("control_groups", "控制组"), Sentence::as_is("window run"), control_groups()),
        Ability::of(("settings", "设置"), Sentence::as_is("tune apply"), settings()),
        Ability::of(
            ("congestion_controls", "拥塞控制算法"),
            Sentence::as_is("test, lab run, relay"),
            congestion_controls(),
        ),
        Ability::of(
            ("guest_kernels", "客户机内核"),
            Sentence::as_is("prove, lab run --engine virtual"),
            guest_kernels(),
        ),
        Ability::of(("clock", "时钟"), real.clone(), clock()),
        Ability::of(("quiet", "机器空闲"), real, quiet()),
    ]
}

/// The sockets of this network namespace, by sock_diag.
fn sockets() -> Result<Sentence, Obstacle> {
    let mut connections = 0;
    SockDiag::open()?.each(&mut |_| connections += 1)?;
    Ok(Sentence::new(
        format!("{connections} connections in this network namespace"),
        format!("此网络命名空间中有 {connections} 个连接"),
    ))
}

/// Those of other network namespaces.
fn namespaces() -> Result<Sentence, Obstacle> {
    let all = NetNs::all("this host")?;
    // The first one is the own.
    let others = &all[1..];
    for namespace in others {
        SockDiag::open_in(namespace)?;
    }
    if others.is_empty() && !processes::sees_all() {
        let found = Sentence::new(
            "those of other users' processes cannot be seen",
            "看不到其他用户的进程所在的命名空间",
        );
        return Err(Obstacle::new(found, by_root()));
    }
    let count = others.len();
    Ok(Sentence::new(format!("{count} beside this one"), format!("除此之外还有 {count} 个")))
}

fn processes() -> Result<Sentence, Obstacle> {
    if processes::sees_all() {
        return Ok(Sentence::new(
            "the descriptors of every process can be read",
            "可以读取每个进程的描述符",
        ));
    }
    let found =
        Sentence::new("only this user's processes can be looked into", "只能查看当前用户的进程");
    let advice = Sentence::new(
        "run it as root (sudo), or with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH",
        "请以 root 运行（sudo），或赋予 CAP_SYS_PTRACE 和 CAP_DAC_READ_SEARCH",
    );
    Err(Obstacle::new(found, advice))
}

/// Those of a socket of our own, by the way that leads to others', which containers may forbid.
fn socket_options() -> Result<Sentence, Obstacle> {
    let socket = TcpListener::bind("127.0.0.1:0").map_err(|cause| {
        Obstacle::new(
            Sentence::new("open a socket on loopback", "在环回上打开套接字").with(&cause),
            Sentence::new("bring up the device lo", "请启用设备 lo"),
        )
    })?;
    let number = u32::try_from(socket.as_raw_fd()).unwrap_or_default();
    socket_options::read(Descriptor { pid: std::process::id(), number })?;
    Ok(Sentence::new(
        "a socket was looked into by pidfd_getfd",
        "已通过 pidfd_getfd 查看一个套接字",
    ))
}

/// A packet socket on loopback, which is everywhere.
fn packets() -> Result<Sentence, Obstacle> {
    let filter = PacketFilter::tcp(Keep::Headers);
    let opened = PacketRing::open_own("lo", 0, &filter, packet_ring::MEMORY);
    match opened {
        Ok(_) => Ok(Sentence::new("a packet socket was opened", "已打开一个数据包套接字")),
        Err(refused) => Err(Obstacle {
            advice: Some(Sentence::new(
                "run it as root (sudo), or with CAP_NET_RAW; without it, nothing is recorded and \
                 sockets alone answer",
                "请以 root 运行（sudo），或赋予 CAP_NET_RAW；否则不能记录，只由套接字回答",
            )),
            ..refused.into()
        }),
    }
}

fn agent() -> Result<Sentence, Obstacle> {
    Agent::check()?;
    Ok(Sentence::new("the kernel takes the BPF program", "内核接受 BPF 程序"))
}

fn control_groups() -> Result<Sentence, Obstacle> {
    let home = cgroup::check().map_err(|failure| Obstacle::whole(failure.message().clone()))?;
    let home = home.display();
    Ok(Sentence::new(format!("groups can be made in {home}"), format!("可以在 {home} 中创建组")))
}

/// Whether a setting may be written; nothing is.
fn settings() -> Result<Sentence, Obstacle> {
    sysctl::may_write_own(&name("net.ipv4.tcp_rmem"))?;
    Ok(Sentence::new("net.ipv4.tcp_rmem may be set", "可以设置 net.ipv4.tcp_rmem"))
}

fn name(sysctl: &str) -> Name {
    sysctl.parse().expect("the name of a sysctl")
}

/// Which ones there are. BBR is what findings advise against loss.
fn congestion_controls() -> Result<Sentence, Obstacle> {
    let allowed = sysctl::read_own(&name("net.ipv4.tcp_allowed_congestion_control"))?;
    let available = sysctl::read_own(&name("net.ipv4.tcp_available_congestion_control"))?;
    let (allowed, available) = (allowed.unwrap_or_default(), available.unwrap_or_default());
    let (everybody, all) = (allowed.trim(), available.trim());
    let found = Sentence::new(
        format!("there are {all}; everybody may use {everybody}"),
        format!("有 {all}；任何人可用 {everybody}"),
    );
    if available.split_whitespace().any(|one| one == "bbr") {
        return Ok(found);
    }
    let advice =
        Sentence::new("load bbr as root: modprobe tcp_bbr", "请以 root 加载 bbr：modprobe tcp_bbr");
    Err(Obstacle::new(found, advice))
}

fn guest_kernels() -> Result<Sentence, Obstacle> {
    let kernels = Kernel::cached().map_err(|error| Obstacle::whole(&error))?;
    if kernels.is_empty() {
        let advice = Sentence::new(
            "build them, some 6 minutes each, once (fullpipe lab kernel build), or install a \
             release's (fullpipe lab kernel install FILE)",
            "请构建一次，每个约 6 分钟（fullpipe lab kernel build），或安装发布版的（fullpipe lab \
             kernel install FILE）",
        );
        return Err(Obstacle::new(Sentence::new("this user has none", "当前用户没有"), advice));
    }
    let releases: Vec<String> = kernels.into_iter().map(|one| one.release).collect();
    Ok(Sentence::as_is(releases.join(", ")))
}

/// A clock that is read without a trap: figures in real time rest on it.
fn clock() -> Result<Sentence, Obstacle> {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let source = std::fs::read_to_string(path).unwrap_or_default();
    match source.trim() {
        slow @ ("hpet" | "acpi_pm" | "pit" | "jiffies") => Err(Obstacle::new(
            Sentence::new(
                format!("the clock source is {slow}, which is slow to read"),
                format!("时钟源为 {slow}，读取很慢"),
            ),
            Sentence::new(
                "boot with clocksource=tsc where the CPU's is stable",
                "若 CPU 的 tsc 稳定，请以 clocksource=tsc 启动",
            ),
        )),
        "" => Ok(Sentence::new(
            "the kernel does not say which clock it reads",
            "内核没有说明读取哪个时钟",
        )),
        source => {
            Ok(Sentence::new(format!("the clock source is {source}"), format!("时钟源为 {source}")))
        }
    }
}

/// What other programs leave of the CPUs: a run among them measures them, too.
fn quiet() -> Result<Sentence, Obstacle> {
    let Host { cpus, load_average, .. } = Host::read();
    let Some(load) = load_average else {
        return Ok(Sentence::new("the kernel does not say how busy it is", "内核没有说明它有多忙"));
    };
    let found = Sentence::new(
        format!("{load:.1} programs wanted to run in the last minute"),
        format!("最近一分钟平均有 {load:.1} 个程序要运行"),
    );
    if load < cpus as f64 {
        return Ok(found);
    }
    let advice = Sentence::new(
        "end others, or run in virtual time (lab run --engine virtual), which they do not disturb",
        "请结束其他程序，或在不受其影响的虚拟时间中运行（lab run --engine virtual）",
    );
    Err(Obstacle::new(found, advice))
}
