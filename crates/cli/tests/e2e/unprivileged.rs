//! The same as an ordinary user: in a user namespace, and never with a right that the user does not
//! have.

use crate::Case;
use crate::cleanup;
use crate::need::Need;
use crate::program::User;

pub const CASES: &[Case] =
    &[("kill_9_leaves_nothing", &[Need::Root, Need::OrdinaryUser], kill_9_leaves_nothing)];

fn kill_9_leaves_nothing() {
    cleanup::kill_9(User::Ordinary, 3);
}
