//! Holds the output to the input: nothing of what was there may be found in it, and each
//! connection's answer must be the same.

use crate::cmd::input::twice::{TwiceRead, reopened};
use crate::failure::{Failure, Kind};
use crate::sentence::Sentence;
use fullpipe_analyze::{Capture, Options};
use fullpipe_flow::Config;
use fullpipe_flow::capture::anonymize::{
    AddressMap, Anonymizer, Find, FindKind, InputMarks, Search,
};
use fullpipe_kernel::file::folder::Pending;
use std::fs::File;
use std::io::Read;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;

/// What the check found.
#[derive(Debug, serde::Serialize)]
pub struct Checked {
    /// Connections whose answer was compared.
    pub connections: u64,
    /// Those whose answer is another one, by their numbers; the first few.
    pub other_answers: Vec<u64>,
    /// Of all parts of payloads that tell something, one of so many was looked for.
    pub searched_one_of: u64,
    /// How much of the input was found in the output.
    pub found: u64,
    /// The first of it.
    pub finds: Vec<Find>,
}

/// The most connections that are named.
const NAMED: usize = 8;
/// Bytes that are read at once.
const CHUNK: usize = 1 << 18;
/// Answers that wait for the other side's.
const WAITING: usize = 4;

/// What the analysis says of each connection of a capture, as JSON, in its order.
pub struct Verdicts {
    rounds: Receiver<Vec<Vec<u8>>>,
    thread: JoinHandle<()>,
}

impl Verdicts {
    /// Begins to analyse the source in a thread of its own, with the addresses that an anonymizer
    /// gives.
    ///
    /// # Errors
    /// The source cannot be read again.
    pub fn of(source: &TwiceRead, under: Option<&Anonymizer>) -> Result<Verdicts, Failure> {
        let file = source.again().map_err(|cause| {
            let name = source.name();
            let what = Sentence::new(format!("read {name} again"), format!("再次读取 {name}"));
            Failure::new(Kind::Input, what.with(cause))
        })?;
        Ok(Verdicts::of_file(file, under.map(Anonymizer::another)))
    }

    fn of_file(file: File, mut under: Option<Anonymizer>) -> Verdicts {
        let (give, rounds) = sync_channel(WAITING);
        let thread = std::thread::spawn(move || {
            // The output has no payload whose frames could be read.
            let options = Options::from(Config { frames: false, ..Config::default() });
            let mut connections =
                Capture::reader("capture", file).connections_without_findings(&options);
            while let Some(mut round) = connections.next_round() {
                round.iter_mut().for_each(|one| one.connection.forget_names());
                if let Some(anonymizer) = &mut under {
                    for one in &mut round {
                        replace(&mut one.connection.client, anonymizer);
                        replace(&mut one.connection.server, anonymizer);
                        one.connection.start = one.connection.start + anonymizer.shift();
                    }
                }
                let written = round.iter().map(|one| serde_json::to_vec(one).unwrap_or_default());
                if give.send(written.collect()).is_err() {
                    return;
                }
            }
        });
        Verdicts { rounds, thread }
    }
}

fn replace(end: &mut SocketAddr, anonymizer: &mut Anonymizer) {
    let port = anonymizer.port(end.port());
    *end = SocketAddr::new(anonymizer.addresses().ip(end.ip()), port);
}

impl Checked {
    /// Reads the output again.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn of(
        output: &Pending,
        before: Verdicts,
        mut marks: InputMarks,
        addresses: &AddressMap,
    ) -> std::io::Result<Checked> {
        let file = output.handle()?;
        let after = Verdicts::of_file(reopened(&file)?, None);
        marks.finish(addresses);
        let mut search = Search::new(&marks);
        let (mut bytes, mut output) = (vec![0; CHUNK], reopened(&file)?);
        loop {
            match output.read(&mut bytes)? {
                0 => break,
                length => search.look(&bytes[..length]),
            }
        }
        let (found, finds) = search.finish();
        let (connections, other_answers) = compare(before, after);
        Ok(Checked { connections, other_answers, searched_one_of: marks.share(), found, finds })
    }

    /// Whether nothing was found, and every answer is the same.
    pub fn is_clean(&self) -> bool {
        self.found == 0 && self.other_answers.is_empty()
    }

    /// Whether only addresses were found: the key may have made them of others.
    pub fn may_be_the_key(&self) -> bool {
        let is_payload = |find: &Find| find.kind == FindKind::Payload;
        self.other_answers.is_empty() && self.found > 0 && !self.finds.iter().any(is_payload)
    }
}

/// How many connections there are, and which of them have another answer.
fn compare(before: Verdicts, after: Verdicts) -> (u64, Vec<u64>) {
    let [mut one, mut other] = [&before, &after].map(|side| side.rounds.iter().flatten());
    let (mut count, mut different) = (0, Vec::new());
    loop {
        let (was, is) = (one.next(), other.next());
        if was.is_none() && is.is_none() {
            break;
        }
        if was != is && different.len() < NAMED {
            different.push(count);
        }
        count += 1;
    }
    drop((one, other));
    for side in [before, after] {
        let Verdicts { rounds, thread } = side;
        drop(rounds);
        if let Err(panic) = thread.join() {
            std::panic::resume_unwind(panic);
        }
    }
    (count, different)
}
