//! What a trial cannot do without.

use crate::relay_postgres::{server_programs, server_user};
use fullpipe_lab::Kernel;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

/// A tool or a privilege.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Namespaces, as whoever runs the tests.
    Sandbox,
    /// To be root: mounts of its own, a look at the processes in other user namespaces. CI runs as
    /// root, who can be both.
    Root,
    /// To be an ordinary user who may make user namespaces, or to be able to become user 1000.
    OrdinaryUser,
    /// A kernel for guests of the virtual engine.
    GuestKernel,
    /// The guest kernel from before Linux 6.6.
    OldGuestKernel,
    /// A guest kernel that counts why its sockets do not send.
    TruthKernel,
    /// A kernel that has programs at devices' hooks end with their process: Linux 6.6.
    Tcx,
    /// What the window agent needs: root, Linux 6.6 with BTF, cgroup v2.
    WindowAgent,
    /// This version of Linux or a later one.
    Kernel(&'static str),
    /// Multipath TCP in the kernel.
    Mptcp,
    /// A PostgreSQL server, and an account that may run it.
    PostgreSql,
    /// PyYAML, for the Python on the path.
    PythonYaml,
    /// A program on the path.
    Program(&'static str),
}

impl Need {
    /// Whether it may be absent where nothing else may: a guest's kernel is ten minutes' work, and
    /// must be there only where a variable says that it was built.
    pub fn is_optional(self) -> bool {
        let is_said = |name| std::env::var_os(name).is_some_and(|value| value == "1");
        match self {
            Need::GuestKernel | Need::OldGuestKernel => !is_said("FULLPIPE_KERNEL_BUILT"),
            Need::TruthKernel => !is_said("FULLPIPE_TRUTH_KERNEL"),
            _ => false,
        }
    }

    /// Why it cannot be had; `None` where it can.
    pub fn absent(self) -> Option<String> {
        static NAMESPACES: LazyLock<bool> = LazyLock::new(|| {
            succeeds("unshare", &["-n", "true"]) || succeeds("unshare", &["-Urn", "true"])
        });
        static ORDINARY: LazyLock<bool> = LazyLock::new(|| {
            succeeds(
                "setpriv",
                &["--reuid=1000", "--regid=1000", "--clear-groups", "unshare", "-Urn", "true"],
            )
        });
        let root = nix::unistd::geteuid().is_root();
        let missing = match self {
            Need::Sandbox => (!*NAMESPACES).then_some("neither privilege nor user namespaces, or no unshare"),
            Need::Root => (!root).then_some("not root"),
            Need::OrdinaryUser if !root => None,
            Need::OrdinaryUser => (!*ORDINARY).then_some("no setpriv, or no user namespaces for user 1000"),
            Need::GuestKernel => (!has_kernel(|kernel| !kernel.counts_reasons()))
                .then_some("no guest kernel is built: `fullpipe lab kernel build`, 10 minutes"),
            Need::TruthKernel => (!has_kernel(Kernel::counts_reasons)).then_some(
                "no guest kernel counts why its sockets do not send: `fullpipe lab kernel build --truth`, 20 minutes",
            ),
            Need::OldGuestKernel => Kernel::find(
                &Kernel::cached().unwrap_or_default(),
                Some("6.1"),
            )
            .is_none()
            .then_some("no guest kernel 6.1 is built: `fullpipe lab kernel build --version 6.1`, 10 minutes"),
            Need::Tcx => return Need::Kernel("6.6").absent(),
            Need::Kernel(least) => {
                let version = fullpipe_kernel::host::Host::read().kernel_version();
                let is_old = version.is_none_or(|version| version < least.parse().unwrap());
                return is_old.then(|| format!("a kernel before {least}"));
            }
            Need::WindowAgent => {
                let version = fullpipe_kernel::host::Host::read().kernel_version();
                let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
                let is_there = root
                    && version.is_some_and(|version| version >= "6.6".parse().unwrap())
                    && std::path::Path::new("/sys/kernel/btf/vmlinux").exists()
                    && mounts.contains(" - cgroup2 ");
                (!is_there).then_some("not root, a kernel before 6.6 or without BTF, or no cgroup v2")
            }
            Need::Mptcp => (!std::path::Path::new("/proc/sys/net/mptcp/enabled").exists())
                .then_some("a kernel without CONFIG_MPTCP"),
            Need::PostgreSql if !installed("psql") || server_programs().is_none() => {
                Some("PostgreSQL is not installed: `apt-get install postgresql`")
            }
            Need::PostgreSql => (root && server_user().is_none())
                .then_some("no account postgres, and the server refuses to be run by root"),
            Need::PythonYaml => (!succeeds("python3", &["-c", "import yaml"]))
                .then_some("no PyYAML: `apt-get install python3-yaml`"),
            Need::Program(program) => return (!installed(program)).then(|| format!("{program} is not installed")),
        };
        missing.map(Into::into)
    }
}

fn has_kernel(fits: impl Fn(&Kernel) -> bool) -> bool {
    Kernel::cached().unwrap_or_default().iter().any(fits)
}

/// Whether `program` is on the path, or where Debian puts what only root is thought to use.
pub fn installed(program: &str) -> bool {
    let path = std::env::var("PATH").unwrap_or_default();
    format!("{path}:/usr/sbin:/sbin")
        .split(':')
        .any(|folder| std::path::Path::new(folder).join(program).is_file())
}

fn succeeds(program: &str, arguments: &[&str]) -> bool {
    let status =
        Command::new(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}
