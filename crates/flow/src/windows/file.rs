//! The file of known windows, as people write it.

use super::{KnownWindow, Version, version_in};
use crate::capture::segment::ApplicationProtocol;
use fullpipe_model::units::Bytes;
use serde::Deserialize;
use std::ops::Range;
use strum::IntoEnumIterator;
use toml::Spanned;

/// Why a file of known windows is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WindowsError {
    /// It is no such TOML.
    #[error("line {line}: {problem}")]
    Toml {
        /// The line, from 1.
        line: usize,
        /// What the reader of TOML says.
        problem: String,
    },
    /// A protocol that is not known.
    #[error("line {line}: no protocol '{name}'; there are {}", protocols())]
    Protocol {
        /// The line, from 1.
        line: usize,
        /// What stands there.
        name: String,
    },
    /// A size that is none.
    #[error("line {line}: {problem}")]
    Window {
        /// The line, from 1.
        line: usize,
        /// Why.
        problem: String,
    },
    /// A version without a number.
    #[error("line {line}: '{text}' is no version; give its first two numbers, as in 9.2")]
    Version {
        /// The line, from 1.
        line: usize,
        /// What stands there.
        text: String,
    },
    /// Versions without the name that they are read from.
    #[error("line {line}: versions are read behind the program's own name; give its banner, too")]
    NoBanner {
        /// The line, from 1.
        line: usize,
    },
    /// A text that has nothing in it, or a control character.
    #[error("line {line}: `{key}` is empty, too long, or has a character that no terminal shows")]
    Text {
        /// The line, from 1.
        line: usize,
        /// The key.
        key: &'static str,
    },
    /// No entry.
    #[error("no [[window]] in it")]
    Empty,
}

/// The names of all protocols.
pub(super) fn protocols() -> String {
    ApplicationProtocol::iter().map(ApplicationProtocol::name).collect::<Vec<_>>().join(", ")
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    window: Vec<WindowEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WindowEntry {
    protocol: Spanned<String>,
    window: Spanned<String>,
    program: Spanned<String>,
    banner: Option<Spanned<String>>,
    from: Option<Spanned<String>>,
    before: Option<Spanned<String>>,
    setting: Option<Spanned<String>>,
    source: Option<Spanned<String>>,
    read: Option<Spanned<String>>,
}

/// The longest text of an entry.
const LONGEST: usize = 200;
/// No protocol has a larger window, and a smaller one is a message.
const WINDOWS: Range<u64> = 512..(1 << 40);

/// Reads a file. `is_own` says that a user wrote it.
pub(super) fn parse(text: &str, is_own: bool) -> Result<Vec<KnownWindow>, WindowsError> {
    let file: File = toml::from_str(text).map_err(|error| WindowsError::Toml {
        line: error.span().map_or(1, |span| line_of(text, &span)),
        problem: error.message().replace('\n', "; "),
    })?;
    if file.window.is_empty() {
        return Err(WindowsError::Empty);
    }
    file.window.into_iter().map(|entry| entry.checked(text, is_own)).collect()
}

/// The line in which something stands, from 1.
fn line_of(text: &str, span: &Range<usize>) -> usize {
    text.get(..span.start).unwrap_or(text).matches('\n').count() + 1
}

impl WindowEntry {
    fn checked(self, text: &str, is_own: bool) -> Result<KnownWindow, WindowsError> {
        let name = self.protocol.get_ref();
        let protocol = ApplicationProtocol::iter().find(|known| known.name() == name);
        let protocol = protocol.ok_or_else(|| WindowsError::Protocol {
            line: line_of(text, &self.protocol.span()),
            name: name.clone(),
        })?;
        let from = version_of(text, self.from.as_ref())?;
        let before = version_of(text, self.before.as_ref())?;
        if let (None, Some(version)) = (&self.banner, self.from.as_ref().or(self.before.as_ref())) {
            return Err(WindowsError::NoBanner { line: line_of(text, &version.span()) });
        }
        #[cfg(target_arch = "wasm32")]
        let _ = (&self.source, &self.read);
        Ok(KnownWindow {
            protocol,
            window: size(text, &self.window)?,
            program: kept(text, "program", &self.program)?,
            banner: self.banner.map(|banner| kept(text, "banner", &banner)).transpose()?,
            from,
            before,
            setting: self.setting.map(|setting| kept(text, "setting", &setting)).transpose()?,
            is_own,
            #[cfg(not(target_arch = "wasm32"))]
            source: self.source.map_or(Ok(""), |source| kept(text, "source", &source))?,
            #[cfg(not(target_arch = "wasm32"))]
            read: self.read.map_or(Ok(""), |read| kept(text, "read", &read))?,
        })
    }
}

fn size(text: &str, window: &Spanned<String>) -> Result<Bytes, WindowsError> {
    let line = line_of(text, &window.span());
    let parsed = window.get_ref().parse::<Bytes>();
    let size = parsed.map_err(|error| WindowsError::Window { line, problem: error.to_string() })?;
    if WINDOWS.contains(&size.get()) {
        return Ok(size);
    }
    let problem = format!("a window is of {} B to {} B", WINDOWS.start, WINDOWS.end - 1);
    Err(WindowsError::Window { line, problem })
}

fn version_of(
    text: &str,
    version: Option<&Spanned<String>>,
) -> Result<Option<Version>, WindowsError> {
    let Some(said) = version else { return Ok(None) };
    version_in(said.get_ref()).map(Some).ok_or_else(|| WindowsError::Version {
        line: line_of(text, &said.span()),
        text: said.get_ref().clone(),
    })
}

/// A text that lives as long as the program.
fn kept(
    text: &str,
    key: &'static str,
    said: &Spanned<String>,
) -> Result<&'static str, WindowsError> {
    let value = said.get_ref().trim();
    let is_shown = value.chars().all(|c| !c.is_control());
    if value.is_empty() || value.len() > LONGEST || !is_shown {
        return Err(WindowsError::Text { line: line_of(text, &said.span()), key });
    }
    Ok(value.to_owned().leak())
}
