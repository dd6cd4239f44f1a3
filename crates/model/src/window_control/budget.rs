//! A budget for the windows of many connections.
//!
//! How to think about it: water that is poured into glasses of different height. Who needs little
//! gets all of it, and those who need most are cut to one level (max-min fairness, Bertsekas and
//! Gallager, Data Networks, section 6.5.2). The level becomes [`Settings::most`] of every
//! connection's law, so nothing else of the law changes.

use super::Settings;
use crate::units::{Bytes, Window};

/// The largest window that a connection may have so that all of them together stay within `budget`.
///
/// `needs` has for each connection what its peer may still send and what was not read, or its
/// window, whichever is larger. `present` is the level until now: who needs nearly all of it would
/// take more. Without such a one, the level is so far above the largest need that what is left of
/// the budget is enough if all grow by the same. It is never below [`Settings::least`], so many
/// connections may exceed a small budget, and never above [`Settings::most`].
///
/// ```
/// use fullpipe_model::units::{Bytes, Window};
/// use fullpipe_model::window_control::{Settings, level};
/// let megabytes = |count: u64| Bytes::new(count * 1_000_000);
/// let needs = [megabytes(1), megabytes(2), megabytes(50), megabytes(80)];
/// let most = Settings::default().most;
/// assert_eq!(level(megabytes(23), needs, most, &Settings::default()).bytes(), megabytes(10));
/// ```
pub fn level(
    budget: Bytes,
    needs: impl IntoIterator<Item = Bytes>,
    present: Window,
    settings: &Settings,
) -> Window {
    let present = present.bytes().get();
    let full = present - present / 16;
    let mut needs: Vec<u64> = needs
        .into_iter()
        .map(|need| if need.get() >= full { u64::MAX } else { need.get() })
        .collect();
    needs.sort_unstable();
    let mut left = budget.get();
    let mut others = needs.len() as u64;
    let mut level = None;
    for need in &needs {
        if *need > left / others {
            level = Some(left / others);
            break;
        }
        left -= need;
        others -= 1;
    }
    let level = level.unwrap_or_else(|| {
        let largest = needs.last().copied().unwrap_or(0);
        largest.saturating_add(left / needs.len().max(1) as u64)
    });
    let (least, most) = (settings.least.bytes().get(), settings.most.bytes().get());
    Window::new(Bytes::new(level.max(least).min(most)))
}
