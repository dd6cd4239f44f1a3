//! The BPF program on a control group: loading, attaching, reading, letting go.

use crate::connection::Connection;
use crate::options::AgentOptions;
use crate::wire::{self, Mode};
use aya::maps::{Array, HashMap, MapError};
use aya::programs::{CgroupAttachMode, Iter, SockOps};
use aya::{Btf, Ebpf};
use fullpipe_model::units::{Duration, Window};
use std::error::Error;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// `bpf/window.bpf.c`, as `cargo xtask bpf` builds it.
static OBJECT: &[u8] = aya::include_bytes_aligned!("../bpf/window.bpf.o");
/// What this kernel's structures look like.
const BTF: &str = "/sys/kernel/btf/vmlinux";

/// Why there is no agent.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The kernel was built without a description of its structures.
    #[error(
        "load the BPF program: {BTF} is not there; the agent needs a kernel with \
         CONFIG_DEBUG_INFO_BTF (Debian, Ubuntu, Fedora and RHEL have it)"
    )]
    NoBtf,
    /// The control group cannot be opened.
    #[error("open control group {}: {cause}; name a folder of cgroup v2, such as \
             /sys/fs/cgroup/system.slice/nginx.service", path.display())]
    Cgroup {
        /// The folder.
        path: PathBuf,
        /// The cause.
        cause: io::Error,
    },
    /// The kernel does not allow BPF to this process.
    #[error(
        "{operation}: {cause}; it needs root, or CAP_BPF and CAP_NET_ADMIN, and a kernel whose \
         lockdown allows BPF (/sys/kernel/security/lockdown)"
    )]
    NotPermitted {
        /// What was tried.
        operation: &'static str,
        /// The kernel's answer.
        cause: String,
    },
    /// The kernel refused the program otherwise.
    #[error("{operation}: {cause}; the agent needs Linux 6.6 or later with cgroup v2")]
    Refused {
        /// What was tried.
        operation: &'static str,
        /// The kernel's answer.
        cause: String,
    },
}

impl AgentError {
    fn of(operation: &'static str, error: &(dyn Error + 'static)) -> AgentError {
        let mut causes: Vec<String> = Vec::new();
        let mut is_permission = false;
        let mut next = Some(error);
        while let Some(error) = next {
            let io = error.downcast_ref::<io::Error>();
            is_permission |= io.is_some_and(|io| io.kind() == io::ErrorKind::PermissionDenied);
            // A verifier's log has pages; its last line is the reason.
            let text = error.to_string();
            let line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("");
            if causes.last().is_none_or(|last| !last.contains(line)) {
                causes.push(line.trim().to_string());
            }
            next = error.source();
        }
        let cause = causes.join(": ");
        if is_permission {
            AgentError::NotPermitted { operation, cause }
        } else {
            AgentError::Refused { operation, cause }
        }
    }
}

/// What an error of `operation` becomes.
fn refused<E: Error + 'static>(operation: &'static str) -> impl FnOnce(E) -> AgentError {
    move |error| AgentError::of(operation, &error)
}

/// An attached program. Dropping it detaches, as does the end of the process however it comes.
pub struct Agent {
    program: Ebpf,
    options: AgentOptions,
    mode: Mode,
    /// The number of the control group's folder.
    group: u64,
    /// Why connections that existed before cannot be reached, if so.
    unreachable: Option<String>,
}

/// The object, with what this kernel calls its fields.
fn read_object() -> Result<Ebpf, AgentError> {
    if !Path::new(BTF).exists() {
        return Err(AgentError::NoBtf);
    }
    Ebpf::load(OBJECT).map_err(refused("load the BPF program"))
}

/// The program that follows connections, verified by the kernel.
fn load(object: &mut Ebpf) -> Result<&mut SockOps, AgentError> {
    const OPERATION: &str = "load the BPF program";
    let hook = object.program_mut("follow").expect("the object has this program");
    let hook: &mut SockOps = hook.try_into().map_err(refused(OPERATION))?;
    hook.load().map_err(refused(OPERATION))?;
    Ok(hook)
}

/// What became of the connections that existed before the agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Adopted {
    /// Followed from their next acknowledgement.
    pub followed: usize,
    /// Refused by the kernel: before Linux 6.13 it cannot.
    pub refused: usize,
}

impl std::ops::AddAssign for Adopted {
    fn add_assign(&mut self, other: Adopted) {
        self.followed += other.followed;
        self.refused += other.refused;
    }
}

impl Agent {
    /// Attaches to `cgroup`, a folder of cgroup v2, and all below it. Connections that are
    /// established from now on are followed; for those that exist there is [`Agent::adopt`].
    ///
    /// Errors: see [`AgentError`]; nothing is attached then.
    pub fn attach(cgroup: &Path, options: AgentOptions) -> Result<Agent, AgentError> {
        // Only folders of version 2 have this file.
        let folder = std::fs::metadata(cgroup.join("cgroup.controllers"))
            .and_then(|_| File::open(cgroup))
            .map_err(|cause| AgentError::Cgroup { path: cgroup.into(), cause })?;
        let group = folder
            .metadata()
            .map_err(|cause| AgentError::Cgroup { path: cgroup.into(), cause })?
            .ino();
        let mut program = read_object()?;
        let mode = if options.control { Mode::Control } else { Mode::Watch };
        configure(&mut program, &options, mode, group)?;
        load(&mut program)?
            .attach(folder, CgroupAttachMode::Single)
            .map_err(refused("attach to the control group"))?;
        let unreachable = load_visit(&mut program).err().map(|error| error.to_string());
        Ok(Agent { program, options, mode, group, unreachable })
    }

    /// Whether the kernel takes the program from this process. Nothing is attached.
    pub fn check() -> Result<(), AgentError> {
        load(&mut read_object()?).map(drop)
    }

    /// Follows the connections of the control group that exist already in the calling thread's
    /// network namespace. Over loopback they are left out, as elsewhere.
    ///
    /// Errors: this kernel does not let a BPF program visit sockets; new connections are followed
    /// nevertheless.
    pub fn adopt(&mut self) -> Result<Adopted, AgentError> {
        if let Some(cause) = &self.unreachable {
            let operation = "reach the connections that exist";
            return Err(AgentError::Refused { operation, cause: cause.clone() });
        }
        let letters = self.visit()?;
        let [followed, refused] =
            [b'f', b'r'].map(|letter| letters.iter().filter(|one| **one == letter).count());
        Ok(Adopted { followed, refused })
    }

    /// Runs `visit` over the sockets of the calling thread's network namespace.
    fn visit(&mut self) -> Result<Vec<u8>, AgentError> {
        const OPERATION: &str = "visit the connections";
        let visit = self.program.program_mut("visit").expect("the object has this program");
        let visit: &mut Iter = visit.try_into().map_err(refused(OPERATION))?;
        let link = visit.attach().map_err(refused(OPERATION))?;
        let link = visit.take_link(link).map_err(refused(OPERATION))?;
        let mut letters = Vec::new();
        let mut file = link.into_file().map_err(refused(OPERATION))?;
        file.read_to_end(&mut letters).map_err(refused(OPERATION))?;
        Ok(letters)
    }

    /// The connections that were followed so far: at most the 16,384 seen last, the closed ones
    /// too.
    pub fn connections(&self) -> Result<Vec<Connection>, AgentError> {
        const OPERATION: &str = "read the connections";
        let map = self.program.map("shown").expect("the object has this map");
        let map: HashMap<_, u64, wire::ShownWords> =
            HashMap::try_from(map).map_err(refused(OPERATION))?;
        let mut found = Vec::new();
        for entry in map.iter() {
            match entry {
                Ok((_, shown)) => found.push(wire::connection(&shown)),
                // It made room for another one while we read.
                Err(MapError::KeyNotFound) => {}
                Err(error) => return Err(AgentError::of(OPERATION, &error)),
            }
        }
        Ok(found)
    }

    /// Lets the sockets of the calling thread's network namespace go at once, and every other at
    /// its next acknowledgement: with all of its buffer as its window, and at least what
    /// `tcp_rmem[2]` allows. New ones are not followed any more. A socket in another namespace that
    /// says nothing before this agent is dropped keeps its last window until its buffer grows; so
    /// call this in each, and wait for [`Agent::FAREWELL`].
    pub fn release(&mut self) -> Result<(), AgentError> {
        self.mode = Mode::Release;
        configure(&mut self.program, &self.options, self.mode, self.group)?;
        if self.unreachable.is_none() {
            self.visit()?;
        }
        Ok(())
    }

    /// Bounds every window by `most` from its next acknowledgement on. What was promised before is
    /// not taken back.
    pub fn set_most(&mut self, most: Window) -> Result<(), AgentError> {
        self.options.settings.most = most;
        configure(&mut self.program, &self.options, self.mode, self.group)
    }

    /// What it was asked for, with the bound of [`Agent::set_most`].
    pub fn options(&self) -> &AgentOptions {
        &self.options
    }

    /// Long enough for a busy connection to acknowledge something on a usual path.
    pub const FAREWELL: Duration = Duration::from_millis(300);
}

fn load_visit(program: &mut Ebpf) -> Result<(), AgentError> {
    const OPERATION: &str = "load the BPF iterator";
    let btf = Btf::from_sys_fs().map_err(refused(OPERATION))?;
    let visit = program.program_mut("visit").expect("the object has this program");
    let visit: &mut Iter = visit.try_into().map_err(refused(OPERATION))?;
    visit.load("tcp", &btf).map_err(refused(OPERATION))
}

fn configure(
    program: &mut Ebpf,
    options: &AgentOptions,
    mode: Mode,
    group: u64,
) -> Result<(), AgentError> {
    const OPERATION: &str = "set the BPF program's options";
    let map = program.map_mut("configuration").expect("the object has this map");
    let mut map: Array<_, wire::Config> = Array::try_from(map).map_err(refused(OPERATION))?;
    map.set(0, wire::config(options, mode, group), 0).map_err(refused(OPERATION))
}
