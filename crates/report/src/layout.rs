//! The layout of a report; the caller knows the terminal.

use fullpipe_flow::Language;

/// What the output can show, and in which language. The default suits a file or a pipe: no width
/// limit, UTF-8, no colour, English.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Layout {
    /// Columns of the terminal; `None`: as wide as the content.
    pub width: Option<u16>,
    /// The characters that it can show.
    pub charset: Charset,
    /// Whether it shows colour (ANSI escape sequences).
    pub colour: bool,
    /// The language of its sentences and headings.
    pub language: Language,
}

/// Which characters may be used for lines and marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Charset {
    /// Line-drawing characters.
    #[default]
    Utf8,
    /// ASCII alone.
    Ascii,
}

/// The meaning of a text, which decides its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// A heading: bold.
    Heading,
    /// Good: green.
    Good,
    /// A problem: red.
    Bad,
    /// Unimportant: faint.
    Faint,
}

impl Layout {
    /// The one in its language.
    pub(crate) fn either<T>(self, english: T, chinese: T) -> T {
        match self.language {
            Language::English => english,
            Language::Chinese => chinese,
        }
    }

    /// `text` in the colour of `tone`, or as it is without colour.
    ///
    /// ```
    /// use fullpipe_report::{Layout, Tone};
    /// assert_eq!(Layout::default().paint(Tone::Good, "link"), "link");
    /// assert_eq!(Layout { colour: true, ..Layout::default() }.paint(Tone::Good, "link"), "\x1b[32mlink\x1b[0m");
    /// ```
    pub fn paint(self, tone: Tone, text: &str) -> String {
        if !self.colour || text.is_empty() {
            return text.into();
        }
        let code = match tone {
            Tone::Heading => "1",
            Tone::Good => "32",
            Tone::Bad => "31",
            Tone::Faint => "2",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    pub(crate) fn arrow(self) -> &'static str {
        match self.charset {
            Charset::Utf8 => "→",
            Charset::Ascii => "->",
        }
    }

    pub(crate) fn arrow_back(self) -> &'static str {
        match self.charset {
            Charset::Utf8 => "←",
            Charset::Ascii => "<-",
        }
    }
}
