//! Windows above TCP that programs grant unless they are told otherwise, with the setting that
//! changes each and where that was read.
//!
//! The data is `windows/windows.toml`; [`KNOWN_WINDOWS`] is made of it, because the report's page
//! has no room for a reader of TOML. Users have entries of their own ([`OwnWindows`]), which win
//! over these.

mod file;
mod table;

pub use file::WindowsError;
pub use table::KNOWN_WINDOWS;

use crate::capture::segment::ApplicationProtocol;
use fullpipe_model::units::Bytes;

/// What a program grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownWindow {
    /// The protocol whose window it is.
    pub protocol: ApplicationProtocol,
    /// What may be sent beyond what the program has taken.
    pub window: Bytes,
    /// Who grants it.
    pub program: &'static str,
    /// How the program's own name begins, where it says one.
    pub banner: Option<&'static str>,
    /// The first of its versions that does so, and the first that does not any more.
    pub from: Option<Version>,
    /// See [`KnownWindow::from`].
    pub before: Option<Version>,
    /// What changes it; `None` where nothing is known to.
    pub setting: Option<&'static str>,
    /// A user's own entry.
    pub is_own: bool,
    /// Where the size was read. The report's page has no room for it.
    #[cfg(not(target_arch = "wasm32"))]
    pub source: &'static str,
    /// The month in which it was read.
    #[cfg(not(target_arch = "wasm32"))]
    pub read: &'static str,
}

/// The first two numbers of a program's version.
pub type Version = (u16, u16);

/// A window's size is told within this part of it: a protocol's own words are in it, too.
const OVERHEAD: f64 = 0.03;

/// Whether an amount is one such block, with what the protocol adds.
pub(crate) fn is_about(size: Bytes, block: Bytes) -> bool {
    (size.as_f64() - block.as_f64()).abs() <= OVERHEAD * block.as_f64()
}

impl KnownWindow {
    /// `PROGRAM: SETTING`.
    pub fn named(self) -> String {
        match self.setting {
            Some(setting) => format!("{}: {setting}", self.program),
            None => self.program.to_owned(),
        }
    }

    /// Whether this amount is as large.
    pub fn is_as_large_as(self, bound: Bytes) -> bool {
        is_about(bound, self.window)
    }

    fn is_spoken_in(&self, protocol: ApplicationProtocol) -> bool {
        let is_grpc = self.protocol == ApplicationProtocol::Grpc;
        self.protocol == protocol || (is_grpc && protocol == ApplicationProtocol::Http2)
    }

    /// Whether it is that of a program that calls itself so. HPN-SSH calls itself OpenSSH first.
    pub fn is_of(self, name: &str) -> bool {
        let Some(version) = self.banner.and_then(|banner| name.strip_prefix(banner)) else {
            return false;
        };
        let is_bounded = self.from.is_some() || self.before.is_some();
        let version = version_in(version);
        let is_in_range = version.is_some_and(|version| {
            self.from.is_none_or(|from| from <= version)
                && self.before.is_none_or(|before| version < before)
        });
        (!is_bounded || is_in_range) && !name.contains("hpn")
    }
}

/// The first two numbers of a version: `9.2p1`.
pub(crate) fn version_in(text: &str) -> Option<Version> {
    let mut numbers = text.splitn(3, |c: char| !c.is_ascii_digit());
    let major = numbers.next()?.parse().ok()?;
    Some((major, numbers.next().and_then(|minor| minor.parse().ok()).unwrap_or(0)))
}

/// Entries of a user. They win over the built-in ones of the same protocol and program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OwnWindows(&'static [KnownWindow]);

impl OwnWindows {
    /// The entries in the text of a file, which live as long as the program: whoever calls it reads
    /// its file once.
    ///
    /// # Errors
    /// [`WindowsError`], with the line.
    pub fn parse(text: &str) -> Result<Self, WindowsError> {
        file::parse(text, true).map(|entries| OwnWindows(entries.leak()))
    }

    /// The entries.
    pub const fn entries(self) -> &'static [KnownWindow] {
        self.0
    }

    /// Every known window of a protocol: the user's own first, then the built-in ones that those do
    /// not replace. gRPC has those of HTTP/2.
    pub fn of(self, protocol: ApplicationProtocol) -> impl Iterator<Item = KnownWindow> {
        let built_in = KNOWN_WINDOWS.iter().filter(move |known| !self.replaces(known));
        let all = self.0.iter().chain(built_in).copied();
        all.filter(move |known| known.is_spoken_in(protocol))
    }

    /// Whether an entry of the user is of the same protocol and program.
    fn replaces(self, known: &KnownWindow) -> bool {
        self.0.iter().any(|own| own.protocol == known.protocol && own.program == known.program)
    }

    /// Those that are as large as what was found.
    pub fn like(
        self,
        protocol: ApplicationProtocol,
        bound: Bytes,
    ) -> impl Iterator<Item = KnownWindow> {
        self.of(protocol).filter(move |known| known.is_as_large_as(bound))
    }

    /// The one of a program that calls itself so: as large as what was found, if it has several.
    pub fn default_of(
        self,
        protocol: ApplicationProtocol,
        name: &str,
        bound: Bytes,
    ) -> Option<KnownWindow> {
        let its: Vec<KnownWindow> = self.of(protocol).filter(|known| known.is_of(name)).collect();
        its.iter().find(|known| known.is_as_large_as(bound)).or(its.first()).copied()
    }
}

#[cfg(test)]
mod tests;
