//! The scenarios that come with the program, and how names and files become rows to run.

use fullpipe_kernel::file::named_file::{self, DATA_MAX};
use fullpipe_model::scenario::{File, Override, RUNS_MAX, Scenario, ScenarioError};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The largest scenario file; one with a hundred explicit rows has some ten thousand bytes.
const SCENARIO_MAX: u64 = 1 << 20;
/// The most bytes of all traces and tables that the rows of a command name.
const READ_MAX: u64 = 1 << 30;
/// The deepest nesting of `include`, more than any person writes.
const DEPTH_MAX: usize = 50;

/// A scenario that comes with the program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Preset {
    /// Its name on the command line.
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
pub(crate) const PRESETS: &[Preset] = presets![
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
    "articles/e1-relay",
    "articles/e2",
    "window/article-d",
    "window/first-second",
    "window/fast-reader",
    "window/slow-reader",
    "window/pausing-reader",
    "window/many-readers",
    "window/low-rtt",
    "window/rtt-changes",
    "window/loss",
    "window/no-timestamps",
];

/// Why a name or file gives no rows.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Neither a file nor a preset.
    #[error(
        "run scenario '{0}': neither a file nor a preset; `fullpipe lab list` names the presets"
    )]
    Unknown(String),
    /// The file cannot be read.
    #[error("read scenario {path}: {cause}")]
    Read {
        /// The file.
        path: String,
        /// The kernel's answer.
        cause: std::io::Error,
    },
    /// The file is not a valid scenario.
    #[error("read scenario {name}: {cause}")]
    Scenario {
        /// The file or preset.
        name: String,
        /// The problem.
        cause: ScenarioError,
    },
    /// Scenarios that include each other.
    #[error("read scenario {0}: it includes itself, by way of its `include` list")]
    Circle(String),
    /// Includes are nested too deeply.
    #[error("read scenario {0}: `include` lists lead to it over more than {DEPTH_MAX} files")]
    Deep(String),
    /// More runs than one command may have.
    #[error(
        "plan the runs: {} of them with everything that is included, more than the {RUNS_MAX} that one command runs; \
         shorten a list of [matrix], or repeat or include less",
        counted(.runs)
    )]
    TooMany {
        /// How many there would be.
        runs: u64,
    },
}

/// Shows the number of runs, unless the sum did not fit.
fn counted(runs: &u64) -> String {
    if *runs == u64::MAX { "more than can be counted".into() } else { runs.to_string() }
}

/// The rows of all `names`. Each is a preset, or else a file. A folder of presets (`articles`)
/// means all of them in order, except those that only include others. `over` overrides the files
/// without changing the rows' names; `repeat` overrides their repetitions.
///
/// # Errors
/// A name is unknown, a file is not a valid scenario, or there are more than [`RUNS_MAX`] runs in
/// all, which is known before any row is made.
pub fn load_scenarios<S: AsRef<str>>(
    names: &[S],
    over: &[Override],
    repeat: Option<u32>,
) -> Result<Vec<Scenario>, LoadError> {
    Ok(load_with_files(names, over, repeat)?.0)
}

/// The same, with every file that was read for them: scenarios, and the traces and tables that they
/// name.
pub fn load_with_files<S: AsRef<str>>(
    names: &[S],
    over: &[Override],
    repeat: Option<u32>,
) -> Result<(Vec<Scenario>, BTreeSet<PathBuf>), LoadError> {
    let mut library = Library::new(over, repeat);
    let mut runs = 0u64;
    for name in names {
        runs = runs.saturating_add(library.count(name.as_ref(), &mut Vec::new())?);
    }
    if runs > RUNS_MAX {
        return Err(LoadError::TooMany { runs });
    }
    let mut made = LoadedRows::default();
    for name in names {
        library.rows(name.as_ref(), &mut made)?;
    }
    Ok((made.rows, made.files))
}

/// A preset in the list of all.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ListedPreset {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it shows.
    pub description: String,
    /// How many rows it has, with those of the presets that it includes.
    pub rows: usize,
}

/// Every preset with what it shows.
///
/// # Errors
/// A preset is no valid scenario.
pub fn list_presets() -> Result<Vec<ListedPreset>, LoadError> {
    let mut library = Library::new(&[], None);
    let mut listed = Vec::new();
    for Preset { name, .. } in PRESETS {
        library.count(name, &mut Vec::new())?;
        let mut made = LoadedRows::default();
        library.rows(name, &mut made)?;
        let description = library.sources.get(*name).map(|source| source.file.description.clone());
        listed.push(ListedPreset {
            name,
            description: description.unwrap_or_default(),
            rows: made.rows.len(),
        });
    }
    Ok(listed)
}

/// A scenario file, read and parsed once.
struct ScenarioSource {
    file: File,
    /// The folder in which the files that it names are searched.
    folder: PathBuf,
    /// Whether it is a file, not a preset.
    is_file: bool,
}

/// Everything that the names on a command line lead to.
struct Library<'a> {
    over: &'a [Override],
    repeat: Option<u32>,
    /// The sources read, by name.
    sources: BTreeMap<String, ScenarioSource>,
    /// The presets of each folder of presets, by its name.
    folders: BTreeMap<String, Vec<String>>,
    /// The number of runs of each, including what it includes.
    runs: BTreeMap<String, u64>,
}

/// The rows made so far.
#[derive(Default)]
struct LoadedRows {
    rows: Vec<Scenario>,
    /// Bytes of the files that rows name.
    read: u64,
    /// The files that were read.
    files: BTreeSet<PathBuf>,
}

impl LoadedRows {
    /// The content of a file that a row names.
    fn read(&mut self, path: PathBuf) -> Result<Vec<u8>, String> {
        let bytes = named_file::read(&path, DATA_MAX).map_err(|cause| cause.to_string())?;
        self.files.insert(path);
        self.read += bytes.len() as u64;
        let all = "the files that the rows name come to more than 1 GiB; use fewer rows, or smaller files";
        if self.read > READ_MAX { Err(all.to_string()) } else { Ok(bytes) }
    }
}

impl<'a> Library<'a> {
    fn new(over: &'a [Override], repeat: Option<u32>) -> Library<'a> {
        Library {
            over,
            repeat,
            sources: BTreeMap::new(),
            folders: BTreeMap::new(),
            runs: BTreeMap::new(),
        }
    }

    /// The number of runs of `name`. Reads what it includes, each once, and makes no rows.
    fn count(&mut self, name: &str, open: &mut Vec<String>) -> Result<u64, LoadError> {
        if open.iter().any(|other| other == name) {
            return Err(LoadError::Circle(name.into()));
        }
        if open.len() == DEPTH_MAX {
            return Err(LoadError::Deep(name.into()));
        }
        if let Some(runs) = self.runs.get(name) {
            return Ok(*runs);
        }
        let (over, repeat) = (self.over, self.repeat);
        let (mut runs, inner) = match self.source(name)? {
            Some(source) => {
                let runs = source.file.runs(over, repeat);
                let runs =
                    runs.map_err(|cause| LoadError::Scenario { name: name.into(), cause })?;
                (runs, source.file.include.clone())
            }
            None => (0, self.folder(name)?),
        };
        open.push(name.into());
        for included in &inner {
            runs = runs.saturating_add(self.count(included, open)?);
        }
        open.pop();
        self.runs.insert(name.into(), runs);
        Ok(runs)
    }

    /// Makes the rows of `name`, whose runs were counted.
    fn rows(&self, name: &str, made: &mut LoadedRows) -> Result<(), LoadError> {
        let Some(source) = self.sources.get(name) else {
            let presets = self.folders.get(name).into_iter().flatten();
            return presets.into_iter().try_for_each(|preset| self.rows(preset, made));
        };
        let stem = Path::new(name).file_stem().and_then(|stem| stem.to_str()).unwrap_or("scenario");
        if source.is_file {
            made.files.insert(name.into());
        }
        let own = source
            .file
            .scenarios_with(stem, self.over, &mut |file| made.read(source.folder.join(file)));
        made.rows.extend(own.map_err(|cause| LoadError::Scenario { name: name.into(), cause })?);
        source.file.include.iter().try_for_each(|included| self.rows(included, made))
    }

    /// The preset or file of that name, read the first time; `None` if there is neither.
    fn source(&mut self, name: &str) -> Result<Option<&ScenarioSource>, LoadError> {
        if !self.sources.contains_key(name) {
            let Some(source) = read(name)? else { return Ok(None) };
            self.sources.insert(name.into(), source);
        }
        Ok(self.sources.get(name))
    }

    /// The presets of a folder, except those that only include others.
    fn folder(&mut self, name: &str) -> Result<Vec<String>, LoadError> {
        let prefix = format!("{}/", name.trim_end_matches('/'));
        let mut presets = Vec::new();
        for preset in PRESETS.iter().filter(|preset| preset.name.starts_with(&prefix)) {
            if self.source(preset.name)?.is_some_and(|source| source.file.include.is_empty()) {
                presets.push(preset.name.to_string());
            }
        }
        if presets.is_empty() {
            return Err(LoadError::Unknown(name.into()));
        }
        self.folders.insert(name.into(), presets.clone());
        Ok(presets)
    }
}

/// The preset or file of that name; `None` if there is neither.
fn read(name: &str) -> Result<Option<ScenarioSource>, LoadError> {
    let path = Path::new(name);
    let preset = PRESETS.iter().find(|preset| preset.name == name);
    let (text, folder) = match preset {
        Some(preset) => (Cow::Borrowed(preset.text), PathBuf::new()),
        None if path.is_file() || (names_a_file(name) && !path.exists()) => {
            let bytes = named_file::read(path, SCENARIO_MAX);
            let text = bytes.and_then(text_of);
            let text = text.map_err(|cause| LoadError::Read { path: name.into(), cause })?;
            // Files that a scenario names (a trace, a table) are relative to the scenario.
            (Cow::Owned(text), path.parent().map(PathBuf::from).unwrap_or_default())
        }
        None => return Ok(None),
    };
    let file =
        File::parse(&text).map_err(|cause| LoadError::Scenario { name: name.into(), cause })?;
    Ok(Some(ScenarioSource { file, folder, is_file: preset.is_none() }))
}

/// Whether a name can only be meant as that of a file.
fn names_a_file(name: &str) -> bool {
    name.ends_with(".toml") || ["/", "./", "../"].iter().any(|begin| name.starts_with(begin))
}

/// A scenario's bytes as text.
fn text_of(bytes: Vec<u8>) -> std::io::Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        std::io::Error::new(
            std::io::ErrorKind::InvalidData,
            format!("it is not UTF-8 at byte {at}; save it as UTF-8"),
        )
    })
}

/// The rows of one preset or file, as they are written.
#[cfg(test)]
pub(crate) fn load(name: &str) -> Result<Vec<Scenario>, LoadError> {
    load_scenarios(&[name], &[], None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_folder_is_a_preset_and_can_run() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
        let mut files = Vec::new();
        for directory in [root.clone(), root.join("articles"), root.join("window")] {
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
        assert!(
            names.contains(&"b5b".into()) && names.contains(&"a1-rtt/rtt=100ms".into()),
            "{names:?}"
        );
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
        for unknown in ["nothing", "articles/z"] {
            assert!(matches!(load(unknown), Err(LoadError::Unknown(_))), "{unknown}");
        }
        for missing in ["/nowhere", "./nothing", "nothing.toml"] {
            assert!(matches!(load(missing), Err(LoadError::Read { .. })), "{missing}");
        }
    }

    fn write(folder: &Path, name: &str, text: &str) -> String {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().into()
    }

    #[test]
    fn includes_that_double_are_counted_and_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mut last = write(folder.path(), "leaf.toml", "repeat = 3");
        assert_eq!(load(&last).unwrap().len(), 1);
        for level in 0..29 {
            last = write(
                folder.path(),
                &format!("{level}.toml"),
                &format!("include = [{last:?}, {last:?}]"),
            );
        }
        // 2^29 times 3, none of which may be made.
        assert!(matches!(load(&last), Err(LoadError::TooMany { runs: 1_610_612_736 })));
        let circle = folder.path().join("circle.toml");
        write(folder.path(), "circle.toml", &format!("include = [{circle:?}]"));
        assert!(matches!(load(circle.to_str().unwrap()), Err(LoadError::Circle(_))));
    }

    #[test]
    fn one_bound_holds_for_include_matrix_and_repeat() {
        let folder = tempfile::tempdir().unwrap();
        let seeds: Vec<u32> = (0..1000).collect();
        let matrix = format!("repeat = 10\n[matrix]\n\"link.seed\" = {seeds:?}");
        let just = write(folder.path(), "just.toml", &matrix);
        assert_eq!(load(&just).unwrap().len(), 1000);
        assert!(matches!(
            load_scenarios(&[&just, &just], &[], None),
            Err(LoadError::TooMany { runs: 20_000 })
        ));
        assert_eq!(load_scenarios(&[&just, &just], &[], Some(1)).unwrap().len(), 2000);
        assert!(matches!(
            load_scenarios(&[&just], &[], Some(1000)),
            Err(LoadError::TooMany { runs: 1_000_000 })
        ));
    }

    #[test]
    fn a_trace_without_an_end_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let text = "[link]\nto_client.changes = \"trace file:/dev/zero\"";
        let error = load(&write(folder.path(), "zero.toml", text)).unwrap_err().to_string();
        assert!(error.contains("no regular file"), "{error}");
    }
}
