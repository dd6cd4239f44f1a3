//! Reads files that a user names in a scenario or in the options of a link, but only regular files
//! up to a given size. A device such as `/dev/zero` has no end, and a FIFO may never deliver a
//! byte.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// Enough for 10 million lines of a mahimahi trace, the bound in `model`, in most cases.
pub const DATA_MAX: u64 = 64 << 20;

/// Reads a regular file of at most `max` bytes.
///
/// # Errors
/// The system's error, or `InvalidInput` if it is not a regular file or is larger.
pub fn read(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    // Checked before opening, because opening a FIFO waits for its writer.
    if !fs::metadata(path)?.is_file() {
        return Err(refused("it is no regular file; copy it into one first"));
    }
    let mut bytes = Vec::new();
    // A file that grows meanwhile, or that reports no size (as in /proc), is bounded too.
    File::open(path)?.take(max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max {
        return Err(refused(&format!("it is larger than {max} B, which is the most that is read")));
    }
    Ok(bytes)
}

fn refused(problem: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_regular_file_within_its_bound_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("trace");
        fs::write(&file, b"0123456789").unwrap();
        assert_eq!(read(&file, 10).unwrap(), b"0123456789");
        assert!(read(&file, 9).unwrap_err().to_string().contains("larger than 9 B"));
        let fifo = folder.path().join("fifo");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
        assert!(made.success(), "mkfifo of coreutils");
        for endless in [Path::new("/dev/zero"), &fifo, folder.path()] {
            let error = read(endless, 10).unwrap_err();
            assert!(
                error.to_string().contains("no regular file"),
                "{}: {error}",
                endless.display()
            );
        }
    }
}
