//! A key log of TLS connections.

use crate::sentence::{Sentence, either};
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

/// That the keys of so many connections opened none of a capture.
pub fn none_opened(sessions: usize) -> String {
    either(
        format!(
            "the keys of {sessions} connections opened none of HTTP/2: they are of others, or the \
             capture begins behind the handshake, or has packets in part (capture with -s 0)"
        ),
        format!(
            "{sessions} 个连接的密钥没有打开任何 HTTP/2 连接：密钥属于别的连接，或抓包始于握手之后，\
             或数据包只抓了一部分（请用 -s 0 抓包）"
        ),
    )
}
