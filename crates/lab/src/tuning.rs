//! Converts a scenario's hosts for the tuning plan, and applies a plan to a scenario: this is how
//! the lab tests a plan.

use fullpipe_model::change::Sysctl;
use fullpipe_model::law::KernelVersion;
use fullpipe_model::limit::End;
use fullpipe_model::link::Capacity;
use fullpipe_model::scenario::{Host, Scenario, Server, SysctlText};
use fullpipe_model::tune::{self, HostSettings, Path, Plan};
use fullpipe_model::units::{Bytes, Rate};

/// The scenario's path for a plan; `None` without a rate, where there is nothing to fill.
fn path(scenario: &Scenario) -> Option<Path> {
    let rate: Rate = scenario.path.to_client.rate?;
    let rtt = scenario.path.rtt();
    let mut path = Path::new(rate, rtt);
    path.framing.mtu = scenario.path.mtu;
    path.queue = match scenario.path.to_client.capacity(rtt) {
        Capacity::Bytes(bytes) => bytes,
        Capacity::Packets(packets) => Bytes::new(packets.saturating_mul(scenario.path.mtu.get())),
        Capacity::Unlimited => Bytes::ZERO,
    };
    Some(path)
}

/// The plan that fills the scenario's path, on this kernel.
pub fn plan_tuning(scenario: &Scenario, kernel: KernelVersion) -> Option<Plan> {
    let EndTuning { sender, receiver } = ends(scenario, kernel);
    Some(tune::plan(path(scenario)?, &sender, &receiver))
}

/// The settings of both ends.
pub(crate) struct EndTuning {
    pub(crate) sender: HostSettings,
    pub(crate) receiver: HostSettings,
}

/// The settings of both ends of the scenario: the kernel's own where it names none.
pub(crate) fn ends(scenario: &Scenario, kernel: KernelVersion) -> EndTuning {
    let mut sender = settings(&scenario.hosts.server, kernel);
    let mut receiver = settings(&scenario.hosts.client, kernel);
    sender.so_sndbuf = scenario.transfer.send_buffer;
    receiver.so_rcvbuf = scenario.transfer.receive_buffer;
    sender.write = write_of(scenario.transfer.server);
    EndTuning { sender, receiver }
}

/// The settings that a host names, and the kernel's own.
fn settings(host: &Host, kernel: KernelVersion) -> HostSettings {
    let mut settings = HostSettings::defaults(kernel);
    for sysctl in Sysctl::OF_WINDOWS {
        let Some(text) = host.sysctl.get(sysctl.name()) else { continue };
        // The kernel has already refused invalid values when the scenario ran.
        let _ = settings.read(sysctl, &text.0);
    }
    settings
}

/// What a server writes at once.
fn write_of(server: Server) -> Bytes {
    match server {
        Server::Builtin => fullpipe_transfer::content::WRITE,
        // http.server copies by `shutil.copyfileobj`: `COPY_BUFSIZE` is 64 KiB.
        Server::Python => Bytes::new(64 << 10),
        // `DEFAULT_TCP_BLKSIZE` of iperf_api.h.
        Server::Iperf3 => Bytes::new(128 << 10),
        // sendfile, of up to 2 MiB (`sendfile_max_chunk`); what the kernel takes of it at once was
        // up to 560 kB.
        Server::Nginx => Bytes::new(576 << 10),
    }
}

/// The scenario with the plan's settings, except those of the whole machine, which a namespace does
/// not have.
pub fn apply_plan(scenario: &Scenario, plan: &Plan) -> Scenario {
    let mut tuned = scenario.clone();
    for change in plan.changes.iter().filter(|change| !change.knob.is_machine_wide()) {
        let host = match change.end {
            Some(End::Receiver) => &mut tuned.hosts.client,
            Some(End::Sender) | None => &mut tuned.hosts.server,
        };
        host.sysctl.insert(change.knob.to_string(), SysctlText(change.to.to_string()));
    }
    tuned
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset;

    #[test]
    fn a_plan_put_into_its_scenario_leaves_nothing_to_plan() {
        let scenario = preset::load("articles/b2").unwrap().remove(0);
        for kernel in [KernelVersion::new(6, 1), KernelVersion::new(6, 18)] {
            let first = plan_tuning(&scenario, kernel).unwrap();
            assert!(
                !first.changes.is_empty() && first.after.goodput > first.before.goodput,
                "{first:?}"
            );
            let again = plan_tuning(&apply_plan(&scenario, &first), kernel).unwrap();
            assert_eq!(
                (again.changes.len(), again.before.goodput),
                (0, first.after.goodput),
                "{again:?}"
            );
        }
    }
}
