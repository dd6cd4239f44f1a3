//! What is changed in Linux before it is built, and why: few places, each found by its own text.

use fullpipe_model::law::KernelVersion;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// One change: in `file`, `from` becomes `to`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patch {
    pub file: &'static str,
    pub from: &'static str,
    pub to: &'static str,
}

pub(super) const PATCHES: [Patch; 4] = [
    // The place for a process's extended registers is a constant that was right before AMX, whose 8
    // KiB of tile registers make them 11,008 bytes: on such a CPU the guest would panic at its
    // first process ("ptrace set fp regs failed, errno = 14"). More than that does not fit into
    // init's task.
    Patch {
        file: "arch/x86/um/user-offsets.c",
        from: "DEFINE_LONGS(HOST_FP_SIZE, 2696);",
        to: "DEFINE_LONGS(HOST_FP_SIZE, 11008);",
    },
    // Debian's kernels tick 250 times a second, and TCP's timers count in ticks.
    Patch {
        file: "arch/um/Kconfig",
        from: "config HZ\n\tint\n\tdefault 100\n",
        to: "config HZ\n\tint\n\tdefault 250\n",
    },
    // Reading the clock moves it on by a tick of 256 ns, so that a loop that looks at it until it
    // has moved comes to an end. A program reads it several times a packet, which adds up to
    // microseconds a hop. One nanosecond ends such a loop as well.
    Patch {
        file: "arch/um/kernel/time.c",
        from: "\t\t\ttime_travel_update_time_rel(TIMER_MULTIPLIER);\n",
        to: "\t\t\ttime_travel_update_time_rel(1);\n",
    },
    // Initial sequence numbers, ports and the seeds of hash tables are drawn from here: with the
    // host's random numbers no two runs would be the same. splitmix64, from a seed of our own.
    Patch {
        file: "arch/um/os-Linux/util.c",
        from: "\treturn getrandom(buf, len, flags);\n",
        to: "\t/* fullpipe: the same numbers in every run (splitmix64). */\n\
             \tstatic unsigned long long state = 0x66756c6c70697065ULL;\n\
             \tunsigned char *out = buf;\n\
             \tsize_t i;\n\
             \n\
             \tfor (i = 0; i < len; i++) {\n\
             \t\tunsigned long long z = state += 0x9e3779b97f4a7c15ULL;\n\
             \n\
             \t\tz = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;\n\
             \t\tz = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;\n\
             \t\tout[i] = z >> 56;\n\
             \t}\n\
             \treturn len;\n",
    },
];

/// For [`AGENT_SINCE`] and later. A BPF program that reads a kernel structure by a pointer gets
/// zeros where the kernel has no tracing events, and these need kprobes, which user-mode Linux
/// lacks. The window agent reads its sockets so.
pub(super) const READS: [Patch; 1] = [Patch {
    file: "include/linux/bpf.h",
    from: "\tif (IS_ENABLED(CONFIG_BPF_EVENTS))\n\
         \t\tret = copy_from_kernel_nofault(dst, unsafe_ptr, size);\n",
    to: "\tif (IS_ENABLED(CONFIG_BPF_SYSCALL))\n\
         \t\tret = copy_from_kernel_nofault(dst, unsafe_ptr, size);\n",
}];

/// The first Linux that the agent works with, and the first in which these reads are in one place.
pub(super) const AGENT_SINCE: KernelVersion = KernelVersion::new(6, 6);

/// Why a source could not be patched.
#[derive(Debug, thiserror::Error)]
pub enum PatchError {
    /// A file of it.
    #[error("patch {path}: {cause}; is this the source of a Linux from 6.1 on?", path = path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// The system's answer.
        cause: io::Error,
    },
    /// The text to be changed is not there once.
    #[error("patch {path}: expected once and not found so: {from:?}; use a Linux from 6.1 to 6.12", path = path.display())]
    Text {
        /// Where.
        path: PathBuf,
        /// What was looked for.
        from: &'static str,
    },
}

/// Applies the patches to the source in `tree`; those already applied are left alone.
pub(super) fn apply(
    tree: &Path,
    patches: impl IntoIterator<Item = Patch>,
) -> Result<(), PatchError> {
    for patch in patches {
        let path = tree.join(patch.file);
        let wrong = |cause| PatchError::File { path: path.clone(), cause };
        let text = fs::read_to_string(&path).map_err(wrong)?;
        if let Some(patched) = patched(&text, patch)
            .ok_or(PatchError::Text { path: path.clone(), from: patch.from })?
        {
            fs::write(&path, patched).map_err(wrong)?;
        }
    }
    Ok(())
}

/// The text with the patch, `Some(None)` where it has it already, `None` where it does not fit.
fn patched(text: &str, patch: Patch) -> Option<Option<String>> {
    match (text.matches(patch.from).count(), text.contains(patch.to)) {
        (_, true) => Some(None),
        (1, false) => Some(Some(text.replacen(patch.from, patch.to, 1))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_applies_once_and_only_where_it_fits() {
        for patch in PATCHES.into_iter().chain(READS).chain(super::super::truth::TRUTH) {
            let text = format!("before\n{}after\n", patch.from);
            let changed = patched(&text, patch).unwrap().unwrap();
            assert!(changed.contains(patch.to) && changed.ends_with("after\n"), "{changed}");
            assert_eq!(patched(&changed, patch), Some(None));
            assert_eq!(patched("nothing of it", patch), None);
            assert_eq!(patched(&format!("{text}{text}"), patch), None);
        }
    }
}
