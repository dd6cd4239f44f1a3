//! The error type of this crate's requests to Linux.

use std::borrow::Cow;
use std::io;

/// A request that the kernel refused: operation, subject, cause, and what to try.
///
/// The hint is a sentence without a full stop, empty if there is no useful advice.
#[derive(Debug)]
pub struct Refused {
    /// The operation, as a verb phrase: "add route".
    pub operation: &'static str,
    /// What it was about: "10.1.2.0/24 via device wan0".
    pub subject: String,
    /// The kernel's answer.
    pub cause: io::Error,
    /// What to try.
    pub hint: Cow<'static, str>,
}

impl Refused {
    /// A refusal without a hint.
    pub fn new(
        operation: &'static str,
        subject: impl Into<String>,
        cause: impl Into<io::Error>,
    ) -> Self {
        Refused { operation, subject: subject.into(), cause: cause.into(), hint: Cow::Borrowed("") }
    }

    /// The errno of the last failed system call of this thread.
    pub(crate) fn last(operation: &'static str, subject: impl Into<String>) -> Self {
        Refused::new(operation, subject, io::Error::last_os_error())
    }

    pub(crate) fn hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.hint = hint.into();
        self
    }

    /// The errno, if the cause has one.
    pub fn errno(&self) -> Option<i32> {
        self.cause.raw_os_error()
    }
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}: {}", self.operation, self.subject, self.cause)?;
        if !self.hint.is_empty() {
            write!(f, "; {}", self.hint)?;
        }
        Ok(())
    }
}

impl std::error::Error for Refused {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        // The cause is part of the message; naming it again as the source would print it twice.
        None
    }
}
