//! `fullpipe test`: what the path to another host carries, and why.

mod intervals;
mod runs;

use super::peer_keys::{HostSampler, private_key, with_port};
use crate::failure::{Failure, Kind};
use crate::sentence::Sentence;
use crate::terminal::{answer_layout, print, print_json, remark};
use clap::Args;
use fullpipe_flow::finding::path_test::{Measured, Rfc6349};
use fullpipe_flow::schema::Version;
use fullpipe_kernel::run::sandbox::Interrupt;
use fullpipe_model::units::{Bytes, Duration, Rate, column};
use fullpipe_peer::path_test::{Amount, PathMtu, Sampler, Spec, TestDirection, TestError, Tester};
use fullpipe_peer::{Client, Keys, PeerError, PublicKey};
use fullpipe_report::connection::path_test::{TestedHosts, TestedRun, render};
use intervals::{Interval, Intervals};
use runs::{Tested, tested};
use serde::Serialize;
use std::path::PathBuf;

/// Test the path to a host where `fullpipe serve` runs: rates, round trips, loss, and what limits.
///
/// Each run moves data for some seconds, while both hosts sample their sockets. The page says for
/// each direction what arrived, the round trip without and under load, the loss with its interval,
/// the path's MTU, and which of the window, the buffers, the path, the peer or the machine was the
/// limit, with what would change it. Without --forward, --reverse or --bidir both directions are
/// tested, one after the other.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe test localhost
  fullpipe test 192.0.2.7 --key my.key --server-key ed25519:3b6a..
  fullpipe test far.example --reverse --for 30s --parallel 1,4 --key my.key --server-key ed25519:3b6a..
  fullpipe test localhost --bidir --congestion bbr --json | jq '.runs[].answer.limit'
  fullpipe test localhost --rfc6349")]
pub struct Test {
    /// The host, with its port after a colon if that is not 5606.
    #[arg(value_name = "HOST[:PORT]")]
    host: String,
    /// The file with this host's private key, as `fullpipe keygen` makes it.
    #[arg(long, value_name = "FILE", requires = "server_key")]
    key: Option<PathBuf>,
    /// The daemon's public key, as `fullpipe serve` prints it.
    #[arg(long, value_name = "KEY", requires = "key")]
    server_key: Option<PublicKey>,
    /// How long each run lasts.
    #[arg(
        long = "for",
        short = 't',
        alias = "time",
        value_name = "TIME",
        default_value = "10s",
        conflicts_with = "bytes"
    )]
    time: Duration,
    /// End each connection after this much instead: 100MB.
    #[arg(long, short = 'n', value_name = "SIZE")]
    bytes: Option<Bytes>,
    /// How many connections at once; with several numbers, a run of each: 1,4.
    #[arg(long, short = 'P', value_name = "COUNT", value_delimiter = ',',
        value_parser = clap::value_parser!(u16).range(1..=64))]
    parallel: Vec<u16>,
    /// Data to the far host only.
    #[arg(long)]
    forward: bool,
    /// Data from the far host only.
    #[arg(long, short = 'R', conflicts_with = "forward")]
    reverse: bool,
    /// Data both ways at once.
    #[arg(long, conflicts_with_all = ["forward", "reverse"])]
    bidir: bool,
    /// The senders' congestion control: bbr, cubic, reno.
    #[arg(long, short = 'C', value_name = "NAME")]
    congestion: Option<String>,
    /// Time between two lines of progress; 0s for none.
    #[arg(long, short = 'i', value_name = "TIME", default_value = "1s")]
    interval: Duration,
    /// Do the steps of RFC 6349 and print its metrics: one and four connections, each direction and
    /// both at once.
    #[arg(long)]
    rfc6349: bool,
    /// The bottleneck bandwidth of the contract, for RFC 6349; without it, what the best run
    /// reached.
    #[arg(long, value_name = "RATE", requires = "rfc6349")]
    bandwidth: Option<Rate>,
    /// How long a connection attempt may take.
    #[arg(long, value_name = "TIME", default_value = "10s")]
    connect_timeout: Duration,
    /// Print JSON, and no lines of progress.
    #[arg(long)]
    json: bool,
}

/// The JSON of `fullpipe test`.
#[derive(Serialize)]
struct TestDocument<'a> {
    schema: Version,
    /// The far host, as the user named it.
    host: &'a str,
    /// The least round trip of messages before the load.
    #[serde(rename = "idle_rtt_us", with = "column::micros")]
    idle_rtt: Duration,
    /// The path MTU of each direction, by probes; only of RFC 6349.
    #[serde(skip_serializing_if = "Option::is_none")]
    path_mtu: Option<PathMtu>,
    runs: Vec<RunDocument<'a>>,
}

/// A run in that document.
#[derive(Serialize)]
struct RunDocument<'a> {
    /// Whether the other direction carried data at the same time.
    at_once: bool,
    #[serde(flatten)]
    measured: &'a Measured,
    #[serde(skip_serializing_if = "Option::is_none")]
    rfc6349: Option<&'a Rfc6349>,
    /// What passed in each interval.
    intervals: &'a [Interval],
}

impl Test {
    pub fn run(self) -> Result<u8, Failure> {
        let keys = match (&self.key, self.server_key) {
            (Some(file), Some(server)) => Some(Keys { own: private_key(file)?, server }),
            _ => None,
        };
        let interrupt = Interrupt::on_signals().map_err(Failure::of_kernel)?;
        let sampler = HostSampler::new()?;
        let client = Client::new(&with_port(&self.host), keys.as_ref(), self.connect_timeout)
            .map_err(|error| failure(error.into()))?;
        let mut tester = Tester::connect(client, &sampler).map_err(failure)?;
        let here = sampler.facts().settings();
        let path_mtu = self.rfc6349.then(|| tester.path_mtu(&|| !interrupt.is_set())).transpose();
        let path_mtu = path_mtu.map_err(failure)?;
        if let Some(found) = path_mtu.filter(|_| !self.json) {
            // Before the runs: where large packets get lost, they may never end.
            remark(&runs::mtu_in_words(found));
        }
        let mut done = Vec::new();
        for spec in self.specs() {
            let intervals = Intervals::new(self.interval, &spec, !self.json);
            let (outcome, intervals) = self.one(&mut tester, &spec, intervals, &interrupt)?;
            let far = tester.far().settings();
            done.extend(tested(&spec, &outcome, intervals, tester.idle_rtt(), [&here, &far]));
        }
        if done.is_empty() {
            let why = Sentence::new(
                "test: no data arrived in any run; test for longer (--for)",
                "test：每次运行都没有收到数据；请测试更长时间（--for）",
            );
            return Err(Failure::new(Kind::Run, why));
        }
        if self.rfc6349 {
            runs::add_rfc6349(&mut done, self.bandwidth, [&here, &tester.far().settings()]);
        }
        self.show(&done, tester.idle_rtt(), path_mtu)?;
        Ok(0)
    }

    /// The runs that were asked for.
    fn specs(&self) -> Vec<Spec> {
        use TestDirection::{Both, Forward, Reverse};
        let directions: &[TestDirection] = match (self.forward, self.reverse, self.bidir) {
            (true, ..) => &[Forward],
            (_, true, _) => &[Reverse],
            (.., true) => &[Both],
            _ if self.rfc6349 => &[Forward, Reverse, Both],
            _ => &[Forward, Reverse],
        };
        let counts: &[u16] = match &self.parallel[..] {
            [] if self.rfc6349 => &[1, 4],
            [] => &[1],
            counts => counts,
        };
        let amount = self.bytes.map_or(Amount::Time(self.time), Amount::Bytes);
        let specs = counts.iter().flat_map(|&connections| {
            directions.iter().map(move |&direction| Spec {
                direction,
                connections,
                amount,
                congestion: self.congestion.clone(),
            })
        });
        specs.collect()
    }

    fn one(
        &self,
        tester: &mut Tester<'_>,
        spec: &Spec,
        mut intervals: Intervals,
        interrupt: &Interrupt,
    ) -> Result<(fullpipe_peer::path_test::Outcome, Vec<Interval>), Failure> {
        let mut broken = None;
        let outcome = tester.run(spec, &mut |progress| {
            if let Err(error) = intervals.note(progress) {
                broken = Some(error);
            }
            !interrupt.is_set() && broken.is_none()
        });
        match broken {
            Some(error) => Err(error.into()),
            None => Ok((outcome.map_err(failure)?, intervals.done()?)),
        }
    }

    fn show(
        &self,
        done: &[Tested],
        idle_rtt: Duration,
        path_mtu: Option<PathMtu>,
    ) -> Result<(), Failure> {
        if self.json {
            let runs = done.iter().map(|one| RunDocument {
                at_once: one.at_once,
                measured: &one.measured,
                rfc6349: one.rfc6349.as_ref(),
                intervals: &one.intervals,
            });
            let runs = runs.collect();
            let (schema, host) = (Version::default(), self.host.as_str());
            let document = TestDocument { schema, host, idle_rtt, path_mtu, runs };
            return Ok(print_json(&document)?);
        }
        let runs: Vec<TestedRun<'_>> = done
            .iter()
            .map(|one| TestedRun {
                at_once: one.at_once,
                measured: &one.measured,
                rfc6349: one.rfc6349.as_ref(),
            })
            .collect();
        let hosts = TestedHosts { far: &self.host, idle_rtt };
        let hole = path_mtu.map_or(String::new(), |found| runs::black_hole(found, done));
        Ok(print(&(render(hosts, &runs, answer_layout()) + &hole))?)
    }
}

fn failure(error: TestError) -> Failure {
    let kind = match &error {
        TestError::Interrupted => Kind::Interrupted,
        TestError::Spec(_) | TestError::Peer(PeerError::NeedsKeys(_)) => Kind::Usage,
        TestError::Peer(PeerError::Keys(_)) => Kind::Input,
        TestError::Congestion { .. } | TestError::Sample(_) => Kind::Missing,
        _ => Kind::Run,
    };
    Failure::new(kind, Sentence::from(&error).of("test"))
}
