//! Which packet size to try next: packetization layer path MTU discovery without ICMP (RFC 4821,
//! section 7; RFC 8899, section 5.3).
//!
//! A size that was answered is carried, and everything smaller with it; one that was tried
//! [`TRIES`] times without an answer is not, nor anything larger. Sizes that links have are tried
//! first, then what lies between is halved.
//!
//! **Order of calls.** [`Search::next`]; then [`Search::answered`] or [`Search::missed`] about that
//! size; again until `next` is `None`.

/// How often a size is tried (MAX_PROBES of RFC 8899).
pub(super) const TRIES: u32 = 3;

/// What links carry: IPv6's least, PPPoE, Ethernet, jumbo frames of two clouds.
const COMMON: [u16; 5] = [1280, 1492, 1500, 8500, 9001];

/// The state of a search.
#[derive(Debug, Clone)]
pub(super) struct Search {
    /// What is carried for certain; zero before the least was answered.
    carried: u16,
    least: u16,
    /// The smallest that is not carried.
    too_large: u32,
    tries: u32,
}

impl Search {
    /// From `least` on, which every path carries (576 bytes of IPv4, 1280 of IPv6), up to `most`.
    pub fn new(least: u16, most: u16) -> Search {
        Search { carried: 0, least, too_large: u32::from(most) + 1, tries: 0 }
    }

    /// The size to try.
    pub fn next(&self) -> Option<u16> {
        if self.carried == 0 {
            return (u32::from(self.least) < self.too_large).then_some(self.least);
        }
        let carried = u32::from(self.carried);
        if carried + 1 >= self.too_large {
            return None;
        }
        let above = u16::try_from(carried + 1).ok();
        // A link's own size is mostly the path's: one byte more says so.
        if COMMON.contains(&self.carried) {
            return above;
        }
        let mut sizes = [1500].into_iter().chain(COMMON);
        let common = sizes.find(|&size| size > self.carried && u32::from(size) < self.too_large);
        common.or_else(|| u16::try_from((carried + self.too_large) / 2).ok())
    }

    /// The size was carried.
    pub fn answered(&mut self, size: u16) {
        self.carried = self.carried.max(size);
        self.tries = 0;
    }

    /// The size was not answered; for certain if a host on the way said that it is too large.
    pub fn missed(&mut self, size: u16, for_certain: bool) {
        self.tries += 1;
        if for_certain || self.tries >= TRIES {
            self.too_large = self.too_large.min(size.into());
            self.tries = 0;
        }
    }

    /// What the path carries; `None` if not even the least was answered.
    pub fn found(&self) -> Option<u16> {
        (self.carried > 0).then_some(self.carried)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Searches on a path that carries `mtu`, whose first host says what is above `local`.
    fn searched(mtu: u16, local: u16) -> (Option<u16>, u32) {
        let (mut search, mut waits) = (Search::new(576, u16::MAX), 0);
        while let Some(size) = search.next() {
            if size <= mtu.min(local) {
                search.answered(size);
            } else {
                waits += u32::from(size <= local);
                search.missed(size, size > local);
            }
        }
        (search.found(), waits)
    }

    #[test]
    fn the_sizes_of_links_take_few_probes() {
        assert_eq!(searched(1500, 1500), (Some(1500), 0));
        assert_eq!(searched(1492, 1500), (Some(1492), 2 * TRIES), "1500 and 1493 are waited for");
        assert_eq!(searched(9001, 9001), (Some(9001), 0));
        assert_eq!(searched(500, 1500), (None, TRIES), "UDP is blocked");
    }

    proptest! {
        #[test]
        fn every_path_is_found(mtu in 576u16..=u16::MAX, local in 576u16..=u16::MAX) {
            let (found, waits) = searched(mtu, local);
            prop_assert_eq!(found, Some(mtu.min(local)));
            prop_assert!(waits <= 20 * TRIES);
        }

        /// Probes that are lost now and then make no path larger than it is.
        #[test]
        fn losses_do_not_enlarge(mtu in 576u16..3000, losses: Vec<bool>) {
            let (mut search, mut losses) = (Search::new(576, 1500), losses.into_iter());
            while let Some(size) = search.next() {
                match size <= mtu && !losses.next().unwrap_or(false) {
                    true => search.answered(size),
                    false => search.missed(size, false),
                }
            }
            prop_assert!(search.found().is_none_or(|found| found <= mtu.min(1500)));
        }
    }
}
