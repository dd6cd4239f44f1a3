//! `fullpipe tune status`.

use crate::failure::Failure;
use crate::sentence::{Sentence, either};
use crate::terminal::{answer_layout, print, print_json};
use clap::Args;
use fullpipe_host::tune::{Item, Machine, Phase, Record, Set, Standing, ThisMachine, standing};
use fullpipe_model::units::Duration;
use fullpipe_report::{Column, Table};
use serde::Serialize;
use std::time::{SystemTime, UNIX_EPOCH};

/// Show what is applied on this machine, by which apply, and what differs now.
///
/// Shows the applies of this user in this network namespace. Changes nothing.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe tune status
  fullpipe tune status --json")]
pub struct Status {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// An apply and how it stands.
#[derive(Serialize)]
struct Applied {
    apply: u32,
    at: String,
    purpose: String,
    phase: Phase,
    /// Until when it is kept; absent where it has no deadline, or is confirmed.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
    /// Whether that has passed without anybody undoing it.
    overdue: bool,
    /// Whether it was made before the machine started the last time.
    before_boot: bool,
    settings: Vec<Setting>,
}

#[derive(Serialize)]
struct Setting {
    #[serde(flatten)]
    set: Set,
    now: Option<String>,
    standing: Standing,
}

impl Status {
    pub fn run(self) -> Result<u8, Failure> {
        let mut machine = ThisMachine::to_read()?;
        let (records, elsewhere) = machine.records()?;
        let mut rows = Vec::new();
        for (number, record) in records {
            rows.push(applied(&mut machine, number, record)?);
        }
        if self.json {
            print_json(&serde_json::json!({"applies": rows, "in_other_namespaces": elsewhere}))?;
            return Ok(0);
        }
        let mut text = String::new();
        if rows.is_empty() {
            text += either(
                "Nothing is applied in this network namespace.\n",
                "此网络命名空间中没有已应用的设置。\n",
            );
        }
        for (at, row) in rows.iter().enumerate() {
            text += if at > 0 { "\n" } else { "" };
            text += &lines(row);
        }
        if elsewhere > 0 {
            text += &either(
                format!("{elsewhere} more in other network namespaces.\n"),
                format!("其他网络命名空间中还有 {elsewhere} 次应用。\n"),
            );
        }
        print(&text)?;
        Ok(0)
    }
}

fn applied(machine: &mut ThisMachine, number: u32, record: Record) -> Result<Applied, Failure> {
    let same_boot = machine.is_this_boot(&record);
    let overdue = record.is_overdue(machine.now());
    let mut settings = Vec::new();
    for set in record.sets {
        let now = machine.read(&set.item)?;
        let standing = standing(&set, &now, same_boot);
        settings.push(Setting { set, now, standing });
    }
    Ok(Applied {
        apply: number,
        at: calendar(record.begin.at),
        purpose: record.begin.purpose,
        phase: record.phase,
        until: record.begin.deadline.filter(|_| !record.is_confirmed).map(calendar),
        overdue,
        before_boot: !same_boot,
        settings,
    })
}

/// A value of an item in a cell.
fn shown(item: &Item, value: &Option<String>) -> String {
    match (item, value) {
        (_, None) => either("absent", "不存在").to_string(),
        (Item::File(_), Some(text)) => {
            format!("{} {}", text.lines().count(), either("lines", "行"))
        }
        (_, Some(text)) => text.clone(),
    }
}

fn lines(row: &Applied) -> String {
    let Applied { apply, at, purpose, .. } = row;
    let mut text = either(
        format!("Apply {apply}, {at}: {purpose}\n"),
        format!("第 {apply} 次应用，{at}：{purpose}\n"),
    );
    if row.phase == Phase::Unfinished {
        text += either(
            "It was interrupted half way: `fullpipe tune undo` puts back what it had set.\n",
            "它中途被打断：`fullpipe tune undo` 恢复它已设置的内容。\n",
        );
    }
    if row.before_boot {
        text += either(
            "It was made before the machine started: what was not persisted has ended.\n",
            "它在机器上次启动之前应用：未持久化的已失效。\n",
        );
    }
    match &row.until {
        Some(until) if row.overdue => {
            text += &either(
                format!(
                    "Its time ended at {until}, and the process that was to undo it is gone: `fullpipe tune \
                     undo {apply}` does it, `fullpipe tune confirm {apply}` keeps it.\n"
                ),
                format!(
                    "它的期限 {until} 已过，而本应撤销它的进程已不在：`fullpipe tune undo {apply}` 撤销它，\
                     `fullpipe tune confirm {apply}` 保留它。\n"
                ),
            );
        }
        Some(until) => {
            text += &either(
                format!("It is undone at {until} unless it is confirmed.\n"),
                format!("若不确认，将于 {until} 撤销。\n"),
            );
        }
        None => {}
    }
    let headings =
        either(["setting", "was", "applied", "now"], ["设置", "原值", "应用的值", "现状"]);
    let mut table = Table::new(headings.map(Column::text));
    for Setting { set, now, standing } in &row.settings {
        let stands = match standing {
            Standing::Applied => either("as applied", "如所应用").to_string(),
            Standing::AsBefore => either("as before", "与之前相同").to_string(),
            Standing::Gone => either("gone", "已不存在").to_string(),
            Standing::ChangedSince => {
                shown(&set.item, now) + either(", changed since", "，后来被改动")
            }
        };
        let (from, to) = (shown(&set.item, &set.from), shown(&set.item, &set.to));
        table.row([Sentence::from(&set.item).here().into(), from, to, stands]);
    }
    text + &table.render(answer_layout())
}

fn calendar(since_1970: Duration) -> String {
    let time: SystemTime = UNIX_EPOCH + std::time::Duration::from(since_1970);
    humantime::format_rfc3339_seconds(time).to_string()
}
