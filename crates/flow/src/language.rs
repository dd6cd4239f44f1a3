//! The languages of what people read.

/// A language of what people read. JSON and other data are in English, whatever this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Language {
    /// English.
    #[default]
    English,
    /// Chinese as it is written on the mainland (zh-CN).
    Chinese,
}

impl Language {
    /// All of them.
    pub const ALL: [Language; 2] = [Language::English, Language::Chinese];

    /// Its name as in BCP 47 (RFC 5646).
    pub const fn name(self) -> &'static str {
        match self {
            Language::English => "en",
            Language::Chinese => "zh-CN",
        }
    }

    /// The language that a name means as users and locale(7) write it: `zh`, `zh-CN`,
    /// `zh_CN.UTF-8`, `en_GB`, `C`. `None` for a language that is not here.
    ///
    /// ```
    /// use fullpipe_flow::Language;
    /// assert_eq!(Language::of("zh_CN.UTF-8"), Some(Language::Chinese));
    /// assert_eq!(Language::of("C.UTF-8"), Some(Language::English));
    /// assert_eq!(Language::of("de_DE"), None);
    /// ```
    pub fn of(name: &str) -> Option<Language> {
        match name.split(['-', '_', '.', '@']).next()?.to_ascii_lowercase().as_str() {
            "en" | "c" | "posix" => Some(Language::English),
            "zh" => Some(Language::Chinese),
            _ => None,
        }
    }
}
