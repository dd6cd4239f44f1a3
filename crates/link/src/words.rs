//! A path in words, in the order in which they were given: from options of a command line, or from
//! the control socket of a running link.
//!
//! Words before the first match apply to every packet; words after a match apply to the packets
//! that it matches, up to the next match. There is only one grammar: the words are converted to the
//! TOML of a scenario and parsed by the same code.
//!
//! Nothing is checked before [`Words::path`]: keys and values may be anything.

use fullpipe_kernel::file::named_file;
use fullpipe_model::scenario::{File, Path, ScenarioError};
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// The direction that a word applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Directions {
    /// Both.
    Both,
    /// From the command outwards: `to_server` in a scenario.
    Up,
    /// Back: `to_client`.
    Down,
}

/// Words for some packets.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// The packets: key and value; empty: all.
    #[serde(default)]
    pub matches: Vec<(String, String)>,
    /// The words.
    #[serde(default)]
    pub words: Vec<(Directions, String, String)>,
}

/// All words of a path, in the order in which they were given.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Words {
    /// The first applies to all packets.
    pub groups: Vec<Group>,
    /// `mtu`, `seed`.
    #[serde(default)]
    pub settings: Vec<(String, String)>,
}

/// Why words are not a path: the problem, with the option that causes it if known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct WordsError {
    message: String,
    names_file: bool,
}

impl WordsError {
    /// Whether a file named by the words was read: then the fault may be the file's.
    pub fn names_file(&self) -> bool {
        self.names_file
    }
}

/// A request to a running link, as a line of JSON: `"status"`, `{"set": WORDS}`, `"detach"`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Report the state of the link.
    Status,
    /// Use other words from now on.
    Set(Words),
    /// End the link, if it is a device's.
    Detach,
}

/// Why a line is not a request.
#[derive(Debug, thiserror::Error)]
#[error("read request: {0}; ask \"status\", \"detach\" or {{\"set\": WORDS}}")]
pub struct RequestError(#[from] serde_json::Error);

impl Request {
    /// Parses a request.
    ///
    /// # Errors
    /// It is not JSON, or not one of the requests.
    pub fn parse(line: &[u8]) -> Result<Request, RequestError> {
        Ok(serde_json::from_slice(line)?)
    }
}

/// Scope a value applies to; each with its key.
#[derive(Debug, Clone, Copy)]
pub enum Scope {
    /// A direction of the path.
    Word(Directions, &'static str),
    /// Selects packets.
    Match(&'static str),
    /// The whole path.
    Setting(&'static str),
}

impl Words {
    /// Words in the order in which they were given.
    pub fn of(given: impl Iterator<Item = (Scope, String)>) -> Words {
        let mut groups = vec![Group::default()];
        let mut settings = Vec::new();
        for (what, value) in given {
            let last = groups.len() - 1;
            match what {
                Scope::Setting(key) => settings.push((key.into(), value)),
                Scope::Word(way, key) => groups[last].words.push((way, key.into(), value)),
                // Adjacent matches are one match; a match after words begins a new group.
                Scope::Match(key) if last > 0 && groups[last].words.is_empty() => {
                    groups[last].matches.push((key.into(), value));
                }
                Scope::Match(key) => {
                    groups.push(Group { matches: vec![(key.into(), value)], words: Vec::new() });
                }
            }
        }
        Words { groups, settings }
    }

    /// Whether there are no words.
    pub fn is_empty(&self) -> bool {
        self.settings.is_empty()
            && self.groups.iter().all(|group| group.matches.is_empty() && group.words.is_empty())
    }

    /// These words, with those of `over` replacing the ones for the same property. Words for
    /// packets without a group yet come last.
    pub fn with(&self, over: &Words) -> Words {
        let mut merged = self.clone();
        for given in &over.groups {
            match merged.groups.iter_mut().find(|present| present.matches == given.matches) {
                Some(present) => present.take_over(&given.words),
                None => {
                    let mut group = Group { matches: given.matches.clone(), words: Vec::new() };
                    group.take_over(&given.words);
                    merged.groups.push(group);
                }
            }
        }
        for (key, value) in &over.settings {
            merged.settings.retain(|(present, _)| present != key);
            merged.settings.push((key.clone(), value.clone()));
        }
        merged
    }

    /// The same with absolute paths of files (`file:PATH`), for a process with another working
    /// directory.
    pub fn absolute(mut self) -> Words {
        for (_, _, value) in self.groups.iter_mut().flat_map(|group| &mut group.words) {
            let parts = value.split(' ').map(|part| {
                let path =
                    part.strip_prefix("file:").and_then(|path| std::path::absolute(path).ok());
                path.map_or_else(|| part.to_string(), |path| format!("file:{}", path.display()))
            });
            *value = parts.collect::<Vec<_>>().join(" ");
        }
        self
    }

    /// The path.
    ///
    /// # Errors
    /// A scenario could not have these words, or a file cannot be read.
    pub fn path(&self) -> Result<Path, WordsError> {
        self.path_with(&mut |name| {
            named_file::read(std::path::Path::new(name), named_file::DATA_MAX)
                .map_err(|error| error.to_string())
        })
    }

    /// The same, with files read by `read`.
    ///
    /// # Errors
    /// A scenario could not have these words, or `read` fails.
    pub fn path_with(
        &self,
        read: &mut dyn FnMut(&str) -> Result<Vec<u8>, String>,
    ) -> Result<Path, WordsError> {
        let (text, lines) = self.toml();
        let mut names_file = false;
        let scenarios = File::parse(&text).and_then(|file| {
            file.scenarios_with("link", &[], &mut |name| {
                names_file = true;
                read(name)
            })
        });
        let first = scenarios.map(|scenarios| scenarios.into_iter().next());
        let message = match first {
            Ok(Some(scenario)) => return Ok(scenario.path),
            Ok(None) => "read words of link: they give no path".into(),
            Err(error) => with_option(&error, &lines),
        };
        Err(WordsError { message, names_file })
    }

    /// The words as a scenario would write them, and for each line the option that it comes from.
    fn toml(&self) -> (String, Vec<String>) {
        let mut lines: Vec<(String, String)> = Vec::new();
        lines.push(("[link]".into(), String::new()));
        for (key, value) in &self.settings {
            // A number is written without quotes.
            let shown = if key == "seed" { value.clone() } else { toml_string(value) };
            lines.push((format!("{key} = {shown}"), format!("--{key} {value}")));
        }
        for (number, group) in self.groups.iter().enumerate() {
            let table = if number == 0 { "link" } else { "link.rules" };
            if number > 0 {
                lines.push(("[[link.rules]]".into(), String::new()));
            }
            for (key, value) in &group.matches {
                lines.push((format!("{key} = {}", toml_string(value)), format!("--{key} {value}")));
            }
            for (way, prefix) in
                [(Directions::Both, ""), (Directions::Up, "up-"), (Directions::Down, "down-")]
            {
                let words: Vec<_> = group.words.iter().filter(|(its, ..)| *its == way).collect();
                match way {
                    Directions::Up if !words.is_empty() => {
                        lines.push((format!("[{table}.to_server]"), String::new()))
                    }
                    Directions::Down if !words.is_empty() => {
                        lines.push((format!("[{table}.to_client]"), String::new()))
                    }
                    _ => {}
                }
                for (_, key, value) in words {
                    lines.push((
                        format!("{key} = {}", toml_string(value)),
                        format!("--{prefix}{key} {value}"),
                    ));
                }
            }
        }
        let mut text = String::new();
        for (line, _) in &lines {
            let _ = writeln!(text, "{line}");
        }
        (text, lines.into_iter().map(|(_, option)| option).collect())
    }
}

fn toml_string(value: &str) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// As options of the command line.
impl std::fmt::Display for Words {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut options = Vec::new();
        for group in &self.groups {
            options.extend(
                group.matches.iter().map(|(key, value)| format!("--{key} {}", quoted(value))),
            );
            options.extend(group.words.iter().map(|(way, key, value)| {
                let way = ["", "up-", "down-"][*way as usize];
                format!("--{way}{key} {}", quoted(value))
            }));
        }
        options
            .extend(self.settings.iter().map(|(key, value)| format!("--{key} {}", quoted(value))));
        f.pad(&if options.is_empty() { "nothing impaired".into() } else { options.join(" ") })
    }
}

/// As one word of a command line.
fn quoted(value: &str) -> String {
    if value.contains(' ') { format!("'{value}'") } else { value.to_string() }
}

impl Group {
    fn take_over(&mut self, words: &[(Directions, String, String)]) {
        for (way, key, value) in words {
            // Delay can be written in two ways, and for both directions at once.
            self.words.retain(|(its, present, _)| {
                let same = present == key || is_delay(present) && is_delay(key);
                let covered = *way == Directions::Both || its == way;
                !(covered && same)
            });
            self.words.push((*way, key.clone(), value.clone()));
        }
    }
}

fn is_delay(key: &str) -> bool {
    key == "delay" || key == "rtt"
}

/// The problem, with the option that causes it.
fn with_option(error: &ScenarioError, lines: &[String]) -> String {
    match error {
        ScenarioError::Row { problem, .. } => problem.clone(),
        ScenarioError::Toml { position: Some(position), problem, .. } => {
            match lines.get(position.line - 1).filter(|option| !option.is_empty()) {
                Some(option) => format!("`{option}`: {problem}"),
                None => error.to_string(),
            }
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_line_is_a_request_or_an_error_that_says_so(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Err(error) = Request::parse(&bytes) {
                prop_assert!(error.to_string().starts_with("read request: "));
            }
        }

        #[test]
        fn a_request_reads_back_whatever_its_words(key in "\\PC{0,20}", value in "\\PC{0,40}", up: bool) {
            let way = if up { Directions::Up } else { Directions::Both };
            let group = Group { matches: vec![(key.clone(), value.clone())], words: vec![(way, key, value)] };
            let request = Request::Set(Words { groups: vec![group], settings: Vec::new() });
            let line = serde_json::to_vec(&request).unwrap();
            prop_assert!(!line.contains(&b'\n'));
            prop_assert_eq!(Request::parse(&line).unwrap(), request);
        }

        #[test]
        fn words_from_outside_are_a_path_or_an_error(key in "[a-z_]{1,10}|delay|loss|\\PC{1,5}", value in "\\PC{0,20}") {
            let group = Group { matches: Vec::new(), words: vec![(Directions::Down, key, value)] };
            let _ = Words { groups: vec![group], settings: Vec::new() }.path();
        }
    }
}
