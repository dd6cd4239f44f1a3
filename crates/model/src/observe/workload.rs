//! What a control group says of the workload in it: a systemd unit, a container and its runtime, a
//! pod of Kubernetes and its quality of service.
//!
//! A runtime names its groups by a scheme of its own and by that of its cgroup driver. With the
//! driver `systemd` a container is a scope (`cri-containerd-ID.scope`) and a pod a slice
//! (`kubepods-burstable-podUID.slice`, dashes of the id as underscores); with `cgroupfs` both are
//! plain directories (`/kubepods/burstable/podUID/ID`). The paths are the same in version 1 and 2.
//! Containers may be nested: a cluster whose nodes are containers, Podman within Docker. The
//! innermost container and pod count, because their processes are meant.
//!
//! A path alone does not say what a pod is called, nor which runtime made a plain `ID` in a pod.
//! What is not known is absent.
//!
//! Sources: the Kubernetes kubelet's `cm` package, `runc`'s systemd driver, containerd's, CRI-O's,
//! Docker's and Podman's own naming, systemd.unit(5).

use serde::Serialize;

/// What a control group's path says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Workload<'p> {
    /// The innermost systemd unit that is none of a runtime's making: `nginx.service`,
    /// `session-2.scope`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<&'p str>,
    /// The container's id, 64 hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<&'p str>,
    /// What runs the container, where the path says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<ContainerRuntime>,
    /// The pod's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<PodId<'p>>,
    /// The pod's quality of service, where the path says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qos: Option<PodQos>,
}

/// What runs containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ContainerRuntime {
    /// containerd, for Kubernetes or for nerdctl.
    Containerd,
    /// CRI-O.
    Crio,
    /// Docker.
    Docker,
    /// Podman.
    Podman,
}

impl ContainerRuntime {
    /// The stable name in results.
    pub const fn name(self) -> &'static str {
        match self {
            ContainerRuntime::Containerd => "containerd",
            ContainerRuntime::Crio => "crio",
            ContainerRuntime::Docker => "docker",
            ContainerRuntime::Podman => "podman",
        }
    }
}

/// The quality of service that Kubernetes gives a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PodQos {
    /// Its limits are its requests.
    Guaranteed,
    /// It requests something.
    Burstable,
    /// It requests nothing.
    BestEffort,
}

impl PodQos {
    /// The stable name in results.
    pub const fn name(self) -> &'static str {
        match self {
            PodQos::Guaranteed => "guaranteed",
            PodQos::Burstable => "burstable",
            PodQos::BestEffort => "best_effort",
        }
    }
}

/// The id of a pod as its path has it: with underscores for dashes where it is part of a slice's
/// name. Its text is the one of Kubernetes.
#[derive(Debug, Clone, Copy)]
pub struct PodId<'p>(&'p str);

impl std::fmt::Display for PodId<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut parts = self.0.split('_');
        f.write_str(parts.next().unwrap_or_default())?;
        parts.try_for_each(|part| write!(f, "-{part}"))
    }
}

impl PartialEq for PodId<'_> {
    /// By the id, however it is written.
    fn eq(&self, other: &Self) -> bool {
        self.0.replace('_', "-") == other.0.replace('_', "-")
    }
}

impl Eq for PodId<'_> {}

impl Serialize for PodId<'_> {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

/// The digits of a container's id.
const CONTAINER: usize = 64;

impl<'p> Workload<'p> {
    /// What a group's path says, as `/proc/PID/cgroup` has it.
    pub fn of(path: &'p str) -> Workload<'p> {
        let mut workload = Workload::default();
        let mut above = "";
        for part in path.split('/') {
            if let Some((pod, qos)) = pod(part, above) {
                // What is around a pod, the runtime's unit or the node's container, is not in it.
                workload = Workload { pod: Some(pod), qos, ..Workload::default() };
            }
            if let Some((container, runtime)) = container(part, above) {
                let is_new = workload.container != Some(container);
                let runtime = runtime.or(workload.runtime.filter(|_| !is_new));
                // A container's own systemd has units of its own.
                workload = Workload { container: Some(container), runtime, unit: None, ..workload };
            } else if is_unit(part) {
                workload.unit = Some(part);
            }
            above = part;
        }
        if workload.pod.is_some() && workload.container.is_none() {
            // A monitor of the runtime, within the pod.
            workload.unit = None;
        }
        workload
    }

    /// One name for it: the pod's id, or else the container's, or the unit; `host` where there is
    /// none of them.
    pub fn name(&self) -> String {
        match (self.pod, self.container, self.unit) {
            (Some(pod), ..) => pod.to_string(),
            (_, Some(container), _) => container.into(),
            (.., Some(unit)) => unit.into(),
            _ => HOST.into(),
        }
    }
}

/// The name of what is in no workload that a path tells.
pub const HOST: &str = "host";

/// The pod that a directory is named after, and its quality of service.
fn pod<'p>(part: &'p str, above: &str) -> Option<(PodId<'p>, Option<PodQos>)> {
    // The driver `cgroupfs`: kubepods/burstable/podUID.
    if let Some(id) = part.strip_prefix("pod").filter(|id| is_pod(id, '-')) {
        let qos = match above {
            "burstable" => PodQos::Burstable,
            "besteffort" => PodQos::BestEffort,
            _ if above.ends_with("kubepods") => PodQos::Guaranteed,
            // Above a control group namespace's own root the names are hidden.
            ".." => return Some((PodId(id), None)),
            _ => return None,
        };
        return Some((PodId(id), Some(qos)));
    }
    // The driver `systemd`, whose slices repeat the names of those above; or its name before a
    // runtime that does not speak to systemd (`..slice:cri-containerd:ID`).
    let (slice, _) = part.split_once(".slice")?;
    let (kind, id) = slice.rsplit_once("-pod")?;
    let qos = match kind.rsplit('-').next()? {
        "burstable" => PodQos::Burstable,
        "besteffort" => PodQos::BestEffort,
        "kubepods" => PodQos::Guaranteed,
        _ => return None,
    };
    let is_kubernetes = kind.split('-').any(|word| word == "kubepods");
    let is_pod = is_pod(id, '_') || is_pod(id, '-');
    (is_kubernetes && is_pod).then_some((PodId(id), Some(qos)))
}

/// Whether a text is a pod's id: a UUID, or 32 digits of a pod that the kubelet has from a file.
pub(super) fn is_pod(text: &str, dash: char) -> bool {
    const GROUPS: [usize; 5] = [8, 4, 4, 4, 12];
    if is_hex(text, 32) {
        return true;
    }
    let groups = text.split(dash);
    groups.clone().count() == GROUPS.len()
        && groups.zip(GROUPS).all(|(group, digits)| is_hex(group, digits))
}

fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The prefixes of containers' names, each with its runtime.
const RUNTIMES: [(&str, ContainerRuntime); 5] = [
    ("cri-containerd", ContainerRuntime::Containerd),
    ("nerdctl", ContainerRuntime::Containerd),
    ("crio", ContainerRuntime::Crio),
    ("docker", ContainerRuntime::Docker),
    ("libpod", ContainerRuntime::Podman),
];

/// The container that a directory is named after, and its runtime where that is said.
fn container<'p>(part: &'p str, above: &str) -> Option<(&'p str, Option<ContainerRuntime>)> {
    let name = part.strip_suffix(".scope").unwrap_or(part);
    if is_hex(name, CONTAINER) {
        let runtime = match above {
            "docker" => Some(ContainerRuntime::Docker),
            _ => None,
        };
        return Some((name, runtime));
    }
    let at = name.len().checked_sub(CONTAINER).filter(|at| name.is_char_boundary(*at))?;
    let (before, id) = name.split_at(at);
    let before = before.strip_suffix(['-', ':'])?;
    // `libpod-conmon-ID` and `crio-conmon-ID` are the monitor's, `libpod_pod_ID` is a pod's.
    let last = before.rsplit([':', '/']).next()?;
    let runtime = RUNTIMES.iter().find(|(prefix, _)| *prefix == last)?.1;
    is_hex(id, CONTAINER).then_some((id, Some(runtime)))
}

/// Whether a directory is a systemd unit that was started for its own sake.
fn is_unit(part: &str) -> bool {
    const ENDS: [&str; 5] = [".service", ".scope", ".socket", ".mount", ".swap"];
    // What only leads to the units of a user or to a runtime's monitors.
    let is_between = part.starts_with("user@") || part.contains("conmon-") || part == "init.scope";
    ENDS.iter().any(|end| part.len() > end.len() && part.ends_with(end)) && !is_between
}

#[cfg(test)]
mod tests;
