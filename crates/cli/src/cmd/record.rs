//! `fullpipe record`: the packets of this host's connections, kept, and the answer.

mod both;
mod shown;
mod sockets;
mod upload;

use super::program::{self, Started};
use crate::failure::{Failure, Kind};
use crate::sentence::{Sentence, either};
use crate::terminal::remark;
use clap::Args;
use fullpipe_host::recording::{
    FileRing, OneFile, RecordError, RecordOptions, RecordPlace, Recording, Stream,
};
use fullpipe_host::trigger::{Trigger, TriggerWatch, Triggered};
use fullpipe_kernel::host::clock;
use fullpipe_kernel::network::packet_filter::{Keep, PacketFilter};
use fullpipe_kernel::process::child::end_with_parent;
use fullpipe_kernel::run::sandbox::Interrupt;
use fullpipe_model::units::{Bytes, Duration};
use fullpipe_peer::PublicKey;
use fullpipe_transfer::StoreAddress;
use shown::{Bar, Outcome};
use std::ffi::OsString;
use std::io::IsTerminal;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::Command;

/// Record the packets of this host's connections, and say what limited them.
///
/// TCP packets are taken as they pass, and of each the headers alone: nothing of what they carry is
/// kept. They go to a pcapng file, which gets its name when it is complete and says how many
/// packets are missing in it; then comes the answer, as `analyze` gives it. It ends after --for, on
/// Ctrl-C, when the file is full, or with CMD; for what is slow now and then, --ring goes on for
/// days, and --until ends it soon after it happened. With HOST, where `fullpipe serve
/// --allow-record` runs, both ends record what passes between them, and the answer is by both. With
/// CMD those connections are recorded that begin while it runs: whoever else opens some meanwhile
/// is left out by --port and --host. Needs root, or CAP_NET_RAW.
///
/// With --sockets no packets are taken, but looks at all sockets, about one a second, for days:
/// `fullpipe why --at` answers from them. That needs no privilege; as root it sees every user's.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe record --port 443 --for 30s
  fullpipe record --host 192.0.2.7 -o slow.pcapng                until Ctrl-C
  fullpipe record -- curl -o /dev/null https://example.org/large.iso
  fullpipe record db.example --port 5432 --for 30s --key my.key --server-key KEY
  fullpipe record --device eth0 --for 10s --json | jq .recorded
  fullpipe record --port 443 -o - | wireshark -k -i -
  ssh server sudo fullpipe record -o - | wireshark -k -i -
  fullpipe record --ring packets/ --size 200MB --port 443 --until 'goodput < 10mbit'
  fullpipe record --sockets --ring /var/lib/fullpipe/sockets --size 2GiB
  fullpipe record --sockets --ring sockets/ --upload s3://bucket/fullpipe/host=db1/

Exit code with CMD: the program's (128 + n if signal n ended it). With --until and --for: 1 if it did not happen.")]
pub struct RecordCommand {
    /// Record at this host, too, where `fullpipe serve --allow-record` runs: HOST or HOST:PORT. Its
    /// file and this end's get `.far` and `.near` in their names; --for is 30s by default.
    #[arg(value_name = "HOST")]
    #[arg(conflicts_with_all = ["host", "snap", "ring", "until", "command"])]
    far: Option<String>,
    /// Our private key, for a HOST that is not on loopback.
    #[arg(long, value_name = "FILE", requires = "far", requires = "server_key")]
    key: Option<PathBuf>,
    /// The public key of HOST's daemon, as it printed it.
    #[arg(long, value_name = "KEY", requires = "key")]
    server_key: Option<PublicKey>,
    /// Only connections with this port at either end; several times: with one of them.
    #[arg(long, value_name = "PORT")]
    port: Vec<u16>,
    /// Only connections with this address at either end; several times: with one of them.
    #[arg(long, value_name = "ADDRESS")]
    host: Vec<IpAddr>,
    /// Only what passes this device [default: every device, and each packet once].
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// Record no packets, but what sockets do: each second samples of the connections that lose
    /// most and move most, and what all did together. For `why --at`; without --ring to
    /// /var/lib/fullpipe/sockets, of a user who is not root to ~/.local/state/fullpipe/sockets.
    #[arg(long)]
    #[arg(conflicts_with_all = [
        "far", "key", "port", "host", "device", "output", "until", "snap", "command"
    ])]
    sockets: bool,
    /// How long to record [default: until Ctrl-C].
    #[arg(long = "for", value_name = "TIME", value_parser = span, conflicts_with = "command")]
    span: Option<Duration>,
    /// The file to write; one that exists is replaced. `-` is standard output: the packets while
    /// they pass, for another program, and no answer.
    #[arg(short, long, value_name = "FILE", default_value = "recording.pcapng")]
    output: PathBuf,
    /// Write eight files and more in the folder DIR in place of one: the oldest goes when they have
    /// --size together.
    #[arg(long, value_name = "DIR", conflicts_with = "output")]
    ring: Option<PathBuf>,
    /// End the recording five seconds after this held for three seconds in a row, for a connection
    /// that moves data or has some waiting here: goodput, rtt or retransmitted, < or >, and a
    /// value. Several times: one of them.
    #[arg(long, value_name = "CONDITION", conflicts_with = "command")]
    until: Vec<Trigger>,
    /// The most that is written, at least 1MB; a file that is full ends the recording.
    #[arg(long, value_name = "SIZE", default_value = "1GB", value_parser = size)]
    size: Bytes,
    /// With --sockets: send each part of the ring, about one a minute, to an S3-compatible store,
    /// too. AWS_REGION or AWS_ENDPOINT_URL says where it is; AWS_ACCESS_KEY_ID,
    /// AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, or ~/.aws/credentials, who sends. What could
    /// not be sent is sent later, as long as the ring has it, by the next run, too.
    #[arg(long, value_name = "s3://BUCKET/PREFIX/", requires = "sockets", requires = "ring")]
    upload: Option<StoreAddress>,
    /// Keep so many bytes of each packet, with its link header, in place of the headers alone.
    #[arg(long, value_name = "SIZE")]
    snap: Option<Bytes>,
    /// Print JSON: what was recorded, and the answer as `analyze --json` has it.
    #[arg(long)]
    json: bool,
    /// A program and its arguments. What is told goes to standard error then.
    #[arg(value_name = "CMD", last = true)]
    command: Vec<OsString>,
}

/// Time between two looks at a recording.
const TICK: Duration = Duration::from_millis(200);

fn span(text: &str) -> Result<Duration, Sentence> {
    match text.parse::<Duration>().map_err(|error| Sentence::from(&error))? {
        Duration::ZERO => Err(Sentence::new(
            "in no time nothing is recorded; use 1s or more",
            "时间为零什么也记录不到；请用 1s 或更长",
        )),
        span => Ok(span),
    }
}

fn size(text: &str) -> Result<Bytes, Sentence> {
    const LEAST: Bytes = Bytes::new(1_000_000);
    match text.parse::<Bytes>().map_err(|error| Sentence::from(&error))? {
        size if size < LEAST => Err(Sentence::new(
            format!("{size} are too few; use {LEAST} or more"),
            format!("{size} 太少；请用 {LEAST} 或更多"),
        )),
        size => Ok(size),
    }
}

/// What is told whoever ends it before the time that was asked for.
fn cut() -> Failure {
    let told = Sentence::new(
        "interrupted: the answer is of what was recorded until then",
        "已中断：以上只是到那时为止的记录给出的答案",
    );
    Failure::new(Kind::Interrupted, told)
}

/// How long is recorded after a condition has held.
const AFTER: Duration = Duration::from_secs(5);

/// How a recording without a program came to its end.
#[derive(Default)]
struct Waited {
    /// Somebody ended it before the time that was asked for.
    is_cut: bool,
    triggered: Option<Triggered>,
}

impl RecordCommand {
    pub fn run(self) -> Result<u8, Failure> {
        let end = Interrupt::on_signals().map_err(Failure::of_kernel)?;
        if self.sockets {
            return sockets::run(&self, &end);
        }
        if let Some(far) = &self.far {
            if self.is_stream() {
                let told = Sentence::new(
                    "record -o -: with HOST there are two files: name one",
                    "record -o -：带 HOST 时有两个文件：请给出文件名",
                );
                return Err(Failure::new(Kind::Usage, told));
            }
            return both::run(&self, far, &end);
        }
        let options = self.options(&self.host)?;
        if self.is_stream() {
            return self.stream(&options, &end);
        }
        let recording = Recording::start(&options, self.place()?).map_err(failed)?;
        let (waited, code) = match &self.command[..] {
            [] => (self.wait(&recording, &end, self.span)?, 0),
            words => (Waited::default(), around(words, &end)?),
        };
        let recorded = recording.finish().map_err(failed)?;
        let is_empty = recorded.packets == 0;
        let (json, on_error) = (self.json, !self.command.is_empty());
        Outcome { recorded, triggered: waited.triggered.as_ref(), json, on_error }.show()?;
        if !self.command.is_empty() {
            return Ok(code);
        }
        if is_empty {
            return Err(Failure::new(Kind::Run, self.nothing()));
        }
        if waited.is_cut {
            return Err(cut());
        }
        if self.span.is_some() && !self.until.is_empty() && waited.triggered.is_none() {
            let told = Sentence::new(
                "record: what --until says did not happen; record for longer (--for)",
                "record：--until 所说的情况没有发生；请记录更长时间（--for）",
            );
            return Err(Failure::new(Kind::Run, told));
        }
        Ok(0)
    }

    /// Whether packets go to standard output.
    fn is_stream(&self) -> bool {
        self.ring.is_none() && self.output.as_os_str() == "-"
    }

    /// Passes packets on while they pass. Whoever reads them has them, so there is no answer.
    fn stream(&self, options: &RecordOptions, end: &Interrupt) -> Result<u8, Failure> {
        let is_mixed = self.json || !self.command.is_empty();
        if is_mixed || std::io::stdout().is_terminal() {
            let told = Sentence::new(
                "record -o -: standard output has the packets and nothing else: pipe it into a program that reads \
                 pcapng, without --json and CMD",
                "record -o -：标准输出只有数据包：请用管道交给读取 pcapng 的程序，且不带 --json 和 CMD",
            );
            return Err(Failure::new(Kind::Usage, told));
        }
        let place = Stream::to("standard output", std::io::stdout(), self.size);
        let recording = Recording::start(options, Box::new(place)).map_err(failed)?;
        self.wait(&recording, end, self.span)?;
        match recording.finish() {
            Ok(recorded) => shown::tell_missing(&recorded),
            Err(error) if error.is_closed() => {}
            Err(error) => return Err(failed(error)),
        }
        Ok(0)
    }

    /// Where it is written. What cannot be written is told before anything is recorded.
    fn place(&self) -> Result<Box<dyn RecordPlace>, Failure> {
        Ok(match &self.ring {
            Some(folder) => Box::new(FileRing::begin(folder, self.size).map_err(failed)?),
            None => Box::new(OneFile::begin(&self.output, self.size).map_err(failed)?),
        })
    }

    /// What is recorded here, with one of `hosts` at either end.
    fn options(&self, hosts: &[IpAddr]) -> Result<RecordOptions, Failure> {
        let keep = self.snap.map_or(Keep::Headers, Keep::Bytes);
        let filter = PacketFilter::tcp_between(hosts, &self.port, keep);
        let filter = filter
            .map_err(|error| Failure::new(Kind::Usage, Sentence::from(&error).of("record")))?;
        let new_only = !self.command.is_empty();
        Ok(RecordOptions { filter, device: self.device.clone(), new_only, between: None })
    }

    /// Waits for the end, which comes after `span` at the latest.
    fn wait(
        &self,
        recording: &Recording,
        end: &Interrupt,
        span: Option<Duration>,
    ) -> Result<Waited, Failure> {
        let mut watch = None;
        if !self.until.is_empty() {
            let opened = TriggerWatch::open(self.until.clone(), self.options(&self.host)?.filter);
            watch = Some(opened.map_err(Failure::of_kernel)?);
        }
        if span.is_none() && !self.is_stream() {
            let place = self.ring.as_ref().unwrap_or(&self.output);
            let place = place.display();
            remark(&either(
                format!("recording to {place}; Ctrl-C ends it"),
                format!("正在记录到 {place}；按 Ctrl-C 结束"),
            ));
        }
        let bar = Bar::new(span);
        let start = clock::now();
        let mut last = span.map(|span| start + span);
        let mut triggered = None;
        while recording.goes_on() {
            let now = clock::now();
            bar.show(now.since(start), recording);
            let left = last.map(|last| last.since(now));
            if left == Some(Duration::ZERO) {
                break;
            }
            if end.wait(Some(left.map_or(TICK, |left| left.min(TICK))))? {
                break;
            }
            if let Some(watch) = watch.as_mut().filter(|_| triggered.is_none()) {
                triggered = watch.look().map_err(Failure::of_kernel)?;
                if let Some(found) = &triggered {
                    bar.tell(found);
                    let soon = clock::now() + AFTER;
                    last = Some(last.map_or(soon, |last| last.min(soon)));
                }
            }
        }
        // Whoever ends what has no end of its own has what was asked for.
        let is_cut = end.is_set() && span.is_some() && triggered.is_none();
        Ok(Waited { is_cut, triggered })
    }

    fn nothing(&self) -> Sentence {
        let (what, in_chinese) = match (&self.port[..], &self.host[..]) {
            ([], []) => ("TCP packet", "TCP 数据包"),
            _ => ("TCP packet with these ports and addresses", "符合这些端口和地址的 TCP 数据包"),
        };
        Sentence::new(
            format!(
                "record: no {what} passed, and nothing was written; start the transfer meanwhile, \
                 or widen --port, --host and --device"
            ),
            format!(
                "record：没有{in_chinese}经过，未写入任何内容；请在记录期间开始传输，或放宽 --port、--host \
                 和 --device"
            ),
        )
    }
}

/// Runs a program; returns its exit code. If this process is killed, the program is told to end.
fn around(words: &[OsString], end: &Interrupt) -> Result<u8, Failure> {
    let mut command = Command::new(&words[0]);
    end_with_parent(command.args(&words[1..]));
    Started::of(program::start(&mut command, "record")?).until_it_ends(end, || Ok(None))
}

fn failed(error: RecordError) -> Failure {
    const ENODEV: i32 = 19;
    const ENETDOWN: i32 = 100;
    let errno = match &error {
        RecordError::Refused(refused) => refused.errno(),
        RecordError::Write { .. } => None,
    };
    let told = Sentence::from(&error).of("record");
    let (kind, advice) = match errno {
        Some(1 | 13) => {
            (Kind::Missing, Sentence::new("run it as root (sudo)", "请以 root 运行（sudo）"))
        }
        Some(ENODEV) => {
            (Kind::Input, Sentence::new("`ip link` lists the devices", "`ip link` 列出网络设备"))
        }
        Some(ENETDOWN) => (
            Kind::Input,
            Sentence::new("bring it up: ip link set DEVICE up", "请启用它：ip link set DEVICE up"),
        ),
        _ => return Failure::new(Kind::Run, told),
    };
    Failure::new(kind, Sentence::joined(&[told, advice]))
}
