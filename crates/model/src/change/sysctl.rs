//! Every sysctl that can be tuned: its name, whose it is, its values, and what to know about it.
//!
//! Source of the ranges: `net/ipv4/sysctl_net_ipv4.c`, `net/core/sysctl_net_core.c` of Linux 6.18.
//! Where the kernel takes more values than have a meaning (a switch is a byte), only those with a
//! meaning are allowed.

/// Whose a sysctl is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Each network namespace has its own, since Linux 4.15 or before.
    Namespace,
    /// The whole machine has one: other namespaces do not show it, or for reading alone.
    Machine,
}

/// The values of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One whole number between these.
    Number(i64, i64),
    /// Three whole numbers between these, none smaller than the one before it.
    Triple(i64, i64),
    /// A name that begins with a letter and has at most 15 letters, digits, `-` and `_`.
    Name,
}

pub(super) const FLAG: Shape = Shape::Number(0, 1);
const INT: i64 = i32::MAX as i64;
/// Pages of `tcp_mem`: unsigned long in the kernel, which multiplies them by the size of a page.
const PAGES: i64 = i64::MAX >> 12;

/// A sysctl that can be tuned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sysctl {
    /// Receive buffers of TCP sockets: least, initial, largest (autotuning's bound).
    TcpRmem,
    /// Send buffers of TCP sockets: least, initial, largest (autotuning's bound).
    TcpWmem,
    /// The largest SO_RCVBUF that an application may request.
    RmemMax,
    /// The largest SO_SNDBUF that an application may request.
    WmemMax,
    /// Pages of all TCP sockets: low, pressure, limit.
    TcpMem,
    /// Whether windows above 65535 can be used.
    TcpWindowScaling,
    /// Whether receive buffers are autotuned.
    TcpModerateRcvbuf,
    /// The share of a buffer that is a window, before Linux 6.6.
    TcpAdvWinScale,
    /// Whether a pause ends in slow start.
    TcpSlowStartAfterIdle,
    /// Whether TCP searches for the path's MTU.
    TcpMtuProbing,
    /// Congestion control of new sockets.
    TcpCongestionControl,
    /// Unsent data above which a socket takes no more.
    TcpNotsentLowat,
    /// Whether there are selective acknowledgements.
    TcpSack,
    /// Whether there are timestamps.
    TcpTimestamps,
    /// The queueing discipline of new devices.
    DefaultQdisc,
}

/// What is known of a sysctl.
struct Row {
    name: &'static str,
    scope: Scope,
    shape: Shape,
    kubernetes: Option<&'static str>,
    what: &'static str,
    is_size: bool,
}

const fn row(name: &'static str, shape: Shape, what: &'static str) -> Row {
    Row { name, scope: Scope::Namespace, shape, kubernetes: None, what, is_size: false }
}

const fn size(name: &'static str, shape: Shape, what: &'static str) -> Row {
    Row { is_size: true, ..row(name, shape, what) }
}

const fn machine(row: Row) -> Row {
    Row { scope: Scope::Machine, ..row }
}

const fn safe(since: &'static str, row: Row) -> Row {
    Row { kubernetes: Some(since), ..row }
}

impl Sysctl {
    /// All of them.
    pub const ALL: [Sysctl; 15] = [
        Sysctl::TcpRmem,
        Sysctl::TcpWmem,
        Sysctl::RmemMax,
        Sysctl::WmemMax,
        Sysctl::TcpMem,
        Sysctl::TcpWindowScaling,
        Sysctl::TcpModerateRcvbuf,
        Sysctl::TcpAdvWinScale,
        Sysctl::TcpSlowStartAfterIdle,
        Sysctl::TcpMtuProbing,
        Sysctl::TcpCongestionControl,
        Sysctl::TcpNotsentLowat,
        Sysctl::TcpSack,
        Sysctl::TcpTimestamps,
        Sysctl::DefaultQdisc,
    ];

    /// Those that the laws turn into windows; read these of a host before planning.
    pub const OF_WINDOWS: [Sysctl; 6] = [
        Sysctl::TcpRmem,
        Sysctl::TcpWmem,
        Sysctl::RmemMax,
        Sysctl::WmemMax,
        Sysctl::TcpWindowScaling,
        Sysctl::TcpModerateRcvbuf,
    ];

    const fn row(self) -> Row {
        let triple = Shape::Triple(1, INT);
        match self {
            Sysctl::TcpRmem => safe(
                "1.32",
                size("net.ipv4.tcp_rmem", triple, "receive buffers: least, initial, largest"),
            ),
            Sysctl::TcpWmem => safe(
                "1.32",
                size("net.ipv4.tcp_wmem", triple, "send buffers: least, initial, largest"),
            ),
            // SOCK_MIN_RCVBUF and SOCK_MIN_SNDBUF on x86-64.
            Sysctl::RmemMax => machine(size(
                "net.core.rmem_max",
                Shape::Number(2304, INT),
                "the largest SO_RCVBUF",
            )),
            Sysctl::WmemMax => machine(size(
                "net.core.wmem_max",
                Shape::Number(4608, INT),
                "the largest SO_SNDBUF",
            )),
            Sysctl::TcpMem => machine(size(
                "net.ipv4.tcp_mem",
                Shape::Triple(0, PAGES),
                "pages of all TCP sockets: low, pressure, limit",
            )),
            Sysctl::TcpWindowScaling => {
                row("net.ipv4.tcp_window_scaling", FLAG, "windows above 65535 bytes")
            }
            Sysctl::TcpModerateRcvbuf => {
                row("net.ipv4.tcp_moderate_rcvbuf", FLAG, "autotuning of receive buffers")
            }
            Sysctl::TcpAdvWinScale => row(
                "net.ipv4.tcp_adv_win_scale",
                Shape::Number(-31, 31),
                "window of a buffer, before 6.6",
            ),
            Sysctl::TcpSlowStartAfterIdle => {
                row("net.ipv4.tcp_slow_start_after_idle", FLAG, "slow start again after a pause")
            }
            Sysctl::TcpMtuProbing => row(
                "net.ipv4.tcp_mtu_probing",
                Shape::Number(0, 2),
                "search for the path's MTU by probes",
            ),
            Sysctl::TcpCongestionControl => row(
                "net.ipv4.tcp_congestion_control",
                Shape::Name,
                "congestion control of new sockets",
            ),
            Sysctl::TcpNotsentLowat => row(
                "net.ipv4.tcp_notsent_lowat",
                Shape::Number(0, u32::MAX as i64),
                "unsent data above which a socket takes no more",
            ),
            Sysctl::TcpSack => row("net.ipv4.tcp_sack", FLAG, "selective acknowledgements"),
            Sysctl::TcpTimestamps => {
                row("net.ipv4.tcp_timestamps", Shape::Number(0, 2), "timestamps")
            }
            Sysctl::DefaultQdisc => machine(row(
                "net.core.default_qdisc",
                Shape::Name,
                "queueing discipline of new devices",
            )),
        }
    }

    /// The one of this name, with dots.
    pub fn named(name: &str) -> Option<Sysctl> {
        Sysctl::ALL.into_iter().find(|one| one.name() == name)
    }

    /// Its name, with dots.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// Whose it is.
    pub const fn scope(self) -> Scope {
        self.row().scope
    }

    /// Its values.
    pub const fn shape(self) -> Shape {
        self.row().shape
    }

    /// The version of Kubernetes since which every pod may set it; `None`: only where the kubelet
    /// allows it (`--allowed-unsafe-sysctls`).
    pub const fn kubernetes(self) -> Option<&'static str> {
        self.row().kubernetes
    }

    /// What it does, as a phrase.
    pub const fn what(self) -> &'static str {
        self.row().what
    }

    /// Whether more is more: a plan never lowers it.
    pub const fn is_size(self) -> bool {
        self.row().is_size
    }
}

/// By name, as they are listed.
impl Ord for Sysctl {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.name().cmp(other.name())
    }
}

impl PartialOrd for Sysctl {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl std::fmt::Display for Sysctl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}
