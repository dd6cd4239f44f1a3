//! A scenario under construction. Its path is kept as numbers, the rest as the table of its file.

use super::super::Cause;
use super::dice::Dice;
use super::variation::Variation;
use toml::Value;

/// Ranges of rates (bits per second) and round trips (seconds); both are log-uniform.
const RATES: (f64, f64) = (256e3, 1e9);
const RTTS: (f64, f64) = (1e-3, 0.6);
/// The most bytes that a transfer carries: virtual time costs some 0.1 s for 10^6 of them.
const CARRIED_MAX: f64 = 40e6;
/// The minimum length of a transfer, in round trips.
const ROUNDS: f64 = 60.0;
/// IPv4 and TCP headers with timestamps.
const HEADERS: f64 = 52.0;

#[derive(Debug)]
pub(super) struct Draft {
    pub cause: Cause,
    /// The cause of the rest of the time.
    pub also: Option<Cause>,
    pub variation: Variation,
    /// The minimum length of the transfer, in seconds.
    pub seconds_least: f64,
    /// Bits per second of IP packets.
    pub rate: f64,
    /// Seconds.
    pub rtt: f64,
    /// Bytes of payload in a full segment.
    pub mss: f64,
    /// The queue in BDPs.
    pub queue: f64,
    pub congestion_control: &'static str,
    /// What the transfer is expected to carry, in bits per second.
    pub expected: f64,
    root: toml::Table,
    /// The changes of the counterfactual: keys with their values, `None` to remove a key.
    relaxed: Vec<(Vec<String>, Option<Value>)>,
}

impl Draft {
    pub fn new(cause: Cause, variation: Variation) -> Draft {
        let mut draft = Draft {
            cause,
            also: None,
            variation,
            seconds_least: 0.0,
            rate: 0.0,
            rtt: 0.0,
            mss: 1448.0,
            queue: 1.0,
            congestion_control: "cubic",
            expected: 0.0,
            root: toml::Table::new(),
            relaxed: Vec::new(),
        };
        draft.set(&["truth", "cause"], cause.name());
        draft
    }

    /// Sets the causes: `cause` limits for most of the time, and `also` for the rest.
    pub fn becomes(&mut self, cause: Cause, also: Cause) {
        if self.cause != cause {
            self.relaxed.clear();
        }
        (self.cause, self.also) = (cause, Some(also));
        self.set(&["truth", "cause"], cause.name());
        self.set(&["truth", "also"], also.name());
    }

    /// Bandwidth-delay product in bytes.
    pub fn bdp(&self) -> f64 {
        self.rate * self.rtt / 8.0
    }

    pub fn set(&mut self, key: &[&str], value: impl Into<Value>) {
        put(&mut self.root, key, Some(value.into()));
    }

    /// Sets `key` in the counterfactual.
    pub fn relax(&mut self, key: &[&str], value: impl Into<Value>) {
        self.relaxed.push((key.iter().map(ToString::to_string).collect(), Some(value.into())));
    }

    /// Removes `key` in the counterfactual.
    pub fn relax_without(&mut self, key: &[&str]) {
        self.relaxed.push((key.iter().map(ToString::to_string).collect(), None));
    }

    fn get(&self, key: &[&str]) -> Option<&Value> {
        let (first, rest) = key.split_first()?;
        rest.iter().try_fold(self.root.get(*first)?, |value, name| value.get(name))
    }

    pub fn remove(&mut self, key: &[&str]) {
        put(&mut self.root, key, None);
    }

    /// A whole number that is set.
    pub fn whole(&self, key: &[&str]) -> Option<i64> {
        self.get(key)?.as_integer()
    }

    pub fn has(&self, key: &[&str]) -> bool {
        self.get(key).is_some()
    }

    pub fn is(&self, key: &[&str], text: &str) -> bool {
        self.get(key).and_then(Value::as_str) == Some(text)
    }

    /// Sets a sysctl of `server` or `client`.
    pub fn sysctl(&mut self, host: &str, name: &str, value: impl Into<Value>) {
        self.set(&["hosts", host, "sysctl", name], value);
    }

    pub fn congestion_control(&mut self, dice: &mut Dice, names: &[&'static str]) {
        self.congestion_control = *dice.pick::<&'static str>(names);
        self.set(&["hosts", "server", "congestion_control"], self.congestion_control);
    }

    /// Draws the MTU, then a rate and a round-trip time that satisfy `fits`. `utilisation` is the
    /// share of the rate that the transfer is expected to carry. It bounds the cost of the run.
    pub fn path(&mut self, dice: &mut Dice, utilisation: f64, fits: impl Fn(&Draft) -> bool) {
        let mtu = *dice.pick(&[1500, 1500, 1500, 1500, 1280, 1400, 576, 9000]);
        self.mss = f64::from(mtu) - HEADERS;
        self.set(&["link", "mtu"], mtu.to_string());
        // Used if nothing fits; it suits every cause and MTU.
        (self.rate, self.rtt) = (200e6, 0.1);
        for _ in 0..10_000 {
            let (rate, rtt) = (dice.log(RATES.0, RATES.1), dice.log(RTTS.0, RTTS.1));
            let tried = Draft { rate, rtt, root: toml::Table::new(), relaxed: Vec::new(), ..*self };
            let cost = rate / 8.0 * utilisation * tried.seconds();
            if cost <= CARRIED_MAX && fits(&tried) {
                (self.rate, self.rtt) = (rate, rtt);
                break;
            }
        }
        self.expected = self.rate * utilisation;
        self.set(&["link", "rate"], format!("{}kbit", (self.rate / 1e3).round()));
        self.set(&["link", "rtt"], format!("{}us", (self.rtt * 1e6 / 2.0).round() * 2.0));
        self.set(&["link", "seed"], i64::from(dice.seed()));
    }

    /// Sets a queue of this many BDPs, but at least `packets` packets.
    pub fn queue(&mut self, bdps: f64, packets: f64) {
        let bytes = (bdps * self.bdp()).max(packets * (self.mss + HEADERS)).ceil();
        self.queue = bytes / self.bdp();
        self.set(&["link", "queue"], format!("{bytes}"));
    }

    /// A buffer that fills path and queue, with room for what arrives while a loss is repaired.
    pub fn room(&self) -> f64 {
        (6.0 * self.bdp() * (1.0 + self.queue)).max(6_291_456.0).ceil()
    }

    /// Sets buffers at both hosts that are large enough to fill path and queue, unless a buffer is
    /// set already.
    pub fn generous_buffers(&mut self) {
        let room = self.room();
        let buffers =
            [("server", "net.ipv4.tcp_wmem", 16_384), ("client", "net.ipv4.tcp_rmem", 131_072)];
        for (host, name, initial) in buffers {
            if !self.has(&["hosts", host, "sysctl", name]) {
                self.sysctl(host, name, format!("4096 {initial} {room}"));
            }
        }
    }

    /// The length of the transfer in seconds.
    pub fn seconds(&self) -> f64 {
        // Whole seconds, as iperf3 needs them.
        (ROUNDS * self.rtt).max(self.seconds_least).ceil()
    }

    /// The scenario and its counterfactual, as TOML.
    pub fn into_toml(self) -> (String, String) {
        let mut other = self.root.clone();
        for (key, value) in self.relaxed {
            let key: Vec<&str> = key.iter().map(String::as_str).collect();
            put(&mut other, &key, value);
        }
        (toml_of(&self.root), toml_of(&other))
    }
}

/// A table of texts and numbers, which is always valid TOML.
pub(super) fn toml_of(table: &toml::Table) -> String {
    toml::to_string(table).unwrap_or_default()
}

/// Sets or removes a key of nested tables.
pub(super) fn put(root: &mut toml::Table, key: &[&str], value: Option<Value>) {
    let Some((last, tables)) = key.split_last() else { return };
    let mut table = root;
    for name in tables {
        let entry = table.entry(*name).or_insert_with(|| Value::Table(toml::Table::new()));
        let Value::Table(inner) = entry else { return };
        table = inner;
    }
    match value {
        Some(value) => table.insert((*last).into(), value),
        None => table.remove(*last),
    };
}
