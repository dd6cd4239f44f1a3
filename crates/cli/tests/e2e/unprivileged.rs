//! The same as an ordinary user: in a user namespace, and never with a right that the user does not
//! have.

use crate::Case;
use crate::cleanup;
use crate::figures;
use crate::need::Need;
use crate::program::{Program, User};

pub const CASES: &[Case] = &[
    ("quick_has_the_same_verdicts", &[Need::OrdinaryUser], quick_has_the_same_verdicts),
    ("kill_9_leaves_nothing", &[Need::Root, Need::OrdinaryUser], kill_9_leaves_nothing),
];

fn quick_has_the_same_verdicts() {
    let program = Program::of(User::Ordinary);
    let rows = program.rows(&["quick"]);
    figures::assert_quick(&rows);
    for row in &rows {
        eprintln!(
            "{}: late by {} us (p99); {:?}",
            row.name(),
            row.number("link_late_p99_us"),
            row.notes()
        );
    }
}

fn kill_9_leaves_nothing() {
    cleanup::kill_9(User::Ordinary, 3);
}
