//! Everything of a host that `fullpipe tune` can set, by name: sysctls, the queue of a device, and
//! the metrics of a route, each with the values that the kernel takes.
//!
//! A [`Knob`] is anything that can be written down, set and put back. Its text is what a user types
//! and what a journal keeps: `net.ipv4.tcp_rmem`, `device eth0 txqueuelen`, `route default dev eth0
//! initcwnd`.
//!
//! Source of the ranges of queues and routes: `net/ipv4/metrics.c`, `net/core/dev.c` of Linux 6.18.

use super::raise;
use super::sysctl::FLAG;
use super::{Scope, Shape, Sysctl, Value};
use std::net::IpAddr;

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
    Sysctl(Sysctl),
    /// How many packets the queue of this device holds (`txqueuelen`).
    QueueLength(String),
    /// A metric of a route.
    Route(RouteName, RouteMetric),
}

impl Knob {
    const fn shape(&self) -> Shape {
        match self {
            Knob::Sysctl(sysctl) => sysctl.shape(),
            Knob::QueueLength(_) => Shape::Number(0, u32::MAX as i64),
            Knob::Route(_, metric) => metric.shape(),
        }
    }

    /// Whether more is more: a plan never lowers it.
    pub const fn is_size(&self) -> bool {
        match self {
            Knob::Sysctl(sysctl) => sysctl.is_size(),
            Knob::QueueLength(_) => true,
            Knob::Route(_, metric) => !matches!(metric, RouteMetric::QuickAck),
        }
    }

    /// Whether only the whole machine has it, and no network namespace of its own.
    pub const fn is_machine_wide(&self) -> bool {
        matches!(self, Knob::Sysctl(sysctl) if matches!(sysctl.scope(), Scope::Machine))
    }

    /// The value that a kernel shows as `text`, whether or not we would set it.
    ///
    /// # Errors
    /// It has not the form of this knob's values.
    pub fn read(&self, text: &str) -> Result<Value, ValueError> {
        let mut words = text.split_whitespace();
        let mut number = || words.next().and_then(|word| word.parse().ok());
        let value = match self.shape() {
            Shape::Number(..) => number().map(Value::Number),
            Shape::Triple(..) => (|| Some(Value::Triple([number()?, number()?, number()?])))(),
            Shape::Name => words.next().map(|word| Value::Name(word.to_string())),
        };
        let value = value.filter(|_| words.next().is_none());
        value.ok_or_else(|| self.refuses(text))
    }

    /// The value that somebody asks for.
    ///
    /// # Errors
    /// The kernel would not take it, or it has no meaning.
    pub fn checked(&self, text: &str) -> Result<Value, ValueError> {
        let value = self.read(text)?;
        let is_fine = match (self.shape(), &value) {
            (Shape::Number(least, most), _) => value.is_within(least, most),
            (Shape::Triple(least, most), _) => {
                value.is_within(least, most) && value.numbers().is_sorted()
            }
            (Shape::Name, Value::Name(name)) => is_name(name),
            (Shape::Name, _) => false,
        };
        if is_fine { Ok(value) } else { Err(self.refuses(text)) }
    }

    /// Why `text` is no value of this knob.
    pub(crate) fn refuses(&self, text: &str) -> ValueError {
        let wanted = match self.shape() {
            Shape::Number(least, most) => format!("one whole number from {least} to {most}"),
            Shape::Triple(least, most) => {
                format!("three whole numbers from {least} to {most}, none below the one before")
            }
            Shape::Name => {
                "a name that begins with a letter and has at most 15 letters, digits, - and _"
                    .into()
            }
        };
        ValueError { knob: self.clone(), value: text.into(), wanted }
    }

    /// Whether the value `to` would lower a size that is `from` now. A plan does not do that.
    pub fn lowers(&self, from: &Value, to: &Value) -> bool {
        self.is_size() && from.numbers().iter().zip(to.numbers()).any(|(from, to)| to < from)
    }

    /// The command that sets it: one line to paste into a shell. A size that is larger already
    /// where it runs stays as it is; of several numbers, those that differ from `from` are raised.
    pub(super) fn command(&self, from: Option<&Value>, value: &Value) -> String {
        match self {
            Knob::Sysctl(sysctl) if sysctl.is_size() => raise::sysctl(*sysctl, from, value),
            Knob::Sysctl(sysctl) => format!("sysctl -w {sysctl}='{value}'"),
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
            Knob::Sysctl(sysctl) => sysctl.fmt(f),
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
        let words: Vec<&str> = text.split_whitespace().collect();
        let found = match words[..] {
            ["device", name, "txqueuelen"] => device_of(name).map(Knob::QueueLength),
            ["route", destination, "dev", name, metric] => (|| {
                let (destination, prefix_len) = destination_of(destination)?;
                let metric = RouteMetric::ALL.into_iter().find(|one| one.name() == metric)?;
                let route = RouteName { destination, prefix_len, device: device_of(name)? };
                Some(Knob::Route(route, metric))
            })(),
            [name] => Sysctl::named(name).map(Knob::Sysctl),
            _ => None,
        };
        found.ok_or_else(|| ParseKnobError { text: text.into() })
    }
}

/// As the kernel takes names of congestion controls and queueing disciplines.
fn is_name(word: &str) -> bool {
    word.len() < 16
        && word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
}

/// As the kernel takes names of devices.
fn device_of(name: &str) -> Option<String> {
    let is_name = !name.is_empty()
        && name.len() < 16
        && name.chars().all(|c| c.is_ascii_graphic() && c != '/' && c != '\'');
    is_name.then(|| name.to_string())
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
    use proptest::prelude::*;

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
        let lowers = |knob: &str, from, to| {
            let knob: Knob = knob.parse().unwrap();
            knob.lowers(&knob.read(from).unwrap(), &knob.read(to).unwrap())
        };
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
            prop::sample::select(Sysctl::ALL.to_vec()).prop_map(Knob::Sysctl),
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
                let is_scale = knob.to_string().ends_with("adv_win_scale");
                prop_assert!(is_scale || value.numbers().iter().all(|number| *number >= 0));
                prop_assert_eq!(knob.checked(&value.to_string()).unwrap(), value);
            }
        }
    }
}
