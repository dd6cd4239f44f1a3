//! Where the bytes of a capture come from.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How files are opened.
pub type Open = Arc<dyn Fn(&Path) -> std::io::Result<Box<dyn Read + Send>> + Send + Sync>;

/// Where bytes come from.
pub enum Origin {
    File(PathBuf),
    /// With its name in messages.
    Reader(String, Box<dyn Read + Send>),
}

impl Origin {
    /// In messages.
    pub fn name(&self) -> String {
        match self {
            Origin::File(path) => path.display().to_string(),
            Origin::Reader(name, _) => name.clone(),
        }
    }
}

/// Opens files as they are.
pub fn opener() -> Open {
    Arc::new(|path| {
        let file = std::fs::File::open(path)?;
        // Otherwise its first read would fail, without its name.
        if file.metadata()?.is_dir() {
            return Err(std::io::ErrorKind::IsADirectory.into());
        }
        Ok(Box::new(file))
    })
}
