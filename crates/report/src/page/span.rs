//! The account in the order of time, as a page has room for it.

use fullpipe_flow::account::{AccountSpan, Cause, Owner};
use fullpipe_flow::connection::Direction;
use fullpipe_model::units::{Duration, Instant, column};
use serde::Serialize;

/// Most stretches of a connection: more could not be told apart above its graphs.
const MAX_SPANS: usize = 500;

/// A stretch of a connection's time. It serialises as `AccountSpan` of `web/src/data.ts`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct ShownSpan {
    /// Since the connection's first packet.
    #[serde(rename = "start_us", with = "column::micros")]
    start: Duration,
    #[serde(rename = "length_us", with = "column::micros")]
    length: Duration,
    owner: Owner,
    cause: Cause,
    #[serde(skip_serializing_if = "Option::is_none")]
    direction: Option<Direction>,
}

/// The stretches of a connection that began at `began`. Where there are too many, neighbours become
/// one, which is called what the longer of them is.
pub(super) fn shown_spans(spans: &[AccountSpan], began: Instant) -> Vec<ShownSpan> {
    let mut shown: Vec<ShownSpan> = spans
        .iter()
        .map(|&AccountSpan { start, length, owner, cause, direction }| ShownSpan {
            start: start.since(began),
            length,
            owner,
            cause,
            direction,
        })
        .collect();
    while shown.len() > MAX_SPANS {
        shown = shown.chunks(2).map(merged).collect();
    }
    shown
}

/// One stretch in place of a few neighbours.
fn merged(neighbours: &[ShownSpan]) -> ShownSpan {
    let (first, others) = (neighbours[0], &neighbours[1..]);
    let mut whole = first;
    let mut longest = first.length;
    for other in others {
        whole.length = whole.length.saturating_add(other.length);
        if other.length > longest {
            longest = other.length;
            (whole.owner, whole.cause, whole.direction) =
                (other.owner, other.cause, other.direction);
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_merged_has_the_same_time_and_the_longest_ones_name() {
        let began = Instant::from_nanos(1_000_000_000);
        let mut at = began;
        let mut spans = Vec::new();
        for turn in 0..4_000_u64 {
            let (owner, cause, length) = match turn % 2 {
                0 => (Owner::ServerApplication, Cause::ServerThinks, Duration::from_micros(70)),
                _ => (Owner::Path, Cause::Turns, Duration::from_micros(30)),
            };
            spans.push(AccountSpan { start: at, length, owner, cause, direction: None });
            at = at + length;
        }
        let shown = shown_spans(&spans, began);
        assert!((MAX_SPANS / 2..=MAX_SPANS).contains(&shown.len()), "{}", shown.len());
        let mut next = Duration::ZERO;
        for span in &shown {
            assert_eq!((span.start, span.cause), (next, Cause::ServerThinks));
            next = next.saturating_add(span.length);
        }
        assert_eq!(next, at.since(began));
        assert_eq!(shown_spans(&spans[..3], began).len(), 3, "few are as they are");
    }
}
