//! Files that a person names in a scenario or in the words of a link: read whole, but only if they
//! are regular files and not larger than what they are for. A device such as `/dev/zero` has no
//! end, and a FIFO may never have a byte.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// No trace or table is larger: 10 million lines of a trace, which is its bound in `model`, mostly
/// fit.
pub const DATA_MAX: u64 = 64 << 20;

/// The bytes of a regular file of at most `max` bytes.
///
/// # Errors
/// What the system says, and `InvalidInput` for what is no regular file or is larger.
pub fn read(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let refused = |problem: String| io::Error::new(io::ErrorKind::InvalidInput, problem);
    // Before it is opened: to open a FIFO is to wait for its writer.
    if !fs::metadata(path)?.is_file() {
        return Err(refused("it is no regular file; copy it into one first".into()));
    }
    let mut bytes = Vec::new();
    // What grows meanwhile, or has no size of its own (as in /proc), ends at the bound too.
    File::open(path)?.take(max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max {
        return Err(refused(format!("it is larger than {max} B, which is the most that is read")));
    }
    Ok(bytes)
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
