//! A plan for one host: what is, what falls short of a path, and what it costs in memory.
//!
//! [`plan`](super::plan()) sizes the windows of two hosts. [`plan_host`] asks it for one host,
//! whose other end is taken to be no limit, and adds what only the host itself knows: how much
//! memory there is for how many connections, which settings it shows and allows to be set where it
//! is (a container), and the settings beside the windows. It changes only what falls short, lowers
//! no size, and gives a reason with numbers for every change. A host that a plan has tuned has
//! nothing more to change.
//!
//! The caller reads the host ([`HostState`]), and applies the plan (`host::tune` in this
//! workspace); this is pure.

use std::collections::BTreeMap;

use super::note::{self, Note};
use super::{HostSettings, LossSheet, Path, Plan, PlanNote, Prediction, TcpMem, plan};
use crate::change::{
    Change, ChangeReason, Knob, MemTriple, MemoryShort, SlowByLoss, Sysctl, Value, ValueError,
};
use crate::law::KernelVersion;
use crate::limit::End;
use crate::units::{Bytes, Duration, Probability, column};

/// What the host does with the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// It sends.
    Sender,
    /// It receives.
    Receiver,
    /// It does both.
    #[default]
    Both,
}

impl Role {
    /// Whether the host is this end of the path.
    pub fn is(self, end: End) -> bool {
        match self {
            Role::Sender => end == End::Sender,
            Role::Receiver => end == End::Receiver,
            Role::Both => true,
        }
    }
}

/// A setting that somebody asks for by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    /// What to set.
    pub knob: Knob,
    /// Its value, checked.
    pub value: Value,
}

/// `NAME=VALUE`.
impl std::str::FromStr for Wish {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text
            .split_once('=')
            .ok_or("write NAME=VALUE, for example net.ipv4.tcp_mtu_probing=1".to_string())?;
        let knob: Knob = name.trim().parse().map_err(|error| format!("{error}"))?;
        let value = knob.checked(value).map_err(|error: ValueError| error.to_string())?;
        Ok(Wish { knob, value })
    }
}

/// What a plan is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct HostQuestion {
    /// The path to fill.
    pub path: Path,
    /// Which end of it the host is.
    pub role: Role,
    /// Connections that are open at once, each of which may have to fill the path alone.
    pub connections: u64,
    /// What their buffers may take together; `None`: a quarter of what is available.
    pub memory: Option<Bytes>,
    /// Random loss on the path.
    pub loss: Option<Probability>,
    /// Whether connections pause and go on.
    pub pauses: bool,
    /// Whether large packets are lost without a word (no ICMP comes back).
    pub black_hole: bool,
    /// What is asked for by name.
    pub wishes: Vec<Wish>,
}

/// A setting as the host shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// Its value.
    pub value: Value,
    /// Whether it can be set from here at all, by somebody with the privilege.
    pub is_settable: bool,
}

/// A host as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostState {
    /// The settings that make windows.
    pub settings: HostSettings,
    /// Everything that it shows.
    pub shown: BTreeMap<Knob, Shown>,
    /// Memory that can be used, if known.
    pub memory_available: Option<Bytes>,
    /// The congestion controls that it has.
    pub congestion_controls: Vec<String>,
}

/// What to change on a host, and why.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct HostPlan {
    /// The path.
    pub path: Path,
    /// Bytes in flight on the full path.
    #[serde(rename = "bdp_bytes", with = "column::bytes")]
    pub bdp: Bytes,
    /// Which end of it the host is.
    pub role: Role,
    /// The host's kernel.
    pub kernel: KernelVersion,
    /// Connections at once.
    pub connections: u64,
    /// What the buffers of all of them may take with the changes.
    #[serde(rename = "buffers_at_most_bytes", with = "column::bytes")]
    pub buffers_at_most: Bytes,
    /// What they were allowed to take; absent where nothing is known of memory.
    #[serde(serialize_with = "bytes")]
    pub memory_bytes: Option<Bytes>,
    /// What one connection can expect now, with another end that is no limit.
    pub before: Prediction,
    /// The same with the changes.
    pub after: Prediction,
    /// What to change here.
    pub changes: Vec<Change>,
    /// What falls short too and cannot be set from here: it belongs to the whole machine.
    pub on_the_machine: Vec<Change>,
    /// What else to know.
    pub notes: Vec<PlanNote>,
}

/// The share of the available memory that buffers may take unless somebody says otherwise.
const MEMORY_SHARE: u64 = 4;
/// `tcp_mem` counts pages: 4096 bytes on x86-64 and most others.
const PAGE: u64 = 4096;
/// How late an application may be to write again: some ticks of a scheduler.
const WAKE_UP: Duration = Duration::from_millis(1);
/// The longest that a segment lives (RFC 9293, section 3.4.1).
const SEGMENT_LIFETIME: Duration = Duration::from_secs(120);
/// The first release whose TCP paces BBR without `fq` (commit 218af599fa63).
const OWN_PACING: KernelVersion = KernelVersion::new(4, 13);
/// A gain below this is not worth another congestion control.
const WORTH_IT: f64 = 1.25;

/// What to change on the host `state` for `question`.
///
/// ```
/// use fullpipe_model::tune::{HostQuestion, HostSettings, HostState, Path, Role, plan_host};
/// let question = HostQuestion {
///     path: Path::new("1gbit".parse().unwrap(), "146ms".parse().unwrap()),
///     role: Role::Sender,
///     connections: 1,
///     memory: None,
///     loss: None,
///     pauses: false,
///     black_hole: false,
///     wishes: Vec::new(),
/// };
/// let state = HostState {
///     settings: HostSettings::defaults("6.1".parse().unwrap()),
///     shown: Default::default(),
///     memory_available: None,
///     congestion_controls: Vec::new(),
/// };
/// let plan = plan_host(&question, &state);
/// // Nothing is shown here, so it is to be set on the machine.
/// assert_eq!(plan.on_the_machine[0].knob.to_string(), "net.ipv4.tcp_wmem");
/// ```
pub fn plan_host(question: &HostQuestion, state: &HostState) -> HostPlan {
    let mut planning = Planning {
        question,
        state,
        settings: state.settings.clone(),
        changes: Vec::new(),
        notes: Vec::new(),
    };
    planning.windows();
    let buffers_at_most = planning.memory();
    planning.window_notes();
    planning.beside_the_windows();
    planning.congestion_control();
    planning.wishes();
    let Planning { settings, changes, notes, .. } = planning;
    let can_be_set =
        |change: &Change| state.shown.get(&change.knob).is_some_and(|shown| shown.is_settable);
    let (changes, on_the_machine) = changes.into_iter().partition(can_be_set);
    let mut plan = HostPlan {
        path: question.path,
        bdp: question.path.bdp(),
        role: question.role,
        kernel: state.settings.kernel,
        connections: question.connections,
        buffers_at_most,
        memory_bytes: budget(question, state),
        before: expected(question, &state.settings),
        after: expected(question, &settings),
        changes,
        on_the_machine,
        notes,
    };
    if !plan.on_the_machine.is_empty() {
        // What is not set here does nothing here.
        let mut reached = state.settings.clone();
        for Change { knob, to, .. } in &plan.changes {
            reached.make(knob, to);
        }
        plan.after = expected(question, &reached);
    }
    plan
}

fn bytes<S: serde::Serializer>(bytes: &Option<Bytes>, s: S) -> Result<S::Ok, S::Error> {
    serde::Serialize::serialize(&bytes.map(Bytes::get), s)
}

fn budget(question: &HostQuestion, state: &HostState) -> Option<Bytes> {
    let available = state.memory_available;
    question.memory.or(available.map(|available| Bytes::new(available.get() / MEMORY_SHARE)))
}

/// A buffer's bound that is `more` than what it was, in whole pages: at most `wanted`.
fn that_fits(wanted: u64, was: u64, more: u64) -> u64 {
    (was.saturating_add(more) / PAGE * PAGE).max(was).min(wanted)
}

/// Another end that is no limit to this host.
fn ample(settings: &HostSettings) -> HostSettings {
    let most = i32::MAX as u64;
    HostSettings {
        tcp_rmem: MemTriple::new(4096, 131_072, most),
        tcp_wmem: MemTriple::new(4096, 16_384, most),
        rmem_max: Bytes::new(most),
        wmem_max: Bytes::new(most),
        tcp_slow_start_after_idle: false,
        ..HostSettings::defaults(settings.kernel)
    }
}

/// The plan of two hosts, one of which is this one.
fn plan_as(end: End, path: Path, settings: &HostSettings) -> Plan {
    match end {
        End::Sender => plan(path, settings, &ample(settings)),
        End::Receiver => plan(path, &ample(settings), settings),
    }
}

/// The worst that the host's roles can expect.
fn expected(question: &HostQuestion, settings: &HostSettings) -> Prediction {
    let ends = [End::Sender, End::Receiver].into_iter().filter(|end| question.role.is(*end));
    let all = ends.map(|end| plan_as(end, question.path, settings).before);
    all.min_by_key(|prediction| prediction.goodput).expect("a role has an end")
}

struct Planning<'a> {
    question: &'a HostQuestion,
    state: &'a HostState,
    settings: HostSettings,
    changes: Vec<Change>,
    notes: Vec<PlanNote>,
}

impl<'a> Planning<'a> {
    fn windows(&mut self) {
        if self.question.pauses && self.question.role.is(End::Sender) {
            // The notes then have nothing to say of it.
            self.settings.tcp_slow_start_after_idle = false;
        }
        self.window_scale_of_buffers();
        for end in [End::Sender, End::Receiver] {
            if !self.question.role.is(end) {
                continue;
            }
            let plan = plan_as(end, self.question.path, &self.settings);
            for change in plan.changes.into_iter().filter(|change| change.end == Some(end)) {
                self.change(change.knob, change.to, change.reason);
            }
        }
    }

    /// What is to be known of the windows, as they are with the changes that memory leaves.
    fn window_notes(&mut self) {
        let (path, ample) = (self.question.path, ample(&self.settings));
        let offered = self.state.settings.window_scale();
        for end in [End::Sender, End::Receiver] {
            if !self.question.role.is(end) {
                continue;
            }
            let notes = match end {
                End::Sender => note::notes(path, &self.settings, &ample, ample.window_scale()),
                End::Receiver => note::notes(path, &ample, &self.settings, offered),
            };
            for Note { end: of, note } in notes {
                if of.is_none_or(|of| of == end) && !self.notes.contains(&note) {
                    self.notes.push(note);
                }
            }
        }
    }

    /// Before Linux 6.6, the share of a receive buffer that is a window.
    fn window_scale_of_buffers(&mut self) {
        let old = self.state.settings.kernel < KernelVersion::SCALING_RATIO;
        let Some(scale) = self.number(Sysctl::TcpAdvWinScale) else { return };
        if old && self.question.role.is(End::Receiver) && scale <= -2 {
            let share = 1u64 << scale.unsigned_abs().min(31);
            self.change_number(Sysctl::TcpAdvWinScale, 1, ChangeReason::SmallShare(share));
        }
    }

    /// What the buffers may take, and what follows if that is too much; returns it.
    fn memory(&mut self) -> Bytes {
        if let Some(budget) = budget(self.question, self.state) {
            let wanted = self.memory_of_buffers();
            if wanted > budget {
                self.fit_into(budget, wanted);
            }
        }
        let total = self.memory_of_buffers();
        self.pages(total);
        total
    }

    /// What all connections take together with the settings as they are now.
    fn memory_of_buffers(&self) -> Bytes {
        let each = self.settings.rcvbuf().saturating_add(self.settings.sndbuf());
        Bytes::new(each.get().saturating_mul(self.question.connections.max(1)))
    }

    /// Takes from the changed buffers what does not fit, but nothing that was there before.
    fn fit_into(&mut self, budget: Bytes, wanted: Bytes) {
        let connections = self.question.connections.max(1);
        let before = &self.state.settings;
        let now = HostSettings {
            tcp_rmem: before.tcp_rmem,
            tcp_wmem: before.tcp_wmem,
            ..self.settings.clone()
        };
        // What is there stays; of what would be added, each buffer gets the same share in whole
        // pages, and then what rounding left over: a second plan then finds nothing to add.
        let present = now.rcvbuf().saturating_add(now.sndbuf()).get();
        let left = (budget.get() / connections).saturating_sub(present);
        let added = (wanted.get() / connections).saturating_sub(present).max(1);
        let (rmem, rmem_was) = (self.settings.tcp_rmem.max.get(), before.tcp_rmem.max.get());
        let (wmem, wmem_was) = (self.settings.tcp_wmem.max.get(), before.tcp_wmem.max.get());
        let share =
            u128::from(rmem.saturating_sub(rmem_was)) * u128::from(left) / u128::from(added);
        let of_rmem = that_fits(rmem, rmem_was, u64::try_from(share).unwrap_or(u64::MAX));
        let of_wmem =
            that_fits(wmem, wmem_was, left.saturating_sub(of_rmem.saturating_sub(rmem_was)));
        let of_rmem =
            that_fits(rmem, rmem_was, left.saturating_sub(of_wmem.saturating_sub(wmem_was)));
        let (rmem, wmem) = (Bytes::new(of_rmem), Bytes::new(of_wmem));
        let short = MemoryShort { connections, wanted, budget };
        let triples = [
            (Sysctl::TcpRmem, MemTriple { max: rmem, ..self.settings.tcp_rmem }, before.tcp_rmem),
            (Sysctl::TcpWmem, MemTriple { max: wmem, ..self.settings.tcp_wmem }, before.tcp_wmem),
        ];
        for (sysctl, triple, was) in triples {
            let (knob, value) = (Knob::Sysctl(sysctl), Value::from(triple));
            self.settings.make(&knob, &value);
            let Some(at) = self.changes.iter().position(|change| change.knob == knob) else {
                continue;
            };
            if triple.max <= was.max {
                self.changes.remove(at);
            } else if self.changes[at].to != value {
                let change = &mut self.changes[at];
                change.to = value;
                let reason = std::mem::replace(&mut change.reason, ChangeReason::AskedFor);
                change.reason = ChangeReason::Fits(Box::new(reason), short);
            }
        }
        let goodput = expected(self.question, &self.settings).goodput;
        self.notes.push(PlanNote::MemoryShort { short, goodput });
    }

    /// The pages of all sockets together: pressure must not begin before they have their buffers.
    fn pages(&mut self, total: Bytes) {
        let Some(&Value::Triple(now)) = self.shown(Sysctl::TcpMem) else { return };
        let [low, pressure, limit] = now.map(i64::unsigned_abs);
        // Sockets never take more than there is.
        let total = budget(self.question, self.state).map_or(total, |budget| total.min(budget));
        let needed = TcpMem::with_pressure_at(total);
        if pressure >= needed.pressure_pages {
            return;
        }
        let to = TcpMem {
            low_pages: low.max(needed.low_pages),
            high_pages: limit.max(needed.high_pages),
            ..needed
        };
        let connections = self.question.connections;
        let pages = [to.low_pages, to.pressure_pages, to.high_pages];
        self.change(
            Knob::Sysctl(Sysctl::TcpMem),
            Value::Triple(pages.map(|pages| i64::try_from(pages).unwrap_or(i64::MAX))),
            ChangeReason::SocketMemory {
                connections,
                total,
                pressure: Bytes::new(pressure.saturating_mul(PAGE)),
            },
        );
    }

    fn beside_the_windows(&mut self) {
        let path = self.question.path;
        let sends = self.question.role.is(End::Sender);
        if self.number(Sysctl::TcpSack) == Some(0) {
            let reason = ChangeReason::NoSack { rtt: path.rtt };
            self.change_number(Sysctl::TcpSack, 1, reason);
        }
        let wrap = path.rate.time_for(Bytes::new(1 << 32)).unwrap_or(Duration::MAX);
        if self.number(Sysctl::TcpTimestamps) == Some(0) && wrap < SEGMENT_LIFETIME {
            let reason = ChangeReason::NoTimestamps { rate: path.rate, wrap };
            self.change_number(Sysctl::TcpTimestamps, 1, reason);
        }
        // A socket tells its application to write when half of the bound is left
        // (`tcp_stream_memory_free`).
        let bytes = path.rate.over(WAKE_UP).get().saturating_mul(2);
        let lowat = self.number(Sysctl::TcpNotsentLowat);
        if sends && lowat.is_some_and(|lowat| (lowat as u64) < bytes) {
            let carried = Bytes::new(bytes / 2);
            let reason = ChangeReason::LateWakeUp { late: WAKE_UP, rate: path.rate, carried };
            let to = i64::from(u32::try_from(bytes).unwrap_or(u32::MAX));
            self.change_number(Sysctl::TcpNotsentLowat, to, reason);
        }
        if self.question.pauses && sends && self.number(Sysctl::TcpSlowStartAfterIdle) == Some(1) {
            let reason = ChangeReason::SlowStartAfterPauses;
            self.change_number(Sysctl::TcpSlowStartAfterIdle, 0, reason);
        }
        if self.question.black_hole && self.number(Sysctl::TcpMtuProbing) == Some(0) {
            self.change_number(Sysctl::TcpMtuProbing, 1, ChangeReason::MtuBlackHole);
        }
    }

    /// BBR where loss alone makes CUBIC and Reno slow.
    fn congestion_control(&mut self) {
        let Some(loss) = self.question.loss.filter(|loss| *loss > Probability::ZERO) else {
            return;
        };
        let Some(Value::Name(now)) = self.shown(Sysctl::TcpCongestionControl) else { return };
        if !self.question.role.is(End::Sender) || !matches!(&**now, "cubic" | "reno") {
            return;
        }
        let sheet = LossSheet::new(self.question.path, loss);
        let law = if now == "reno" { sheet.reno } else { sheet.cubic };
        let full = self.question.path.goodput();
        if full.bits_per_sec() as f64 <= WORTH_IT * law.goodput.bits_per_sec() as f64 {
            return;
        }
        let algorithm = now.to_string();
        let slow = SlowByLoss { loss, algorithm, carries: law.goodput, full };
        if !self.state.congestion_controls.iter().any(|name| name == "bbr") {
            self.notes.push(PlanNote::NoBbr(slow));
            return;
        }
        let reason = ChangeReason::SlowByLoss(slow);
        self.change_name(Sysctl::TcpCongestionControl, "bbr", reason);
        self.notes.push(PlanNote::BbrIsUnfair);
        if self.state.settings.kernel < OWN_PACING {
            self.change_name(Sysctl::DefaultQdisc, "fq", ChangeReason::PacingNeedsFq);
        }
    }

    /// What is asked for by name replaces what was planned.
    fn wishes(&mut self) {
        for Wish { knob, value } in &self.question.wishes {
            let from = self.state.shown.get(knob).map(|shown| &shown.value);
            if from == Some(value) {
                self.changes.retain(|change| change.knob != *knob);
                continue;
            }
            if let Some(from) = from.filter(|from| knob.lowers(from, value)) {
                let (knob, stays, asked) = (knob.to_string(), from.to_string(), value.to_string());
                self.notes.push(PlanNote::LowersNothing { knob, stays, asked });
                continue;
            }
            self.change(knob.clone(), value.clone(), ChangeReason::AskedFor);
        }
    }

    fn change_number(&mut self, sysctl: Sysctl, to: i64, reason: ChangeReason) {
        self.change(Knob::Sysctl(sysctl), Value::Number(to), reason);
    }

    fn change_name(&mut self, sysctl: Sysctl, to: &str, reason: ChangeReason) {
        self.change(Knob::Sysctl(sysctl), Value::Name(to.into()), reason);
    }

    fn change(&mut self, knob: Knob, to: Value, reason: ChangeReason) {
        self.settings.make(&knob, &to);
        let from = self.state.shown.get(&knob).map(|shown| shown.value.clone());
        self.changes.retain(|change| change.knob != knob);
        self.changes.push(Change { end: None, knob, from, to, reason });
    }

    fn shown(&self, sysctl: Sysctl) -> Option<&'a Value> {
        Some(&self.state.shown.get(&Knob::Sysctl(sysctl))?.value)
    }

    fn number(&self, sysctl: Sysctl) -> Option<i64> {
        self.shown(sysctl)?.number()
    }
}

#[cfg(test)]
mod tests;
