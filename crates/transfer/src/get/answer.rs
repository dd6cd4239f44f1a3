//! What an answer's head says: how long the file is, which part of it follows, and what identifies
//! it.

use super::part::Validators;
use hyper::header::{self, HeaderName};
use hyper::{HeaderMap, Response};
use std::time::Duration;

/// The head of an answer with data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Head {
    /// The bytes that follow, of a part (206).
    pub(super) part: Option<ContentRange>,
    /// `Content-Length`.
    pub(super) length: Option<u64>,
    pub(super) validators: Validators,
    pub(super) takes_ranges: TakesRanges,
}

/// Whether parts of the file may be asked for (`Accept-Ranges`, RFC 9110 section 14.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TakesRanges {
    Yes,
    /// The server does not say so: it may take them all the same.
    Unsaid,
    No,
}

/// A `Last-Modified` this much older than `Date` is a strong validator. RFC 9110 section 8.8.2.2
/// asks for a second, and for a difference that makes two clocks unlikely to be the reason; this is
/// the figure of RFC 7232.
const STRONG_AGE: Duration = Duration::from_secs(60);

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
    /// What an answer says; an error names what is wrong with its framing.
    pub(super) fn of<T>(answer: &Response<T>) -> Result<Head, &'static str> {
        let fields = answer.headers();
        if fields.contains_key(header::TRANSFER_ENCODING) {
            // RFC 9112 section 6.3: "ought to be handled as an error".
            if fields.contains_key(header::CONTENT_LENGTH) {
                return Err("both Transfer-Encoding and Content-Length");
            }
            let coding = single(fields, &header::TRANSFER_ENCODING);
            if !coding.is_some_and(|coding| coding.trim().eq_ignore_ascii_case("chunked")) {
                return Err("a Transfer-Encoding other than chunked, which was not asked for");
            }
        }
        Ok(Head {
            part: single(fields, &header::CONTENT_RANGE).as_deref().and_then(ContentRange::parse),
            length: single(fields, &header::CONTENT_LENGTH).as_deref().and_then(number),
            validators: validators(fields),
            takes_ranges: match single(fields, &header::ACCEPT_RANGES) {
                Some(units) if units.to_ascii_lowercase().contains("bytes") => TakesRanges::Yes,
                Some(_) => TakesRanges::No,
                None => TakesRanges::Unsaid,
            },
        })
    }
}

/// The strong validators (RFC 9110 section 8.8.1): weak ones do not say that the bytes are the
/// same. A date counts only where there is no entity tag at all (section 13.1.5), or beside a
/// strong one.
fn validators(fields: &HeaderMap) -> Validators {
    let etag = single(fields, &header::ETAG)
        .filter(|tag| tag.len() > 1 && tag.starts_with('"') && tag.ends_with('"'));
    if etag.is_none() && fields.contains_key(header::ETAG) {
        return Validators::default();
    }
    let last_modified = single(fields, &header::LAST_MODIFIED).filter(|modified| {
        let date = single(fields, &header::DATE);
        date.and_then(|date| age(&date, modified)).is_some_and(|age| age >= STRONG_AGE)
    });
    Validators { etag, last_modified }
}

/// How long before `date` `modified` is; `None` if it is later, or one is no date.
fn age(date: &str, modified: &str) -> Option<Duration> {
    let [date, modified] = [date, modified].map(httpdate::parse_http_date);
    date.ok()?.duration_since(modified.ok()?).ok()
}

/// The value of a field that may occur once; `None` if there are several that differ.
fn single(fields: &HeaderMap, name: &HeaderName) -> Option<String> {
    let mut all = fields.get_all(name).iter();
    let first = all.next()?;
    let same = all.all(|other| other == first);
    first.to_str().ok().filter(|_| same).map(Into::into)
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

    fn answer(fields: &[(&str, &str)]) -> Response<()> {
        let start = Response::builder();
        fields.iter().fold(start, |one, (name, value)| one.header(*name, *value)).body(()).unwrap()
    }

    #[test]
    fn only_a_strong_validator_identifies_a_file() {
        let of = |fields: &[(&str, &str)]| Head::of(&answer(fields)).unwrap().validators;
        let strong = |fields: &[(&str, &str)]| of(fields).if_range().map(String::from);
        assert_eq!(strong(&[("etag", "\"a\"")]), Some("\"a\"".into()));
        for weak in ["W/\"a\"", "a", "\"", "\"a"] {
            assert_eq!(strong(&[("etag", weak)]), None, "{weak}");
        }
        assert_eq!(strong(&[("etag", "\"a\""), ("etag", "\"b\"")]), None);

        // A date: a minute older than the answer, and without any tag.
        let modified = "Mon, 01 Jan 2024 00:00:00 GMT";
        let dated = |date: &'static str| [("last-modified", modified), ("date", date)];
        assert_eq!(strong(&dated("Mon, 01 Jan 2024 00:01:00 GMT")), Some(modified.into()));
        for weak in ["Mon, 01 Jan 2024 00:00:59 GMT", "Sun, 31 Dec 2023 00:00:00 GMT", "soon"] {
            assert_eq!(strong(&dated(weak)), None, "{weak}");
        }
        assert_eq!(strong(&[("last-modified", modified)]), None, "no date to compare with");
        let [one, two] = dated("Mon, 01 Jan 2024 01:00:00 GMT");
        assert_eq!(strong(&[one, two, ("etag", "W/\"a\"")]), None, "a weak tag forbids it");
    }

    /// RFC 9112 section 6.3: a body with two lengths is refused, whichever is true.
    #[test]
    fn a_body_with_two_framings_is_an_error() {
        let of = |fields: &[(&str, &str)]| Head::of(&answer(fields)).err();
        let (chunked, length) = (("transfer-encoding", "chunked"), ("content-length", "3"));
        assert_eq!(of(&[chunked]), None);
        assert_eq!(of(&[length]), None);
        assert_eq!(of(&[chunked, length]), Some("both Transfer-Encoding and Content-Length"));
        for coding in ["gzip, chunked", "gzip", "identity"] {
            assert!(of(&[("transfer-encoding", coding)]).is_some(), "{coding}");
        }
    }

    #[test]
    fn a_server_says_whether_it_takes_ranges() {
        let of = |fields: &[(&str, &str)]| Head::of(&answer(fields)).unwrap().takes_ranges;
        assert_eq!(of(&[("accept-ranges", "Bytes")]), TakesRanges::Yes);
        assert_eq!(of(&[("accept-ranges", "none")]), TakesRanges::No);
        assert_eq!(of(&[]), TakesRanges::Unsaid);
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
