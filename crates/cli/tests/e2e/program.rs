//! Starts the program as a user, in a separate folder, and waits for its end.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use fullpipe_kernel::host::clock;
use fullpipe_model::units::Duration;
use serde_json::Value;
use tempfile::TempDir;

/// The environment variable that marks a trial's processes and their children.
pub const MARK: &str = "FULLPIPE_TEST_RUN";

/// When a trial gives up on a run. In virtual time a busy machine may need long.
const LIMIT: Duration = Duration::from_secs(300);
/// A trial that waits says for what, each time that so long has passed.
const TOLD_EVERY: Duration = Duration::from_secs(60);
/// Of what a program has printed so far, for whoever waits for its end.
const LAST_LINES: usize = 5;

/// Who runs the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    /// Whoever runs the tests.
    Own,
    /// User 1000, by way of root's setpriv; the same as the other where the tests are not run by
    /// root.
    Ordinary,
}

/// The program with a folder to work in, a folder for its temporary files, and a mark on its
/// processes.
pub struct Program {
    user: User,
    place: TempDir,
    mark: String,
    binary: PathBuf,
}

/// How a run ended.
pub struct Finished {
    /// `None`: by a signal.
    pub code: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
    /// From its start.
    pub took: Duration,
}

impl fmt::Debug for Finished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "exit {:?} after {}\nstdout: {}\nstderr: {}",
            self.code, self.took, self.out, self.err
        )
    }
}

impl Program {
    /// As whoever runs the tests.
    pub fn new() -> Program {
        Program::of(User::Own)
    }

    /// As `user`.
    pub fn of(user: User) -> Program {
        let user = if nix::unistd::geteuid().is_root() { user } else { User::Own };
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let mark = format!("e2e-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let place = tempfile::Builder::new().prefix("fullpipe-e2e-").tempdir().unwrap();
        let mut binary = PathBuf::from(env!("CARGO_BIN_EXE_fullpipe"));
        for folder in ["work", "tmp"] {
            fs::create_dir(place.path().join(folder)).unwrap();
        }
        if user == User::Ordinary {
            // The target directory may be where that user cannot look. Another process copies: what
            // a neighbouring trial starts here meanwhile would have the copy open for writing, and
            // nobody could run it.
            let copy = place.path().join("fullpipe");
            let copied = Command::new("cp").args([&binary, &copy]).status().unwrap();
            assert!(copied.success(), "copy {}: {copied}", binary.display());
            binary = copy;
            for folder in ["", "work", "tmp"] {
                std::os::unix::fs::chown(place.path().join(folder), Some(1000), Some(1000))
                    .unwrap();
            }
        }
        Program { user, place, mark, binary }
    }

    /// Where it works: results by relative names are there.
    pub fn work(&self) -> PathBuf {
        self.place.path().join("work")
    }

    /// Where its temporary files are.
    pub fn tmp(&self) -> PathBuf {
        self.place.path().join("tmp")
    }

    /// The program's file.
    pub fn binary(&self) -> &Path {
        &self.binary
    }

    /// The value of [`MARK`] on its processes.
    pub fn mark(&self) -> &str {
        &self.mark
    }

    /// A command that is not started yet.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let binary = self.binary.to_str().unwrap().to_string();
        self.command_by(&[&[binary.as_str()], arguments].concat())
    }

    /// Any other command as the same user at the same place.
    pub fn command_by(&self, words: &[&str]) -> Command {
        let setpriv: &[&str] = match self.user {
            User::Own => &[],
            User::Ordinary => &["setpriv", "--reuid=1000", "--regid=1000", "--clear-groups", "--"],
        };
        // Whoever runs the tests in the background of a script, or by nohup, has them ignore
        // signals, and the program would honour that.
        let words =
            [&["/usr/bin/env", "--default-signal=HUP,INT,QUIT,TERM"], setpriv, words].concat();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).current_dir(self.work()).stdin(Stdio::null());
        command
            .env("TMPDIR", self.tmp())
            .env(MARK, &self.mark)
            .env("LC_ALL", "C")
            .env_remove("XDG_RUNTIME_DIR");
        command
    }

    /// Writes a file where the program works and returns its name.
    pub fn file<'a>(&self, name: &'a str, text: impl AsRef<[u8]>) -> &'a str {
        fs::write(self.work().join(name), text).unwrap();
        name
    }

    /// Runs to the end.
    pub fn run(&self, arguments: &[&str]) -> Finished {
        self.start(&mut self.command(arguments)).end()
    }

    /// Starts `command` with its output kept.
    pub fn start(&self, command: &mut Command) -> Running {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        // Files, not pipes: nobody has to read them while the run goes on.
        let [out, err] =
            ["out", "err"].map(|name| self.place.path().join(format!("{number}.{name}")));
        command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
        let words: Vec<_> =
            command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        Running {
            started: clock::now(),
            child: command.spawn().unwrap(),
            words: words.join(" "),
            out,
            err,
        }
    }

    /// Runs scenarios with `--json` and gives their rows, none of them from the cache; anything but
    /// success is a failure.
    pub fn rows(&self, arguments: &[&str]) -> Vec<Row> {
        let finished = self.run(&[&["lab", "run", "--json", "--no-cache"], arguments].concat());
        assert_eq!(finished.code, Some(0), "{finished:?}");
        let mut document = finished.json();
        let rows = document["rows"].take();
        let Value::Array(rows) = rows else { panic!("no rows in {finished:?}") };
        let rows: Vec<Row> = rows.into_iter().map(Row).collect();
        rows.iter().for_each(crate::noise::look_at);
        rows
    }

    /// What is left in the folder of temporary files.
    pub fn scratch(&self) -> Vec<PathBuf> {
        fs::read_dir(self.tmp()).unwrap().map(|entry| entry.unwrap().path()).collect()
    }
}

impl Finished {
    /// Standard output as one JSON document; nothing may stand beside it.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out)
            .unwrap_or_else(|error| panic!("not one JSON document: {error}: {self:?}"))
    }
}

/// A started program, killed when a trial fails before its end.
pub struct Running {
    started: fullpipe_model::units::Instant,
    child: Child,
    /// What it was started with, for messages.
    words: String,
    out: PathBuf,
    err: PathBuf,
}

impl Running {
    /// Its process: the supervisor of a run.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The pipe that it reads, where it was started with one.
    pub fn stdin(&mut self) -> std::process::ChildStdin {
        self.child.stdin.take().expect("started with a pipe")
    }

    /// What it has printed so far.
    pub fn out(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.out).unwrap()).into_owned()
    }

    /// What it has said so far on standard error.
    pub fn err(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.err).unwrap()).into_owned()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: nix::sys::signal::Signal) {
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    /// Kills it, or does nothing where it has ended: the number may be another process's by then.
    /// When this returns, its sockets are closed, and its addresses are free.
    pub fn kill_9(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for its end.
    pub fn end(self) -> Finished {
        self.end_beside(None)
    }

    /// The same for a program that also prints into the file `beside`, of which whoever waits wants
    /// to know.
    pub fn end_beside(mut self, beside: Option<&Path>) -> Finished {
        let mut status: Option<ExitStatus> = None;
        let what = format!("the program ends: {}", self.words);
        let files: Vec<PathBuf> = [Some(self.out.as_path()), Some(self.err.as_path()), beside]
            .into_iter()
            .flatten()
            .map(Path::to_path_buf)
            .collect();
        let printed = || files.iter().map(|file| last_lines(file)).collect();
        until_told(&what, LIMIT, printed, || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        let read = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
        Finished {
            code: status.unwrap().code(),
            out: read(&self.out),
            err: read(&self.err),
            took: clock::now().since(self.started),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Checks `condition` repeatedly until it holds, for at most `limit`. The pause between checks
/// leaves the CPU to the run; no result depends on its length.
pub fn until(what: &str, limit: Duration, condition: impl FnMut() -> bool) {
    until_told(what, limit, String::new, condition);
}

/// The same with more to say than for what is waited: `state` is asked when a minute has passed,
/// and at the limit.
pub fn until_told(
    what: &str,
    limit: Duration,
    state: impl Fn() -> String,
    mut condition: impl FnMut() -> bool,
) {
    let start = clock::now();
    let mut told = start;
    while !condition() {
        let now = clock::now();
        assert!(now < start + limit, "waited {limit} until {what}\n{}", state());
        if now.since(told) >= TOLD_EVERY {
            told = now;
            eprintln!("still waiting, for {}, until {what}\n{}", now.since(start), state());
        }
        std::thread::park_timeout(Duration::from_millis(5).into());
    }
}

/// The end of a file that is being written, each line by its file's name.
fn last_lines(file: &Path) -> String {
    let text = fs::read(file)
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default();
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let lines: Vec<&str> = text.lines().collect();
    let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
    last.iter().map(|line| format!("  {name}: {line}\n")).collect()
}

/// A scenario over a path of this rate and RTT: its transfer, then the cases or the matrix of it.
pub fn scenario(name: &str, [rate, rtt]: [&str; 2], transfer: &str, rest: &str) -> String {
    format!(
        "name = \"{name}\"\n[link]\nrate = \"{rate}\"\nrtt = \"{rtt}\"\n[transfer]\n{transfer}\n{rest}"
    )
}

/// One row of `lab run --json`.
#[derive(Debug, Clone)]
pub struct Row(pub Value);

impl Row {
    /// A number.
    pub fn number(&self, key: &str) -> f64 {
        self.0[key].as_f64().unwrap_or_else(|| panic!("{key} is no number in {:#}", self.0))
    }

    /// A text.
    pub fn text(&self, key: &str) -> &str {
        self.0[key].as_str().unwrap_or_else(|| panic!("{key} is no text in {:#}", self.0))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.text("name")
    }

    /// Whether the machine let the link keep its times.
    pub fn quiet(&self) -> bool {
        self.0["quiet"].as_bool().unwrap()
    }

    /// What a reader must know.
    pub fn notes(&self) -> Vec<&str> {
        self.0["notes"].as_array().unwrap().iter().map(|note| note.as_str().unwrap()).collect()
    }
}

/// The one row whose name ends with `/case`.
pub fn row<'a>(rows: &'a [Row], case: &str) -> &'a Row {
    let ending = format!("/{case}");
    let found: Vec<_> = rows.iter().filter(|row| row.name().ends_with(&ending)).collect();
    assert_eq!(found.len(), 1, "rows that end with {ending}");
    found[0]
}

/// The folder of a row's results.
pub fn result_folder(results: &Path, row: &Row) -> PathBuf {
    let ending = format!("-{}", row.name().replace('/', "-"));
    let mut folders = fs::read_dir(results).unwrap().map(|entry| entry.unwrap().path());
    folders.find(|path| path.to_str().unwrap().ends_with(&ending)).expect("the row has a folder")
}

/// A file of a run's results.
pub fn result_file(results: &Path, row: &Row, name: &str) -> Value {
    serde_json::from_slice(&fs::read(result_folder(results, row).join(name)).unwrap()).unwrap()
}

/// The files of two runs' results, which must be the same byte for byte.
pub fn same_files(results: [&Path; 2]) -> BTreeMap<PathBuf, Vec<u8>> {
    let [first, second] = results.map(files);
    assert_eq!(first.keys().collect::<Vec<_>>(), second.keys().collect::<Vec<_>>());
    for (path, bytes) in &first {
        let differs = bytes.iter().zip(&second[path]).position(|(a, b)| a != b);
        assert!(
            *bytes == second[path],
            "{}: differs at byte {differs:?} or in length",
            path.display()
        );
    }
    first
}

/// Every file of every run by its name within the results; not what describes the machine.
pub fn files(results: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for folder in fs::read_dir(results)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
    {
        for file in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            files.insert(file.strip_prefix(results).unwrap().into(), fs::read(&file).unwrap());
        }
    }
    files
}
