//! A user's own table of windows above TCP.

use crate::sentence::Sentence;
use fullpipe_flow::OwnWindows;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A longer file is another one.
const LONGEST: u64 = 1 << 20;

/// Reads the file that --windows names.
///
/// # Errors
/// It cannot be read, or an entry of it cannot be understood.
pub fn read(file: &str) -> Result<OwnWindows, Sentence> {
    let text = text_of(Path::new(file)).map_err(|cause| {
        Sentence::new(
            format!("read {file}: {cause}; it is a TOML file with [[window]] entries"),
            format!("读取 {file}：{cause}；它应是含 [[window]] 条目的 TOML 文件"),
        )
    })?;
    OwnWindows::parse(&text).map_err(|error| Sentence::from(&error).of(file))
}

fn text_of(file: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    File::open(file)?.take(LONGEST + 1).read_to_string(&mut text)?;
    if text.len() as u64 > LONGEST {
        let problem = format!("more than {} MiB", LONGEST >> 20);
        return Err(std::io::Error::other(problem));
    }
    Ok(text)
}
