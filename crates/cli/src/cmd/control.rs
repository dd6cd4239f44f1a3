//! Running commands that can be asked: one JSON line in each direction over a Unix socket, then the
//! connection closes.
//!
//! Each client is answered on a thread of its own and has a moment for its request, so one that
//! connects and says nothing, or says it a byte at a time, keeps nobody else waiting.

use crate::failure::{Failure, Kind};
use crate::sentence::Sentence;
use fullpipe_kernel::host::clock;
use fullpipe_model::units;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Longer than any real request, and small enough to buffer.
const REQUEST_MAX: usize = 256 << 10;
/// Longer than any answer.
const ANSWER_MAX: u64 = 32 << 20;
/// Both sides are on this machine, so a side that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(10);
/// A client writes its request at once; its end is waited for this long.
const REQUEST_WITHIN: Duration = Duration::from_secs(2);
/// Requests served at the same time; each has a thread.
const REQUESTS_MAX: usize = 32;

/// What follows an answer.
pub enum Then {
    /// The connection closes.
    Close,
    /// This ends the process. The connection stays open, so that the client sees it end when the
    /// process has ended.
    End(Box<dyn FnOnce() + Send>),
}

/// How requests are answered.
pub trait Answers: Send + Sync + 'static {
    /// What is told.
    type Answer: Serialize;
    /// Who is asked, for a message.
    const SUBJECT: &str;
    /// The answer to a request: its line, without the end.
    fn answer(&self, request: &[u8]) -> (Self::Answer, Then);
    /// What is told in place of an answer.
    fn refusal(&self, failure: &Failure) -> Self::Answer;
}

/// Answers who connects, on a thread, for as long as the process lives.
///
/// # Errors
/// No thread can be started.
pub fn serve(listener: UnixListener, answers: impl Answers) -> io::Result<()> {
    let answers = Arc::new(answers);
    let thread = std::thread::Builder::new().name("control".into());
    let started = thread.spawn(move || {
        let asking = Arc::new(AtomicUsize::new(0));
        for stream in listener.incoming().flatten() {
            answer_on_thread(stream, &answers, &asking);
        }
    });
    started.map(drop)
}

fn answer_on_thread<A: Answers>(stream: UnixStream, answers: &Arc<A>, asking: &Arc<AtomicUsize>) {
    if asking.load(Ordering::Relaxed) >= REQUESTS_MAX {
        // Whoever asks is told in English, as in all data.
        let busy = Sentence::as_is(format!(
            "ask {}: it serves {REQUESTS_MAX} other requests; try again in a moment",
            A::SUBJECT
        ));
        let busy = Failure::new(Kind::Run, busy);
        // The answer fits into the socket's buffer, so this does not block.
        let _ = write_line(&stream, &answers.refusal(&busy));
        return;
    }
    asking.fetch_add(1, Ordering::Relaxed);
    let (answers, count) = (Arc::clone(answers), Arc::clone(asking));
    let thread = std::thread::Builder::new().name("control".into());
    let started = thread.spawn(move || {
        // A client that went away needs no answer.
        let _ = answer(&stream, &*answers);
        count.fetch_sub(1, Ordering::Relaxed);
    });
    if started.is_err() {
        asking.fetch_sub(1, Ordering::Relaxed);
    }
}

fn answer(stream: &UnixStream, answers: &impl Answers) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let (answer, then) = answers.answer(&read_request(stream)?);
    match then {
        Then::Close => write_line(stream, &answer),
        Then::End(end) => {
            // Never closed, and told before the process ends.
            let told = write_line(stream, &answer);
            std::mem::forget(stream.try_clone()?);
            end();
            told
        }
    }
}

/// Reads one request line, within [`REQUEST_WITHIN`].
fn read_request(mut stream: &UnixStream) -> io::Result<Vec<u8>> {
    let deadline = clock::now() + REQUEST_WITHIN.into();
    let (mut line, mut part) = (Vec::new(), [0; 4096]);
    while !line.contains(&b'\n') && line.len() < REQUEST_MAX {
        let left = deadline.since(clock::now());
        if left == units::Duration::ZERO {
            return Err(io::ErrorKind::TimedOut.into());
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

fn write_line(mut stream: &UnixStream, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    stream.write_all(&line)
}

/// Asks whoever answers at `socket`: the answer, and the connection, which ends with the process if
/// that was asked for.
///
/// # Errors
/// Nobody is there, or what is told is no answer.
pub fn ask<A: DeserializeOwned>(
    socket: &Path,
    request: &impl Serialize,
) -> io::Result<(A, BufReader<UnixStream>)> {
    let stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let written = write_line(&stream, request);
    let mut line = Vec::new();
    let mut connection = BufReader::new(stream);
    (&mut connection).take(ANSWER_MAX).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        // One that is too busy answers before it has read the request.
        written?;
    }
    Ok((serde_json::from_slice(&line)?, connection))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Echo;

    impl Answers for Echo {
        type Answer = Result<String, String>;
        const SUBJECT: &str = "echo";
        fn answer(&self, request: &[u8]) -> (Self::Answer, Then) {
            (Ok(String::from_utf8_lossy(request).into_owned()), Then::Close)
        }
        fn refusal(&self, failure: &Failure) -> Self::Answer {
            Err(failure.message().to_string())
        }
    }

    fn ask_echo(path: &Path) -> Result<String, String> {
        ask::<Result<String, String>>(path, &"status").unwrap().0
    }

    #[test]
    fn who_says_nothing_keeps_nobody_waiting_and_too_many_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control.sock");
        serve(UnixListener::bind(&path).unwrap(), Echo).unwrap();
        let silent: Vec<UnixStream> =
            (0..REQUESTS_MAX - 1).map(|_| UnixStream::connect(&path).unwrap()).collect();
        assert_eq!(ask_echo(&path).unwrap(), "\"status\"");
        let last = UnixStream::connect(&path).unwrap();
        // Each of them is waited for, and nobody else is taken meanwhile.
        let refused = (0..1000).find_map(|_| ask_echo(&path).err()).unwrap();
        assert!(refused.starts_with("ask echo: it serves 32 other requests"), "{refused}");
        drop((silent, last));
    }
}
