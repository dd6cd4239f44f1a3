//! `fullpipe tune apply`.

use super::path::Goal;
use super::proof::{promise, prove};
use crate::failure::Failure;
use crate::sentence::{Sentence, either};
use crate::terminal::{answer_layout, print, print_json, remark};
use clap::Args;
use fullpipe_flow::finding::proof::Proof;
use fullpipe_host::tune::{
    Item, Machine, Phase, SYSCTL_FILE, Set, Standing, ThisMachine, Watcher, persisted, standing,
};
use fullpipe_model::change::{Change, ChangeReason, Knob};
use fullpipe_model::tune::HostPlan;
use fullpipe_model::units::Duration;
use fullpipe_report::plan::host_plan::{Form, render};
use serde::Serialize;

/// Change this machine's settings for a path; nothing without --yes.
///
/// Without --yes it prints the plan and ends. With it, every old value is on disk before the new
/// one is written: `fullpipe tune undo` puts them back, also after a crash. If a setting is
/// refused, those before it are put back at once. The changes last until the machine starts again,
/// unless --persist writes them into a file too.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe tune apply --rate 1gbit --rtt 146ms                   a dry run
  fullpipe tune apply --rate 1gbit --rtt 146ms --yes --for 10m   undone unless you confirm
  fullpipe tune apply --rate 1gbit --rtt 146ms --yes --persist
  fullpipe tune apply --from why.json --role sender --yes
  fullpipe tune apply --from why.json --role receiver --prove --yes

Exit codes: 0 applied, or nothing to do; 1 a setting was refused, or --prove promises no gain, and nothing \
is changed; 3 a privilege or --prove's guest kernel is missing.")]
pub struct Apply {
    #[command(flatten)]
    goal: Goal,
    /// Change it; without this nothing is changed.
    #[arg(long)]
    yes: bool,
    /// Write the sysctls into /etc/sysctl.d/60-fullpipe.conf too, which sets them at boot. For
    /// queues and routes it prints what to paste into the network's configuration.
    #[arg(long)]
    persist: bool,
    /// Undo it after this time unless `fullpipe tune confirm` was said: 10m, 30s.
    #[arg(long = "for", value_name = "TIME", value_parser = keep, requires = "yes")]
    keep: Option<Duration>,
    /// First rebuild the measured path of --from in the lab, as `fullpipe prove` does, and go on
    /// only if the lab repeats the measurement and this plan's changes gain there.
    #[arg(long, requires = "from")]
    prove: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Apply {
    pub fn run(self) -> Result<u8, Failure> {
        if self.yes {
            // First of all: in a container it may not even be possible to lock or to record.
            let mut machine = ThisMachine::to_read()?;
            let plan = self.goal.plan(&mut machine)?;
            super::container::refuse(&machine, &plan, self.json)?;
        }
        let proof = if self.prove { self.proof()? } else { None };
        if !self.yes {
            return self.dry_run(proof.as_ref());
        }
        // Before anything is locked: it must not hold what it will wait for.
        let watcher = self.keep.map(Watcher::start).transpose().map_err(super::refused)?;
        let mut machine = ThisMachine::to_change()?;
        let plan = self.goal.plan(&mut machine)?;
        let sets = self.sets(&mut machine, &plan)?;
        if sets.is_empty() {
            return self.nothing(&plan);
        }
        may_set(&machine, &sets)?;
        // The machine may have changed since the proof was made.
        self.tell_promise(proof.as_ref(), &plan)?;
        let number = machine.number();
        if let Some(mut watcher) = watcher {
            watcher.tell(number).map_err(super::refused)?;
        }
        let begin = machine.begin(&Goal::purpose(&plan), self.keep)?;
        let applied = fullpipe_host::tune::apply(&mut machine, begin, &sets);
        if applied.is_err() {
            self.forget_what_is_back(&mut machine, number);
        }
        applied?;
        self.tell(number, &plan, &sets, proof.as_ref())
    }

    /// Proves the plan, before anything is locked, started or changed. `None` where there is
    /// nothing to change.
    fn proof(&self) -> Result<Option<Proof>, Failure> {
        let measured = self.goal.to_prove()?;
        let mut machine = ThisMachine::to_read()?;
        let plan = self.goal.plan(&mut machine)?;
        if plan.changes.is_empty() {
            return Ok(None);
        }
        if self.yes {
            // A proof takes longer than to learn that a privilege is missing.
            let sets = self.sets(&mut machine, &plan)?;
            may_set(&machine, &sets)?;
        }
        remark(either(
            "Proving it in the lab first; nothing is changed meanwhile.",
            "先在实验室中验证；期间不改变任何东西。",
        ));
        prove(&measured).map(Some)
    }

    /// Says what a proof promises of the plan; refuses to go on where that is nothing.
    fn tell_promise(&self, proof: Option<&Proof>, plan: &HostPlan) -> Result<(), Failure> {
        let Some(proof) = proof.filter(|_| !plan.changes.is_empty()) else { return Ok(()) };
        remark(promise(proof, plan)?.words().here());
        Ok(())
    }

    fn dry_run(&self, proof: Option<&Proof>) -> Result<u8, Failure> {
        let mut machine = ThisMachine::to_read()?;
        let plan = self.goal.plan(&mut machine)?;
        self.tell_promise(proof, &plan)?;
        if self.json {
            print_json(&ApplyAnswer { applied: false, plan: &plan, proof, done: None })?;
        } else {
            print(&render(&plan, Form::Text, answer_layout()))?;
        }
        if !plan.changes.is_empty() {
            remark(either(
                "Nothing is changed: this is a dry run. --yes applies it, `fullpipe tune undo` puts it back.",
                "没有改变任何东西：这是试运行。--yes 应用它，`fullpipe tune undo` 恢复原状。",
            ));
        }
        Ok(0)
    }

    /// What to write, with the file where it is wanted.
    fn sets(&self, machine: &mut ThisMachine, plan: &HostPlan) -> Result<Vec<Set>, Failure> {
        let mut sets: Vec<Set> = plan
            .changes
            .iter()
            .map(|change| Set {
                item: Item::Knob(change.knob.clone()),
                from: change.from.as_ref().map(ToString::to_string),
                to: Some(change.to.to_string()),
            })
            .collect();
        if self.persist {
            let file = Item::File(SYSCTL_FILE.into());
            let present = machine.read(&file)?;
            let mut changes = in_force(machine)?;
            changes.extend(plan.changes.iter().cloned());
            changes.retain(has_a_line);
            let text = persisted(present.as_deref(), &changes);
            if !changes.is_empty() && present.as_deref() != Some(text.as_str()) {
                sets.push(Set { item: file, from: present, to: Some(text) });
            }
        }
        Ok(sets)
    }

    fn nothing(&self, plan: &HostPlan) -> Result<u8, Failure> {
        if self.json {
            print_json(&ApplyAnswer { applied: false, plan, proof: None, done: None })?;
        } else {
            print(&render(plan, Form::Text, answer_layout()))?;
        }
        Ok(0)
    }

    /// A record of what was put back at once is of no use; if it stays, `undo` finds nothing to do.
    fn forget_what_is_back(&self, machine: &mut ThisMachine, number: u32) {
        let is_back = machine.records().is_ok_and(|(records, _)| {
            records.get(&number).is_some_and(|record| record.phase == Phase::PutBack)
        });
        if is_back {
            let _ = machine.forget(number);
        }
    }

    fn tell(
        &self,
        number: u32,
        plan: &HostPlan,
        sets: &[Set],
        proof: Option<&Proof>,
    ) -> Result<u8, Failure> {
        if self.json {
            let not_persisted = self.persist.then(|| {
                let others = plan.changes.iter().filter(|change| !has_a_line(change));
                others.map(|change| change.knob.to_string()).collect()
            });
            let for_us = self.keep.map(|keep| keep.as_nanos() / 1000);
            let done = Some(Done { apply: number, for_us, set: sets, not_persisted });
            let told = ApplyAnswer { applied: true, plan, proof, done };
            print_json(&told)?;
            return Ok(0);
        }
        let mut text = String::new();
        for set in sets {
            text += &either(written(set), written_zh(set));
        }
        text += &match self.keep {
            Some(keep) => either(
                format!(
                    "Apply {number} is in force for {keep}; `fullpipe tune confirm` keeps it, `fullpipe tune undo` ends it.\n"
                ),
                format!(
                    "第 {number} 次应用已生效，为期 {keep}；`fullpipe tune confirm` 保留它，`fullpipe tune undo` 结束它。\n"
                ),
            ),
            None => either(
                format!("Apply {number} is in force; `fullpipe tune undo` puts everything back.\n"),
                format!("第 {number} 次应用已生效；`fullpipe tune undo` 恢复原状。\n"),
            ),
        };
        print(&text)?;
        if let Some(words) = self.persist.then(|| unpersisted(plan)).flatten() {
            remark(&words);
        }
        if !plan.on_the_machine.is_empty() {
            let names: Vec<_> =
                plan.on_the_machine.iter().map(|change| change.knob.to_string()).collect();
            let names = names.join(", ");
            remark(&either(
                format!(
                    "Not set, as this network namespace does not have them: {names}. Set them on the machine."
                ),
                format!("未设置，因为此网络命名空间没有它们：{names}。请在机器上设置。"),
            ));
        }
        Ok(0)
    }
}

/// What an apply wrote, as a line.
fn written(set: &Set) -> String {
    match (&set.item, &set.to) {
        (Item::File(path), _) => format!("{} is written\n", path.display()),
        (item, Some(to)) => {
            format!("{item} = {to}, was {}\n", set.from.as_deref().unwrap_or("absent"))
        }
        (item, None) => format!("{item} is removed\n"),
    }
}

fn written_zh(set: &Set) -> String {
    match (&set.item, &set.to) {
        (Item::File(path), _) => format!("已写入 {}\n", path.display()),
        (item, Some(to)) => {
            format!("{item} = {to}，原为 {}\n", set.from.as_deref().unwrap_or("不存在"))
        }
        (item, None) => format!("已删除 {item}\n"),
    }
}

/// Whether a file of sysctls has a place for it.
fn has_a_line(change: &Change) -> bool {
    matches!(change.knob, Knob::Sysctl(_))
}

/// What --persist cannot keep, with the text to paste where the machine's network is configured.
/// Who makes a device or a route sets it anew when it comes up, so no file of ours would last.
fn unpersisted(plan: &HostPlan) -> Option<String> {
    let others: Vec<Change> =
        plan.changes.iter().filter(|change| !has_a_line(change)).cloned().collect();
    if others.is_empty() {
        return None;
    }
    let names: Vec<_> = others.iter().map(|change| change.knob.to_string()).collect();
    let commands: String =
        others.iter().map(|change| format!("post-up {}\n", change.command())).collect();
    let plan = HostPlan { changes: others, on_the_machine: Vec::new(), ..plan.clone() };
    let (names, systemd) = (names.join(", "), render(&plan, Form::Systemd, answer_layout()));
    Some(either(
        format!(
            "Not persisted, as whoever brings up the network sets them anew: {names}. Paste one of these there:\n\
             {systemd}# or, with ifupdown, below the device in /etc/network/interfaces\n{commands}"
        ),
        format!(
            "未持久化，因为启用网络的程序会重新设置它们：{names}。请把以下之一写到那里：\n{systemd}\
             # 或者用 ifupdown，写在 /etc/network/interfaces 中该设备之下\n{commands}"
        ),
    ))
}

/// The JSON of an apply.
#[derive(Serialize)]
struct ApplyAnswer<'a> {
    applied: bool,
    plan: &'a HostPlan,
    #[serde(skip_serializing_if = "Option::is_none")]
    proof: Option<&'a Proof>,
    /// Absent where it has not happened.
    #[serde(flatten)]
    done: Option<Done<'a>>,
}

/// What an apply did.
#[derive(Serialize)]
struct Done<'a> {
    /// The number by which it is undone.
    apply: u32,
    for_us: Option<u64>,
    set: &'a [Set],
    /// What --persist cannot keep.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_persisted: Option<Vec<String>>,
}

/// Whether this process may make all of these changes.
fn may_set(machine: &ThisMachine, sets: &[Set]) -> Result<(), Failure> {
    for set in sets {
        if let Item::Knob(knob) = &set.item {
            machine.may_set(knob)?;
        }
    }
    Ok(())
}

/// How long to keep an apply: minutes and hours, which no path takes, are fine here.
fn keep(text: &str) -> Result<Duration, Sentence> {
    const LONGEST: Duration = Duration::from_secs(30 * 24 * 3600);
    let keep = humantime::parse_duration(text).map_err(|error| {
        Sentence::new(
            format!("{error}; write for example 10m, 90s or 2h"),
            "不是时间长度；写法示例：10m、90s 或 2h",
        )
    })?;
    let keep = Duration::from_nanos(u64::try_from(keep.as_nanos()).unwrap_or(u64::MAX));
    let bounds = Duration::from_secs(1)..=LONGEST;
    if bounds.contains(&keep) {
        Ok(keep)
    } else {
        Err(Sentence::new("it must be from 1s to 30days", "须在 1s 到 30days 之间"))
    }
}

/// What earlier applies have set and still stands.
fn in_force(machine: &mut ThisMachine) -> Result<Vec<Change>, Failure> {
    let (records, _) = machine.records()?;
    let mut changes: Vec<Change> = Vec::new();
    for record in records.values().filter(|record| record.phase != Phase::PutBack) {
        for set in &record.sets {
            let Item::Knob(knob) = &set.item else { continue };
            let found = machine.read(&set.item)?;
            let to = set.to.as_ref().filter(|_| standing(set, &found, true) == Standing::Applied);
            // It stands there, so the kernel has taken it.
            let Some(to) = to.and_then(|to| knob.read(to).ok()) else { continue };
            let from = set.from.as_ref().and_then(|from| knob.read(from).ok());
            let (knob, reason) = (knob.clone(), record.begin.purpose.clone());
            changes.retain(|change| change.knob != knob);
            let reason = ChangeReason::Told(reason);
            changes.push(Change { end: None, knob, from, to, reason });
        }
    }
    Ok(changes)
}
