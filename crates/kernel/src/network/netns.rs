//! Network namespaces: each host of the lab is one.
//!
//! A namespace has no name here, only a file descriptor: nothing appears in `/run/netns`, and the
//! kernel ends the namespace with its last descriptor, thread and program. A namespace is a
//! property of a *thread*: sockets, netlink, sysctls under `/proc/sys/net` and programs use the
//! namespace of the thread that makes them. So there are three ways in: [`NetNs::run`] for a
//! request and its answer, [`NetNs::enter`] for a thread that stays, [`NetNs::start_in`] for a
//! program. A socket stays in the namespace in which it was opened, whichever thread uses it.
//!
//! Making and entering one needs CAP_SYS_ADMIN: root, or [`crate::run::sandbox`].

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sched::{CloneFlags, setns, unshare};

use crate::Refused;

/// A network namespace that lives as long as this value, its clones of the descriptor and the
/// programs inside.
#[derive(Debug)]
pub struct NetNs {
    label: String,
    fd: OwnedFd,
}

const THREAD_NS: &str = "/proc/thread-self/ns/net";

impl NetNs {
    /// Makes an empty namespace with its loopback device up; `label` names it in messages only.
    pub fn create(label: &str) -> Result<NetNs, Refused> {
        let made = on_thread(label, || {
            unshare(CloneFlags::CLONE_NEWNET).map_err(|errno| {
                Refused::new("make network namespace", label, errno)
                    .hint("run inside the sandbox, which asks for a user namespace where needed")
            })?;
            raise_loopback(label)?;
            NetNs::current(label)
        })??;
        Ok(made)
    }

    /// The namespace of the calling thread.
    pub fn current(label: &str) -> Result<NetNs, Refused> {
        let file = File::open(THREAD_NS)
            .map_err(|e| Refused::new("open network namespace", THREAD_NS, e))?;
        Ok(NetNs { label: label.into(), fd: file.into() })
    }

    /// The namespaces of all processes whose namespace this process may open, each once: the
    /// caller's own comes first and is called "this host" or whatever `own` says, the others by the
    /// first process in them.
    pub fn all(own: &str) -> Result<Vec<NetNs>, Refused> {
        let first = NetNs::current(own)?;
        let mut seen = vec![first.inode()?];
        let mut found = vec![first];
        for pid in crate::process::processes::pids() {
            let path = format!("/proc/{pid}/ns/net");
            // A process may end meanwhile, or belong to somebody else.
            let Ok(inode) = std::fs::metadata(&path).map(|m| m.ino()) else { continue };
            if seen.contains(&inode) {
                continue;
            }
            seen.push(inode);
            let label = format!("process {pid}");
            found.extend(File::open(&path).map(|file| NetNs { label, fd: file.into() }));
        }
        Ok(found)
    }

    /// The name used in messages.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Its identity: the number in `net:[4026531840]`. Two values are equal exactly if they are the
    /// same namespace.
    pub fn inode(&self) -> Result<u64, Refused> {
        let file = self.fd.try_clone().map(File::from);
        let metadata = file.and_then(|file| file.metadata());
        metadata
            .map(|m| m.ino())
            .map_err(|e| Refused::new("identify network namespace", &self.label, e))
    }

    /// Runs `work` on a separate thread inside and returns its result; a panic inside is
    /// propagated.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, Refused> {
        on_thread(&self.label, || self.enter().map(|()| work()))?
    }

    /// Moves the calling thread inside for good; it cannot return without a handle of its old
    /// namespace.
    ///
    /// For threads that live for one host (its socket sampler, its built-in server). Threads that
    /// it starts are inside too.
    pub fn enter(&self) -> Result<(), Refused> {
        setns(&self.fd, CloneFlags::CLONE_NEWNET).map_err(|errno| {
            Refused::new("enter network namespace", &self.label, errno)
                .hint("it needs CAP_SYS_ADMIN here and in the user namespace that made it")
        })
    }

    /// Makes `command` start inside; call this before adding any hook that needs to be inside.
    pub fn start_in(&self, command: &mut Command) -> Result<(), Refused> {
        // The command gets its own descriptor, because it may be spawned after `self` is gone.
        let fd = self
            .fd
            .try_clone()
            .map_err(|e| Refused::new("keep network namespace", &self.label, e))?;
        // SAFETY: the hook makes one system call and allocates nothing, as is right between fork
        // and exec.
        unsafe {
            command.pre_exec(move || setns(&fd, CloneFlags::CLONE_NEWNET).map_err(Into::into))
        };
        Ok(())
    }

    pub(crate) fn raw_fd(&self) -> i32 {
        self.fd.as_raw_fd()
    }
}

impl AsFd for NetNs {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Brings the loopback device of the calling thread's namespace up.
///
/// Uses the old ioctl (netdevice(7)), because [`crate::network::netlink`] needs a finished
/// namespace.
fn raise_loopback(label: &str) -> Result<(), Refused> {
    let refused = |cause| Refused::new("bring loopback up in network namespace", label, cause);
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").map_err(refused)?;
    let mut name = [0; libc::IFNAMSIZ];
    name[..2].copy_from_slice(&[b'l' as libc::c_char, b'o' as libc::c_char]);
    let flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    let request = libc::ifreq {
        ifr_name: name,
        ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_flags: flags },
    };
    // SAFETY: SIOCSIFFLAGS reads a `struct ifreq`, which lives through the call.
    match unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &request) } {
        0 => Ok(()),
        _ => Err(refused(std::io::Error::last_os_error())),
    }
}

/// Runs `work` on a scoped thread, so that changes to its namespaces end with it.
fn on_thread<T: Send>(label: &str, work: impl FnOnce() -> T + Send) -> Result<T, Refused> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name(format!("ns-{label}"))
            .spawn_scoped(scope, work)
            .map_err(|e| Refused::new("start thread for network namespace", label, e))?;
        Ok(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}
