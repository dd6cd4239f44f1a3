//! Compares settings with what sockets showed.

use std::collections::BTreeMap;

use super::sign::{Hidden, Open, Sign};
use fullpipe_model::law::window_scale::WindowScale;
use fullpipe_model::law::{KernelVersion, receive_buffer, send_buffer};
use fullpipe_model::tune::HostSettings;
use fullpipe_model::units::Bytes;
use serde::Serialize;

/// The values of settings by their names.
pub type Values = BTreeMap<&'static str, String>;

/// What sockets showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// The receive buffer of a new socket.
    pub receive_buffer: Bytes,
    /// The send buffer of a new socket.
    pub send_buffer: Bytes,
    /// The congestion control of a new socket.
    pub congestion_control: String,
    /// The receive buffer of a socket that asked for the most.
    pub largest_asked_receive: Bytes,
    /// The send buffer of a socket that asked for the most.
    pub largest_asked_send: Bytes,
    /// What a connection over loopback showed, or why there is none.
    pub pair: Result<Pair, String>,
}

/// What a connection over loopback showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// The options of its handshake (`tcpi_options`).
    pub options: u8,
    /// The window scale that the receiver offered.
    pub receiver_scale: u8,
    /// What was written and not sent when the socket took no more.
    pub unsent_when_full: Option<Bytes>,
    /// The largest send buffer.
    pub largest_send: Bytes,
    /// What autotuning made of the receive buffer.
    pub receive: Autotuned,
    /// What a pause did to the congestion window, if it had grown before.
    pub idle: Option<Idle>,
}

/// A receive buffer that was filled and emptied again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Autotuned {
    /// The largest that it became.
    pub largest: Bytes,
    /// Whether it was left at that because its bound would take too much memory.
    pub was_stopped: bool,
}

/// The congestion window before and after a pause, in segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Idle {
    /// Before.
    pub before: u32,
    /// After.
    pub after: u32,
}

/// Whether a setting is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Seen {
    /// A socket follows it.
    InForce,
    /// A socket does not.
    NotInForce,
    /// No socket here can show it.
    CannotBeSeen,
}

/// A setting and what sockets say of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Its name.
    pub setting: String,
    /// Its value.
    pub value: String,
    /// Whether it is in force.
    pub seen: Seen,
    /// What was seen, or why nothing could be.
    pub how: Sign,
}

/// What a setting was found to be.
type Finding = (Seen, Sign);

/// TCPI_OPT_TIMESTAMPS, TCPI_OPT_SACK, TCPI_OPT_WSCALE.
const OPTIONS: [(&str, u8); 3] =
    [("net.ipv4.tcp_timestamps", 1), ("net.ipv4.tcp_sack", 2), ("net.ipv4.tcp_window_scaling", 4)];

/// Compares each of `values` with the evidence.
pub fn judge(values: &Values, settings: &HostSettings, evidence: &Evidence) -> Vec<Check> {
    let checks = values.iter().map(|(name, value)| {
        let (seen, how) = of(name, value, settings, evidence);
        Check { setting: (*name).into(), value: value.clone(), seen, how }
    });
    checks.collect()
}

fn of(name: &str, value: &str, settings: &HostSettings, evidence: &Evidence) -> Finding {
    let most = Bytes::new(i32::MAX as u64 / 2);
    match name {
        "net.core.rmem_max" => {
            let expected = receive_buffer::so_rcvbuf(most, settings.rmem_max);
            let got = evidence.largest_asked_receive;
            (in_force(got == expected), Sign::AskedReceive(got))
        }
        "net.core.wmem_max" => {
            let expected = send_buffer::so_sndbuf(most, settings.wmem_max);
            let got = evidence.largest_asked_send;
            (in_force(got == expected), Sign::AskedSend(got))
        }
        "net.ipv4.tcp_congestion_control" => {
            let got = &evidence.congestion_control;
            (in_force(got == value), Sign::Control(got.clone()))
        }
        "net.core.default_qdisc" => hidden(Hidden::NewDevices),
        "net.ipv4.tcp_mem" => hidden(Hidden::AllSockets),
        "net.ipv4.tcp_mtu_probing" => hidden(Hidden::LossyPaths),
        "net.ipv4.tcp_adv_win_scale" if settings.kernel >= KernelVersion::new(6, 6) => {
            hidden(Hidden::NotRead)
        }
        "net.ipv4.tcp_adv_win_scale" => hidden(Hidden::LoopbackWindows),
        _ => match &evidence.pair {
            Ok(pair) => of_pair(name, value, settings, evidence, pair),
            Err(why) => (Seen::CannotBeSeen, Sign::NoConnection(why.clone())),
        },
    }
}

fn of_pair(
    name: &str,
    value: &str,
    settings: &HostSettings,
    evidence: &Evidence,
    pair: &Pair,
) -> Finding {
    if let Some((_, bit)) = OPTIONS.iter().find(|(option, _)| *option == name) {
        let has = pair.options & bit != 0;
        return (in_force(has == (value != "0")), Sign::Option(has));
    }
    match name {
        "net.ipv4.tcp_rmem" => receive_triple(settings, evidence, pair),
        "net.ipv4.tcp_wmem" => send_triple(settings, evidence, pair),
        "net.ipv4.tcp_moderate_rcvbuf" => {
            let grew = pair.receive.largest > evidence.receive_buffer;
            let how = Sign::Grew(evidence.receive_buffer, pair.receive.largest);
            if settings.tcp_rmem.max <= settings.tcp_rmem.default {
                return hidden(Hidden::NoGrowth);
            }
            (in_force(grew == (value != "0")), how)
        }
        "net.ipv4.tcp_notsent_lowat" => unsent(value, pair),
        "net.ipv4.tcp_slow_start_after_idle" => match pair.idle {
            None => hidden(Hidden::NoWindowGrowth),
            Some(Idle { before, after }) => {
                (in_force((after < before) == (value != "0")), Sign::Pause(before, after))
            }
        },
        _ => hidden(Hidden::Unknown),
    }
}

/// The initial value by a new socket, the largest by autotuning and the window scale.
fn receive_triple(settings: &HostSettings, evidence: &Evidence, pair: &Pair) -> Finding {
    let triple = settings.tcp_rmem;
    let initial = evidence.receive_buffer;
    if initial != triple.default {
        return (Seen::NotInForce, Sign::NewReceive(initial));
    }
    if settings.tcp_window_scaling {
        let expected = WindowScale::chosen(triple.max, settings.rmem_max, Bytes::MAX).get();
        let offered = pair.receiver_scale;
        if offered != expected {
            return (Seen::NotInForce, Sign::Scale(offered, expected));
        }
    }
    let Autotuned { largest, was_stopped } = pair.receive;
    let (seen, open) = if largest > triple.max && triple.max >= initial {
        (Seen::NotInForce, Open::Nothing)
    } else if largest == triple.max || !settings.tcp_moderate_rcvbuf {
        (Seen::InForce, Open::Nothing)
    } else if was_stopped {
        (Seen::CannotBeSeen, Open::TooMuchMemory)
    } else {
        (Seen::CannotBeSeen, Open::NotNeeded)
    };
    (seen, Sign::Sizes(initial, largest, open))
}

fn send_triple(settings: &HostSettings, evidence: &Evidence, pair: &Pair) -> Finding {
    let triple = settings.tcp_wmem;
    let (initial, largest) = (evidence.send_buffer, pair.largest_send);
    let open = if largest == triple.max { Open::Nothing } else { Open::NeedsDelay };
    let is_contradicted =
        initial != triple.default || (largest > triple.max && triple.max >= initial);
    if is_contradicted {
        return (Seen::NotInForce, Sign::Sizes(initial, largest, Open::Nothing));
    }
    let seen = if open == Open::Nothing { Seen::InForce } else { Seen::CannotBeSeen };
    (seen, Sign::Sizes(initial, largest, open))
}

/// The kernel checks the bound when it begins a packet, which may then hold 64 KiB.
fn unsent(value: &str, pair: &Pair) -> Finding {
    const PACKETS: Bytes = Bytes::new(192 << 10);
    let Some(unsent) = pair.unsent_when_full else {
        return hidden(Hidden::NotSaid);
    };
    let bound = Bytes::new(value.parse().unwrap_or(u64::MAX));
    if bound.saturating_add(PACKETS) >= pair.largest_send {
        return (Seen::CannotBeSeen, Sign::UnsentHidden(unsent));
    }
    (in_force(unsent <= bound.saturating_add(PACKETS)), Sign::Unsent(unsent))
}

fn in_force(is: bool) -> Seen {
    if is { Seen::InForce } else { Seen::NotInForce }
}

fn hidden(why: Hidden) -> Finding {
    (Seen::CannotBeSeen, Sign::Hidden(why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_model::change::Sysctl;

    fn settings() -> HostSettings {
        HostSettings::defaults("6.1".parse().unwrap())
    }

    fn values(settings: &HostSettings) -> Values {
        let value = |sysctl: Sysctl| match sysctl {
            Sysctl::TcpCongestionControl => "cubic".to_string(),
            Sysctl::TcpNotsentLowat => "131072".into(),
            _ => settings.get(sysctl).map_or_else(|| "1".into(), |value| value.to_string()),
        };
        Sysctl::ALL.into_iter().map(|sysctl| (sysctl.name(), value(sysctl))).collect()
    }

    /// Sockets that follow the defaults of Linux 6.1.
    fn evidence() -> Evidence {
        Evidence {
            receive_buffer: Bytes::new(131_072),
            send_buffer: Bytes::new(16_384),
            congestion_control: "cubic".into(),
            largest_asked_receive: Bytes::new(425_984),
            largest_asked_send: Bytes::new(425_984),
            pair: Ok(Pair {
                options: 7,
                receiver_scale: 7,
                unsent_when_full: Some(Bytes::new(140_000)),
                largest_send: Bytes::new(4_194_304),
                receive: Autotuned { largest: Bytes::new(6_291_456), was_stopped: false },
                idle: Some(Idle { before: 40, after: 10 }),
            }),
        }
    }

    fn seen(evidence: &Evidence, name: &str) -> Seen {
        let checks = judge(&values(&settings()), &settings(), evidence);
        checks.iter().find(|check| check.setting == name).unwrap().seen
    }

    /// What each setting is seen by, and a change of the evidence that contradicts it.
    #[test]
    fn each_setting_is_contradicted_by_a_socket_that_does_not_follow_it() {
        type Break = fn(&mut Evidence);
        let broken: [(&str, Break); 13] = [
            ("net.core.rmem_max", |e| e.largest_asked_receive = Bytes::new(212_992)),
            ("net.core.wmem_max", |e| e.largest_asked_send = Bytes::new(212_992)),
            ("net.ipv4.tcp_congestion_control", |e| e.congestion_control = "reno".into()),
            ("net.ipv4.tcp_timestamps", |e| e.pair.as_mut().unwrap().options &= !1),
            ("net.ipv4.tcp_sack", |e| e.pair.as_mut().unwrap().options &= !2),
            ("net.ipv4.tcp_window_scaling", |e| e.pair.as_mut().unwrap().options &= !4),
            ("net.ipv4.tcp_rmem", |e| e.receive_buffer = Bytes::new(87_380)),
            ("net.ipv4.tcp_rmem", |e| e.pair.as_mut().unwrap().receiver_scale = 8),
            ("net.ipv4.tcp_rmem", |e| {
                e.pair.as_mut().unwrap().receive.largest = Bytes::new(6_291_457);
            }),
            ("net.ipv4.tcp_wmem", |e| e.pair.as_mut().unwrap().largest_send = Bytes::new(5 << 20)),
            ("net.ipv4.tcp_moderate_rcvbuf", |e| {
                e.pair.as_mut().unwrap().receive.largest = Bytes::new(131_072);
            }),
            ("net.ipv4.tcp_notsent_lowat", |e| {
                e.pair.as_mut().unwrap().unsent_when_full = Some(Bytes::new(2 << 20));
            }),
            ("net.ipv4.tcp_slow_start_after_idle", |e| {
                e.pair.as_mut().unwrap().idle = Some(Idle { before: 40, after: 40 });
            }),
        ];
        for (name, change) in broken {
            assert_eq!(seen(&evidence(), name), Seen::InForce, "{name}");
            let mut other = evidence();
            change(&mut other);
            assert_eq!(seen(&other, name), Seen::NotInForce, "{name}");
        }
    }

    #[test]
    fn without_a_connection_it_says_so() {
        let none = Evidence { pair: Err("Network is unreachable".into()), ..evidence() };
        let checks = judge(&values(&settings()), &settings(), &none);
        for check in checks.iter().filter(|check| check.setting.contains("tcp_rmem")) {
            assert_eq!(check.seen, Seen::CannotBeSeen);
            let how = check.how.to_string();
            assert!(how.contains("unreachable") && how.contains("lo up"));
        }
        assert_eq!(seen(&none, "net.core.rmem_max"), Seen::InForce, "it needs no connection");
    }
}
