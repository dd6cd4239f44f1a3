//! What `--capture` writes: one capture for each end of the link, with both directions in order of
//! time.
//!
//! Our link writes four streams while it runs: each direction on its way in and out. When the link
//! has ended, the two streams of each end are merged into one file and removed. netem's captures
//! are one file for each end from the beginning, with the same names.

use super::SNAPLEN;
use crate::failure::{Failure, Kind};
use crate::sentence::Sentence;
use fullpipe_analyze::{Capture, Error};
use fullpipe_flow::capture::Packet;
use fullpipe_flow::capture::write::{file_header, record_header};
use fullpipe_kernel::file::folder::Pending;
use fullpipe_link::{EDGE_STREAMS, EDGES};
use std::io::{BufWriter, Write};
use std::path::Path;

/// Why an end's capture could not be made.
#[derive(Debug, thiserror::Error)]
enum MergeError {
    #[error(transparent)]
    Read(#[from] Error),
    #[error(transparent)]
    Write(#[from] std::io::Error),
}

/// Merges the streams that our link left in `folder` into one capture for each end.
///
/// # Errors
/// A capture cannot be written; its streams stay.
pub fn merge(folder: &Path) -> Result<(), Failure> {
    for (streams, edge) in EDGE_STREAMS.into_iter().zip(EDGES) {
        let streams = streams.map(|name| folder.join(name));
        let merged = folder.join(edge);
        write_merged(Capture::merged(streams.clone()), &merged).map_err(|error| {
            let (merged, [a, b]) = (merged.display(), streams.each_ref().map(|one| one.display()));
            let problem = Sentence::new(
                format!(
                    "write capture {merged}: {error}; free some space and merge what is there: `fullpipe analyze --as-one {a} {b}`"
                ),
                format!(
                    "写入抓包 {merged}：{error}；请腾出空间并合并已有的：`fullpipe analyze --as-one {a} {b}`"
                ),
            );
            Failure::new(Kind::Run, problem)
        })?;
        // A leftover stream does no harm.
        streams.iter().for_each(|stream| drop(std::fs::remove_file(stream)));
    }
    Ok(())
}

fn write_merged(capture: Capture, path: &Path) -> Result<(), MergeError> {
    let mut file = BufWriter::with_capacity(1 << 18, Pending::at(path)?);
    file.write_all(&file_header(SNAPLEN.get() as u32))?;
    capture.for_each_packet(|packet: &Packet<'_>| {
        let header =
            record_header(packet.at, packet.data.len() as u32, packet.original_length as u32);
        file.write_all(&header)?;
        Ok::<_, MergeError>(file.write_all(packet.data)?)
    })?;
    let file = file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
    Ok(file.commit()?)
}
