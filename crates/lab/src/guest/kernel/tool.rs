//! The programs that a build is made of, such as tar and make.

use super::error::BuildError;
use fullpipe_kernel::process::child::end_with_parent;
use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

/// Lines that an error shows of what a tool printed.
const TAIL: usize = 8;

/// Runs a tool to its end and shows `see` each line that it prints; the last ones are the error's.
pub(super) fn run(
    operation: &'static str,
    command: &mut Command,
    subject: &Path,
    see: &mut dyn FnMut(&str),
) -> Result<(), BuildError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let (reader, writer) =
        io::pipe().map_err(|cause| BuildError::file(operation, subject, cause))?;
    let errors = writer.try_clone().map_err(|cause| BuildError::file(operation, subject, cause))?;
    // Nobody is left with a compiler at work: make passes it on.
    end_with_parent(command);
    let spawned = command.stdin(Stdio::null()).stdout(writer).stderr(errors).spawn();
    // The command holds the pipe's other end, and would keep it open for ever.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child =
        spawned.map_err(|cause| BuildError::file(operation, Path::new(&program), cause))?;
    let tail = follow(reader, see);
    let status = child.wait().map_err(|cause| BuildError::file(operation, subject, cause))?;
    if status.success() {
        return Ok(());
    }
    Err(BuildError::Tool { operation, program, status: status.to_string(), output: tail })
}

fn follow(reader: impl Read, see: &mut dyn FnMut(&str)) -> String {
    let mut tail = VecDeque::with_capacity(TAIL);
    // Compilers quote what they do not like: that need not be UTF-8.
    for line in BufReader::new(reader).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line).into_owned();
        see(&line);
        if tail.len() == TAIL {
            tail.pop_front();
        }
        tail.push_back(line);
    }
    tail.make_contiguous().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_that_fails_is_quoted_and_one_that_works_is_followed() {
        let mut lines = Vec::new();
        let here = Path::new(".");
        let script = |text: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", text]);
            command
        };
        run("count", &mut script("seq 20"), here, &mut |line| lines.push(line.to_string()))
            .unwrap();
        assert_eq!((lines.len(), lines[19].as_str()), (20, "20"));
        let error = run("count", &mut script("seq 20 >&2; exit 7"), here, &mut |_| {})
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("exit status: 7") && error.ends_with("13\n14\n15\n16\n17\n18\n19\n20"),
            "{error}"
        );
        let error = run("count", &mut Command::new("no-such-tool"), here, &mut |_| {})
            .unwrap_err()
            .to_string();
        assert!(error.contains("no-such-tool"), "{error}");
    }
}
