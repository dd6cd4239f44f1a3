//! A file of prefixes with the sites behind them (--prefixes), for the names of peers.

use crate::sentence::Sentence;
use fullpipe_model::observe::Prefixes;
use std::path::Path;
use std::sync::Arc;

/// A longer file is another one: a full table of routes has a million lines.
const LONGEST: u64 = 256 << 20;

/// Reads the file that --prefixes names.
///
/// # Errors
/// It cannot be read, or a line of it cannot be understood.
pub fn read(file: &str) -> Result<Arc<Prefixes>, Sentence> {
    let text = super::input::text_of(Path::new(file), LONGEST).map_err(|cause| {
        Sentence::new(
            format!("read {file}: {cause}; it is a CSV file of prefix,site[,provider,region]"),
            format!("读取 {file}：{cause}；它应是 prefix,site[,provider,region] 的 CSV 文件"),
        )
    })?;
    let read = Prefixes::parse(&text).map_err(|error| Sentence::from(&error).of(file))?;
    Ok(Arc::new(read))
}
