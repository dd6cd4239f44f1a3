//! What an answer's head says: how long the file is, which part of it follows, and what identifies
//! it.

use super::part::Validators;
use hyper::Response;
use hyper::header::{self, HeaderName};

/// The head of an answer with data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Head {
    /// The bytes that follow, of a part (206).
    pub(super) part: Option<ContentRange>,
    /// `Content-Length`.
    pub(super) length: Option<u64>,
    pub(super) validators: Validators,
    /// Whether the server says that parts may be asked for.
    pub(super) takes_ranges: bool,
}

/// `Content-Range: bytes START-LAST/TOTAL` (RFC 9110 section 14.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ContentRange {
    pub(super) start: u64,
    /// The last byte's offset.
    pub(super) last: u64,
    /// `None`: the server does not know.
    pub(super) total: Option<u64>,
}

impl ContentRange {
    /// `None` if it is none of bytes, or contradicts itself.
    pub(super) fn parse(text: &str) -> Option<ContentRange> {
        let (unit, rest) = text.trim().split_once(' ')?;
        let (range, total) = rest.trim().split_once('/')?;
        let (start, last) = range.split_once('-')?;
        let (start, last) = (number(start)?, number(last)?);
        let total = if total.trim() == "*" { None } else { Some(number(total)?) };
        let fits = start <= last && total.is_none_or(|total| last < total);
        (unit.eq_ignore_ascii_case("bytes") && fits).then_some(ContentRange { start, last, total })
    }
}

/// Digits alone: `parse` would take a sign.
fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| digits && *number < u64::MAX)
}

impl Head {
    pub(super) fn of<T>(answer: &Response<T>) -> Head {
        let text = |name: HeaderName| field(answer, name);
        // A weak validator does not say that the bytes are the same (RFC 9110 section 8.8.1).
        let etag = text(header::ETAG).filter(|tag| tag.starts_with('"'));
        Head {
            part: text(header::CONTENT_RANGE).as_deref().and_then(ContentRange::parse),
            length: text(header::CONTENT_LENGTH).as_deref().and_then(number),
            validators: Validators { etag, last_modified: text(header::LAST_MODIFIED) },
            takes_ranges: text(header::ACCEPT_RANGES)
                .is_some_and(|units| units.to_ascii_lowercase().contains("bytes")),
        }
    }
}

/// A field's value as text.
pub(super) fn field<T>(answer: &Response<T>, name: HeaderName) -> Option<String> {
    answer.headers().get(name)?.to_str().ok().map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_range_that_contradicts_itself_is_none() {
        let of = |text| ContentRange::parse(text).map(|r| (r.start, r.last, r.total));
        assert_eq!(of("bytes 0-9/10"), Some((0, 9, Some(10))));
        assert_eq!(of("Bytes 5-5/*"), Some((5, 5, None)));
        for wrong in
            ["bytes 5-4/10", "bytes 0-10/10", "bytes */10", "lines 0-1/2", "bytes +0-1/2", ""]
        {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_weak_tag_identifies_nothing() {
        let answer = |tag: &str| Response::builder().header("etag", tag).body(()).unwrap();
        assert_eq!(Head::of(&answer("W/\"a\"")).validators.etag, None);
        assert_eq!(Head::of(&answer("\"a\"")).validators.etag.as_deref(), Some("\"a\""));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(start in 0u64..1 << 40, more in 0u64..1 << 40, rest in 1u64..1 << 40) {
            let last = start + more;
            let text = format!("bytes {start}-{last}/{}", last + rest);
            let expected = ContentRange { start, last, total: Some(last + rest) };
            prop_assert_eq!(ContentRange::parse(&text), Some(expected));
        }

        #[test]
        fn any_text_is_a_range_or_none(text in "\\PC*") {
            if let Some(range) = ContentRange::parse(&text) {
                prop_assert!(range.start <= range.last);
            }
        }
    }
}
