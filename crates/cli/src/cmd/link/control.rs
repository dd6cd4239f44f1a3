//! Control of a running link through a Unix socket: one JSON line in each direction, then the
//! connection closes.
//!
//! The socket is `link-NAME.sock` in the user's directory of journals, which nobody else may enter:
//! only those who may signal the process anyway may connect. A request is `"status"`, `"detach"` or
//! `{"set": WORDS}`; an answer is `{"status": ..}`, `"done"` or
//! `{"error": {"code": 4, "message": ".."}}`, where the code is the exit code of the requesting
//! command.

use super::shared::{Shared, Status};
use crate::cmd::control::{self, Answers, Then};
use crate::failure::{Failure, Kind};
use crate::sentence::Sentence;
use fullpipe_kernel::run::journal;
use fullpipe_kernel::run::names::{NamedSocket, Sockets};
use fullpipe_kernel::run::sandbox::Interrupt;
pub use fullpipe_link::Request;
use serde::{Deserialize, Serialize};
use std::io::{BufReader, ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const PREFIX: &str = "link-";
const SUFFIX: &str = ".sock";
/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ControlAnswer {
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
            let what = format!("make control socket {shown}");
            Failure::new(
                Kind::Run,
                Sentence::new(what, format!("创建控制套接字 {shown}")).with(error),
            )
        })?;
        made.map(ControlSocket).ok_or_else(|| {
            let message = Sentence::new(
                format!("start link {name}: a link of this name runs; choose another with --name"),
                format!("启动链路 {name}：同名的链路正在运行；请用 --name 换一个"),
            );
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
        let wrong = |error: std::io::Error| {
            let what = Sentence::new("serve control socket", "提供控制套接字");
            Failure::new(Kind::Run, what.with(error))
        };
        let listener = self.0.listener().try_clone().map_err(wrong)?;
        control::serve(listener, Controlled { link, detach }).map_err(wrong)
    }
}

/// A link that can be asked.
struct Controlled {
    link: Arc<Shared>,
    /// Ends the link; `None` refuses that.
    detach: Option<Interrupt>,
}

impl Controlled {
    fn done(&self, request: &[u8]) -> Result<(ControlAnswer, Then), Failure> {
        let link = &self.link;
        match Request::parse(request)
            .map_err(|error| Failure::new(Kind::Usage, Sentence::as_is(error)))?
        {
            Request::Status => {
                link.status().map(|status| (ControlAnswer::Status(Box::new(status)), Then::Close))
            }
            Request::Set(words) => link.set(&words).map(|()| (ControlAnswer::Done, Then::Close)),
            Request::Detach => {
                let detach = self.detach.clone().ok_or_else(|| {
                    let why = "detach link: it belongs to a command, and ends with the command";
                    Failure::new(
                        Kind::Usage,
                        Sentence::new(why, "卸下链路：它属于一个命令，随命令结束"),
                    )
                })?;
                Ok((ControlAnswer::Done, Then::End(Box::new(move || detach.set()))))
            }
        }
    }
}

impl Answers for Controlled {
    type Answer = ControlAnswer;
    const SUBJECT: &str = "link";

    fn answer(&self, request: &[u8]) -> (ControlAnswer, Then) {
        self.done(request).unwrap_or_else(|failure| (self.refusal(&failure), Then::Close))
    }

    fn refusal(&self, failure: &Failure) -> ControlAnswer {
        ControlAnswer::Error { code: failure.exit_code(), message: failure.message().to_string() }
    }
}

/// Sends a request to the link `name`.
pub fn ask(name: &str, request: &Request) -> Result<ControlAnswer, Failure> {
    exchange(name, request).map(|(answer, _)| answer)
}

/// Asks the link `name` to end, and waits until its process has ended.
pub fn ask_until_gone(name: &str, request: &Request) -> Result<(), Failure> {
    let (_, mut connection) = exchange(name, request)?;
    let ended = connection.read_to_end(&mut Vec::new());
    ended.map(drop).map_err(|error| {
        let what = format!("wait for the end of link {name}");
        Failure::new(Kind::Run, Sentence::new(what, format!("等待链路 {name} 结束")).with(error))
    })
}

fn exchange(
    name: &str,
    request: &Request,
) -> Result<(ControlAnswer, BufReader<UnixStream>), Failure> {
    let path = socket(name)?;
    let (answer, connection) =
        control::ask(&path, request).map_err(|error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => Failure::new(
                Kind::Usage,
                Sentence::new(
                    format!(
                        "ask link {name}: no such link runs; `fullpipe link list` names those that do"
                    ),
                    format!("询问链路 {name}：没有这条链路在运行；`fullpipe link list` 列出正在运行的"),
                ),
            ),
            _ => {
                let what = Sentence::new(format!("ask link {name}"), format!("询问链路 {name}"));
                Failure::new(Kind::Run, what.with(error))
            }
        })?;
    match answer {
        ControlAnswer::Error { code, message } => {
            Err(Failure::with_code(code, Sentence::as_is(message)))
        }
        answer => Ok((answer, connection)),
    }
}

/// The path of the socket of link `name`.
fn socket(name: &str) -> Result<PathBuf, Failure> {
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.@".contains(c));
    if name.is_empty() || name.len() > 40 || !is_plain || name.starts_with('.') {
        let message = Sentence::new(
            format!("name link '{name}': use at most 40 letters, digits, '-', '_', '.', '@'"),
            format!("链路名 '{name}'：最多 40 个字母、数字、'-'、'_'、'.'、'@'"),
        );
        return Err(Failure::new(Kind::Usage, message));
    }
    let directory = journal::own_directory().map_err(|error| Failure::new(Kind::Run, &error))?;
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
    let found = Sockets::named(PREFIX, SUFFIX).map_err(|error| Failure::new(Kind::Run, &error))?;
    let [answered, removed] = [found.answered, found.removed]
        .map(|paths| paths.iter().filter_map(|path| name_of(path)).collect());
    Ok((answered, removed))
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
            Sentence::new(
                "find link: none runs; start one with `fullpipe link .. -- CMD`",
                "查找链路：没有正在运行的；请用 `fullpipe link .. -- CMD` 启动一条",
            ),
        )),
        (Some(last), _) => {
            let names = names.join(", ");
            Err(Failure::new(
                Kind::Usage,
                Sentence::new(
                    format!("find link: {names} and {last} run; say which with --link"),
                    format!("查找链路：{names} 和 {last} 都在运行；请用 --link 说明是哪一条"),
                ),
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
