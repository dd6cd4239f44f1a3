//! `fullpipe tune undo` and `fullpipe tune confirm`.

use crate::failure::{Failure, Kind};
use crate::sentence::{Sentence, either};
use crate::terminal::{print, print_json};
use clap::Args;
use fullpipe_host::tune::{
    Item, Line, Machine, Meanwhile, Phase, PutBack, Record, ThisMachine, undo,
};

/// Put back what an apply changed.
///
/// It puts a value back only where the one that was applied still stands. Where somebody changed a
/// value since, it changes nothing, says what it found, and exits with 1.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe tune undo                 the last apply
  fullpipe tune undo 2               another one, by its number in `fullpipe tune status`
  fullpipe tune undo --all
  fullpipe tune undo --skip-changed  leave what somebody else changed since

Exit codes: 0 put back, or nothing was applied; 1 somebody changed a value since; 3 a privilege is missing.")]
pub struct Undo {
    /// The number of the apply; without it, the last one.
    #[arg(value_name = "NUMBER")]
    number: Option<u32>,
    /// Undo every apply, the last one first.
    #[arg(long, conflicts_with = "number")]
    all: bool,
    /// Put the old values back even where somebody changed them since.
    #[arg(long)]
    force: bool,
    /// Leave what somebody changed since, and put the rest back.
    #[arg(long, conflicts_with = "force")]
    skip_changed: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Undo {
    pub fn run(self) -> Result<u8, Failure> {
        let mut machine = ThisMachine::to_change()?;
        let (records, _) = machine.records()?;
        let chosen: Vec<(u32, &Record)> = match self.number {
            Some(number) => vec![(number, find(&records, number)?)],
            None => {
                let all = records.iter().rev().map(|(number, record)| (*number, record));
                if self.all { all.collect() } else { all.take(1).collect() }
            }
        };
        let mut done = Vec::new();
        for (number, record) in chosen {
            machine.go_on_with(number);
            let same_boot = machine.is_this_boot(record);
            let put_back = undo(&mut machine, record, self.meanwhile(), same_boot)?;
            machine.forget(number)?;
            done.push((number, put_back));
        }
        if self.json {
            let rows: Vec<_> = done
                .iter()
                .map(|(number, done)| serde_json::json!({"apply": number, "undo": done}))
                .collect();
            print_json(&rows)?;
        } else if done.is_empty() {
            print(either(
                "Nothing is applied, so there is nothing to put back.\n",
                "没有已应用的设置，因此没有什么要恢复。\n",
            ))?;
        } else {
            let lines = either::<fn(u32, &PutBack) -> String>(lines, lines_zh);
            print(&done.iter().map(|(number, done)| lines(*number, done)).collect::<String>())?;
        }
        Ok(0)
    }

    fn meanwhile(&self) -> Meanwhile {
        match (self.force, self.skip_changed) {
            (true, _) => Meanwhile::Force,
            (_, true) => Meanwhile::Skip,
            _ => Meanwhile::Refuse,
        }
    }
}

fn find(
    records: &std::collections::BTreeMap<u32, Record>,
    number: u32,
) -> Result<&Record, Failure> {
    records.get(&number).ok_or_else(|| {
        let known: Vec<_> = records.keys().map(u32::to_string).collect();
        let known = (!known.is_empty()).then(|| known.join(", "));
        let message = Sentence::new(
            format!(
                "find apply {number}: there is no such apply in this network namespace (there are: {}); \
                 see `fullpipe tune status`",
                known.as_deref().unwrap_or("none")
            ),
            format!(
                "查找第 {number} 次应用：此网络命名空间中没有它（现有：{}）；见 `fullpipe tune status`",
                known.as_deref().unwrap_or("无")
            ),
        );
        Failure::new(Kind::Usage, message)
    })
}

fn lines(number: u32, done: &PutBack) -> String {
    let mut text = String::new();
    for set in &done.put_back {
        text += &match (&set.item, &set.from) {
            (Item::File(path), None) => format!("{} is removed\n", path.display()),
            (Item::File(path), Some(_)) => format!("{} is as it was\n", path.display()),
            (item, from) => format!("{item} = {} again\n", from.as_deref().unwrap_or("absent")),
        };
    }
    for item in &done.were_back {
        text += &format!("{item} was as before already\n");
    }
    for item in &done.gone {
        text += &format!("{item} is gone, or ended with the last boot\n");
    }
    for changed in &done.left {
        text += &format!("left: {changed}\n");
    }
    text + &format!("Apply {number} is undone.\n")
}

fn lines_zh(number: u32, done: &PutBack) -> String {
    let mut text = String::new();
    for set in &done.put_back {
        text += &match (&set.item, &set.from) {
            (Item::File(path), None) => format!("已删除 {}\n", path.display()),
            (Item::File(path), Some(_)) => format!("{} 已恢复原样\n", path.display()),
            (item, from) => format!("{item} 恢复为 {}\n", from.as_deref().unwrap_or("不存在")),
        };
    }
    for item in &done.were_back {
        text += &format!("{} 本来就与之前相同\n", Sentence::from(item).chinese());
    }
    for item in &done.gone {
        text += &format!("{} 已不存在，或在上次重启时失效\n", Sentence::from(item).chinese());
    }
    for changed in &done.left {
        text += &format!("保留：{}\n", Sentence::from(changed).chinese());
    }
    text + &format!("第 {number} 次应用已撤销。\n")
}

/// Keep an apply beyond its time.
///
/// `fullpipe tune apply --for TIME` undoes itself unless this is said.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe tune confirm      every apply that has a deadline
  fullpipe tune confirm 2")]
pub struct Confirm {
    /// The number of the apply; without it, every one that has a deadline.
    #[arg(value_name = "NUMBER")]
    number: Option<u32>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Confirm {
    pub fn run(self) -> Result<u8, Failure> {
        let mut machine = ThisMachine::to_change()?;
        let (records, _) = machine.records()?;
        if let Some(number) = self.number {
            find(&records, number)?;
        }
        let waiting = records.iter().filter(|(_, record)| {
            record.begin.deadline.is_some()
                && !record.is_confirmed
                && record.phase != Phase::PutBack
        });
        let chosen: Vec<u32> = waiting
            .map(|(number, _)| *number)
            .filter(|number| self.number.is_none_or(|only| only == *number))
            .collect();
        for &number in &chosen {
            machine.go_on_with(number);
            machine.note(&Line::Confirmed)?;
        }
        if self.json {
            print_json(&serde_json::json!({"confirmed": chosen}))?;
        } else if chosen.is_empty() {
            print(either("No apply waits to be confirmed.\n", "没有等待确认的应用。\n"))?;
        } else {
            let lines = chosen.iter().map(|number| {
                either(
                    format!("Apply {number} stays.\n"),
                    format!("第 {number} 次应用予以保留。\n"),
                )
            });
            print(&lines.collect::<String>())?;
        }
        Ok(0)
    }
}
