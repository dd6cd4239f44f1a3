//! How right `fullpipe test` is: generated paths, each with one limit by construction, between two
//! namespaces. Root. `cargo run -p fullpipe-lab --example test_paths -- BINARY [COUNT] [SEED]
//! [FIRST]` prints a line for each path, and what of all was right. FIRST leaves out the paths
//! before it, so that a long run can be made in parts.
//!
//! The true base round trip is what a SYN and its answer take: the delays, and the time in which
//! the link carries [`SMALL_PACKET`] bytes each way.
#![allow(clippy::print_stdout, reason = "a program for whoever develops")]

use fullpipe_kernel::network::netns::NetNs;
use fullpipe_lab::{SERVER_ADDRESS, join_hosts};
use fullpipe_link::{Emulator, Junction, LinkOptions};
use fullpipe_model::law::Framing;
use fullpipe_model::law::bdp::bdp;
use fullpipe_model::scenario::{File, LinkEngine};
use fullpipe_model::units::{Bytes, Duration, Rate};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// An IP packet with a SYN and the options that Linux sends.
const SMALL_PACKET: Bytes = Bytes::new(60);

type Failed = Box<dyn std::error::Error>;

/// What limits a path by construction.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Truth {
    Link,
    ReceiveWindow,
    SendBuffer,
    Loss,
}

/// A path.
struct Generated {
    truth: Truth,
    rate: Rate,
    rtt: Duration,
    loss: f64,
    /// Whether data goes to the client of the path.
    reverse: bool,
    scenario: String,
}

/// Numbers that look random (Steele, Lea and Flood's SplitMix64).
struct Numbers(u64);

impl Numbers {
    /// A number between two bounds, as often in each octave.
    fn between(&mut self, least: f64, most: f64) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let part = ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64;
        least * (most / least).powf(part)
    }
}

impl Generated {
    fn new(index: usize, numbers: &mut Numbers) -> Generated {
        let truths = [Truth::Link, Truth::ReceiveWindow, Truth::SendBuffer, Truth::Loss];
        let (truth, reverse) = (truths[index % 4], index / 4 % 2 == 1);
        let (rates, rtts) = match truth {
            Truth::Link => ((5e6, 100e6), (5e-3, 100e-3)),
            Truth::Loss => ((80e6, 150e6), (15e-3, 60e-3)),
            // Half of the product has to be a buffer that a socket may have.
            Truth::ReceiveWindow | Truth::SendBuffer => ((80e6, 150e6), (40e-3, 150e-3)),
        };
        let rate = Rate::from_bits_per_sec_f64(numbers.between(rates.0, rates.1));
        let rtt = Duration::from_secs_f64(numbers.between(rtts.0, rtts.1));
        let loss = if truth == Truth::Loss { numbers.between(0.005, 0.02) } else { 0.0 };
        let product = bdp(rate, rtt);
        let buffer = product.get() / 2;
        let (mut server, mut client) = (String::new(), String::new());
        let (sender, receiver) =
            if reverse { (&mut server, &mut client) } else { (&mut client, &mut server) };
        match truth {
            Truth::ReceiveWindow => {
                *receiver = format!("\"net.ipv4.tcp_rmem\" = \"4096 65536 {buffer}\"");
            }
            Truth::SendBuffer => {
                *sender = format!("\"net.ipv4.tcp_wmem\" = \"4096 16384 {buffer}\"");
            }
            Truth::Link | Truth::Loss => {}
        }
        let queue = product.get().max(60_000);
        let way = if reverse { "to_client" } else { "to_server" };
        let scenario = format!(
            "[hosts.server]\ncongestion_control = \"cubic\"\nsysctl = {{ {server} }}\n\
             [hosts.client]\ncongestion_control = \"cubic\"\nsysctl = {{ {client} }}\n\
             [link]\nrate = \"{}bit\"\nrtt = \"{}us\"\nqueue = \"{queue}B\"\n\
             [link.{way}]\nloss = \"{:.4}%\"\n",
            rate.bits_per_sec(),
            rtt.as_micros(),
            100.0 * loss
        );
        Generated { truth, rate, rtt, loss, reverse, scenario }
    }

    fn base_rtt(&self) -> Duration {
        let small = self.rate.time_for(SMALL_PACKET).unwrap_or(Duration::ZERO);
        self.rtt + small + small
    }
}

fn start(ns: &NetNs, command: &mut Command) -> Result<Child, Failed> {
    ns.start_in(command)?;
    Ok(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?)
}

/// Ends with this value.
struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// One test over a path: its only run.
fn test(binary: &str, keys: &Path, public: &str, path: &Generated) -> Result<Value, Failed> {
    let scenario = File::parse(&path.scenario)?.scenarios("test")?.remove(0);
    let (hosts, junction) = join_hosts(&scenario.hosts, LinkEngine::Own, &scenario.path)?;
    let Junction::Ports(ports) = junction else { return Err("the link has no ports".into()) };
    let link = Emulator::start(ports, &scenario.path, &LinkOptions::default())?;
    let mut serve = Command::new(binary);
    serve.args(["serve", "--listen", &format!("{SERVER_ADDRESS}:5606"), "--key"]);
    serve.arg(keys.join("key")).arg("--allow-key").arg(keys.join("allowed"));
    let mut daemon = Daemon(start(&hosts.server.ns, &mut serve)?);
    let said = daemon.0.stderr.take().ok_or("the daemon says nothing")?;
    let mut lines = BufReader::new(said).lines();
    if !lines.any(|line| line.is_ok_and(|line| line.starts_with("serving"))) {
        return Err("the daemon did not start".into());
    }
    let way = if path.reverse { "--reverse" } else { "--forward" };
    let mut near = Command::new(binary);
    near.args(["test", &SERVER_ADDRESS.to_string(), "--json", "--time", "6s", way]);
    near.arg("--key").arg(keys.join("key")).args(["--server-key", public]);
    let output = start(&hosts.client.ns, &mut near)?.wait_with_output()?;
    drop(daemon);
    let _ = link.stop();
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    Ok(serde_json::from_slice::<Value>(&output.stdout)?["runs"][0].take())
}

/// Whether the verdict names the limit.
fn is_right(truth: Truth, run: &Value) -> bool {
    let answer = &run["answer"];
    let named = (answer["limit"].as_str(), answer["cause"].as_str());
    match truth {
        Truth::Link => named.0 == Some("link"),
        Truth::ReceiveWindow => named.0 == Some("receive_window"),
        Truth::SendBuffer => named.0 == Some("send_buffer"),
        Truth::Loss => named == (Some("congestion_window"), Some("loss")),
    }
}

/// What all paths together have shown.
#[derive(Default)]
struct Score {
    right: usize,
    rate_errors: Vec<f64>,
    rtt_errors: Vec<f64>,
    losses: usize,
    losses_in_interval: usize,
}

impl Score {
    /// Counts a path, and prints its line.
    fn note(&mut self, path: &Generated, run: &Value) {
        let is_right = is_right(path.truth, run);
        self.right += usize::from(is_right);
        let most = Framing::IP_1500.goodput(path.rate).as_f64();
        let of_link = number(&run["steady_goodput_bps"]) / most;
        let of_rtt = number(&run["base_rtt_us"]) / path.base_rtt().as_micros() as f64;
        self.rtt_errors.push((of_rtt - 1.0).abs());
        if path.truth == Truth::Link {
            self.rate_errors.push((of_link - 1.0).abs());
        }
        let loss = &run["loss"];
        if path.truth == Truth::Loss {
            let bounds = number(&loss["share_least"])..=number(&loss["share_most"]);
            self.losses += 1;
            self.losses_in_interval += usize::from(bounds.contains(&path.loss));
        }
        println!(
            "{:13} {} {:>14} {:>9} loss {:.3} %: {} {:.2}, {of_link:.4} of the link, {of_rtt:.4} \
             of the RTT, loss {:.3} %",
            format!("{:?}", path.truth),
            if is_right { "right" } else { "WRONG" },
            path.rate.to_string(),
            path.rtt.to_string(),
            100.0 * path.loss,
            run["answer"]["limit"],
            number(&run["answer"]["share"]),
            100.0 * number(&loss["share"]),
        );
    }

    fn print(&self, count: usize) {
        println!(
            "{} of {count} verdicts right; rate on full links within {:.2} %; base RTT within \
             {:.2} %; loss in its 95 % interval {} of {}",
            self.right,
            percent_at_most(&self.rate_errors),
            percent_at_most(&self.rtt_errors),
            self.losses_in_interval,
            self.losses
        );
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(0.0)
}

/// The largest of these shares, in percent.
fn percent_at_most(errors: &[f64]) -> f64 {
    100.0 * errors.iter().copied().fold(0.0, f64::max)
}

fn main() -> Result<(), Failed> {
    let mut words = std::env::args().skip(1);
    let binary = words.next().ok_or("name the binary")?;
    let count: usize = words.next().map_or(Ok(24), |word| word.parse())?;
    let seed: u64 = words.next().map_or(Ok(1), |word| word.parse())?;
    let first: usize = words.next().map_or(Ok(0), |word| word.parse())?;
    let keys = tempfile::tempdir()?;
    let file = keys.path().join("key");
    let made = Command::new(&binary).args(["keygen", "--json"]).arg(file).output()?;
    let document: Value = serde_json::from_slice(&made.stdout)?;
    let public = document["public_key"].as_str().ok_or("no key")?;
    std::fs::write(keys.path().join("allowed"), public)?;
    let (mut numbers, mut score) = (Numbers(seed), Score::default());
    for index in 0..count {
        let path = Generated::new(index, &mut numbers);
        if index < first {
            continue;
        }
        score.note(&path, &test(&binary, keys.path(), public, &path)?);
    }
    score.print(count.saturating_sub(first));
    Ok(())
}
