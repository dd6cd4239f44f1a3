//! A release's life in bare systems: it is installed by their package manager, used and removed;
//! then nothing of it is left.
//!
//! Debian's root file systems come from its own packages, Alpine's from a package of PyPI's.
//! Rocky's is given by whoever has it (`--root`): the registries of this project's machines have
//! none. Without it Debian's dnf stands for it.

use super::super::tools::Tools;
use super::super::{Architecture, Release, fresh, output, run};
use super::closing::{ClosingLines, Unit};
use super::namespaces::{emulator, in_namespaces};
use super::{CAPTURE, alpine, answers, is_there, with_tool};
use anyhow::{Context, bail, ensure};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::str::FromStr;

/// What tells that the release is in a system, or is left there.
const OURS: [&str; 4] =
    ["usr/bin/fullpipe", "usr/local/bin/fullpipe", "usr/share/doc/fullpipe", "usr/share/fullpipe"];
/// From the package manager's start to the sentence about a capture, at most.
const FIRST_ANSWER: f64 = 60.0;

/// A root file system that the user has.
#[derive(Debug, Clone)]
pub struct Given {
    manager: Manager,
    file: PathBuf,
}

impl FromStr for Given {
    type Err = String;

    fn from_str(text: &str) -> Result<Given, String> {
        let (system, file) = text.split_once('=').unwrap_or((text, ""));
        let manager = match system {
            "alpine" => Manager::Script,
            "rocky" => Manager::Dnf,
            _ => return Err("give alpine=FILE or rocky=FILE".into()),
        };
        if file.is_empty() {
            return Err(format!("give {system}=FILE, its root file system as a tar"));
        }
        Ok(Given { manager, file: file.into() })
    }
}

/// What installs and removes there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manager {
    Apt,
    Dnf,
    /// install.sh.
    Script,
}

impl Manager {
    /// The release's file that it takes.
    fn file(self, release: &Release, target: Architecture) -> String {
        match self {
            Manager::Apt => format!("fullpipe_{}-1_{}.deb", release.version, target.debian()),
            Manager::Dnf => format!("fullpipe-{}-1.{}.rpm", release.version, target.name()),
            Manager::Script => "install.sh".into(),
        }
    }

    /// The commands that install `file`, of a release at `address`, and remove it, as the guide has
    /// them.
    fn commands(self, file: &str, address: &str) -> (String, &'static str) {
        match self {
            Manager::Apt => {
                (format!("apt-get install --yes ./{file}"), "apt-get purge --yes fullpipe")
            }
            Manager::Dnf => (format!("dnf install -y ./{file}"), "dnf remove -y fullpipe"),
            Manager::Script => (
                format!("wget -q {address}/{file} && sh {file} --from {address}"),
                "sh install.sh --remove && rm install.sh",
            ),
        }
    }
}

/// Where a system's files come from.
enum Root<'a> {
    /// Debian's release, with packages beside the least.
    Debian(&'static str, &'static str),
    /// Busybox and nothing else.
    Busybox,
    /// Alpine's, as PyPI has it.
    Alpine,
    /// What the user gave.
    Tar(&'a Path),
}

/// A bare system.
struct System<'a> {
    name: &'static str,
    architecture: Architecture,
    root: Root<'a>,
    manager: Manager,
}

/// Leads the release's life in every system that can be had.
pub fn check(
    release: &Release,
    tools: &Tools,
    out: &Path,
    given: &[Given],
    said: &mut ClosingLines,
) -> anyhow::Result<()> {
    for system in systems(given, said)? {
        match system.root {
            Root::Debian(..) => {
                with_tool("debootstrap", said, |said| system.check(release, tools, out, said))?;
            }
            Root::Alpine => with_alpine(&system, release, tools, out, said)?,
            Root::Busybox | Root::Tar(_) => system.check(release, tools, out, said)?,
        }
    }
    for architecture in Architecture::ALL.into_iter().filter(|one| !one.is_here()) {
        let (root, manager) = (Root::Debian("trixie", ""), Manager::Apt);
        let system = System { name: "debian-13-foreign", architecture, root, manager };
        with_tool("debootstrap", said, |said| {
            with_tool(&emulator(architecture), said, |said| system.check(release, tools, out, said))
        })?;
    }
    Ok(())
}

/// Those of this machine's architecture.
fn systems<'a>(given: &'a [Given], said: &mut ClosingLines) -> anyhow::Result<Vec<System<'a>>> {
    let architecture = Architecture::here()?;
    let mut all = vec![
        ("debian-12", Root::Debian("bookworm", ""), Manager::Apt),
        ("debian-13", Root::Debian("trixie", ""), Manager::Apt),
        ("busybox", Root::Busybox, Manager::Script),
    ];
    match given.iter().find(|given| given.manager == Manager::Script) {
        Some(given) => all.push(("alpine-given", Root::Tar(&given.file), Manager::Script)),
        None => all.push(("alpine", Root::Alpine, Manager::Script)),
    }
    match given.iter().find(|given| given.manager == Manager::Dnf) {
        Some(given) => all.push(("rocky-given", Root::Tar(&given.file), Manager::Dnf)),
        None => {
            said.missing(
                "real Rocky: the registries here have none, and Debian 13 with dnf stands for it; \
                 give its root file system: --root rocky=FILE",
            );
            all.push(("debian-13-with-dnf", Root::Debian("trixie", "dnf"), Manager::Dnf));
        }
    }
    let all = all.into_iter();
    Ok(all.map(|(name, root, manager)| System { name, architecture, root, manager }).collect())
}

/// In Alpine, if it can be had.
fn with_alpine(
    system: &System<'_>,
    release: &Release,
    tools: &Tools,
    out: &Path,
    said: &mut ClosingLines,
) -> anyhow::Result<()> {
    let made = alpine::READERS.iter().find(|(tool, _)| !is_there(tool)).map_or_else(
        || system.made(release, tools).map(drop),
        |(tool, package)| bail!("{tool} is missing: apt install {package}"),
    );
    let Err(problem) = made else {
        return system.check(release, tools, out, said);
    };
    let problem = format!(
        "real Alpine: {problem:#}; busybox stands for it; give its root file system: --root \
         alpine=FILE"
    );
    ensure!(std::env::var_os("FULLPIPE_NO_SKIP").is_none(), "{problem}");
    said.missing(problem);
    Ok(())
}

impl System<'_> {
    /// Installs, uses and removes.
    fn check(
        &self,
        release: &Release,
        tools: &Tools,
        out: &Path,
        said: &mut ClosingLines,
    ) -> anyhow::Result<()> {
        let file = self.manager.file(release, self.architecture);
        if !out.join(&file).exists() {
            said.missing(format!("{}: the release has no {file}", self.name));
            return Ok(());
        }
        let root = self.made(release, tools)?;
        let work = fresh(&root.join("tmp/work"))?;
        if self.manager != Manager::Script {
            std::fs::copy(out.join(&file), work.join(&file))
                .with_context(|| format!("copy {file} to {}", work.display()))?;
        }
        std::fs::copy(release.source.join(CAPTURE), work.join("capture"))?;
        let served = Served::start(out)?;
        let (install, remove) = self.manager.commands(&file, &served.address);
        let life = self.inside(LIFE, &root, &[("INSTALL", &install), ("REMOVE", remove)])?;
        self.judge(release, &life, said)
    }

    /// What the script of a life has said.
    fn judge(&self, release: &Release, life: &str, said: &mut ClosingLines) -> anyhow::Result<()> {
        let name = self.name;
        answers(life)?;
        ensure!(life.contains(&release.commit), "{name}: --version does not name the commit");
        let left: Vec<&str> = lines_of(life, "LEFT ").chain(lines_of(life, "FOLDER ")).collect();
        ensure!(left.is_empty(), "{name}: what was installed left {}", left.join(", "));
        let failed: Vec<&str> = lines_of(life, "FAILED ").collect();
        let is_here = self.architecture.is_here();
        ensure!(failed.is_empty() || !is_here, "{name}: {}", failed.join("; "));
        let took: Vec<f64> = lines_of(life, "TOOK ")
            .flat_map(|line| line.split(' '))
            .map(|time| time.parse().with_context(|| format!("read the time {time}")))
            .collect::<anyhow::Result<_>>()?;
        let &[began, answered] = took.as_slice() else { bail!("{name}: no times in {life}") };
        let first = answered - began;
        let what = format!("{name}: installed and first answer");
        if is_here {
            said.at_most(what, Unit::Seconds, first, FIRST_ANSWER)?;
        } else {
            said.missing(format!("{what}: the time: {first:.1} s by an emulator are no figure"));
        }
        let worked: Vec<&str> = lines_of(life, "WORKED ").collect();
        said.checked(format!(
            "{name} ({}): analyze, --version, {} work; removed, no file and no folder left",
            self.architecture.name(),
            worked.join(", ")
        ));
        for not in failed {
            said.missing(format!("{name}: the emulator does not carry {not}"));
        }
        Ok(())
    }

    /// Its root file system. One that was made before is bare again: what is installed is removed.
    fn made(&self, release: &Release, tools: &Tools) -> anyhow::Result<PathBuf> {
        let root = release.folder.join("roots").join(self.name);
        let made = root.with_extension("made");
        if let Root::Tar(file) = &self.root {
            fresh(&root)?;
            run(Command::new("tar").arg("-xf").arg(file).arg("-C").arg(&root))?;
            return Ok(root);
        }
        // A life that was cut short leaves what would pass for the system's own.
        let is_bare = OURS.iter().all(|ours| !root.join(ours).exists());
        if made.exists() && is_bare {
            return Ok(root);
        }
        fresh(&root)?;
        match self.root {
            Root::Debian(debian, with) => self.bootstrap(&root, debian, with)?,
            Root::Busybox => busybox(&root)?,
            Root::Alpine => alpine::lay_out(release, tools, &root)?,
            Root::Tar(_) => {}
        }
        std::fs::write(made, "").context("note that a root file system is whole")?;
        Ok(root)
    }

    fn bootstrap(&self, root: &Path, debian: &str, with: &str) -> anyhow::Result<()> {
        let mut debootstrap = Command::new("debootstrap");
        debootstrap.args(["--variant=minbase", "--arch", self.architecture.debian()]);
        if !with.is_empty() {
            debootstrap.arg(format!("--include={with}"));
        }
        if self.architecture.is_here() {
            run(debootstrap.arg(debian).arg(root))?;
            // Rocky's `filesystem` has it, and no package of Debian's.
            return std::fs::create_dir_all(root.join("usr/share/zsh/site-functions"))
                .context("make the folder of zsh's completions");
        }
        run(debootstrap.arg("--foreign").arg(debian).arg(root))?;
        self.inside(SECOND_STAGE, root, &[]).map(drop)
    }

    /// Runs a script with mounts and processes of its own, which end with it.
    fn inside(&self, script: &str, root: &Path, more: &[(&str, &str)]) -> anyhow::Result<String> {
        let root = root.display().to_string();
        let mut environment = vec![("ROOT", root.as_str())];
        if matches!(self.root, Root::Tar(_)) {
            environment.push(("NAMES", "yes"));
        }
        environment.extend(more);
        in_namespaces(&format!("{MOUNTS}{script}"), &environment, self.architecture)
            .with_context(|| format!("in {}", self.name))
    }
}

/// The lines that begin with `kind`, without it.
fn lines_of<'a>(said: &'a str, kind: &'a str) -> impl Iterator<Item = &'a str> {
    said.lines().filter_map(move |line| line.strip_prefix(kind))
}

/// A release's files at an address of this machine, until it is dropped.
struct Served {
    server: Child,
    address: String,
}

impl Served {
    fn start(out: &Path) -> anyhow::Result<Served> {
        let mut server = Command::new("python3")
            .args(["-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory"])
            .arg(out)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("start python3's web server")?;
        let said = server.stdout.take().context("no output of the web server")?;
        let mut served = Served { server, address: String::new() };
        let mut line = String::new();
        BufReader::new(said).read_line(&mut line).context("wait for the web server")?;
        let port = line.split_whitespace().skip_while(|&word| word != "port").nth(1);
        let port = port.with_context(|| format!("the web server says {line:?}"))?;
        served.address = format!("http://127.0.0.1:{port}");
        Ok(served)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to end.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Busybox's tools by all their names.
fn busybox(root: &Path) -> anyhow::Result<()> {
    let package = tempfile::tempdir().context("make a folder")?;
    let folder = package.path();
    output(Command::new("apt-get").args(["download", "busybox-static"]).current_dir(folder))?;
    let script = "dpkg-deb --extract \"$1\"/*.deb \"$1\" && \
        mkdir -p \"$2\"/bin \"$2\"/sbin \"$2\"/usr/bin \"$2\"/usr/sbin \"$2\"/dev \"$2\"/proc \
          \"$2\"/sys \"$2\"/run \"$2\"/tmp \"$2\"/root && \
        cp \"$(find \"$1\" -type f -path '*/bin/busybox')\" \"$2\"/bin/busybox && \
        chroot \"$2\" /bin/busybox --install -s";
    run(Command::new("sh").args(["-ec", script, "sh"]).arg(folder).arg(root))
}

/// A given system asks its own servers, as `dnf` does: it needs this machine's way to find names.
const MOUNTS: &str = r#"
mkdir -p "$ROOT/dev" "$ROOT/sys" "$ROOT/proc"
if [ -n "${NAMES:-}" ]; then
  : >>"$ROOT/etc/resolv.conf"
  mount --bind /etc/resolv.conf "$ROOT/etc/resolv.conf"
fi
mount --rbind /dev "$ROOT/dev"
mount --rbind /sys "$ROOT/sys"
mount -t proc proc "$ROOT/proc"
"#;

/// What debootstrap leaves to the foreign machine. In a user namespace no device can be made, and
/// none is needed: debootstrap knows that of lxc's.
const SECOND_STAGE: &str = r#"
container=lxc chroot "$ROOT" /debootstrap/debootstrap --second-stage >&2
"#;

/// A release's life, as a user leads it. Packages' managers keep their books below /var; what
/// programs keep while the machine runs is below /run, and ends with it.
const LIFE: &str = r#"
inside() { timeout 300 chroot "$ROOT" "$@"; }
at_work() { inside sh -ec "cd /tmp/work; $1"; }
# Without the folders below /usr/local, which are the machine's own.
listing() {
  (cd "$ROOT" && find . -xdev \( -path ./proc -o -path ./var -o -path ./run \) -prune -o \
    -type d -path './usr/local*' -o -type d -printf 'FOLDER %p\n' -o -printf 'LEFT %p\n' | sort)
}
# step MOST NAME COMMAND..: a code of up to MOST is an answer.
step() {
  most=$1 name=$2 code=0
  shift 2
  said=$(inside "$@" 2>&1 >/dev/null) || code=$?
  if [ "$code" -le "$most" ]; then echo "WORKED $name"; return; fi
  echo "FAILED $name: it ended with $code: $(echo "$said" | tail -n 1)"
}
books=$(mktemp -d)
trap 'rm -rf "$books"' EXIT
listing >"$books/before"
read -r began _ </proc/uptime
at_work "$INSTALL" >&2
inside fullpipe analyze --jsonl /tmp/work/capture
read -r answered _ </proc/uptime
echo "TOOK $began $answered"
inside fullpipe --version
step 0 calc fullpipe calc --rate 1gbit --rtt 100ms
step 1 doctor fullpipe doctor
step 1 why fullpipe why --for 1s
step 0 "lab run quick" fullpipe lab run quick --output /tmp/work/results
rm -rf "$ROOT/tmp/work/results" "$ROOT/root/.cache"
at_work "$REMOVE" >&2
listing >"$books/after"
comm -13 "$books/before" "$books/after"
"#;
