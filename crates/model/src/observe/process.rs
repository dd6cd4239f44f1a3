//! Who has a socket open.

use super::PodName;

/// A process that has a socket open.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Process {
    /// Its id in the namespace of the process that asked.
    pub pid: u32,
    /// Its name: at most 15 bytes of its program's name.
    pub name: String,
    /// What was started, with its arguments; empty for a process that hides it.
    pub command: String,
    /// Its control group: a path below the mount of cgroup v2, or the first of cgroup v1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<String>,
    /// The container's id, if the name of its control group contains one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// What the pod that it is in is called, where this node says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<PodName>,
}
