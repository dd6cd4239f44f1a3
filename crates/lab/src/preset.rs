//! The scenarios that come with the program, and how names and files become rows to run.

use fullpipe_model::scenario::{File, Override, Scenario, ScenarioError};
use std::path::Path;

/// A scenario that comes with the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// What to call it on the command line.
    pub name: &'static str,
    /// Its TOML.
    pub text: &'static str,
}

macro_rules! presets {
    ($($name:literal),* $(,)?) => {
        &[$(Preset { name: $name, text: include_str!(concat!("../../../scenarios/", $name, ".toml")) }),*]
    };
}

/// Every preset: the files of `scenarios/`.
pub const PRESETS: &[Preset] = presets![
    "quick",
    "articles/a1-rtt",
    "articles/a2-loss",
    "articles/a3-rmem-or-wmem",
    "articles/b-buffers",
    "articles/b-corrupt",
    "articles/b-duplicate",
    "articles/b-jitter",
    "articles/b-jitter-correlated",
    "articles/b-jitter-normal",
    "articles/b-loss",
    "articles/b-one-ip",
    "articles/b-one-port",
    "articles/b-reorder",
    "articles/b-reorder-gap",
    "articles/b0",
    "articles/b1",
    "articles/b2",
    "articles/b3",
    "articles/b4",
    "articles/b5",
    "articles/b5a",
    "articles/b5b",
    "articles/b6-starved-client",
    "articles/c1",
    "articles/c2",
    "articles/c3",
    "articles/c4",
    "articles/d",
    "articles/e1",
];

/// Why a name or file gives no rows.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Neither a file nor a preset.
    #[error("run scenario '{0}': neither a file nor a preset; `fullpipe lab list` names the presets")]
    Unknown(String),
    /// A file that cannot be read.
    #[error("read scenario {path}: {cause}")]
    Read {
        /// The file.
        path: String,
        /// The kernel's answer.
        cause: std::io::Error,
    },
    /// A file that is not a scenario.
    #[error("read scenario {name}: {cause}")]
    Scenario {
        /// File or preset.
        name: String,
        /// What is wrong.
        cause: ScenarioError,
    },
    /// Scenarios that include each other.
    #[error("read scenario {0}: it includes itself, by way of its `include` list")]
    Circle(String),
}

/// The rows of `name`: a preset, or else a file. A folder of presets (`articles`) is all of them, in order, those that
/// only include others left out.
pub fn load(name: &str) -> Result<Vec<Scenario>, LoadError> {
    load_with(name, &[])
}

/// The rows of `name` with `over` above what their files say; they have the same names as without.
pub fn load_with(name: &str, over: &[Override]) -> Result<Vec<Scenario>, LoadError> {
    resolve(name, over, &mut Vec::new())
}

fn resolve(name: &str, over: &[Override], open: &mut Vec<String>) -> Result<Vec<Scenario>, LoadError> {
    if open.iter().any(|other| other == name) {
        return Err(LoadError::Circle(name.into()));
    }
    let text = match PRESETS.iter().find(|preset| preset.name == name) {
        Some(preset) => preset.text.to_string(),
        None if Path::new(name).is_file() => {
            std::fs::read_to_string(name).map_err(|cause| LoadError::Read { path: name.into(), cause })?
        }
        None => return folder(name, over, open),
    };
    let wrong = |cause| LoadError::Scenario { name: name.into(), cause };
    let file = File::parse(&text).map_err(wrong)?;
    let stem = Path::new(name).file_stem().and_then(|stem| stem.to_str()).unwrap_or("scenario");
    // A file that a scenario names (a trace, a table) is sought from where the scenario is.
    let folder = Path::new(name).parent().filter(|_| Path::new(name).is_file()).unwrap_or(Path::new(""));
    let mut read = |file: &str| std::fs::read(folder.join(file)).map_err(|cause| cause.to_string());
    let mut rows = file.scenarios_with(&text, stem, over, &mut read).map_err(wrong)?;
    open.push(name.into());
    for included in &file.include {
        rows.extend(resolve(included, over, open)?);
    }
    open.pop();
    Ok(rows)
}

fn folder(name: &str, over: &[Override], open: &mut Vec<String>) -> Result<Vec<Scenario>, LoadError> {
    let prefix = format!("{}/", name.trim_end_matches('/'));
    let mut rows = Vec::new();
    for preset in PRESETS.iter().filter(|preset| preset.name.starts_with(&prefix)) {
        let own = File::parse(preset.text).is_ok_and(|file| file.include.is_empty());
        if own {
            rows.extend(resolve(preset.name, over, open)?);
        }
    }
    if rows.is_empty() { Err(LoadError::Unknown(name.into())) } else { Ok(rows) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_folder_is_a_preset_and_can_run() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
        let mut files = Vec::new();
        for directory in [root.clone(), root.join("articles")] {
            for entry in std::fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.extension().is_some_and(|extension| extension == "toml") {
                    let name = path.strip_prefix(&root).unwrap().with_extension("");
                    files.push(name.to_str().unwrap().to_string());
                }
            }
        }
        for name in &files {
            assert!(PRESETS.iter().any(|preset| preset.name == name), "{name} is not listed");
            assert!(!load(name).unwrap().is_empty(), "{name}");
        }
        assert_eq!(files.len(), PRESETS.len());
    }

    #[test]
    fn a_folder_is_all_its_presets_once() {
        let rows = load("articles").unwrap();
        let mut names: Vec<_> = rows.iter().map(|row| row.name.clone()).collect();
        assert!(names.contains(&"b5b".into()) && names.contains(&"a1-rtt/rtt=100ms".into()), "{names:?}");
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(matches!(load("nothing"), Err(LoadError::Unknown(_))));
    }
}
