//! Parts that are to be sent elsewhere, the oldest first, and how far that is.
//!
//! What was sent is remembered by one name in the ring's folder: parts are sent in the order of
//! their names, which is that of time, so all up to that one are gone. Whoever is killed between
//! sending and remembering sends one part again, with the same name and the same bytes.

use super::ring::is_part;
use fullpipe_kernel::file::folder::Folder;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::path::Path;

/// No capture's name, so that whoever reads the folder's captures passes it by.
const MARK: &str = ".sockets-sent.json";
/// More than a part has.
const PART_MOST: u64 = 64 << 20;

/// How far it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    /// Where the parts went.
    to: String,
    /// The name of the last one.
    last: String,
}

/// The parts of a ring that are not yet somewhere else.
///
/// **Order of calls.** [`Unsent::begin`]; [`Unsent::add`] for each part that the recorder writes;
/// and one after the other [`Unsent::take`], and [`Unsent::sent`] once it is there.
#[derive(Debug)]
pub struct Unsent {
    folder: Folder,
    to: String,
    waiting: VecDeque<String>,
    missed: u64,
}

impl Unsent {
    /// Finds what of the ring at `ring` was not sent to the place named `to`.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn begin(ring: &Path, to: &str) -> io::Result<Unsent> {
        let folder = Folder::open(ring)?;
        // One that is damaged, or of another place, says nothing of this one.
        let mark = folder.open_own_file(MARK).ok().and_then(|file| {
            let mut text = String::new();
            file.take(1 << 16).read_to_string(&mut text).ok()?;
            serde_json::from_str::<Mark>(&text).ok().filter(|mark| mark.to == to)
        });
        let names = folder.names()?.into_iter().filter_map(|name| name.into_string().ok());
        let mut names: Vec<String> = names.filter(|name| is_part(name)).collect();
        if let Some(mark) = mark {
            names.retain(|name| *name > mark.last);
        }
        names.sort_unstable();
        Ok(Unsent { folder, to: to.into(), waiting: names.into(), missed: 0 })
    }

    /// A part of this name was written.
    pub fn add(&mut self, name: String) {
        self.waiting.push_back(name);
        // However long nothing can be sent, no more names are kept than the ring has.
        while self.waiting.front().is_some_and(|oldest| self.folder.open_file(oldest).is_err()) {
            self.waiting.pop_front();
            self.missed += 1;
        }
    }

    /// The oldest part and its bytes. One that the ring has removed, or that cannot be read, is
    /// missed.
    pub fn take(&mut self) -> Option<(String, Vec<u8>)> {
        while let Some(name) = self.waiting.pop_front() {
            if let Ok(bytes) = self.read(&name) {
                return Some((name, bytes));
            }
            self.missed += 1;
        }
        None
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let file = self.folder.open_own_file(name)?;
        if file.metadata()?.len() > PART_MOST {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let mut bytes = Vec::new();
        file.take(PART_MOST).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Remembers that the part `name` is there.
    ///
    /// # Errors
    /// The folder cannot be written to: whoever goes on later sends it again.
    pub fn sent(&mut self, name: &str) -> io::Result<()> {
        let mark = Mark { to: self.to.clone(), last: name.into() };
        let mut file = self.folder.begin_nameless(MARK)?;
        file.write_all(&serde_json::to_vec(&mark)?)?;
        file.commit()
    }

    /// How many parts wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// How many the ring removed before they were taken.
    pub fn missed(&self) -> u64 {
        self.missed
    }
}

#[cfg(test)]
mod tests {
    use super::super::HistoryRing;
    use super::*;
    use fullpipe_model::units::{Bytes, Duration, Instant};
    use proptest::prelude::*;
    use std::path::PathBuf;

    /// A ring with room for so many parts, and its next minute.
    struct Ring {
        ring: HistoryRing,
        minute: u64,
        path: PathBuf,
    }

    impl Ring {
        fn of(place: &Path, parts: u64) -> Ring {
            let path = place.join("ring");
            Ring {
                ring: HistoryRing::begin(&path, Bytes::new(parts * 10)).unwrap(),
                minute: 0,
                path,
            }
        }

        /// Writes a part, whose name is returned; it has its minute as its bytes.
        fn write(&mut self) -> String {
            let at = Instant::ZERO + Duration::from_secs(1_796_000_000 + 60 * self.minute);
            assert!(self.ring.add(at, format!("{:010}", self.minute).as_bytes()).is_none());
            self.minute += 1;
            self.ring.newest().unwrap()
        }
    }

    fn minute((_, bytes): (String, Vec<u8>)) -> u64 {
        String::from_utf8(bytes).unwrap().parse().unwrap()
    }

    #[test]
    fn what_was_sent_is_not_sent_again_and_what_is_of_another_place_is() {
        let place = tempfile::tempdir().unwrap();
        let mut ring = Ring::of(place.path(), 9);
        for _ in 0..4 {
            ring.write();
        }
        std::fs::write(ring.path.join("sockets-other.gz"), b"none").unwrap();
        let mut unsent = Unsent::begin(&ring.path, "here").unwrap();
        assert_eq!(unsent.waiting(), 4);
        for expected in 0..2 {
            let taken = unsent.take().unwrap();
            unsent.sent(&taken.0).unwrap();
            assert_eq!(minute(taken), expected);
        }
        // Taken, and not sent.
        assert_eq!(minute(unsent.take().unwrap()), 2);
        let mut again = Unsent::begin(&ring.path, "here").unwrap();
        assert_eq!((again.waiting(), again.take().map(minute)), (2, Some(2)));
        assert_eq!(Unsent::begin(&ring.path, "there").unwrap().waiting(), 4);
        std::fs::write(ring.path.join(MARK), b"{").unwrap();
        assert_eq!(Unsent::begin(&ring.path, "here").unwrap().waiting(), 4);
        assert!(Unsent::begin(&place.path().join("none"), "here").is_err());
    }

    proptest! {
        /// However the ring goes on, and wherever a sender stops and begins anew: each part is
        /// sent, missed or waits, in order, and only one that was taken and not sent is sent twice.
        #[test]
        fn every_part_is_sent_or_missed_or_waits(
            steps in proptest::collection::vec(0..5_u8, 1..60), room in 1_u64..6,
        ) {
            let place = tempfile::tempdir().unwrap();
            let mut ring = Ring::of(place.path(), room);
            let mut unsent = Unsent::begin(&ring.path, "s").unwrap();
            let (mut sent, mut missed) = (Vec::new(), 0);
            let mut hand: Option<(String, Vec<u8>)> = None;
            for step in steps {
                match step {
                    0..=1 => { let name = ring.write(); unsent.add(name); }
                    2 => hand = hand.or_else(|| unsent.take()),
                    3 => if let Some(taken) = hand.take() {
                        unsent.sent(&taken.0).unwrap();
                        sent.push(minute(taken));
                    },
                    _ => {
                        // What was in hand may be gone from the ring by now.
                        let before = unsent.waiting() as u64 + u64::from(hand.take().is_some());
                        missed += unsent.missed();
                        unsent = Unsent::begin(&ring.path, "s").unwrap();
                        missed += before - unsent.waiting() as u64;
                    }
                }
            }
            let waiting = unsent.waiting() as u64 + u64::from(hand.is_some());
            prop_assert!(sent.windows(2).all(|two| two[0] < two[1]), "{sent:?}");
            prop_assert_eq!(sent.len() as u64 + missed + unsent.missed() + waiting, ring.minute);
        }
    }
}
