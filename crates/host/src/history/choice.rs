//! Which connections are kept of a look: those that lost most time since the look before, and those
//! that moved most. What stays within this host comes after what leaves it.

use crate::watch::{LastLook, SocketKey, WatchedSocket};
use fullpipe_flow::diagnosis::live::{LookNote, NotedTime};
use fullpipe_model::limit::Limit;
use fullpipe_model::units::{Bytes, Duration, Instant};
use std::cmp::Reverse;
use std::collections::HashSet;

/// A busy connection, as the choice sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) key: SocketKey,
    pub(super) is_local: bool,
    pub(super) step: LastLook,
}

impl Candidate {
    pub(super) fn of(socket: &WatchedSocket) -> Candidate {
        let is_local = crate::why::is_loopback(socket.local, socket.remote);
        Candidate { key: socket.key, is_local, step: socket.last_look() }
    }
}

/// At most `most` of them: half of those that lost most, and as many of those that moved most; what
/// one half leaves free the other may have.
pub(super) fn choose(all: &[Candidate], most: usize) -> HashSet<SocketKey> {
    let mut by_lost: Vec<&Candidate> =
        all.iter().filter(|one| one.step.lost > Duration::ZERO).collect();
    by_lost.sort_by_key(|one| (one.is_local, Reverse(one.step.lost), one.key));
    let mut by_moved: Vec<&Candidate> =
        all.iter().filter(|one| moved(one.step) > Bytes::ZERO).collect();
    by_moved.sort_by_key(|one| (one.is_local, Reverse(moved(one.step)), one.key));
    let mut chosen = HashSet::new();
    let halves = by_lost.iter().take(most / 2).chain(by_moved.iter().take(most / 2));
    for one in halves.chain(&by_lost).chain(&by_moved) {
        if chosen.len() >= most {
            break;
        }
        chosen.insert(one.key);
    }
    chosen
}

fn moved(step: LastLook) -> Bytes {
    step.sent.saturating_add(step.received)
}

/// What all did together between two looks, the newer one at `at`; times are summed over
/// connections.
pub(super) fn sum(
    busy: &[&WatchedSocket],
    chosen: &HashSet<SocketKey>,
    at: Instant,
    length: Duration,
) -> LookNote {
    let mut look = LookNote { at, length, busy: busy.len() as u64, ..LookNote::default() };
    look.kept = chosen.len() as u64;
    let mut times = [Duration::ZERO; Limit::ALL.len()];
    for socket in busy {
        let step = socket.last_look();
        look.lost = look.lost.saturating_add(step.lost);
        if !chosen.contains(&socket.key) {
            look.lost_unkept = look.lost_unkept.saturating_add(step.lost);
        }
        look.sent = look.sent.saturating_add(step.sent);
        look.received = look.received.saturating_add(step.received);
        look.retransmissions += u64::from(step.again);
        let Some(moment) = socket.moments().next_back() else { continue };
        for held in &moment.shares {
            let time = moment.length.as_secs_f64() * held.share.clamp(0.0, 1.0);
            let slot = Limit::ALL.iter().position(|limit| *limit == held.limit);
            if let Some(slot) = slot.and_then(|slot| times.get_mut(slot)) {
                *slot = slot.saturating_add(Duration::from_secs_f64(time));
            }
        }
    }
    let held = Limit::ALL.into_iter().zip(times);
    let held = held.map(|(limit, time)| NotedTime { limit, time });
    look.limits = held.filter(|one| one.time > Duration::ZERO).collect();
    look
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn candidate((cookie, is_local, lost, moved): (u64, bool, u64, u64)) -> Candidate {
        let step = LastLook {
            lost: Duration::from_micros(lost),
            sent: Bytes::new(moved),
            ..LastLook::default()
        };
        Candidate { key: SocketKey { namespace: 1, cookie }, is_local, step }
    }

    proptest! {
        /// The bound holds, no idle one is kept, and of those that leave the host, none that lost
        /// more or moved more than one that is kept for that is left out.
        #[test]
        fn the_worst_and_the_busiest_are_kept(
            drawn in proptest::collection::btree_map(
                0_u64..200, (any::<bool>(), 0_u64..50, 0_u64..50), 0..80,
            ),
            most in 2_usize..40,
        ) {
            let all: Vec<Candidate> = drawn
                .into_iter()
                .map(|(cookie, (is_local, lost, moved))| candidate((cookie, is_local, lost, moved)))
                .collect();
            let chosen = choose(&all, most);
            let is_doing = |one: &&Candidate| one.step != LastLook::default();
            prop_assert_eq!(chosen.len(), all.iter().filter(is_doing).count().min(most));
            let figures: [fn(&Candidate) -> u64; 2] =
                [|one| one.step.lost.as_micros(), |one| one.step.sent.get()];
            for figure in figures {
                let mut far: Vec<&Candidate> =
                    all.iter().filter(|one| !one.is_local && figure(one) > 0).collect();
                far.sort_by_key(|one| Reverse(figure(one)));
                let Some(least) = far.get((most / 2).max(1) - 1).map(|one| figure(one)) else {
                    // Fewer than a half: each is there.
                    prop_assert!(far.iter().all(|one| chosen.contains(&one.key)));
                    continue;
                };
                let above = far.iter().filter(|one| figure(one) > least);
                prop_assert!(above.clone().all(|one| chosen.contains(&one.key)));
            }
        }
    }
}
