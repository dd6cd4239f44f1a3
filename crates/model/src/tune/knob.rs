//! Everything of a host that `fullpipe tune` can set, by name: sysctls, the queue of a device, and
//! the metrics of a route, each with the values that the kernel takes.
//!
//! [`Setting`](super::Setting) has the few that the laws turn into windows; a [`Knob`] is anything
//! that can be written down, set and put back. Its text is what a user types and what a journal
//! keeps: `net.ipv4.tcp_rmem`, `device eth0 txqueuelen`, `route default dev eth0 initcwnd`.
//!
//! Source of the ranges: `net/ipv4/sysctl_net_ipv4.c`, `net/core/sysctl_net_core.c`,
//! `net/ipv4/metrics.c`, `net/core/dev.c` of Linux 6.18. Where the kernel takes more values than
//! have a meaning (a switch is a byte), only those with a meaning are allowed.

use super::raise;
use std::net::IpAddr;

/// Whose a sysctl is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Each network namespace has its own, since Linux 4.15 or before.
    Namespace,
    /// The whole machine has one: other namespaces do not show it, or for reading alone.
    Machine,
}

/// The values of a sysctl.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Shape {
    /// One whole number between these.
    Number(i64, i64),
    /// Three whole numbers between these, none smaller than the one before it.
    Triple(i64, i64),
    /// A name that begins with a letter and has at most 15 letters, digits, `-` and `_`.
    Name,
}

/// A sysctl, with what is to know about it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sysctl {
    /// Its name, with dots.
    pub name: &'static str,
    /// Whose it is.
    pub scope: Scope,
    /// Its values.
    pub shape: Shape,
    /// The version of Kubernetes since which every pod may set it; `None`: only where the kubelet
    /// allows it (`--allowed-unsafe-sysctls`).
    pub kubernetes: Option<&'static str>,
    /// What it does, as a phrase.
    pub what: &'static str,
    /// Whether more is more: a plan never lowers it.
    pub is_size: bool,
}

const INT: i64 = i32::MAX as i64;
/// Pages of `tcp_mem`: unsigned long in the kernel, which multiplies them by the size of a page.
const PAGES: i64 = i64::MAX >> 12;

const fn row(name: &'static str, shape: Shape, what: &'static str) -> Sysctl {
    Sysctl { name, scope: Scope::Namespace, shape, kubernetes: None, what, is_size: false }
}

const fn size(name: &'static str, shape: Shape, what: &'static str) -> Sysctl {
    Sysctl { is_size: true, ..row(name, shape, what) }
}

const fn machine(row: Sysctl) -> Sysctl {
    Sysctl { scope: Scope::Machine, ..row }
}

const fn safe(since: &'static str, row: Sysctl) -> Sysctl {
    Sysctl { kubernetes: Some(since), ..row }
}

const FLAG: Shape = Shape::Number(0, 1);

/// Every sysctl that can be tuned.
pub static SYSCTLS: [Sysctl; 15] = [
    safe(
        "1.32",
        size(
            "net.ipv4.tcp_rmem",
            Shape::Triple(1, INT),
            "receive buffers: least, initial, largest",
        ),
    ),
    safe(
        "1.32",
        size("net.ipv4.tcp_wmem", Shape::Triple(1, INT), "send buffers: least, initial, largest"),
    ),
    // SOCK_MIN_RCVBUF and SOCK_MIN_SNDBUF on x86-64.
    machine(size("net.core.rmem_max", Shape::Number(2304, INT), "the largest SO_RCVBUF")),
    machine(size("net.core.wmem_max", Shape::Number(4608, INT), "the largest SO_SNDBUF")),
    machine(size(
        "net.ipv4.tcp_mem",
        Shape::Triple(0, PAGES),
        "pages of all TCP sockets: low, pressure, limit",
    )),
    row("net.ipv4.tcp_window_scaling", FLAG, "windows above 65535 bytes"),
    row("net.ipv4.tcp_moderate_rcvbuf", FLAG, "autotuning of receive buffers"),
    row("net.ipv4.tcp_adv_win_scale", Shape::Number(-31, 31), "window of a buffer, before 6.6"),
    row("net.ipv4.tcp_slow_start_after_idle", FLAG, "slow start again after a pause"),
    row("net.ipv4.tcp_mtu_probing", Shape::Number(0, 2), "search for the path's MTU by probes"),
    row("net.ipv4.tcp_congestion_control", Shape::Name, "congestion control of new sockets"),
    row(
        "net.ipv4.tcp_notsent_lowat",
        Shape::Number(0, u32::MAX as i64),
        "unsent data above which a socket takes no more",
    ),
    row("net.ipv4.tcp_sack", FLAG, "selective acknowledgements"),
    row("net.ipv4.tcp_timestamps", Shape::Number(0, 2), "timestamps"),
    machine(row("net.core.default_qdisc", Shape::Name, "queueing discipline of new devices")),
];

/// A metric of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RouteMetric {
    /// Initial congestion window in segments; 0: the kernel's.
    InitCwnd,
    /// Initial receive window in segments; 0: the kernel's.
    InitRwnd,
    /// Whether every segment is acknowledged at once.
    QuickAck,
}

impl RouteMetric {
    const ALL: [RouteMetric; 3] =
        [RouteMetric::InitCwnd, RouteMetric::InitRwnd, RouteMetric::QuickAck];

    /// Its name in `ip route`.
    pub const fn name(self) -> &'static str {
        match self {
            RouteMetric::InitCwnd => "initcwnd",
            RouteMetric::InitRwnd => "initrwnd",
            RouteMetric::QuickAck => "quickack",
        }
    }

    const fn shape(self) -> Shape {
        match self {
            RouteMetric::InitCwnd | RouteMetric::InitRwnd => Shape::Number(0, u32::MAX as i64),
            RouteMetric::QuickAck => FLAG,
        }
    }
}

/// A route of the main table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteName {
    /// Its destination.
    pub destination: IpAddr,
    /// Length of the destination's prefix.
    pub prefix_len: u8,
    /// Its device.
    pub device: String,
}

/// As in `ip route`: `default dev eth0`, `10.1.0.0/16 dev wan0`, `::/0 dev eth0`.
impl std::fmt::Display for RouteName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.destination, self.prefix_len) {
            (IpAddr::V4(_), 0) => write!(f, "default dev {}", self.device),
            (address, length) => write!(f, "{address}/{length} dev {}", self.device),
        }
    }
}

/// Something of a host that can be set.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Knob {
    /// A sysctl.
    Sysctl(&'static Sysctl),
    /// How many packets the queue of this device holds (`txqueuelen`).
    QueueLength(String),
    /// A metric of a route.
    Route(RouteName, RouteMetric),
}

impl Knob {
    /// The sysctl of this name, if it can be tuned.
    pub fn sysctl(name: &str) -> Option<Knob> {
        SYSCTLS.iter().find(|row| row.name == name).map(Knob::Sysctl)
    }

    /// `text` as the kernel shows it (single blanks), if it is a value of this knob.
    ///
    /// # Errors
    /// The kernel would not take it, or it has no meaning.
    pub fn checked(&self, text: &str) -> Result<String, ValueError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let shape = match self {
            Knob::Sysctl(row) => row.shape,
            Knob::QueueLength(_) => Shape::Number(0, u32::MAX.into()),
            Knob::Route(_, metric) => metric.shape(),
        };
        let within = |word: &str, least: i64, most: i64| {
            word.parse().is_ok_and(|number: i64| (least..=most).contains(&number))
        };
        let wanted = match shape {
            Shape::Number(least, most) => {
                let is = matches!(words[..], [word] if within(word, least, most));
                (!is).then(|| format!("one whole number from {least} to {most}"))
            }
            Shape::Triple(least, most) => {
                let are = words.len() == 3 && words.iter().all(|word| within(word, least, most));
                let numbers: Vec<i64> = words.iter().flat_map(|word| word.parse()).collect();
                (!are || !numbers.is_sorted()).then(|| {
                    format!("three whole numbers from {least} to {most}, none below the one before")
                })
            }
            Shape::Name => {
                let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
                let is_name = |word: &str| {
                    word.len() < 16
                        && word.starts_with(|c: char| c.is_ascii_alphabetic())
                        && word.chars().all(letter)
                };
                (!matches!(words[..], [word] if is_name(word))).then(|| {
                    "a name that begins with a letter and has at most 15 letters, digits, - and _"
                        .to_string()
                })
            }
        };
        match wanted {
            None => Ok(words.join(" ")),
            Some(wanted) => Err(ValueError { knob: self.clone(), value: text.into(), wanted }),
        }
    }

    /// Whether the value `to` would lower a size that is `from` now. A plan does not do that.
    pub fn lowers(&self, from: &str, to: &str) -> bool {
        let is_size = match self {
            Knob::Sysctl(row) => row.is_size,
            Knob::QueueLength(_) => true,
            Knob::Route(_, metric) => *metric != RouteMetric::QuickAck,
        };
        let numbers = |text: &str| -> Vec<i64> {
            text.split_whitespace().flat_map(|word| word.parse()).collect()
        };
        is_size && numbers(from).iter().zip(numbers(to)).any(|(from, to)| to < *from)
    }

    /// The command that sets it: one line to paste into a shell. A size that is larger already
    /// where it runs stays as it is; of several numbers, those that differ from `from` are raised.
    pub(super) fn command(&self, from: Option<&str>, value: &str) -> String {
        match self {
            Knob::Sysctl(row) if row.is_size => raise::sysctl(row.name, from, value),
            Knob::Sysctl(row) => format!("sysctl -w {}='{value}'", row.name),
            Knob::QueueLength(device) => raise::unless(
                &format!("cat /sys/class/net/{device}/tx_queue_len"),
                value,
                &format!("ip link set dev {device} txqueuelen {value}"),
            ),
            // `ip route change` needs the whole route, of which `show` leaves out the device.
            Knob::Route(route, metric) => {
                let ip = if route.destination.is_ipv6() { "ip -6" } else { "ip" };
                let (device, name) = (&route.device, metric.name());
                let shown = format!("{ip} route show {route} | head -n 1");
                let set = format!("{ip} route change $({shown}) dev {device} {name} {value}");
                if *metric == RouteMetric::QuickAck {
                    return set;
                }
                let number = format!("grep -o '{name} [0-9]*' | grep -o '[0-9]*'");
                raise::unless(&format!("{shown} | {number}"), value, &set)
            }
        }
    }
}

impl std::fmt::Display for Knob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Knob::Sysctl(row) => f.pad(row.name),
            Knob::QueueLength(device) => write!(f, "device {device} txqueuelen"),
            Knob::Route(route, metric) => write!(f, "route {route} {}", metric.name()),
        }
    }
}

/// Why a text is not a value of a knob.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("set {knob}: '{value}' is not one of its values; write {wanted}")]
pub struct ValueError {
    /// The knob.
    pub knob: Knob,
    /// The given text.
    pub value: String,
    /// What it takes.
    pub wanted: String,
}

/// Why a text names no knob.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "setting '{text}': nothing that can be tuned has this name; write for example net.ipv4.tcp_rmem, \
     'device eth0 txqueuelen' or 'route default dev eth0 initcwnd' (`fullpipe tune settings` lists them)"
)]
pub struct ParseKnobError {
    /// The given text.
    pub text: String,
}

impl std::str::FromStr for Knob {
    type Err = ParseKnobError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let device = |name: &str| {
            let is_name = !name.is_empty()
                && name.len() < 16
                && name.chars().all(|c| c.is_ascii_graphic() && c != '/' && c != '\'');
            is_name.then(|| name.to_string())
        };
        let words: Vec<&str> = text.split_whitespace().collect();
        let found = match words[..] {
            ["device", name, "txqueuelen"] => device(name).map(Knob::QueueLength),
            ["route", destination, "dev", name, metric] => (|| {
                let (destination, prefix_len) = destination_of(destination)?;
                let metric = RouteMetric::ALL.into_iter().find(|one| one.name() == metric)?;
                let route = RouteName { destination, prefix_len, device: device(name)? };
                Some(Knob::Route(route, metric))
            })(),
            [name] => Knob::sysctl(name),
            _ => None,
        };
        found.ok_or_else(|| ParseKnobError { text: text.into() })
    }
}

fn destination_of(text: &str) -> Option<(IpAddr, u8)> {
    if text == "default" {
        return Some((IpAddr::from([0, 0, 0, 0]), 0));
    }
    let (address, length) = text.split_once('/')?;
    let (address, length): (IpAddr, u8) = (address.parse().ok()?, length.parse().ok()?);
    let longest = if address.is_ipv4() { 32 } else { 128 };
    (length <= longest).then_some((address, length))
}

/// By its text.
impl serde::Serialize for Knob {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Knob {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = <String as serde::Deserialize>::deserialize(d)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::Setting;
    use proptest::prelude::*;

    #[test]
    fn the_laws_settings_are_among_them_with_the_same_scope() {
        for setting in Setting::ALL {
            let Some(Knob::Sysctl(row)) = Knob::sysctl(setting.sysctl()) else {
                panic!("{setting} is missing");
            };
            assert_eq!(row.scope == Scope::Namespace, setting.per_namespace(), "{setting}");
        }
    }

    #[test]
    fn what_the_kernel_would_not_take_is_refused_with_what_it_takes() {
        for (knob, bad) in [
            ("net.ipv4.tcp_rmem", "4096 131072 2147483648"),
            ("net.ipv4.tcp_rmem", "4096 131072"),
            ("net.ipv4.tcp_rmem", "4096 131072 -1"),
            ("net.ipv4.tcp_rmem", "4096 8000000 6291456"),
            ("net.core.rmem_max", "-2126562996"),
            ("net.ipv4.tcp_sack", "2"),
            ("net.ipv4.tcp_adv_win_scale", "32"),
            ("net.ipv4.tcp_congestion_control", "bbr; reboot"),
            ("net.ipv4.tcp_congestion_control", "a-name-with-16-c"),
            ("net.ipv4.tcp_notsent_lowat", "4294967296"),
            ("device eth0 txqueuelen", "4294967296"),
            ("route default dev eth0 quickack", "2"),
        ] {
            let error = knob.parse::<Knob>().unwrap().checked(bad).unwrap_err().to_string();
            assert!(error.contains(knob) && error.contains("; write "), "{error}");
        }
        for (knob, good) in [
            ("net.ipv4.tcp_rmem", "4096\t131072\t2147483647\n"),
            ("net.ipv4.tcp_mem", "1 2 3000000"),
            ("net.ipv4.tcp_adv_win_scale", "-2"),
            ("route 10.1.0.0/16 dev wan0 initcwnd", "32"),
            ("route ::/0 dev wan0 initrwnd", "0"),
        ] {
            assert!(knob.parse::<Knob>().unwrap().checked(good).is_ok(), "{knob}");
        }
    }

    #[test]
    fn only_sizes_are_lowered() {
        let lowers = |knob: &str, from, to| knob.parse::<Knob>().unwrap().lowers(from, to);
        assert!(lowers("net.ipv4.tcp_rmem", "4096 131072 6291456", "4096 87380 16777216"));
        assert!(!lowers("net.ipv4.tcp_rmem", "4096 131072 6291456", "4096 131072 16777216"));
        assert!(!lowers("net.ipv4.tcp_slow_start_after_idle", "1", "0"));
        assert!(lowers("route default dev eth0 initcwnd", "20", "10"));
    }

    #[test]
    fn what_is_no_knob_is_not_made_one() {
        for text in [
            "",
            "net.ipv4.ip_forward",
            "device eth0",
            "device a/b txqueuelen",
            "route default initcwnd",
            "route 10.0.0.0/33 dev eth0 initcwnd",
            "route default dev eth0 mtu",
            "device averyveryverylongname txqueuelen",
        ] {
            assert!(text.parse::<Knob>().is_err(), "{text}");
        }
    }

    fn knobs() -> impl Strategy<Value = Knob> {
        let metric = prop::sample::select(RouteMetric::ALL.to_vec());
        let route = (any::<[u8; 4]>(), 0u8..=32, "[a-z0-9.]{1,15}", metric);
        prop_oneof![
            (0..SYSCTLS.len()).prop_map(|row| Knob::Sysctl(&SYSCTLS[row])),
            "[a-z0-9.-]{1,15}".prop_map(Knob::QueueLength),
            route.prop_filter_map("a default route has one name", |(bytes, length, device, m)| {
                let destination = IpAddr::from(if length == 0 { [0; 4] } else { bytes });
                Some(Knob::Route(RouteName { destination, prefix_len: length, device }, m))
            }),
        ]
    }

    proptest! {
        #[test]
        fn a_name_reads_back(knob in knobs()) {
            prop_assert_eq!(knob.to_string().parse::<Knob>().unwrap(), knob.clone());
            let written = serde_json::to_string(&knob).unwrap();
            prop_assert_eq!(serde_json::from_str::<Knob>(&written).unwrap(), knob);
        }

        /// Whatever is let through fits the kernel's type: nothing negative, nothing beyond.
        #[test]
        fn what_is_let_through_fits_the_kernels_type(knob in knobs(), text in "-?[0-9]{1,20}( [0-9]{1,20}){0,3}") {
            if let Ok(value) = knob.checked(&text) {
                for word in value.split(' ') {
                    let number: i64 = word.parse().unwrap();
                    let is_scale = knob.to_string().ends_with("adv_win_scale");
                    prop_assert!(number >= 0 || is_scale);
                    prop_assert_eq!(knob.checked(&value).unwrap(), value.clone());
                }
            }
        }
    }
}
