//! The source of a capture's bytes.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A function that opens files.
pub type Open = Arc<dyn Fn(&Path) -> std::io::Result<Box<dyn Read + Send>> + Send + Sync>;

/// The source of bytes.
pub enum Origin {
    File(PathBuf),
    /// With its name for messages.
    Reader(String, Box<dyn Read + Send>),
}

impl Origin {
    /// Its name in messages.
    pub fn name(&self) -> String {
        match self {
            Origin::File(path) => path.display().to_string(),
            Origin::Reader(name, _) => name.clone(),
        }
    }
}

/// Opens files normally.
pub fn opener() -> Open {
    Arc::new(|path| {
        let file = std::fs::File::open(path)?;
        // Otherwise its first read would fail, without the file's name.
        if file.metadata()?.is_dir() {
            return Err(std::io::ErrorKind::IsADirectory.into());
        }
        Ok(Box::new(file))
    })
}
