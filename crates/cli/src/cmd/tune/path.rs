//! The options that say for what this machine is tuned: the same for `plan` and `apply`.

use crate::failure::{Failure, Kind};
use crate::sentence::Sentence;
use clap::{Args, ValueEnum};
use fullpipe_host::tune::{ThisMachine, read_state};
use fullpipe_kernel::file::named_file;
use fullpipe_model::change::Knob;
use fullpipe_model::limit::End;
use fullpipe_model::tune::{
    HostPlan, HostQuestion, HostState, MeasuredEnd, MeasuredPath, MeasuredPathError, Path, Role,
    Wish, plan_host,
};
use fullpipe_model::units::{Bytes, Duration, ParseError, Probability, Rate};
use std::path::PathBuf;

/// Which end of the path this machine is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RoleWord {
    Sender,
    Receiver,
    Both,
}

#[derive(Args)]
pub struct Goal {
    /// Rate of the path: 1gbit, 100mbit, 125MB/s.
    #[arg(long, value_name = "RATE", value_parser = rate, required_unless_present = "from")]
    rate: Option<Rate>,
    /// Round-trip time of the path without queues: 146ms, 50us.
    #[arg(long, value_name = "TIME", required_unless_present = "from")]
    rtt: Option<Duration>,
    /// A measured path: JSON of `fullpipe why --json`, `analyze --json` or `prove --json`; --rate,
    /// --rtt and --loss replace what it says.
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Which end this machine is [default: both].
    #[arg(long, value_name = "END", value_enum)]
    role: Option<RoleWord>,
    /// Connections that are open at once, each of which may have to fill the path alone.
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = connections())]
    connections: u64,
    /// Memory that their buffers may take together: 2GiB. Without it, a quarter of what is
    /// available now.
    #[arg(long, value_name = "SIZE")]
    memory: Option<Bytes>,
    /// Random loss on the path, which may call for another congestion control: 0.1%.
    #[arg(long, value_name = "SHARE")]
    loss: Option<Probability>,
    /// Connections pause and go on: do not begin again with slow start after a pause.
    #[arg(long)]
    pauses: bool,
    /// Large packets vanish on the way without a word: search for the largest that pass.
    #[arg(long)]
    black_hole: bool,
    /// Set this too: net.ipv4.tcp_congestion_control=bbr, 'device eth0 txqueuelen=5000', 'route
    /// default dev eth0 initcwnd=32'. `fullpipe tune settings` lists what can be set.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    wishes: Vec<Wish>,
    /// Change only these settings.
    #[arg(long, value_name = "NAME", num_args = 1..)]
    only: Vec<Knob>,
}

impl Goal {
    /// Reads the machine and plans.
    pub fn plan(&self, machine: &mut ThisMachine) -> Result<HostPlan, Failure> {
        let measured = self.from.as_deref().map(read).transpose()?;
        let question = self.question(measured.as_ref())?;
        let wished = self.wishes.iter().map(|wish| wish.knob.clone());
        let mut state = read_state(machine, wished)?;
        if let Some(measured) = &measured {
            respect_application(&mut state, question.role, measured);
        }
        let mut plan = plan_host(&question, &state);
        for changes in [&mut plan.changes, &mut plan.on_the_machine] {
            changes.retain(|change| self.only.is_empty() || self.only.contains(&change.knob));
        }
        Ok(plan)
    }

    /// The measured path with what the options replace, and the end of it that this machine is
    /// said to be: what a proof is about.
    pub fn to_prove(&self) -> Result<MeasuredPath, Failure> {
        let measured = self.from.as_deref().map(read).transpose()?;
        let measured = measured.ok_or_else(|| {
            missing(
                "only a measured path can be rebuilt; name one with --from FILE (`fullpipe why --json`)",
                "只能重建测得的路径；请用 --from FILE 给出（`fullpipe why --json`）",
            )
        })?;
        if self.role.is_none() {
            return Err(missing(
                "say which end of the path this machine is with --role, because only its own changes count",
                "请用 --role 说明本机是路径的哪一端，因为只计入它自己的更改",
            ));
        }
        Ok(MeasuredPath {
            rate: self.rate.or(measured.rate),
            rtt: self.rtt.unwrap_or(measured.rtt),
            loss: self.loss.or(measured.loss),
            ..measured
        })
    }

    fn question(&self, measured: Option<&MeasuredPath>) -> Result<HostQuestion, Failure> {
        let rate = self.rate.or_else(|| measured?.rate);
        let rate = rate.ok_or_else(|| {
            Failure::new(
                Kind::Usage,
                Sentence::new(
                    "plan: the measured path has no rate, as something else than the link limited it all the \
                     time; say what the link carries with --rate",
                    "方案：测得的路径没有速率，因为限制它的始终不是链路；请用 --rate 说明链路的速率",
                ),
            )
        })?;
        // One of both is there: clap sees to it.
        let rtt = self.rtt.or_else(|| Some(measured?.rtt)).unwrap_or_default();
        let path = match measured.and_then(MeasuredPath::path) {
            Some(path) => Path { rate, rtt, ..path },
            None => Path::new(rate, rtt),
        };
        Ok(HostQuestion {
            path,
            role: match self.role.unwrap_or(RoleWord::Both) {
                RoleWord::Sender => Role::Sender,
                RoleWord::Receiver => Role::Receiver,
                RoleWord::Both => Role::Both,
            },
            connections: self.connections,
            memory: self.memory,
            loss: self.loss.or_else(|| measured?.loss),
            pauses: self.pauses,
            black_hole: self.black_hole,
            wishes: self.wishes.clone(),
        })
    }

    /// What it is for, for the record: `1 Gbit/s over 146 ms, as sender`.
    pub fn purpose(plan: &HostPlan) -> String {
        let role = match plan.role {
            Role::Sender => ", as sender",
            Role::Receiver => ", as receiver",
            Role::Both => "",
        };
        format!("{} over {}{role}", plan.path.rate, plan.path.rtt)
    }
}

/// What a plan cannot be proved without.
fn missing(english: &str, chinese: &str) -> Failure {
    let what = Sentence::new(format!("prove the plan: {english}"), format!("验证方案：{chinese}"));
    Failure::new(Kind::Usage, what)
}

/// A number of connections.
fn connections() -> impl clap::builder::TypedValueParser<Value = u64> {
    clap::value_parser!(u64).range(1..=10_000_000)
}

/// A rate that a path can have.
fn rate(text: &str) -> Result<Rate, Sentence> {
    let rate: Rate = text.parse().map_err(|error: ParseError| Sentence::from(&error))?;
    let least = Rate::from_bits_per_sec(1_000);
    if rate < least {
        Err(Sentence::new(format!("{rate} is below {least}"), format!("{rate} 低于 {least}")))
    } else {
        Ok(rate)
    }
}

/// Where the application set its buffer, only `rmem_max` and `wmem_max` can help.
fn respect_application(state: &mut HostState, role: Role, measured: &MeasuredPath) {
    if role.is(End::Sender) {
        state.settings.so_sndbuf = asked_buffer(measured.end(End::Sender));
    }
    if role.is(End::Receiver) {
        state.settings.so_rcvbuf = asked_buffer(measured.end(End::Receiver));
    }
}

/// The buffer that the application asked for; the kernel doubles it.
fn asked_buffer(end: &MeasuredEnd) -> Option<Bytes> {
    let buffer = end.buffer.filter(|_| end.frozen_by_application == Some(true));
    buffer.map(|buffer| Bytes::new(buffer.get() / 2))
}

fn read(path: &std::path::Path) -> Result<MeasuredPath, Failure> {
    let failed = |cause: Sentence| {
        let path = path.display();
        let told = Sentence::new(
            format!("read measured path: {path}: {}", cause.english()),
            format!("读取测得的路径：{path}：{}", cause.chinese()),
        );
        Failure::new(Kind::Input, told)
    };
    let bytes = named_file::read(path, named_file::DATA_MAX);
    let bytes = bytes.map_err(|error| failed(Sentence::as_is(error)))?;
    let text = String::from_utf8(bytes).map_err(|error| failed(Sentence::as_is(error)))?;
    text.parse().map_err(|error: MeasuredPathError| failed((&error).into()))
}
