//! The `Range` header: RFC 9110 section 14.

use std::ops::Range;

/// What a `Range` header selects from a representation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Selection {
    /// All of it, with status 200: there is no valid single range.
    Whole,
    /// These bytes, with status 206.
    Part(Range<u64>),
    /// None of it, with status 416.
    Unsatisfiable,
}

/// Parses the value of a `Range` header for a representation of `length` bytes.
///
/// "A server MAY ignore the Range header field" (14.2): this ignores several ranges at once, other
/// units, and invalid syntax.
pub(super) fn select(header: &str, length: u64) -> Selection {
    let Some((unit, set)) = header.split_once('=') else { return Selection::Whole };
    let Some((first, last)) = set.trim().split_once('-') else { return Selection::Whole };
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return Selection::Whole;
    }
    match (position(first), position(last)) {
        // "If the last-pos value is absent, or if the value is greater than or equal to the current
        // length .., the byte range is interpreted as the remainder of the representation"
        // (14.1.2).
        (Some(first), last) if last.is_some() || set.trim().ends_with('-') => {
            let end = last.map_or(length, |last| length.min(last.saturating_add(1)));
            match last {
                Some(last) if last < first => Selection::Whole,
                _ if first >= length => Selection::Unsatisfiable,
                _ => Selection::Part(first..end),
            }
        }
        // "If the selected representation is shorter than the specified suffix-length, the entire
        // representation is used" (14.1.2).
        (None, Some(suffix)) if first.trim().is_empty() => match suffix.min(length) {
            0 => Selection::Unsatisfiable,
            suffix => Selection::Part(length - suffix..length),
        },
        _ => Selection::Whole,
    }
}

/// `1*DIGIT`; a number that does not fit means "beyond any end".
fn position(digits: &str) -> Option<u64> {
    let digits = digits.trim();
    let all_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    all_digits.then(|| digits.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_examples_of_the_rfc() {
        // RFC 9110 section 14.1.2, a representation of 10000 bytes.
        for (header, selects) in [
            ("bytes=0-499", Selection::Part(0..500)),
            ("bytes=500-999", Selection::Part(500..1000)),
            ("bytes=-500", Selection::Part(9500..10000)),
            ("bytes=9500-", Selection::Part(9500..10000)),
            ("bytes=9500-99999999999999999999999", Selection::Part(9500..10000)),
            ("bytes=-99999", Selection::Part(0..10000)),
            ("Bytes=0-0", Selection::Part(0..1)),
            ("bytes=10000-", Selection::Unsatisfiable),
            ("bytes=99999999999999999999999-", Selection::Unsatisfiable),
            ("bytes=-0", Selection::Unsatisfiable),
            ("bytes=5-4", Selection::Whole),
            ("bytes=0-0,-1", Selection::Whole),
            ("bytes=-", Selection::Whole),
            ("bytes=a-b", Selection::Whole),
            ("bytes=1-b", Selection::Whole),
            ("bytes=+1-2", Selection::Whole),
            ("lines=0-5", Selection::Whole),
            ("", Selection::Whole),
        ] {
            assert_eq!(select(header, 10_000), selects, "{header}");
        }
        assert_eq!(select("bytes=0-", 0), Selection::Unsatisfiable);
    }

    proptest! {
        #[test]
        fn a_part_is_never_empty_and_never_beyond_the_end(header in "(bytes=)?[0-9 ,=-]{0,30}|\\PC*", length: u64) {
            if let Selection::Part(part) = select(&header, length) {
                prop_assert!(part.start < part.end && part.end <= length);
            }
        }

        #[test]
        fn what_a_client_writes_is_what_it_gets(length in 1u64.., a: u64, b: u64) {
            let (a, b) = (a % length, b % length);
            let (first, last) = (a.min(b), a.max(b));
            prop_assert_eq!(select(&format!("bytes={first}-{last}"), length), Selection::Part(first..last + 1));
        }
    }
}
