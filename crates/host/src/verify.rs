//! Shows on live sockets which settings are in force.
//!
//! A sysctl that reads back is a number in the kernel; whether a socket follows it is another
//! question. [`verify`] opens sockets on loopback, looks at what the kernel gave them, pushes data
//! until autotuning has reached its bound, pauses, and sends again ([`Evidence`]). Then it compares
//! with the settings, one by one ([`judge`], which is pure). Some settings cannot be seen from a
//! socket that never leaves the machine; the answer says why.
//!
//! Queues of devices and metrics of routes that an apply has set and that still stand are asked of
//! the kernel as a packet would meet them.
//!
//! The sockets are in the calling thread's network namespace. Nothing is changed.

mod judge;
mod network;
mod probe;
mod sign;

pub use judge::{Check, Evidence, Seen, Values, judge};
pub use sign::{Hidden, Open, Sign};

use crate::tune::{MachineError, ThisMachine, read_state};
use fullpipe_model::change::{Knob, Sysctl};

/// Every sysctl that is shown here, and what sockets say of it. Takes about a second.
///
/// # Errors
/// A setting cannot be read, or the kernel refuses a socket.
pub fn verify() -> Result<Vec<Check>, MachineError> {
    let mut machine = ThisMachine::to_read()?;
    let state = read_state(&mut machine, None)?;
    let values: Values = Sysctl::ALL
        .into_iter()
        .filter_map(|sysctl| {
            let shown = state.shown.get(&Knob::Sysctl(sysctl))?;
            Some((sysctl.name(), shown.value.to_string()))
        })
        .collect();
    let memory = state.memory_available.unwrap_or_default();
    let evidence = probe::probe(&state.settings, memory)?;
    let mut checks = judge(&values, &state.settings, &evidence);
    checks.extend(network::checks(&mut machine)?);
    Ok(checks)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This machine's kernel follows its own settings, and its sockets are real.
    #[test]
    fn this_machines_sockets_follow_its_settings() {
        let checks = verify().unwrap();
        for check in &checks {
            assert_ne!(check.seen, Seen::NotInForce, "{check:?}");
        }
        let seen =
            |name: &str| checks.iter().find(|check| check.setting == name).map(|check| check.seen);
        assert_eq!(seen("net.ipv4.tcp_congestion_control"), Some(Seen::InForce));
        assert_eq!(seen("net.core.rmem_max"), Some(Seen::InForce));
    }
}
