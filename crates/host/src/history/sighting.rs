//! Which part of a recording has a connection at a moment: for whoever links to it.
//!
//! A part has no name until it is complete, so a moment is looked for some time after it has
//! passed.

use super::past::{PART_MOST, lines_of};
use super::ring::parts_between;
use fullpipe_kernel::file::folder::Folder;
use fullpipe_model::observe::SocketEnds;
use fullpipe_model::units::{Duration, Instant};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::time::UNIX_EPOCH;

/// Files are dated by the clock's last tick, 10 ms ago at most.
const TICK: Duration = Duration::from_millis(10);

/// A connection at a moment, since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sought {
    /// The moment.
    pub at: Instant,
    /// The connection's own end and the other one.
    pub ends: SocketEnds,
}

/// Whether a recording has what was sought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sighting {
    /// The part of this name has it.
    In(String),
    /// The part of that time is not complete.
    NotYet,
    /// It has the time without that connection, or not even the time.
    Nowhere,
}

/// Looks for each of `sought` in the recording in the folder `ring`, at `now`, since 1970. A part
/// is opened only if a moment is in it, and once.
///
/// # Errors
/// The folder cannot be read.
pub fn sightings(ring: &Path, sought: &[Sought], now: Instant) -> io::Result<Vec<Sighting>> {
    let folder = Folder::open(ring)?;
    let from = sought.iter().map(|one| one.at.saturating_sub(PART_MOST)).min();
    let parts = parts_between(&folder, from.unwrap_or(now), now)?;
    let mut found = Vec::with_capacity(sought.len());
    let mut by_part: BTreeMap<&OsString, Vec<usize>> = BTreeMap::new();
    for (index, one) in sought.iter().enumerate() {
        // Parts follow each other: what a later one begins after is in none that is to come.
        let is_over = parts.last().is_some_and(|(start, _)| one.at < *start);
        let may_come = !is_over && now.since(one.at) < PART_MOST;
        let part = parts.iter().rfind(|(start, _)| *start <= one.at).map(|(_, name)| name);
        let covered = part.filter(|name| end_of(&folder, name).is_some_and(|end| one.at <= end));
        if let Some(name) = covered {
            by_part.entry(name).or_default().push(index);
        }
        found.push(if covered.is_none() && may_come {
            Sighting::NotYet
        } else {
            Sighting::Nowhere
        });
    }
    for (name, indices) in by_part {
        let marks: Vec<String> = indices.iter().map(|index| mark(sought[*index].ends)).collect();
        // A part that is damaged, or was removed meanwhile, has what came before.
        let _ = lines_of(&folder, name, |_, line| {
            for (index, mark) in indices.iter().zip(&marks) {
                if line.contains(mark) {
                    found[*index] = Sighting::In(name.to_string_lossy().into_owned());
                }
            }
            Ok(())
        });
    }
    Ok(found)
}

/// Whether the part of this name is still there.
pub fn is_there(ring: &Path, part: &str) -> bool {
    Folder::open(ring).is_ok_and(|folder| folder.open_file(part).is_ok())
}

/// When a part ends, since 1970: it is written then.
fn end_of(folder: &Folder, name: &OsString) -> Option<Instant> {
    let written = folder.open_file(name).ok()?.metadata().ok()?.modified().ok()?;
    let since = written.duration_since(UNIX_EPOCH).ok()?;
    Some(Instant::ZERO + Duration::from_nanos(u64::try_from(since.as_nanos()).ok()?) + TICK)
}

/// How the note of a connection in a part begins, behind its time.
fn mark((local, remote): SocketEnds) -> String {
    format!("\"local\":\"{local}\",\"remote\":\"{remote}\",\"note\":")
}

#[cfg(test)]
mod tests {
    use super::super::HistoryRing;
    use super::*;
    use fullpipe_flow::diagnosis::live::Note;
    use fullpipe_model::units::Bytes;
    use proptest::prelude::*;
    use std::fs::File;
    use std::io::Write;

    fn second(second: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(1_796_000_000 + second)
    }

    fn ends(port: u16) -> SocketEnds {
        (([192, 0, 2, 1], 443).into(), ([192, 0, 2, 2], port).into())
    }

    /// A part as the recorder writes it, as far as it is looked at here.
    fn part(ports: &[u16]) -> Vec<u8> {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        for port in ports {
            let (local, remote) = ends(*port);
            let note =
                Note { at: second(0), local, remote, asked: None, settings: None, socket: None };
            writeln!(out, "{note}").unwrap();
        }
        out.finish().unwrap()
    }

    /// A ring with a part of the seconds 0 to 60 and one of 60 to 120.
    fn ring(place: &Path) {
        let mut ring = HistoryRing::begin(place, Bytes::new(1_000_000)).unwrap();
        for (start, ports) in [(0, &[7, 8][..]), (60, &[9])] {
            assert!(ring.add(second(start), &part(ports)).is_none());
            let (name, _) = names(place).pop().unwrap();
            let end = UNIX_EPOCH + std::time::Duration::from_secs(1_796_000_060 + start);
            File::options().write(true).open(place.join(name)).unwrap().set_modified(end).unwrap();
        }
    }

    /// The parts, in order.
    fn names(place: &Path) -> Vec<(String, Instant)> {
        let folder = Folder::open(place).unwrap();
        let parts = parts_between(&folder, Instant::ZERO, Instant::from_nanos(u64::MAX)).unwrap();
        parts.into_iter().map(|(start, name)| (name.into_string().unwrap(), start)).collect()
    }

    #[test]
    fn a_connection_is_in_the_part_of_its_moment_or_will_be() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().join("ring");
        ring(&place);
        let names = names(&place);
        let sought = |at: u64, port: u16| Sought { at: second(at), ends: ends(port) };
        let all = [
            (sought(30, 7), Sighting::In(names[0].0.clone())),
            (sought(60, 9), Sighting::In(names[1].0.clone())),
            (sought(119, 9), Sighting::In(names[1].0.clone())),
            // Another part has it, or none.
            (sought(90, 7), Sighting::Nowhere),
            (sought(30, 70), Sighting::Nowhere),
            (sought(121, 9), Sighting::NotYet),
            // Before the recorder ran.
            (
                Sought { at: second(0).saturating_sub(Duration::from_secs(1)), ..sought(0, 7) },
                Sighting::Nowhere,
            ),
        ];
        let asked: Vec<Sought> = all.iter().map(|(sought, _)| *sought).collect();
        let expected: Vec<Sighting> = all.iter().map(|(_, expected)| expected.clone()).collect();
        assert_eq!(sightings(&place, &asked, second(131)).unwrap(), expected);
        // Nobody recorded it.
        let late = sightings(&place, &[sought(130, 9)], second(400)).unwrap();
        assert_eq!(late, [Sighting::Nowhere]);
        assert!(is_there(&place, &names[0].0) && !is_there(&place, "sockets-other"));
        assert!(sightings(&place.join("none"), &asked, second(131)).is_err());
    }

    proptest! {
        /// Whatever stands in the folder.
        #[test]
        fn a_part_that_is_none_has_nothing(bytes: Vec<u8>, cut in 0.0..1.0) {
            let place = tempfile::tempdir().unwrap();
            let place = place.path().join("ring");
            ring(&place);
            let (name, _) = names(&place).remove(0);
            let whole = part(&[7]);
            let length = (cut * whole.len() as f64) as usize;
            let written = UNIX_EPOCH + std::time::Duration::from_secs(1_796_000_060);
            for content in [bytes, whole[..length].to_vec()] {
                std::fs::write(place.join(&name), content).unwrap();
                let file = File::options().write(true).open(place.join(&name)).unwrap();
                file.set_modified(written).unwrap();
                let sought = Sought { at: second(30), ends: ends(8) };
                let found = sightings(&place, &[sought], second(131)).unwrap();
                prop_assert_eq!(found, [Sighting::Nowhere]);
            }
        }
    }
}
