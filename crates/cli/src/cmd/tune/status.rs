//! `fullpipe tune status`.

use crate::failure::Failure;
use crate::terminal::{layout, print, print_json};
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
            text += "Nothing is applied in this network namespace.\n";
        }
        for (at, row) in rows.iter().enumerate() {
            text += if at > 0 { "\n" } else { "" };
            text += &lines(row);
        }
        if elsewhere > 0 {
            text += &format!("{elsewhere} more in other network namespaces.\n");
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
        (_, None) => "absent".to_string(),
        (Item::File(_), Some(text)) => format!("{} lines", text.lines().count()),
        (_, Some(text)) => text.clone(),
    }
}

fn lines(row: &Applied) -> String {
    let mut text = format!("Apply {}, {}: {}\n", row.apply, row.at, row.purpose);
    if row.phase == Phase::Unfinished {
        text += "It was interrupted half way: `fullpipe tune undo` puts back what it had set.\n";
    }
    if row.before_boot {
        text += "It was made before the machine started: what was not persisted has ended.\n";
    }
    match &row.until {
        Some(until) if row.overdue => {
            text += &format!(
                "Its time ended at {until}, and the process that was to undo it is gone: `fullpipe tune \
                 undo {0}` does it, `fullpipe tune confirm {0}` keeps it.\n",
                row.apply
            );
        }
        Some(until) => text += &format!("It is undone at {until} unless it is confirmed.\n"),
        None => {}
    }
    let mut table = Table::new(["setting", "was", "applied", "now"].map(Column::text));
    for Setting { set, now, standing } in &row.settings {
        let stands = match standing {
            Standing::Applied => "as applied".to_string(),
            Standing::AsBefore => "as before".to_string(),
            Standing::Gone => "gone".to_string(),
            Standing::ChangedSince => format!("{}, changed since", shown(&set.item, now)),
        };
        let (from, to) = (shown(&set.item, &set.from), shown(&set.item, &set.to));
        table.row([set.item.to_string(), from, to, stands]);
    }
    text + &table.render(layout())
}

fn calendar(since_1970: Duration) -> String {
    let time: SystemTime = UNIX_EPOCH + std::time::Duration::from(since_1970);
    humantime::format_rfc3339_seconds(time).to_string()
}
