//! A key log of TLS connections.

use crate::sentence::Sentence;
use fullpipe_flow::KeyLog;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A longer file is another one: as many connections as are kept have a sixth of it.
const LONGEST: u64 = 256 << 20;

/// Reads the file that --keys names.
///
/// # Errors
/// It cannot be read, or has no secret in it.
pub fn read(file: &str) -> Result<KeyLog, Sentence> {
    let log = log_of(Path::new(file)).map_err(|cause| {
        Sentence::new(
            format!(
                "read {file}: {cause}; it is the file that a program writes where the environment \
                 variable SSLKEYLOGFILE names one"
            ),
            format!("读取 {file}：{cause}；它应是程序按环境变量 SSLKEYLOGFILE 所写的文件"),
        )
    })?;
    KeyLog::parse(&log).map_err(|error| Sentence::from(&error).of(file))
}

fn log_of(file: &Path) -> std::io::Result<Vec<u8>> {
    let mut log = Vec::new();
    File::open(file)?.take(LONGEST + 1).read_to_end(&mut log)?;
    if log.len() as u64 > LONGEST {
        return Err(std::io::Error::other(format!("more than {} MiB", LONGEST >> 20)));
    }
    Ok(log)
}
