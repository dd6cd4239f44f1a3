//! Scripts with mounts and processes of their own, for this machine's programs and for foreign
//! ones.
//!
//! Foreign programs run by qemu, which the kernel starts for them in a user namespace of the
//! script's own: what runs on this machine outside of it stays as it is.

use super::super::Architecture;
use anyhow::{Context, ensure};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};

/// Every user is itself.
const SAME_USERS: &str = "0 0 4294967295";
/// Tells the kernel what runs foreign programs, once the namespace has its users.
const WITH_EMULATOR: &str = r#"
echo ready
read -r _
exec sh -ec "$FOREIGN"
"#;
const REGISTER: &str = r#"
mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
printf '%s' "$EMULATOR" >/proc/sys/fs/binfmt_misc/register
"#;

/// The program that runs those of a foreign machine.
pub fn emulator(foreign: Architecture) -> String {
    format!("qemu-{}-static", foreign.name())
}

/// How the kernel knows a foreign program, and what runs it: a line of binfmt_misc. ELF's number of
/// the machine stands behind the class, the order of bytes and the kind of file.
fn line(foreign: Architecture) -> String {
    let machine = match foreign {
        Architecture::X86_64 => r"\x3e",
        Architecture::Aarch64 => r"\xb7",
    };
    let ident = format!(r"\x7fELF\x02\x01\x01{}", r"\x00".repeat(9));
    let of_ident = format!(r"{}\x00{}", r"\xff".repeat(7), r"\xff".repeat(8));
    // Kind 2 or 3: a program at a fixed place, or at any.
    let magic = format!(r"{ident}\x02\x00{machine}\x00");
    let mask = format!(r"{of_ident}\xfe\xff\xff\xff");
    // F: the kernel opens it now, and finds it in every root.
    format!(":foreign:M::{magic}:{mask}:/usr/bin/{}:F", emulator(foreign))
}

/// Runs `script` as root; returns what it prints. Its mounts and processes end with it.
pub fn in_namespaces(
    script: &str,
    environment: &[(&str, &str)],
    architecture: Architecture,
) -> anyhow::Result<String> {
    let is_here = architecture.is_here();
    let mut unshare = Command::new("unshare");
    unshare
        .args(["--mount", "--pid", "--fork", "--kill-child"])
        .env_clear()
        .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        .env("HOME", "/root")
        .env("DEBIAN_FRONTEND", "noninteractive")
        .envs(environment.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    if is_here {
        unshare.args(["sh", "-ec", script]);
    } else {
        unshare
            .args(["--user", "sh", "-ec", WITH_EMULATOR])
            .env("FOREIGN", format!("{REGISTER}{script}"))
            .env("EMULATOR", line(architecture));
    }
    let mut child = unshare.spawn().context("start unshare")?;
    let mut said = BufReader::new(child.stdout.take().context("no output of unshare")?);
    if !is_here {
        let mut ready = String::new();
        said.read_line(&mut ready).context("wait for the namespace")?;
        ensure!(ready.trim() == "ready", "unshare did not make a namespace");
        give_users(&mut child)?;
    }
    drop(child.stdin.take());
    let mut text = String::new();
    said.read_to_string(&mut text).context("read what the script prints")?;
    let status = child.wait().context("wait for the script")?;
    ensure!(status.success(), "the script ended with {status}; it printed: {}", text.trim());
    Ok(text)
}

/// Fills the user namespace of a process that waits for that.
fn give_users(child: &mut Child) -> anyhow::Result<()> {
    for map in ["uid_map", "gid_map"] {
        let file = format!("/proc/{}/{map}", child.id());
        std::fs::write(&file, SAME_USERS).with_context(|| format!("write {file}"))?;
    }
    let mut input = child.stdin.take().context("no input of unshare")?;
    input.write_all(b"go\n").context("tell unshare to go on")
}
