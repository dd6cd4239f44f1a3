//! A kernel of texts, in which any operation can fail and at any step the power.

use super::*;
use fullpipe_model::change::{Knob, Sysctl};
use fullpipe_model::units::Duration;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// What happens at an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// It is refused, and has done nothing.
    Refused,
    /// It has written something else, and is refused.
    HalfDone,
    /// The process ends before it.
    KilledBefore,
    /// The process ends after it.
    KilledAfter,
    /// It and every later one are refused.
    Broken,
}

const FAULTS: [Fault; 5] =
    [Fault::Refused, Fault::HalfDone, Fault::KilledBefore, Fault::KilledAfter, Fault::Broken];

#[derive(Debug, thiserror::Error)]
#[error("refused")]
struct Refused;

/// The values outlive the process; so does the record.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Fake {
    values: BTreeMap<Item, String>,
    record: Vec<String>,
    operations: usize,
    fault: Option<(usize, Fault)>,
    is_dead: bool,
}

impl Fake {
    /// Whether the operation is done, and whether it is then told so.
    fn step(&mut self) -> (bool, Result<(), Refused>) {
        self.operations += 1;
        let at = self.operations - 1;
        if self.is_dead {
            return (false, Err(Refused));
        }
        match self.fault {
            Some((number, Fault::Broken)) if at >= number => (false, Err(Refused)),
            Some((number, fault)) if at == number => match fault {
                Fault::Refused | Fault::HalfDone => (false, Err(Refused)),
                Fault::KilledBefore => {
                    self.is_dead = true;
                    (false, Err(Refused))
                }
                Fault::KilledAfter => {
                    self.is_dead = true;
                    (true, Err(Refused))
                }
                Fault::Broken => unreachable!("taken above"),
            },
            _ => (true, Ok(())),
        }
    }

    /// The next process, with nothing but what is in the kernel and on disk.
    fn restarted(self) -> Fake {
        Fake { values: self.values, record: self.record, ..Fake::default() }
    }

    fn recorded(&self) -> Option<Record> {
        Record::read(&self.record).unwrap()
    }
}

impl Machine for Fake {
    type Error = Refused;

    fn read(&mut self, item: &Item) -> Result<Option<String>, Refused> {
        let (is_done, told) = self.step();
        let value = self.values.get(item).filter(|_| is_done).cloned();
        told.map(|()| value)
    }

    fn write(&mut self, item: &Item, value: Option<&str>) -> Result<(), Refused> {
        let half =
            matches!(self.fault, Some((number, Fault::HalfDone)) if number == self.operations);
        let (is_done, told) = self.step();
        if half {
            self.values.insert(item.clone(), "something else".into());
        } else if is_done {
            match value {
                Some(value) => self.values.insert(item.clone(), value.into()),
                None => self.values.remove(item),
            };
        }
        told
    }

    fn note(&mut self, line: &Line) -> Result<(), Refused> {
        let (is_done, told) = self.step();
        if is_done {
            self.record.push(serde_json::to_string(line).unwrap());
        }
        told
    }
}

fn begin() -> Begin {
    Begin {
        version: "0".into(),
        at: Duration::from_secs(1_700_000_000),
        boot_id: "this".into(),
        network_namespace: 1,
        deadline: None,
        purpose: "a test".into(),
    }
}

fn item(number: usize) -> Item {
    match number % (Sysctl::ALL.len() + 2) {
        0 => Item::File("/etc/sysctl.d/60-fullpipe.conf".into()),
        1 => Item::Knob("route default dev eth0 initcwnd".parse().unwrap()),
        other => Item::Knob(Knob::Sysctl(Sysctl::ALL[other - 2])),
    }
}

/// A kernel, and what to set in it: each thing once.
fn fakes() -> impl Strategy<Value = (Fake, Vec<Set>)> {
    let values = proptest::collection::vec(proptest::option::weighted(0.8, 0u8..4), 17);
    let sets = proptest::collection::btree_map(0usize..17, 0u8..4, 0..8);
    (values, sets).prop_map(|(values, sets)| {
        let mut fake = Fake::default();
        for (number, value) in values.into_iter().enumerate() {
            // A knob that does not exist is not planned; a file may be absent.
            let value = value.or((number > 0).then_some(0));
            fake.values.extend(value.map(|value| (item(number), value.to_string())));
        }
        let sets = sets.into_iter().map(|(number, value)| Set {
            item: item(number),
            from: fake.values.get(&item(number)).cloned(),
            to: Some((value + 4).to_string()),
        });
        let sets = sets.collect();
        (fake, sets)
    })
}

proptest! {
    #[test]
    fn apply_and_undo_is_the_identity((fake, sets) in fakes()) {
        let mut machine = fake.clone();
        apply(&mut machine, begin(), &sets).unwrap();
        for set in &sets {
            prop_assert_eq!(machine.values.get(&set.item), set.to.as_ref());
        }
        let mut machine = machine.restarted();
        let record = machine.recorded().unwrap();
        prop_assert_eq!((record.phase, &record.sets), (Phase::Applied, &sets));
        let done = undo(&mut machine, &record, Meanwhile::Refuse, true).unwrap();
        prop_assert_eq!(done.put_back.len(), sets.len());
        prop_assert_eq!(&machine.values, &fake.values);
        // Once more changes nothing.
        let record = machine.recorded().unwrap();
        prop_assert_eq!(undo(&mut machine, &record, Meanwhile::Force, true).unwrap(), PutBack::default());
        prop_assert_eq!(machine.values, fake.values);
    }

    /// Every operation of an apply fails in every way, one after the other.
    #[test]
    fn whatever_fails_and_whenever_it_ends_undo_leads_back((fake, sets) in fakes()) {
        let mut whole = fake.clone();
        apply(&mut whole, begin(), &sets).unwrap();
        for number in 0..whole.operations {
            for fault in FAULTS {
                let mut machine = Fake { fault: Some((number, fault)), ..fake.clone() };
                let told = apply(&mut machine, begin(), &sets);
                if matches!(fault, Fault::Refused | Fault::HalfDone) {
                    prop_assert!(matches!(told, Err(ApplyError::Refused(_))), "{:?}", told);
                    prop_assert_eq!(&machine.values, &fake.values, "{:?} at {}", fault, number);
                }
                prop_assert!(told.is_err());
                let mut machine = machine.restarted();
                if let Some(record) = machine.recorded() {
                    undo(&mut machine, &record, Meanwhile::Refuse, true).unwrap();
                }
                prop_assert_eq!(&machine.values, &fake.values, "{:?} at {}", fault, number);
            }
        }
    }

    /// An undo that ends at any step is gone on with by the next.
    #[test]
    fn an_undo_that_ends_is_gone_on_with((fake, sets) in fakes()) {
        let mut applied = fake.clone();
        apply(&mut applied, begin(), &sets).unwrap();
        let applied = applied.restarted();
        let record = applied.recorded().unwrap();
        let mut whole = applied.clone();
        undo(&mut whole, &record, Meanwhile::Refuse, true).unwrap();
        for number in 0..whole.operations {
            for fault in [Fault::Refused, Fault::KilledBefore, Fault::KilledAfter, Fault::Broken] {
                let mut machine = Fake { fault: Some((number, fault)), ..applied.clone() };
                prop_assert!(undo(&mut machine, &record, Meanwhile::Refuse, true).is_err());
                let mut machine = machine.restarted();
                let record = machine.recorded().unwrap();
                undo(&mut machine, &record, Meanwhile::Refuse, true).unwrap();
                prop_assert_eq!(&machine.values, &fake.values, "{:?} at {}", fault, number);
            }
        }
    }

    /// What somebody else changed is refused by name, and nothing is touched; or left; or forced.
    #[test]
    fn somebody_elses_value_is_respected((fake, sets) in fakes(), which in proptest::collection::vec(any::<bool>(), 8)) {
        let mut machine = fake.clone();
        apply(&mut machine, begin(), &sets).unwrap();
        let mut machine = machine.restarted();
        let theirs: Vec<&Set> =
            sets.iter().zip(&which).filter(|(_, is)| **is).map(|(set, _)| set).collect();
        for set in &theirs {
            machine.values.insert(set.item.clone(), "theirs".into());
        }
        let record = machine.recorded().unwrap();
        let before = machine.clone();
        match undo(&mut machine, &record, Meanwhile::Refuse, true) {
            Ok(_) => prop_assert!(theirs.is_empty()),
            Err(UndoError::Changed(changed)) => {
                prop_assert_eq!(changed.len(), theirs.len());
                prop_assert!(changed.iter().all(|one| one.found.as_deref() == Some("theirs")));
                prop_assert_eq!(&machine.values, &before.values);
            }
            Err(error) => prop_assert!(false, "{}", error),
        }
        let mut skipping = before.clone();
        undo(&mut skipping, &record, Meanwhile::Skip, true).unwrap();
        for (item, value) in &skipping.values {
            let is_theirs = theirs.iter().any(|set| set.item == *item);
            let expected = if is_theirs { "theirs" } else { fake.values[item].as_str() };
            prop_assert_eq!(value, expected);
        }
        let mut forcing = before.clone();
        undo(&mut forcing, &record, Meanwhile::Force, true).unwrap();
        prop_assert_eq!(forcing.values, fake.values);
    }

    /// Applies on top of each other, undone in any order: the last first leads back; another order is
    /// refused and changes nothing.
    #[test]
    fn applies_on_top_of_each_other((fake, first) in fakes(), second in proptest::collection::btree_map(0usize..17, 0u8..4, 0..8)) {
        let mut machine = fake.clone();
        apply(&mut machine, begin(), &first).unwrap();
        let (after_first, first_record) = (machine.clone(), machine.recorded().unwrap());
        machine.record.clear();
        let second: Vec<Set> = second.into_iter().map(|(number, value)| Set {
            item: item(number),
            from: machine.values.get(&item(number)).cloned(),
            to: Some((value + 8).to_string()),
        }).collect();
        apply(&mut machine, begin(), &second).unwrap();
        let second_record = machine.recorded().unwrap();
        let overlap = first.iter().any(|set| second.iter().any(|other| other.item == set.item));
        let mut wrong_order = machine.clone();
        let told = undo(&mut wrong_order, &first_record, Meanwhile::Refuse, true);
        prop_assert_eq!(told.is_err(), overlap);
        if overlap {
            prop_assert_eq!(&wrong_order.values, &machine.values);
        }
        undo(&mut machine, &second_record, Meanwhile::Refuse, true).unwrap();
        prop_assert_eq!(&machine.values, &after_first.values);
        undo(&mut machine, &first_record, Meanwhile::Refuse, true).unwrap();
        prop_assert_eq!(machine.values, fake.values);
    }
}

#[test]
fn a_plan_for_other_values_is_refused_before_anything_is_written() {
    let set = Set { item: item(2), from: Some("1".into()), to: Some("2".into()) };
    let mut machine = Fake::default();
    machine.values.insert(set.item.clone(), "7".into());
    let error = apply(&mut machine, begin(), &[set]).unwrap_err().to_string();
    assert!(error.contains("tcp_rmem is 7 now and not 1; it would become 2"), "{error}");
    assert!(machine.record.is_empty());
}

#[test]
fn after_a_reboot_only_what_came_back_is_put_back() {
    let sets = [3, 4, 5].map(|number| Set {
        item: item(number),
        from: Some("old".into()),
        to: Some("new".into()),
    });
    let mut machine = Fake::default();
    for (set, value) in sets.iter().zip(["new", "old", "another default"]) {
        machine.values.insert(set.item.clone(), value.into());
    }
    let record =
        Record { begin: begin(), sets: sets.into(), phase: Phase::Applied, is_confirmed: false };
    let done = undo(&mut machine, &record, Meanwhile::Refuse, false).unwrap();
    assert_eq!((done.put_back.len(), done.were_back.len(), done.gone.len()), (1, 1, 1));
    assert_eq!(machine.values[&item(5)], "another default");
}
