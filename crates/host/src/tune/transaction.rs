//! Apply and undo, over any machine that can be read, written and recorded.

use super::record::{Begin, Item, Line, Phase, Record, Set};
use serde::Serialize;

/// A kernel and a record of what is done to it.
pub trait Machine {
    /// Why an operation failed.
    type Error: std::error::Error;

    /// The present value of `item`; `None`: it does not exist.
    fn read(&mut self, item: &Item) -> Result<Option<String>, Self::Error>;

    /// Gives `item` a value; `None` removes it. The value has been read back when this returns.
    fn write(&mut self, item: &Item, value: Option<&str>) -> Result<(), Self::Error>;

    /// Adds a line to the record, which is on disk when this returns.
    fn note(&mut self, line: &Line) -> Result<(), Self::Error>;
}

/// A value that somebody else changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Changed {
    /// What.
    pub setting: Item,
    /// What stands there now.
    pub found: Option<String>,
    /// What was expected there.
    pub expected: Option<String>,
    /// What would have been written.
    pub to: Option<String>,
}

impl std::fmt::Display for Changed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [found, expected, to] =
            [&self.found, &self.expected, &self.to].map(|value| match (&self.setting, value) {
                (_, None) => "absent".to_string(),
                (Item::File(_), Some(text)) => format!("{} lines", text.lines().count()),
                (_, Some(text)) => text.clone(),
            });
        write!(f, "{} is {found} now and not {expected}; it would become {to}", self.setting)
    }
}

/// Why nothing is applied.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError<E: std::error::Error> {
    /// A value is not what the plan was made for.
    #[error("apply: {0}; plan again, as somebody changed it since the plan was made")]
    Changed(Changed),
    /// An operation was refused. Everything that was written before is put back.
    #[error("{0}; nothing is changed: what was set before it is put back")]
    Refused(E),
    /// An operation was refused, and another when it came to putting back.
    #[error(
        "{cause}; and not everything could be put back ({back}): `fullpipe tune undo` tries again, \
         `fullpipe tune status` shows what is set"
    )]
    Stuck {
        /// Why the apply failed.
        cause: E,
        /// Why putting back failed.
        back: E,
    },
}

/// Sets everything, or nothing.
pub fn apply<M: Machine>(
    machine: &mut M,
    begin: Begin,
    sets: &[Set],
) -> Result<(), ApplyError<M::Error>> {
    for set in sets {
        let found = machine.read(&set.item).map_err(ApplyError::Refused)?;
        if found != set.from {
            let Set { item, from, to } = set.clone();
            return Err(ApplyError::Changed(Changed { setting: item, found, expected: from, to }));
        }
    }
    machine.note(&Line::Begin(begin)).map_err(ApplyError::Refused)?;
    let mut begun = 0;
    let mut set_all = || {
        for set in sets {
            machine.note(&Line::Set(set.clone()))?;
            begun += 1;
            machine.write(&set.item, set.to.as_deref())?;
        }
        machine.note(&Line::Applied)
    };
    let Err(cause) = set_all() else { return Ok(()) };
    match put_back(machine, &sets[..begun]) {
        Ok(()) => {
            // Without this line, undo finds every value as it was, and has nothing to do.
            let _ = machine.note(&Line::PutBack);
            Err(ApplyError::Refused(cause))
        }
        Err(back) => Err(ApplyError::Stuck { cause, back }),
    }
}

/// Gives everything its old value, last first. A write that failed may have written something.
fn put_back<M: Machine>(machine: &mut M, sets: &[Set]) -> Result<(), M::Error> {
    for set in sets.iter().rev() {
        if machine.read(&set.item)? != set.from {
            machine.write(&set.item, set.from.as_deref())?;
        }
    }
    Ok(())
}

/// What to do where somebody changed a value since.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Meanwhile {
    /// Change nothing at all.
    #[default]
    Refuse,
    /// Leave that value, and put the others back.
    Skip,
    /// Put back all the same.
    Force,
}

/// How a value stands beside its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// As the apply set it.
    Applied,
    /// As it was before.
    AsBefore,
    /// Somebody changed it since.
    ChangedSince,
    /// It does not exist any more: the device or the route is gone, or the machine has started
    /// again.
    Gone,
}

/// How `found` stands; `same_boot`: whether the apply was made in this boot.
pub fn standing(set: &Set, found: &Option<String>, same_boot: bool) -> Standing {
    let is_knob = matches!(set.item, Item::Knob(_));
    if *found == set.to {
        Standing::Applied
    } else if *found == set.from {
        Standing::AsBefore
    } else if is_knob && (found.is_none() || !same_boot) {
        Standing::Gone
    } else {
        Standing::ChangedSince
    }
}

/// What an undo did.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct PutBack {
    /// These have their old value again.
    pub put_back: Vec<Set>,
    /// These had it already.
    pub were_back: Vec<Item>,
    /// These do not exist any more.
    pub gone: Vec<Item>,
    /// These were left to whoever changed them.
    pub left: Vec<Changed>,
}

/// Why nothing, or not everything, is put back.
#[derive(Debug, thiserror::Error)]
pub enum UndoError<E: std::error::Error> {
    /// Somebody changed values since; nothing is put back.
    #[error(
        "undo: {}; nothing is put back: --force puts the old values back all the same, \
         --skip-changed leaves these and puts the others back",
        .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    )]
    Changed(Vec<Changed>),
    /// An operation was refused; what was put back before it stays so.
    #[error("{0}; run undo again, which goes on where this one stopped")]
    Refused(E),
}

/// Puts back what `record` set, last first.
pub fn undo<M: Machine>(
    machine: &mut M,
    record: &Record,
    meanwhile: Meanwhile,
    same_boot: bool,
) -> Result<PutBack, UndoError<M::Error>> {
    let mut done = PutBack::default();
    if record.phase == Phase::PutBack {
        return Ok(done);
    }
    let mut to_do = Vec::new();
    let mut changed = Vec::new();
    for set in record.sets.iter().rev() {
        let found = machine.read(&set.item).map_err(UndoError::Refused)?;
        match standing(set, &found, same_boot) {
            Standing::Applied => to_do.push(set),
            Standing::AsBefore => done.were_back.push(set.item.clone()),
            Standing::Gone => done.gone.push(set.item.clone()),
            Standing::ChangedSince => {
                if meanwhile == Meanwhile::Force {
                    to_do.push(set);
                    continue;
                }
                let Set { item, from, to } = set.clone();
                changed.push(Changed { setting: item, found, expected: to, to: from });
            }
        }
    }
    if !changed.is_empty() && meanwhile == Meanwhile::Refuse {
        return Err(UndoError::Changed(changed));
    }
    done.left = changed;
    for set in to_do {
        machine.write(&set.item, set.from.as_deref()).map_err(UndoError::Refused)?;
        done.put_back.push(set.clone());
    }
    machine.note(&Line::PutBack).map_err(UndoError::Refused)?;
    Ok(done)
}

#[cfg(test)]
mod tests;
