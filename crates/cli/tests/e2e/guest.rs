//! Runs a trial's script inside a guest kernel, for features that this machine's own kernel lacks.
//!
//! It boots the virtual engine's user-mode kernels with a shell script as the first process. The
//! guest has the machine's files read-only, and may write to the trial's folder.

use std::process::Command;

use crate::program::Program;
use fullpipe_lab::Kernel;
use fullpipe_model::units::Duration;

/// The clock of a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Time {
    /// Real time.
    Real,
    /// Time passes only while everything waits, so that only the path is measured.
    Virtual,
}

/// The duties of every guest's first process.
const SYSTEM: &str = "\
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs devtmpfs /dev; mount -t tmpfs tmpfs /run
mkdir /run/trial; mount -t hostfs -o \"$FOLDER\" hostfs /run/trial; cd /run/trial
exec > out 2>&1
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin TMPDIR=/run HOME=/run LC_ALL=C; export PATH TMPDIR HOME LC_ALL
ip link set lo up
";

/// Runs `script` as the first process of a guest of the newest kernel, or of the newest one of
/// release `asked`, and returns what it printed. `$fullpipe` is the program; the script works in
/// the trial's folder.
pub fn run(program: &Program, asked: Option<&str>, time: Time, script: &str) -> String {
    let kernels = Kernel::cached().unwrap();
    let kernel = Kernel::find(&kernels, asked).expect("the trial needs a guest kernel");
    let (folder, binary) = (program.work(), program.binary().display().to_string());
    let init = format!(
        "#!/bin/sh\nFOLDER={}\nfullpipe={binary}\n{SYSTEM}{script}\nsync\n",
        folder.display()
    );
    program.file("init.sh", init);
    let mut command = Command::new(&kernel.path);
    let words = [
        "mem=1024M",
        "rootfstype=hostfs",
        "rootflags=/",
        "ro",
        "quiet",
        "root=98:0",
        "console=tty0",
        "ssl=null",
    ];
    command.env_clear().args(words).arg("init=/bin/sh").current_dir(&folder);
    command.args(["con=null", "con0=null,fd:1", "uml_dir=./", "umid=guest", "norandmaps"]);
    command.args((time == Time::Virtual).then_some("time-travel=inf-cpu"));
    // The end of the first process is a panic, and a panic the end of the guest.
    command.args(["panic=-1", "--"]).arg(folder.join("init.sh")).stdin(std::process::Stdio::null());
    let ended = program.start(&mut command).end_beside(Some(&folder.join("out")));
    assert!(ended.took < Duration::from_secs(120), "{ended:?}");
    std::fs::read_to_string(folder.join("out"))
        .unwrap_or_else(|error| panic!("no output: {error}; {ended:?}"))
}
