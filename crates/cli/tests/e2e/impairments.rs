//! Article B's impairments: the link's log has the requested effects as often as chance allows, and
//! the captures at the edges, which are independent of the log, show the same.
//!
//! "As chance allows" is the interval that contains 99.9 % of all runs. The draws come from the
//! scenario's seed, one for each packet; the number of packets depends on the machine. Times in the
//! log are the model's and exact even on a busy machine, so a delay is asserted to the nanosecond,
//! while what the hosts saw has a generous upper bound.

use std::path::PathBuf;
use std::process::{Child, Command};

use fullpipe_kernel::process::sched::{Placement, cpus};
use fullpipe_link::{Fates, LogFile};
use fullpipe_model::link::log::{Direction, Fate, Record};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::Case;
use crate::need::Need;
use crate::program::{Program, Row, result_file, result_folder, scenario};

pub const CASES: &[Case] = &[
    ("loss_is_what_was_asked", &[], loss),
    ("duplicates_are_what_was_asked", &[], duplicates),
    (
        "corruption_is_what_was_asked_and_no_checksum_hides_it",
        &[Need::Program("tshark")],
        corruption,
    ),
    ("every_fifth_packet_overtakes", &[], every_fifth_packet_overtakes),
    ("a_correlated_quarter_overtakes_as_netem_has_it", &[], a_correlated_quarter_overtakes),
    ("jitter_is_what_was_asked", &[], jitter),
    ("one_address_is_far_one_way_only", &[], one_address_is_far_one_way_only),
    ("one_port_is_far_and_another_is_near", &[], one_port_is_far_and_another_is_near),
    ("a_reader_that_others_keep_from_its_cpu_is_told", &[Need::Root], a_crowded_reader_is_told),
];

/// A process that never waits, ended with the test.
struct Spinning(Child);

impl Spinning {
    fn on(cpu: usize) -> Spinning {
        let mut command = Command::new("timeout");
        command.args(["60", "sh", "-c", "while :; do :; done"]);
        Placement { cpus: vec![cpu], nice: Some(-15) }.apply_to(&mut command).unwrap();
        Spinning(command.spawn().unwrap())
    }
}

impl Drop for Spinning {
    fn drop(&mut self) {
        // `timeout` passes it on.
        kill(Pid::from_raw(self.0.id() as i32), Signal::SIGTERM).unwrap();
        self.0.wait().unwrap();
    }
}

/// The link has the other CPU and is never late, so only the reader's own waits can tell that its
/// slowness is this machine's. It is given far less than 1 Gbit/s needs: at 100 Mbit/s it kept up
/// in every second run, with 20 ms of CPU and a receive buffer that held the rest.
fn a_crowded_reader_is_told() {
    let cpu = cpus().unwrap()[0];
    let text = scenario("crowded", ["1gbit", "20ms"], "duration = \"2s\"", "");
    let program = Program::new();
    program.file("crowded.toml", format!("{text}[hosts.client]\ncpu = {cpu}\nnice = 5\n"));
    let others: Vec<Spinning> = (0..6).map(|_| Spinning::on(cpu)).collect();
    let rows = program.rows(&["crowded.toml"]);
    drop(others);
    let notes = rows[0].notes().join("; ");
    assert!(!rows[0].quiet() && notes.contains("not quiet: the reader waited"), "{notes}");
}

/// 99.9 % of a normal distribution are within so many deviations.
const QUANTILE: f64 = 3.2905;
const RATE: f64 = 1e9;

/// A row of an article's scenario, and its log.
struct Run {
    row: Row,
    log: LogFile,
    folder: PathBuf,
}

impl Run {
    /// Runs the scenario and checks what holds for each of its rows: the log, the link's counters
    /// and the capture at the receiver's edge have the same packets.
    fn all(program: &Program, scenario: &str) -> Vec<Run> {
        let rows = program.rows(&[scenario, "--keep-captures", "--out", "results"]);
        let results = program.work().join("results");
        let runs = rows.into_iter().map(|row| {
            let folder = result_folder(&results, &row);
            let log = LogFile::read(&folder.join("link.log")).unwrap();
            let link = result_file(&results, &row, "link.json");
            assert_eq!(
                (&link["log_dropped"], &link["capture_dropped"]),
                (&0.into(), &0.into()),
                "{link:#}"
            );
            let counted = |way: &str, key: &str| link[way][key].as_u64().unwrap();
            let (to_client, to_server) =
                (log.count(Direction::ToClient), log.count(Direction::ToServer));
            assert_eq!(
                to_client.departed_packets,
                counted("to_client", "departed_packets"),
                "{}: the log's and the link's",
                row.name()
            );
            assert_eq!(
                to_client.lost_packets,
                counted("to_client", "lost_packets"),
                "{}: the log's and the link's",
                row.name()
            );
            // A packet is logged when its fate is known. What is still on its way when the run ends
            // is in the capture and in the link's counters, and not in the log.
            let arrived = counted("to_server", "arrived_packets");
            assert!(arrived >= to_server.arrived_packets, "{}: {link:#}", row.name());
            assert_eq!(
                row.number("packets"),
                (to_client.departed_packets + arrived) as f64,
                "{}: the capture's and the link's",
                row.name()
            );
            Run { row, log, folder }
        });
        runs.collect()
    }

    /// The only row of an article's scenario.
    fn of(program: &Program, name: &str) -> Run {
        let mut runs = Run::all(program, &format!("articles/{name}"));
        assert_eq!(runs.len(), 1, "{name}");
        runs.remove(0)
    }

    /// What became of the packets that carry the data.
    fn data(&self) -> Fates {
        self.log.count(Direction::ToClient)
    }

    /// Packets of one direction that left, in the order in which they came. Not those that came
    /// last: of them, only such with a short delay had left when the run ended.
    fn departed(&self, direction: Direction) -> Vec<(&Record, Passage)> {
        let all = self.log.records.iter().filter(|record| record.direction == direction);
        let mut departed: Vec<_> =
            all.filter_map(|record| Some((record, Passage::of(record)?))).collect();
        departed.sort_by_key(|(record, _)| (record.number, record.copy));
        let end = departed.iter().map(|(_, passage)| passage.left_ns).max().unwrap_or_default();
        let last = departed.iter().position(|(_, passage)| passage.left_ns + 400_000_000 > end);
        departed.truncate(last.unwrap_or_default());
        departed
    }

    /// The propagation delay of each packet in that order, in nanoseconds.
    fn delays(&self, direction: Direction) -> Vec<i64> {
        self.departed(direction).iter().map(|(_, passage)| passage.delay_ns).collect()
    }
}

/// A packet's way through the link.
#[derive(Debug, Clone, Copy)]
struct Passage {
    left_ns: u64,
    /// Without what it waited for the transmitter and was serialised.
    delay_ns: i64,
}

impl Passage {
    fn of(record: &Record) -> Option<Passage> {
        let Fate::Departed { at, .. } = record.fate else { return None };
        let serialised = (record.size.get() as f64 * 8.0 / RATE * 1e9).round() as i64;
        let delay_ns = at.since(record.arrival).as_nanos() as i64
            - record.queued.as_nanos() as i64
            - serialised;
        Some(Passage { left_ns: at.as_nanos(), delay_ns })
    }
}

/// `count` of `of` packets, where each was drawn with `probability`; `spread` is by how much more
/// than independent draws they deviate.
fn assert_share(what: &str, count: u64, of: u64, probability: f64, spread: f64) {
    let (count, of) = (count as f64, of as f64);
    let expected = of * probability;
    // Half a packet more: the binomial is of whole numbers.
    let reach = QUANTILE * spread * (expected * (1.0 - probability)).sqrt() + 0.5;
    eprintln!("{what}: {count} of {of}, expected {expected:.1} +- {reach:.1}");
    assert!(of > 1000.0, "{what}: only {of} packets: nothing could be seen");
    assert!(
        (count - expected).abs() <= reach,
        "{what}: {count} of {of}, expected {expected:.1} +- {reach:.1}"
    );
}

fn loss() {
    let run = Run::of(&Program::new(), "b-loss");
    let Fates { lost_packets, arrived_packets, .. } = run.data();
    assert_share("lost", lost_packets, arrived_packets, 0.01, 1.0);
    assert_eq!(run.row.number("lost"), lost_packets as f64);
    // Each loss was sent again, but for those of the last moment.
    let (again, lost) = (run.row.number("retransmission"), lost_packets as f64);
    assert!(again >= lost * 0.8 - 2.0, "{again} retransmissions in the capture of {lost} losses");
}

fn duplicates() {
    let run = Run::of(&Program::new(), "b-duplicate");
    let Fates { duplicated_packets, arrived_packets, departed_packets, lost_packets, .. } =
        run.data();
    assert_share("duplicated", duplicated_packets, arrived_packets, 0.01, 1.0);
    assert_eq!((lost_packets, run.row.number("lost")), (0, 0.0));
    assert!(departed_packets > arrived_packets, "{departed_packets} left of {arrived_packets}");
    let dropped = run.data().queue_dropped_packets;
    assert_eq!(departed_packets, arrived_packets + duplicated_packets - dropped);
    // None of them was needed, and flow does not take them for retransmissions of the sender's.
    assert!(run.row.number("retransmission") <= dropped as f64);
}

/// With whole packets in the captures, TShark sums the checksums: all are right where the packets
/// came in, and where they went out as many are wrong as the log has flipped bits.
fn corruption() {
    let program = Program::new();
    let scenario = include_str!("../../../../scenarios/articles/b-corrupt.toml");
    program.file("b-corrupt.toml", format!("{scenario}\n[capture]\nsnaplen = \"65535B\"\n"));
    let run = Run::all(&program, "./b-corrupt.toml").remove(0);
    let Fates { corrupted_packets, arrived_packets, .. } = run.data();
    assert_share("corrupted", corrupted_packets, arrived_packets, 0.001, 1.0);
    let unsound = |capture: &str| {
        let mut command = Command::new("tshark");
        command.arg("-r").arg(run.folder.join(capture)).args([
            "-T",
            "fields",
            "-e",
            "frame.number",
        ]);
        command.args(["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]);
        // Putting the body together again would take it minutes.
        command.args(["--disable-protocol", "http", "-o", "tcp.desegment_tcp_streams:FALSE"]);
        command.args(["-Y", "!(tcp.checksum.status == 1 && ip.checksum.status == 1)"]);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count() as u64
    };
    assert_eq!((unsound("server.pcap"), unsound("client.pcap")), (0, corrupted_packets));
    // The receiver's kernel throws them away, so they are sent again, but for those of the last
    // moment.
    let (again, flipped) = (run.row.number("retransmission"), corrupted_packets as f64);
    assert!(
        again >= flipped * 0.8 - 2.0,
        "{again} retransmissions in the capture of {flipped} corrupted"
    );
}

const FAR: i64 = 10_000_000;

/// Which packets went at once: the others took 10 ms, and nothing lies between.
fn at_once(run: &Run) -> Vec<bool> {
    let delays = run.delays(Direction::ToClient);
    assert!(
        delays.iter().all(|delay| delay.abs() <= 1 || (delay - FAR).abs() <= 1),
        "0 or 10 ms each"
    );
    delays.iter().map(|delay| *delay <= 1).collect()
}

/// A segment with data that left the link.
struct Segment {
    seq: u32,
    left_ns: u64,
    /// Its sender had sent later data before.
    is_sent_again: bool,
}

/// Each segment with data that left, in the order in which they came. A sender sends in order, so
/// what comes to the link after later data was sent again. This holds even where its first
/// transmission never came so far: a busy machine's device queue may drop it before the link.
fn data_segments(run: &Run) -> Vec<Segment> {
    let mut records: Vec<_> =
        run.log.records.iter().filter(|record| record.direction == Direction::ToClient).collect();
    records.sort_by_key(|record| (record.number, record.copy));
    let mut newest = None;
    let segment = |record: &Record| {
        let seq = record.tcp.filter(|tcp| tcp.payload.get() > 0)?.seq;
        let is_sent_again = newest.is_some_and(|newest| is_at_or_before(seq, newest));
        if !is_sent_again {
            newest = Some(seq);
        }
        Some(Segment { seq, left_ns: Passage::of(record)?.left_ns, is_sent_again })
    };
    records.into_iter().filter_map(segment).collect()
}

fn is_at_or_before(seq: u32, other: u32) -> bool {
    (seq.wrapping_sub(other) as i32) <= 0
}

/// What is out of order in the log by sequence numbers is so in the capture: segments that came
/// after a later one.
fn assert_out_of_order(run: &Run) {
    let mut left = data_segments(run);
    let again = left.iter().filter(|segment| segment.is_sent_again).count() as f64;
    left.sort_by_key(|segment| segment.left_ns);
    let (mut newest, mut late) = (None, 0.0);
    for Segment { seq, is_sent_again, .. } in left {
        let is_late = newest.is_some_and(|newest| is_at_or_before(seq, newest));
        if !is_late {
            newest = Some(seq);
        }
        // What was sent again is a retransmission, wherever it is.
        late += f64::from(u8::from(is_late && !is_sent_again));
    }
    let [out_of_order, retransmission] =
        ["out_of_order", "retransmission"].map(|key| run.row.number(key));
    eprintln!(
        "log: {late} out of order, {again} again; capture: {out_of_order} and {retransmission}"
    );
    assert!(late > 50.0, "only {late} out of order: nothing could be seen");
    // Some of the late look like retransmissions to whoever has only the receiver's capture, up to
    // a quarter of them when the round trips are short; and an original that its retransmission
    // overtook is late too.
    assert!(
        (0.6 * late..=late + again + 2.0).contains(&out_of_order),
        "{out_of_order} in the capture, {late} in the log"
    );
    assert!(
        (retransmission - again).abs() <= 3.0 + 0.02 * again,
        "{retransmission} in the capture, {again} in the log"
    );
}

fn every_fifth_packet_overtakes() {
    let run = Run::of(&Program::new(), "b-reorder-gap");
    let at_once = at_once(&run);
    assert!(at_once.len() > 1000, "only {} packets", at_once.len());
    let wrong = at_once.iter().enumerate().find(|(index, at_once)| (index % 5 == 4) != **at_once);
    assert_eq!(wrong, None, "of {} packets the fifth of five, and no other", at_once.len());
    assert_out_of_order(&run);
}

/// netem's correlation is a mean of the draw before and a fresh one, so a rare event with it is
/// rarer than asked.
fn a_correlated_quarter_overtakes() {
    let run = Run::of(&Program::new(), "b-reorder");
    let at_once = at_once(&run);
    let count = at_once.iter().filter(|at_once| **at_once).count() as u64;
    // By an autocorrelation of 1/2 the count's variance is (1 + 1/2) / (1 - 1/2) times that of
    // independent draws.
    assert_share("sent at once", count, at_once.len() as u64, below(0.25, 0.5), 3f64.sqrt());
    assert_out_of_order(&run);
}

/// The probability that x is below `limit`, where each x is `correlation` times the x before and
/// the rest a fresh uniform draw: the fixed point of F(x) = mean over u of F((x - (1 - c) u) / c),
/// on a grid.
fn below(limit: f64, correlation: f64) -> f64 {
    const GRID: usize = 1000;
    let at = |cdf: &[f64], x: f64| {
        let place = x.clamp(0.0, 1.0) * GRID as f64;
        let low = (place as usize).min(GRID - 1);
        cdf[low] + (cdf[low + 1] - cdf[low]) * (place - low as f64)
    };
    let mut cdf: Vec<f64> = (0..=GRID).map(|index| index as f64 / GRID as f64).collect();
    for _ in 0..40 {
        let next = |index: usize| {
            let x = index as f64 / GRID as f64;
            let draws = (0..GRID).map(|draw| (draw as f64 + 0.5) / GRID as f64);
            draws.map(|draw| at(&cdf, (x - (1.0 - correlation) * draw) / correlation)).sum::<f64>()
                / GRID as f64
        };
        cdf = (0..=GRID).map(next).collect();
    }
    at(&cdf, limit)
}

/// Mean, deviation and correlation of the delays. Of correlated ones the deviation is sqrt((1 - c)
/// / (1 + c)) of that of independent ones, and the mean's error is sqrt((1 + c) / (1 - c)) of
/// theirs.
fn jitter() {
    let uniform = 10e6 / 3f64.sqrt();
    let cases: [(&str, f64, f64); 3] = [
        ("b-jitter", uniform, 0.0),
        ("b-jitter-normal", 20e6, 0.0),
        ("b-jitter-correlated", uniform, 0.3),
    ];
    for (name, spread, correlation) in cases {
        let run = Run::of(&Program::new(), name);
        let delays: Vec<f64> =
            run.delays(Direction::ToClient).iter().map(|delay| *delay as f64).collect();
        let count = delays.len() as f64;
        let mean = delays.iter().sum::<f64>() / count;
        let deviation =
            (delays.iter().map(|delay| (delay - mean).powi(2)).sum::<f64>() / count).sqrt();
        let neighbours =
            delays.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum::<f64>();
        let found = neighbours / count / deviation.powi(2);
        eprintln!(
            "{name}: {count} packets, mean {mean:.0} ns, deviation {deviation:.0} ns, correlation {found:.3}"
        );
        assert!(count > 500.0, "{name}: only {count} packets");
        let memory = ((1.0 + correlation) / (1.0 - correlation)).sqrt();
        let (asked, root) = (spread / memory, count.sqrt());
        assert!((mean - 100e6).abs() <= QUANTILE * asked * memory / root, "{name}: mean {mean} ns");
        // A normal sample's deviation errs by 1/sqrt(2n), a flatter one's by less; the table of the
        // normal has steps.
        let error = QUANTILE * memory / (2.0 * count).sqrt() + 0.01;
        assert!(
            (deviation / asked - 1.0).abs() <= error,
            "{name}: deviation {deviation} ns, not {asked} ns"
        );
        assert!((found - correlation).abs() <= QUANTILE / root, "{name}: correlation {found}");
        assert_out_of_order(&run);
        // What the hosts saw: the handshake has one such delay.
        let handshake = run.row.number("handshake_rtt_us");
        assert!((20_000.0..250_000.0).contains(&handshake), "{name}: handshake {handshake} us");
    }
}

/// Each packet of a direction took this long, whatever the machine did.
fn assert_delay(run: &Run, direction: Direction, asked_ns: i64) {
    let delays = run.delays(direction);
    assert!(delays.len() > 100, "only {} packets", delays.len());
    let (shortest, longest) = (delays.iter().min().unwrap(), delays.iter().max().unwrap());
    let name = run.row.name();
    eprintln!("{name}: {} packets, {direction:?}, {shortest} to {longest} ns", delays.len());
    assert!(
        shortest - asked_ns >= -1 && longest - asked_ns <= 1,
        "{name}: {shortest} to {longest} ns, not {asked_ns}"
    );
}

fn one_address_is_far_one_way_only() {
    let run = Run::of(&Program::new(), "b-one-ip");
    assert_delay(&run, Direction::ToClient, 17_000_000);
    assert_delay(&run, Direction::ToServer, 0);
    let handshake = run.row.number("handshake_rtt_us");
    assert!((17_000.0..50_000.0).contains(&handshake), "{handshake} us");
}

fn one_port_is_far_and_another_is_near() {
    let runs = Run::all(&Program::new(), "articles/b-one-port");
    assert_eq!(runs.len(), 2);
    let [far, near] = ["8081", "8082"].map(|port| {
        let mut of_port = runs.iter().filter(|run| run.row.name().contains(port));
        of_port.next().unwrap_or_else(|| panic!("no row for port {port}"))
    });
    assert_delay(far, Direction::ToClient, 17_000_000);
    for (run, direction) in
        [(far, Direction::ToServer), (near, Direction::ToClient), (near, Direction::ToServer)]
    {
        assert_delay(run, direction, 0);
    }
    // The hosts saw it: a busy machine adds to either, and takes from none.
    let [far, near] = [far, near].map(|run| run.row.number("rtt_min_us"));
    eprintln!("shortest round trip: {far} us at the one port, {near} us at the other");
    assert!((17_000.0..50_000.0).contains(&far) && near < 10_000.0, "{far} us, {near} us");
}
