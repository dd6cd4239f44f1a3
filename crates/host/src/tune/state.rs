//! Reads what a plan needs to know of this host.

use std::collections::BTreeMap;

use fullpipe_kernel::host::memory_available;
use fullpipe_kernel::host::sysctl;
use fullpipe_model::change::{Knob, Sysctl};
use fullpipe_model::tune::HostState;

use super::machine::{MachineError, ThisMachine};
use crate::settings::ThisHost;

/// Reads this host in the calling thread's network namespace: every sysctl that can be tuned, and
/// `more`.
///
/// # Errors
/// Something is there and cannot be read.
pub fn read_state(
    machine: &mut ThisMachine,
    more: impl IntoIterator<Item = Knob>,
) -> Result<HostState, MachineError> {
    let mut shown = BTreeMap::new();
    for knob in Sysctl::ALL.into_iter().map(Knob::Sysctl).chain(more) {
        if let Some(found) = machine.shown(&knob)? {
            shown.insert(knob, found);
        }
    }
    const AVAILABLE: &str = "net.ipv4.tcp_available_congestion_control";
    let name = AVAILABLE.parse().expect("the name of a sysctl");
    let available = sysctl::read_own(&name)?.unwrap_or_default();
    Ok(HostState {
        settings: ThisHost::read()?.settings,
        shown,
        memory_available: memory_available(),
        congestion_controls: available.split_whitespace().map(String::from).collect(),
    })
}
