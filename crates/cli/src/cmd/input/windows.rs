//! A user's own table of windows above TCP.

use crate::sentence::Sentence;
use fullpipe_flow::OwnWindows;
use std::path::Path;

/// A longer file is another one.
const LONGEST: u64 = 1 << 20;

/// Reads the file that --windows names.
///
/// # Errors
/// It cannot be read, or an entry of it cannot be understood.
pub fn read(file: &str) -> Result<OwnWindows, Sentence> {
    let text = super::text_of(Path::new(file), LONGEST).map_err(|cause| {
        Sentence::new(
            format!("read {file}: {cause}; it is a TOML file with [[window]] entries"),
            format!("读取 {file}：{cause}；它应是含 [[window]] 条目的 TOML 文件"),
        )
    })?;
    OwnWindows::parse(&text).map_err(|error| Sentence::from(&error).of(file))
}
