//! Control of a running link through a Unix socket: one JSON line in each direction, then the
//! connection closes.
//!
//! The socket is `link-NAME.sock` in the user's directory of journals, which nobody else may enter:
//! only those who may signal the process anyway may connect. A request is `"status"`, `"detach"` or
//! `{"set": WORDS}`; an answer is `{"status": ..}`, `"done"` or
//! `{"error": {"code": 4, "message": ".."}}`, where the code is the exit code of the requesting
//! command.

use super::shared::{Shared, Status};
use crate::failure::{Failure, Kind};
use fullpipe_kernel::names::{NamedSocket, Sockets};
use fullpipe_kernel::sandbox::Interrupt;
use fullpipe_kernel::{clock, journal};
pub use fullpipe_link::Request;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const PREFIX: &str = "link-";
const SUFFIX: &str = ".sock";
/// Longer than any real request, and small enough to buffer.
const LINE_MAX: u64 = 256 << 10;
/// Both sides are on this machine, so a side that takes longer hangs.
const TIMEOUT: Duration = Duration::from_secs(10);
/// A client writes its request at once; the link waits this long for the end of it.
const REQUEST_WITHIN: Duration = Duration::from_secs(2);
/// Requests served at the same time; each has a thread.
const REQUESTS_MAX: usize = 32;

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The state of the link.
    Status(Box<Status>),
    /// The request succeeded.
    Done,
    /// The request failed.
    Error {
        /// Exit code for the requesting command.
        code: u8,
        /// Why.
        message: String,
    },
}

/// The socket of a link that is about to run. Dropping this value removes the file.
#[derive(Debug)]
pub struct ControlSocket(NamedSocket);

impl ControlSocket {
    /// Makes the socket of link `name`; fails if a link of that name runs.
    pub fn open(name: &str) -> Result<ControlSocket, Failure> {
        let path = socket(name)?;
        let shown = path.display().to_string();
        let made = NamedSocket::bind(path).map_err(|error| {
            Failure::new(Kind::Run, format!("make control socket {shown}: {error}"))
        })?;
        made.map(ControlSocket).ok_or_else(|| {
            let message =
                format!("start link {name}: a link of this name runs; choose another with --name");
            Failure::new(Kind::Usage, message)
        })
    }

    /// The process that opened it.
    pub fn owner(&self) -> u32 {
        self.0.owner()
    }

    /// Serves requests about `link` on a thread for as long as the process lives. A detach request
    /// sets `detach`; `None` refuses such requests.
    pub fn serve(&self, link: Arc<Shared>, detach: Option<Interrupt>) -> Result<(), Failure> {
        let wrong = |error| Failure::new(Kind::Run, format!("serve control socket: {error}"));
        let listener = self.0.listener().try_clone().map_err(wrong)?;
        let work = move || {
            let asking = Arc::new(AtomicUsize::new(0));
            for stream in listener.incoming().flatten() {
                answer_on_thread(stream, &link, detach.as_ref(), &asking);
            }
        };
        std::thread::Builder::new().name("control".into()).spawn(work).map(drop).map_err(wrong)
    }
}

/// Answers on a separate thread, because a client that connects and says nothing must not block the
/// others.
fn answer_on_thread(
    stream: UnixStream,
    link: &Arc<Shared>,
    detach: Option<&Interrupt>,
    asking: &Arc<AtomicUsize>,
) {
    if asking.load(Ordering::Relaxed) >= REQUESTS_MAX {
        let message = format!(
            "ask link: it serves {REQUESTS_MAX} other requests at the moment; try again in a moment"
        );
        // The answer fits into the socket's buffer, so this does not block.
        let _ = write_line(
            &stream,
            &Answer::Error { code: Failure::new(Kind::Run, "").exit_code(), message },
        );
        return;
    }
    asking.fetch_add(1, Ordering::Relaxed);
    let (link, detach, count) = (Arc::clone(link), detach.cloned(), Arc::clone(asking));
    let work = move || {
        // A client that went away needs no answer.
        let _ = answer(&stream, &link, detach.as_ref());
        count.fetch_sub(1, Ordering::Relaxed);
    };
    if std::thread::Builder::new().name("control".into()).spawn(work).is_err() {
        asking.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Reads one request line, within [`REQUEST_WITHIN`].
fn read_request(mut stream: &UnixStream) -> std::io::Result<Vec<u8>> {
    let deadline = clock::now() + REQUEST_WITHIN.into();
    let (mut line, mut part) = (Vec::new(), [0; 4096]);
    while !line.contains(&b'\n') && (line.len() as u64) < LINE_MAX {
        let left = deadline.since(clock::now());
        if left == fullpipe_model::units::Duration::ZERO {
            return Err(std::io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left.into()))?;
        match stream.read(&mut part)? {
            0 => break,
            length => line.extend_from_slice(&part[..length]),
        }
    }
    line.truncate(line.iter().position(|&byte| byte == b'\n').unwrap_or(line.len()));
    Ok(line)
}

fn answer(stream: &UnixStream, link: &Shared, detach: Option<&Interrupt>) -> std::io::Result<()> {
    stream.set_write_timeout(Some(TIMEOUT))?;
    let line = read_request(stream)?;
    let answer = match Request::parse(&line) {
        Ok(Request::Status) => link.status().map(|status| Answer::Status(Box::new(status))),
        Ok(Request::Set(words)) => link.set(&words).map(|()| Answer::Done),
        Ok(Request::Detach) => match detach {
            Some(detach) => {
                // Never closed, so the client sees the connection end when the process has ended.
                std::mem::forget(stream.try_clone()?);
                detach.set();
                Ok(Answer::Done)
            }
            None => Err(Failure::new(
                Kind::Usage,
                "detach link: it belongs to a command, and ends with the command",
            )),
        },
        Err(error) => Err(Failure::new(Kind::Usage, error)),
    };
    let answer = answer.unwrap_or_else(|failure| Answer::Error {
        code: failure.exit_code(),
        message: failure.message().into(),
    });
    write_line(stream, &answer)
}

fn write_line(mut stream: &UnixStream, value: &impl Serialize) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    stream.write_all(&line)
}

/// Sends a request to the link `name`.
pub fn ask(name: &str, request: &Request) -> Result<Answer, Failure> {
    exchange(name, request).map(|(answer, _)| answer)
}

/// Asks the link `name` to end, and waits until its process has ended.
pub fn ask_until_gone(name: &str, request: &Request) -> Result<(), Failure> {
    let (_, mut connection) = exchange(name, request)?;
    let ended = connection.read_to_end(&mut Vec::new());
    ended.map(drop).map_err(|error| {
        Failure::new(Kind::Run, format!("wait for the end of link {name}: {error}"))
    })
}

fn exchange(name: &str, request: &Request) -> Result<(Answer, BufReader<UnixStream>), Failure> {
    let path = socket(name)?;
    let wrong =
        |error: std::io::Error| Failure::new(Kind::Run, format!("ask link {name}: {error}"));
    let stream = UnixStream::connect(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound | std::io::ErrorKind::ConnectionRefused => Failure::new(
            Kind::Usage,
            format!("ask link {name}: no such link runs; `fullpipe link list` names those that do"),
        ),
        _ => wrong(error),
    })?;
    stream.set_read_timeout(Some(TIMEOUT)).map_err(wrong)?;
    let written = write_line(&stream, request);
    let mut line = Vec::new();
    let mut connection = BufReader::new(stream);
    connection.read_until(b'\n', &mut line).map_err(wrong)?;
    if line.is_empty() {
        // A link that is too busy answers before it has read the request.
        written.map_err(wrong)?;
    }
    match serde_json::from_slice(&line).map_err(|error| wrong(error.into()))? {
        Answer::Error { code, message } => Err(Failure::with_code(code, message)),
        answer => Ok((answer, connection)),
    }
}

/// The path of the socket of link `name`.
fn socket(name: &str) -> Result<PathBuf, Failure> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.@".contains(c);
    if name.is_empty() || name.len() > 40 || !name.chars().all(plain) || name.starts_with('.') {
        let message =
            format!("name link '{name}': use at most 40 letters, digits, '-', '_', '.', '@'");
        return Err(Failure::new(Kind::Usage, message));
    }
    let directory = journal::own_directory().map_err(|error| Failure::new(Kind::Run, error))?;
    Ok(directory.join(format!("{PREFIX}{name}{SUFFIX}")))
}

/// Names of this user's running links; removes the sockets of those that were killed.
pub fn names() -> Result<Vec<String>, Failure> {
    scan().map(|(alive, _)| alive)
}

/// Removes the sockets of killed links and returns their names.
pub fn clean() -> Result<Vec<String>, Failure> {
    scan().map(|(_, dead)| dead)
}

fn scan() -> Result<(Vec<String>, Vec<String>), Failure> {
    let found = Sockets::named(PREFIX, SUFFIX).map_err(|error| Failure::new(Kind::Run, error))?;
    let names = |paths: Vec<PathBuf>| paths.iter().filter_map(|path| name_of(path)).collect();
    Ok((names(found.answered), names(found.removed)))
}

fn name_of(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    Some(name.into())
}

/// The named link, or the only one.
pub fn the_link(name: Option<&str>) -> Result<String, Failure> {
    if let Some(name) = name {
        return Ok(name.into());
    }
    let mut names = names()?;
    match (names.pop(), names.len()) {
        (Some(name), 0) => Ok(name),
        (None, _) => Err(Failure::new(
            Kind::Usage,
            "find link: none runs; start one with `fullpipe link .. -- CMD`",
        )),
        (Some(last), _) => {
            let names = names.join(", ");
            Err(Failure::new(
                Kind::Usage,
                format!("find link: {names} and {last} run; say which with --link"),
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_no_path() {
        for name in ["", "../x", "a/b", ".hidden", "a b"] {
            assert_eq!(socket(name).unwrap_err().exit_code(), 2, "{name}");
        }
    }
}
