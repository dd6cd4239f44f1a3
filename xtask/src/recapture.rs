//! `cargo xtask recapture IN OUT --as CHANGE..`: turns a capture into what another observer would
//! have recorded.

use anyhow::Context;
use fullpipe_flow::capture::recapture::{CaptureChange, CapturedRecord, Recapture, as_host};
use fullpipe_flow::capture::{Unpack, read, write};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::IpAddr;
use std::path::Path;

/// No further limit: the output keeps what the input kept of each packet.
const SNAPLEN: u32 = 262_144;
/// Offset of the link type in a pcap file's header.
const LINK_TYPE_AT: usize = 20;

/// Reads `input`, applies the changes in their order, writes `output`.
pub fn run(
    input: &Path,
    output: &Path,
    words: &[String],
    host: Option<IpAddr>,
) -> anyhow::Result<()> {
    let source = File::open(input).with_context(|| format!("open {}", input.display()))?;
    let source = Unpack::new(source).with_context(|| format!("read {}", input.display()))?;
    let target = File::create(output).with_context(|| format!("create {}", output.display()))?;
    let mut target = RecaptureTarget { file: BufWriter::new(target), begun: false };
    let mut recapture = Recapture::new(&changes(words, host)?);
    let (mut out, mut failed) = (Vec::new(), None);
    read(source, |packet| {
        recapture.push(CapturedRecord::from(packet), &mut out);
        failed = failed.take().or_else(|| target.write(&mut out).err());
    })
    .with_context(|| format!("read {}", input.display()))?;
    recapture.finish(&mut out);
    failed
        .map_or(Ok(()), Err)
        .and_then(|()| target.write(&mut out))
        .and_then(|()| target.file.flush())
        .with_context(|| format!("write {}", output.display()))
}

fn changes(words: &[String], host: Option<IpAddr>) -> anyhow::Result<Vec<CaptureChange>> {
    let mut changes = Vec::new();
    for word in words {
        match (word.as_str(), host) {
            ("host", Some(host)) => changes.extend(as_host(host)),
            _ => changes.push(CaptureChange::parse(word, host)?),
        }
    }
    Ok(changes)
}

struct RecaptureTarget {
    file: BufWriter<File>,
    begun: bool,
}

impl RecaptureTarget {
    fn write(&mut self, records: &mut Vec<CapturedRecord>) -> std::io::Result<()> {
        for record in records.drain(..) {
            if !self.begun {
                let mut header = write::file_header(SNAPLEN);
                let link_type = u32::from(record.link_type.0).to_le_bytes();
                header[LINK_TYPE_AT..].copy_from_slice(&link_type);
                self.file.write_all(&header)?;
                self.begun = true;
            }
            let (captured, original) = (record.data.len() as u32, record.original_length as u32);
            self.file.write_all(&write::record_header(record.at, captured, original))?;
            self.file.write_all(&record.data)?;
        }
        Ok(())
    }
}
