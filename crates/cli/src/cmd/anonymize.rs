//! `fullpipe anonymize`: a capture that may be shared, and still gives the same answer.

mod check;
mod shown;

use super::input::twice::{CopyError, TwiceRead};
use super::{peer_keys, report};
use crate::failure::{Failure, Kind};
use crate::sentence::Sentence;
use crate::terminal::{print, print_json, remark};
use check::{Checked, Verdicts};
use clap::Args;
use fullpipe_analyze::Error;
use fullpipe_flow::capture::anonymize::{
    AnonymizeOptions, Anonymizer, InputMarks, Key, SharedFile,
};
use fullpipe_flow::capture::{ReadError, Reader, Unpack};
use fullpipe_kernel::file::folder::Pending;
use fullpipe_peer::PrivateKey;
use shown::Anonymized;
use std::io::Write;
use std::path::PathBuf;

/// Write a capture that may be shared: without addresses, payloads and names, and with the same
/// answer.
///
/// IP addresses are replaced so that those of one network stay in one network, cards' addresses,
/// too; of payloads a few fixed words stay that say which protocol it is. What is not TCP becomes
/// an empty record, so that packets keep their numbers. Names, comments and decryption secrets are
/// not written. When it is done, the output is searched for what the input had, and analysed: if
/// anything is found, or any connection's answer is another one, nothing is left. Ports, sizes,
/// times and TCP's own numbers stay visible.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe anonymize slow.pcapng -o shared.pcapng
  fullpipe anonymize slow.pcap.zst -o shared.pcapng --ports --shift-time
  tcpdump -i eth0 -c 100000 -w - tcp | fullpipe anonymize - -o shared.pcapng
  fullpipe keygen a.key
  fullpipe anonymize client.pcap -o c.pcapng --key-file a.key
  fullpipe anonymize server.pcap -o s.pcapng --key-file a.key; fullpipe analyze --both c.pcapng s.pcapng

Exit code 1: something of the input was found in the output, which is removed.")]
pub struct Anonymize {
    /// The capture, as `analyze` reads it; `-` is standard input.
    #[arg(value_name = "FILE")]
    input: PathBuf,
    /// The pcapng file to write; one that exists is replaced, but never the input.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// A key that `fullpipe keygen` made: captures under one key still belong together [default: a
    /// new key, which is forgotten].
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Replace ports, too: those from 1024 on that are not registered for a protocol that the
    /// analysis names.
    #[arg(long)]
    ports: bool,
    /// Move all times by up to 17 years, by whole seconds that the key decides.
    #[arg(long)]
    shift_time: bool,
    /// Keep the length of payloads as zeroes, in place of packets that end behind their headers:
    /// then others can check checksums.
    #[arg(long)]
    zeroes: bool,
    /// Do not search and analyse the output: half the time.
    #[arg(long)]
    no_check: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// So many keys are drawn at most: one in some hundred makes an address of the input of another.
const MOST_KEYS: usize = 4;
/// Output that is gathered before it is written.
const WRITE_AT: usize = 1 << 18;

impl Anonymize {
    pub fn run(self) -> Result<u8, Failure> {
        let given = self.given_key()?;
        let source = TwiceRead::open(&self.input, &self.output)?;
        if source.is(&self.output) {
            let problem = Sentence::new(
                "anonymize: -o names the input itself; name another file",
                "anonymize：-o 就是输入文件本身；请给出另一个文件",
            );
            return Err(Failure::new(Kind::Usage, problem));
        }
        match given {
            Some(key) => self.under(std::iter::once(Ok(key)), &source),
            None => self.under(std::iter::repeat_with(drawn_key).take(MOST_KEYS), &source),
        }
    }

    /// Writes it under the first of `keys` that makes no address of the input of another one.
    fn under(
        &self,
        keys: impl Iterator<Item = Result<Key, Failure>>,
        source: &TwiceRead,
    ) -> Result<u8, Failure> {
        let mut refused = None;
        for key in keys {
            let attempt = self.attempt(&key?, source)?;
            if attempt.outcome.is_clean() {
                return self.accept(attempt);
            }
            let is_over = !attempt.outcome.may_be_the_key();
            refused = Some(attempt.outcome);
            if is_over {
                break;
            }
        }
        refused.map_or(Ok(0), |outcome| self.refused(&outcome))
    }

    /// Writes it under this key, and holds it to the input.
    fn attempt(&self, key: &Key, source: &TwiceRead) -> Result<Attempt, Failure> {
        let options = AnonymizeOptions {
            ports: self.ports,
            shift_time: self.shift_time,
            zeroes: self.zeroes,
        };
        let mut work = Work {
            anonymizer: Anonymizer::new(key, options),
            marks: (!self.no_check).then(InputMarks::default),
            problem: None,
            bytes: 0,
        };
        let mut pending =
            Pending::nameless_at(&self.output).map_err(|cause| self.not_written(&cause))?;
        let before = match self.no_check {
            true => None,
            false => Some(Verdicts::of(source, Some(&work.anonymizer))?),
        };
        work.write(source, &mut pending).map_err(|failed| match failed {
            CopyError::Write(cause) => self.not_written(&cause),
            CopyError::Read(cause) => {
                let error = Error::Read { name: source.name().into(), cause };
                Failure::new(Kind::Input, Sentence::from(&error))
            }
        })?;
        let checked = match before {
            Some(before) => {
                let marks = work.marks.take().unwrap_or_default();
                let checked = Checked::of(&pending, before, marks, work.anonymizer.addresses());
                Some(checked.map_err(|cause| self.not_written(&cause))?)
            }
            None => None,
        };
        let outcome = Anonymized::new(self, &mut work, checked);
        Ok(Attempt { pending, outcome, problem: work.problem })
    }

    /// Gives the file its name.
    fn accept(&self, attempt: Attempt) -> Result<u8, Failure> {
        let Attempt { pending, outcome, problem } = attempt;
        pending.commit().map_err(|cause| self.not_written(&cause))?;
        if self.json {
            print_json(&outcome)?;
        } else {
            print(&outcome.text())?;
        }
        let Some(problem) = &problem else { return Ok(0) };
        remark(&format!("fullpipe: {}", problem.here()));
        Ok(Failure::code(Kind::Input))
    }

    fn given_key(&self) -> Result<Option<Key>, Failure> {
        let key = self.key_file.as_deref().map(peer_keys::private_key).transpose()?;
        Ok(key.map(|key| Key(key.secret())))
    }

    /// That -o names no file that can be written.
    fn not_written(&self, cause: &std::io::Error) -> Failure {
        Failure::new(Kind::Run, report::not_written(&self.output, cause))
    }

    /// Something of the input is in the output, or an answer is another one.
    fn refused(&self, outcome: &Anonymized) -> Result<u8, Failure> {
        if self.json {
            print_json(outcome)?;
        }
        Err(Failure::new(Kind::Run, outcome.refusal()))
    }
}

/// A key that nobody else knows.
fn drawn_key() -> Result<Key, Failure> {
    let key = PrivateKey::generate().ok_or_else(|| {
        let problem = Sentence::new(
            "anonymize: this host has no randomness for a key; name one with --key-file",
            "anonymize：本机没有用于密钥的随机数；请用 --key-file 给出密钥",
        );
        Failure::new(Kind::Missing, problem)
    })?;
    Ok(Key(key.secret()))
}

/// What was written under one key.
struct Attempt {
    pending: Pending,
    outcome: Anonymized,
    /// Why the input was not read to its end.
    problem: Option<Sentence>,
}

/// A capture on its way.
struct Work {
    anonymizer: Anonymizer,
    marks: Option<InputMarks>,
    /// Why it was not read to its end.
    problem: Option<Sentence>,
    /// Written so far.
    bytes: u64,
}

impl Work {
    /// Reads all packets and writes them anew. What cannot be read further ends the output there,
    /// as it ends an analysis; only where nothing was read it fails.
    fn write(&mut self, source: &TwiceRead, to: &mut impl Write) -> Result<(), CopyError> {
        let mut bytes = source.reader().and_then(Unpack::new).map_err(ReadError::from)?;
        let (mut reader, mut out) = (Reader::new(), Vec::with_capacity(2 * WRITE_AT));
        let mut file = SharedFile::begin(&mut out);
        let mut read = Ok(1);
        while matches!(read, Ok(1..)) {
            read = reader.fill(&mut bytes).map_err(ReadError::from);
            loop {
                match reader.next_with_interfaces() {
                    Ok(Some((packet, interfaces))) => {
                        let shared =
                            file.packet(&packet, interfaces, &mut self.anonymizer, &mut out);
                        if let Some(marks) = &mut self.marks {
                            marks.packet(packet.data, shared.payload);
                        }
                    }
                    Ok(None) => break,
                    Err(error) => {
                        read = Err(error);
                        break;
                    }
                }
                if out.len() >= WRITE_AT {
                    self.flush(&mut out, to)?;
                }
            }
        }
        let summary = reader.finish();
        file.end(&summary, &mut out);
        self.flush(&mut out, to)?;
        let name = source.name().to_owned();
        let problem = match read {
            Err(cause) if summary.packets == 0 => return Err(cause.into()),
            Err(cause) => Error::Read { name, cause },
            Ok(_) if summary.cut > 0 => {
                Error::Cut { name, bytes: summary.cut, packets: summary.packets }
            }
            Ok(_) if !summary.recognised => Error::Empty { name },
            Ok(_) => return Ok(()),
        };
        self.problem = Some(Sentence::from(&problem));
        Ok(())
    }

    fn flush(&mut self, out: &mut Vec<u8>, to: &mut impl Write) -> Result<(), CopyError> {
        to.write_all(out).map_err(CopyError::Write)?;
        self.bytes += out.len() as u64;
        out.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
