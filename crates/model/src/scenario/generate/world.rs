//! Worlds: hosts, a path and applications drawn from what is common. Nothing is drawn for a cause.
//!
//! What limits a world is found by intervention: each limit that it may have is lifted alone, and
//! the transfer runs again. The limits whose removal makes it faster are the right answers.
//!
//! World `index` of a seed does not depend on which other worlds are drawn. The sources of the
//! ranges are in the guide (`docs/src/truth.md`, "Worlds").

use super::super::Cause;
use super::dice::Dice;
use super::draft::{put, toml_of};
use toml::{Table, Value};

/// Distinguishes the random stream of worlds from that of scenarios drawn for a cause.
const WORLDS: u64 = 0x2545_f491_4f6c_dd1d;
/// Ranges of rates (bits per second) and round trips (seconds); both are log-uniform.
const RATES: (f64, f64) = (4e6, 1.1e9);
const RTTS: (f64, f64) = (1e-3, 0.34);
/// Seconds that a transfer takes that is not a small file's.
const SECONDS: (f64, f64) = (2.0, 12.0);
/// The most bytes that a link can carry in a transfer: virtual time costs some 0.1 s for 10^6.
const CARRIED_MAX: f64 = 120e6;
/// The least length of a long transfer, in round trips.
const ROUNDS: f64 = 15.0;
/// IPv4 and TCP headers with timestamps.
const HEADERS: f64 = 52.0;
/// A lifted buffer: 256 MiB.
const AMPLE: f64 = 268_435_456.0;
/// What the kernel allows by default (Documentation/networking/ip-sysctl.rst).
const DEFAULT_RMEM: f64 = 6_291_456.0;
const DEFAULT_WMEM: f64 = 4_194_304.0;
/// What guides advise: 16 MiB for 1 Gbit/s, 32 and 64 MiB for 10 Gbit/s (ESnet's fasterdata).
const ADVISED: [f64; 3] = [16_777_216.0, 33_554_432.0, 67_108_864.0];
/// What applications ask for: powers of two from 64 KiB, which the kernel doubles.
const ASKED: [f64; 5] = [65_536.0, 131_072.0, 262_144.0, 524_288.0, 1_048_576.0];
/// What applications read and write at once, in bytes.
const BLOCKS: (f64, f64) = (16_384.0, 4_194_304.0);

/// A drawn world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct World {
    /// Name of the experiment, unique in its set: `worlds/7/0042`.
    pub name: String,
    /// The scenario file.
    pub text: String,
    /// The same scenario file with one limit lifted each. A limit that the world cannot have, as a
    /// pause of an application that makes none, is not among them.
    pub lifted: Vec<(Cause, String)>,
}

impl World {
    /// The name of its file, as it is (`0042.toml`) or with a limit lifted
    /// (`0042.without-loss.toml`).
    pub fn file_name(&self, lifted: Option<Cause>) -> String {
        let name = lifted.map_or_else(|| self.name.clone(), |cause| self.lifted_name(cause));
        format!("{}.toml", name.rsplit('/').next().unwrap_or(&name))
    }

    /// The name of the world with `cause` lifted: `worlds/7/0042.without-loss`.
    pub fn lifted_name(&self, cause: Cause) -> String {
        format!("{}.without-{}", self.name, cause.name())
    }
}

/// World `index` of set `seed`.
///
/// ```
/// use fullpipe_model::scenario::{File, world};
/// let drawn = world(7, 0);
/// assert_eq!(drawn, world(7, 0));
/// assert!(File::parse(&drawn.text).unwrap().scenarios("x").unwrap()[0].truth.is_none());
/// ```
pub fn world(seed: u64, index: u32) -> World {
    let mut dice = Dice::new(seed ^ WORLDS, index);
    let mut draft = Draft::path(&mut dice);
    let is_small = dice.chance(0.5);
    draft.hosts(&mut dice);
    draft.link(&mut dice);
    if is_small {
        draft.small_file(&mut dice);
    } else {
        draft.applications(&mut dice);
    }
    draft.start();
    let name = format!("worlds/{seed}/{index:04}");
    draft.set(&["name"], name.as_str());
    let built = format!("# World {index} of `fullpipe lab generate --worlds --seed {seed}`");
    let lifted = draft.lifts.iter().map(|(cause, changes)| {
        let mut other = draft.root.clone();
        for (key, value) in changes {
            put(&mut other, key, value.clone());
        }
        (*cause, format!("{built}, without {}.\n{}", cause.name(), toml_of(&other)))
    });
    World { lifted: lifted.collect(), text: format!("{built}.\n{}", toml_of(&draft.root)), name }
}

type Key = &'static [&'static str];
/// Keys with their values; `None` removes a key.
type Changes = Vec<(Key, Option<Value>)>;

const RMEM: Key = &["hosts", "client", "sysctl", "net.ipv4.tcp_rmem"];
const WMEM: Key = &["hosts", "server", "sysctl", "net.ipv4.tcp_wmem"];
const RATE: Key = &["link", "rate"];
const QUEUE: Key = &["link", "queue"];
const DISCIPLINE: Key = &["link", "to_client", "discipline"];
const LOSS: Key = &["link", "to_client", "loss"];
const SIZE: Key = &["transfer", "size"];
const REQUESTS: Key = &["transfer", "requests"];
const ANSWER_AFTER: Key = &["transfer", "answer_after"];
const WRITE_RATE: Key = &["transfer", "write_rate"];
const WRITE_BLOCK: Key = &["transfer", "write_block"];
const READ_RATE: Key = &["transfer", "read_rate"];
const READ_BLOCK: Key = &["transfer", "read_block"];
const SEND_BUFFER: Key = &["transfer", "send_buffer"];
const RECEIVE_BUFFER: Key = &["transfer", "receive_buffer"];
const CLIENT: Key = &["transfer", "client"];

/// A world under construction.
#[derive(Debug)]
struct Draft {
    /// Bits per second of IP packets.
    rate: f64,
    /// Seconds.
    rtt: f64,
    seconds: f64,
    /// Bytes of payload in a full segment.
    mss: f64,
    /// Bytes that the queue holds.
    queue: f64,
    /// The receive buffer's maximum.
    rmem: f64,
    root: Table,
    lifts: Vec<(Cause, Changes)>,
}

fn kbit(rate: f64) -> Value {
    format!("{}kbit", (rate / 1e3).round().max(8.0)).into()
}

fn bytes(bytes: f64) -> Value {
    format!("{}", bytes.ceil()).into()
}

impl Draft {
    /// Draws the rate, the round trip, how long the transfer takes, and the MTU.
    fn path(dice: &mut Dice) -> Draft {
        let (mut rate, mut rtt, mut seconds) = (100e6, 0.04, 4.0);
        for _ in 0..1000 {
            (rate, rtt) = (dice.log(RATES.0, RATES.1), dice.log(RTTS.0, RTTS.1));
            seconds = dice.uniform(SECONDS.0, SECONDS.1).max(ROUNDS * rtt).ceil();
            if rate / 8.0 * seconds <= 4.0 * CARRIED_MAX {
                break;
            }
        }
        // A fast link shows in a shorter time what it does.
        seconds = seconds.min((CARRIED_MAX * 8.0 / rate).max(ROUNDS * rtt).max(SECONDS.0)).ceil();
        // Ethernet, PPPoE and tunnels, and jumbo frames in data centres.
        let mtu = *dice.pick(&[1500, 1500, 1500, 1500, 1500, 1500, 1492, 1420, 1280, 9000]);
        let mut draft = Draft {
            rate,
            rtt,
            seconds,
            mss: f64::from(mtu) - HEADERS,
            queue: 0.0,
            rmem: DEFAULT_RMEM,
            root: Table::new(),
            lifts: Vec::new(),
        };
        draft.set(&["link", "mtu"], mtu.to_string());
        draft.set(RATE, kbit(rate));
        draft.set(&["link", "rtt"], format!("{}us", (rtt * 1e6 / 2.0).round() * 2.0));
        draft.set(&["link", "seed"], i64::from(dice.seed()));
        draft
    }

    /// Bandwidth-delay product in bytes.
    fn bdp(&self) -> f64 {
        self.rate * self.rtt / 8.0
    }

    fn set(&mut self, key: &[&str], value: impl Into<Value>) {
        put(&mut self.root, key, Some(value.into()));
    }

    fn lift(&mut self, cause: Cause, changes: Changes) {
        self.lifts.push((cause, changes));
    }

    /// Draws queue, discipline and loss.
    fn link(&mut self, dice: &mut Dice) {
        let packet = self.mss + HEADERS;
        let is_policed = dice.chance(0.12);
        self.queue = if is_policed {
            // From a switch's smallest burst to what clouds give.
            dice.log(8e3, 4e6).max(4.0 * packet)
        } else {
            match dice.pick(&[0, 0, 0, 1, 2, 3]) {
                // Access networks: some tens to hundreds of milliseconds (bufferbloat), and less.
                0 => dice.log(0.01, 0.4) * self.rate / 8.0,
                // The rule of thumb, and its neighbours.
                1 => dice.log(0.25, 4.0) * self.bdp(),
                // A switch's share of its memory for a port.
                2 => dice.log(64e3, 2e6),
                // Linux's default: 1000 packets.
                _ => 1000.0 * packet,
            }
        };
        self.queue = self.queue.max(8.0 * packet);
        self.set(QUEUE, bytes(self.queue));
        let twice = Some(kbit(2.0 * self.rate));
        if is_policed {
            self.set(DISCIPLINE, "police");
            let ample = Some(bytes((2.0 * self.bdp()).max(64.0 * packet)));
            self.lift(Cause::Policer, vec![(DISCIPLINE, None), (QUEUE, ample)]);
            self.lift(Cause::Link, vec![(RATE, twice)]);
        } else {
            if dice.chance(0.25) {
                self.set(DISCIPLINE, "fq_codel");
            }
            let queue = Some(bytes(2.0 * self.queue));
            self.lift(Cause::Link, vec![(RATE, twice), (QUEUE, queue)]);
        }
        let mut unlost = Changes::new();
        if dice.chance(0.3) {
            let text = if dice.chance(0.25) {
                format!("gemodel {:.4}% {:.0}%", dice.log(0.002, 0.3), dice.uniform(30.0, 80.0))
            } else {
                format!("{:.4}%", dice.log(0.001, 1.0))
            };
            self.set(LOSS, text);
            unlost.push((LOSS, None));
        }
        // A queue shorter than the path drops what a window of the path's size sends at once.
        if !is_policed && self.queue < self.bdp() {
            unlost.push((QUEUE, Some(bytes((4.0 * self.bdp()).max(64.0 * packet)))));
            unlost.push((DISCIPLINE, None));
        }
        if !unlost.is_empty() {
            self.lift(Cause::Loss, unlost);
        }
    }

    /// Draws kernels, congestion control and buffers.
    fn hosts(&mut self, dice: &mut Dice) {
        if dice.chance(0.25) {
            self.set(&["kernel"], "6.1");
        }
        let control = *dice.pick(&["cubic", "cubic", "cubic", "cubic", "bbr", "bbr", "reno"]);
        self.set(&["hosts", "server", "congestion_control"], control);
        if dice.chance(0.08) {
            self.set(&["hosts", "server", "sysctl", "net.ipv4.tcp_timestamps"], 0);
        }
        // What our own plan sets holds path and queue, and little more: a queue of a path's worth.
        let holds = 2.0 * self.bdp();
        let [rmem, wmem] =
            [(DEFAULT_RMEM, 2.0), (DEFAULT_WMEM, 1.5)].map(|(default, for_a_window)| {
                match dice.pick(&[0, 0, 0, 0, 1, 1, 2, 2]) {
                    0 => default,
                    1 => *dice.pick(&ADVISED),
                    _ => (holds * for_a_window * dice.uniform(1.0, 1.2)).max(262_144.0).ceil(),
                }
            });
        self.rmem = rmem;
        self.set(RMEM, format!("4096 131072 {rmem}"));
        self.set(WMEM, format!("4096 16384 {wmem}"));
        let [mut received, mut sent] = [(RMEM, 131_072), (WMEM, 16_384)]
            .map(|(key, first)| vec![(key, Some(format!("4096 {first} {AMPLE}").into()))]);
        if dice.chance(0.1) {
            self.set(RECEIVE_BUFFER, bytes(*dice.pick(&ASKED)));
            received.push((RECEIVE_BUFFER, None));
        }
        if dice.chance(0.1) {
            self.set(SEND_BUFFER, bytes(*dice.pick(&ASKED)));
            sent.push((SEND_BUFFER, None));
        }
        self.lift(Cause::ReceiveWindow, received);
        self.lift(Cause::SendBuffer, sent);
    }

    /// A page, a picture, a small answer: 1 to 50 segments.
    fn small_file(&mut self, dice: &mut Dice) {
        self.set(SIZE, bytes(dice.log(1.0, 50.0) * self.mss));
        self.set(&["transfer", "duration"], format!("{}s", self.seconds + 10.0));
    }

    /// Draws who writes and who reads.
    fn applications(&mut self, dice: &mut Dice) {
        self.set(&["transfer", "duration"], format!("{}s", self.seconds));
        let is_plain = !["receive_buffer", "send_buffer"].iter().any(|key| self.has(key));
        let mut applications = vec![Application::Plain; 6];
        applications.extend([Application::Writes; 3]);
        applications.extend([Application::Reads; 2]);
        if is_plain {
            applications.extend([Application::Answers; 2]);
            applications.push(Application::Shares);
        }
        match dice.pick(&applications) {
            Application::Plain => {}
            Application::Writes => {
                self.set(WRITE_RATE, kbit(self.rate * dice.log(0.2, 4.0)));
                self.set(WRITE_BLOCK, bytes(dice.log(BLOCKS.0, BLOCKS.1)));
                self.lift(Cause::SenderApplication, vec![(WRITE_RATE, None), (WRITE_BLOCK, None)]);
            }
            Application::Reads => {
                self.set(READ_RATE, kbit(self.rate * dice.log(0.2, 4.0)));
                self.set(READ_BLOCK, bytes(dice.log(BLOCKS.0, BLOCKS.1)));
                self.lift(Cause::ReceiverApplication, vec![(READ_RATE, None), (READ_BLOCK, None)]);
            }
            Application::Answers => self.answers(dice),
            Application::Shares => {
                let connections = *dice.pick(&[2_u8, 3, 4]);
                let each = self.rate / 8.0 * self.seconds / f64::from(connections);
                self.set(SIZE, bytes(each));
                self.set(CLIENT, "curl");
                self.set(&["transfer", "connections"], i64::from(connections));
            }
        }
    }

    /// One answer after another on one connection, each asked for when the last is there: the
    /// segments of a film, rows of a database, an interface.
    fn answers(&mut self, dice: &mut Dice) {
        let size = dice.log(4e3, 8e6);
        let wait = if dice.chance(0.5) { dice.log(0.001, 0.5) } else { 0.0 };
        let each = self.rtt + wait + size * 8.0 / self.rate;
        let count = (self.seconds / each).clamp(3.0, 100.0).floor();
        self.set(CLIENT, "curl");
        self.set(SIZE, bytes(size));
        self.set(REQUESTS, count as i64);
        let mut changes: Changes =
            vec![(REQUESTS, None), (SIZE, Some(bytes(size.ceil() * count))), (ANSWER_AFTER, None)];
        if wait > 0.0 {
            self.set(ANSWER_AFTER, format!("{}us", (wait * 1e6).ceil()));
        } else {
            changes.pop();
        }
        self.lift(Cause::SenderApplication, changes);
    }

    fn has(&self, key: &str) -> bool {
        self.root.get("transfer").and_then(|table| table.get(key)).is_some()
    }

    /// The first windows: lifted, they are as large as the path, or as the buffers let them be.
    fn start(&mut self) {
        let segments = (self.bdp() / self.mss).clamp(50.0, 20_000.0).ceil();
        let first = (4.0 * self.bdp()).max(524_288.0).min(self.rmem).ceil();
        let rmem = Some(format!("4096 {first} {}", self.rmem).into());
        let initcwnd: Key = &["hosts", "server", "initcwnd"];
        let window = (initcwnd, Some(Value::Integer(segments as i64)));
        self.lift(Cause::SlowStart, vec![window, (RMEM, rmem)]);
    }
}

/// What the applications at both ends do.
#[derive(Debug, Clone, Copy)]
enum Application {
    /// As fast as they can.
    Plain,
    /// The sender writes in blocks, at a rate.
    Writes,
    /// The receiver reads in blocks, at a rate.
    Reads,
    /// The receiver asks for one answer after another.
    Answers,
    /// Several downloads share the link.
    Shares,
}

#[cfg(test)]
mod tests {
    use super::super::tests::read;
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn every_world_runs_and_each_lift_changes_it(seed: u64, index in 0_u32..10_000) {
            let drawn = world(seed, index);
            let scenario = read(&drawn.text);
            prop_assert_eq!(&scenario.name, &drawn.name);
            prop_assert_eq!(scenario.truth, None);
            let rate = scenario.path.to_client.rate.unwrap().as_f64();
            let carried = rate / 8.0 * scenario.transfer.duration.as_secs_f64();
            let is_short = scenario.transfer.size.get() < 1 << 20;
            prop_assert!(is_short || carried <= 4.5 * CARRIED_MAX, "{}", drawn.text);
            for (cause, text) in &drawn.lifted {
                prop_assert_ne!(&read(text), &scenario, "{:?}\n{}", cause, text);
            }
        }
    }

    #[test]
    fn worlds_are_wide_and_no_limit_is_missing() {
        let mut seen: BTreeMap<String, u32> = BTreeMap::new();
        for index in 0..800 {
            let drawn = world(1, index);
            let scenario = read(&drawn.text);
            let server = &scenario.hosts.server;
            let mut words = vec![
                server.congestion_control.clone().unwrap(),
                format!("discipline {}", scenario.path.to_client.discipline.name()),
                format!("kernel {:?}", scenario.kernel),
                format!("small {}", scenario.transfer.size.get() < 1 << 18),
            ];
            words.extend(drawn.lifted.iter().map(|(cause, _)| cause.name().to_owned()));
            for word in words {
                *seen.entry(word).or_default() += 1;
            }
        }
        let causes = Cause::ALL.map(Cause::name);
        let kinds = ["cubic", "reno", "bbr", "discipline police", "discipline fq_codel"];
        for kind in causes.into_iter().chain(kinds).chain(["small true", "small false"]) {
            assert!(seen.get(kind).is_some_and(|count| *count >= 30), "{kind}: {seen:?}");
        }
    }
}
