//! A budget for the windows of many connections.
//!
//! How to think about it: water that is poured into glasses of different height. Who needs little
//! gets all of it, and those who need most are cut to one level (max-min fairness, Bertsekas and
//! Gallager, Data Networks, section 6.5.2). The level becomes [`Settings::most`] of every
//! connection's law, so nothing else of the law changes. A glass whose bottom is above the level
//! has two segments in it, and the others share what that leaves.

use super::Settings;
use crate::units::{Bytes, Window};

/// The largest window that a connection may have so that all of them together stay within `budget`.
///
/// `needs` has for each connection what its peer may still send and what was not read, or its
/// window, whichever is larger; and two of its segments ([`super::Look::least`]), which it has
/// whatever the level. `present` is the level until now: who needs nearly all of it would take
/// more.
/// Without such a one, the level is so far above the largest need that what is left of the budget
/// is enough if all grow by the same. It is never below [`Settings::least`], so many
/// connections may
/// exceed a small budget (see [`least_budget`]), and never above [`Settings::most`].
///
/// ```
/// use fullpipe_model::units::{Bytes, Window};
/// use fullpipe_model::tune::window_control::{Settings, level};
/// let segments = Window::new(Bytes::new(2 * 1448));
/// let megabytes = |count: u64| Bytes::new(count * 1_000_000);
/// let needs = [1, 2, 50, 80].map(|count| (megabytes(count), segments));
/// let most = Settings::default().most;
/// assert_eq!(level(megabytes(23), needs, most, &Settings::default()).bytes(), megabytes(10));
/// ```
pub fn level(
    budget: Bytes,
    needs: impl IntoIterator<Item = (Bytes, Window)>,
    present: Window,
    settings: &Settings,
) -> Window {
    let present = present.bytes().get();
    let full = present - present / 16;
    let mut left = budget.get();
    let mut needs: Vec<(u64, u64)> = needs
        .into_iter()
        .map(|(need, least)| {
            let (need, least) = (need.get(), least.bytes().get());
            (if need >= full.max(least) { u64::MAX } else { need.max(least) }, least)
        })
        .collect();
    needs.sort_unstable();
    let (least, most) = (settings.least.bytes().get(), settings.most.bytes().get());
    loop {
        let level = poured(left, &needs);
        let before = needs.len();
        needs.retain(|&(_, bottom)| {
            let is_below = bottom <= level;
            left = left.saturating_sub(if is_below { 0 } else { bottom });
            is_below
        });
        if needs.len() == before || needs.is_empty() {
            return Window::new(Bytes::new(level.max(least).min(most)));
        }
    }
}

/// The level at which sorted `needs` take up what is `left`.
fn poured(mut left: u64, needs: &[(u64, u64)]) -> u64 {
    let mut others = needs.len() as u64;
    for (need, _) in needs {
        if *need > left / others {
            return left / others;
        }
        left -= need;
        others -= 1;
    }
    let largest = needs.last().map_or(0, |(need, _)| *need);
    largest.saturating_add(left / needs.len().max(1) as u64)
}

/// The smallest budget that connections can keep, given two segments of each: every one has those,
/// or [`Settings::least`].
pub fn least_budget(two_segments: impl IntoIterator<Item = Window>, settings: &Settings) -> Bytes {
    let each = two_segments.into_iter().map(|two| two.max(settings.least).bytes().get());
    Bytes::new(each.fold(0, u64::saturating_add))
}
