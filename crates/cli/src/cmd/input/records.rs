//! The records of a capture, one after another.

use super::twice::CopyError;
use fullpipe_flow::capture::{FileRecord, ReadError, Reader, Summary, Unpack};
use std::io::Read;

/// Calls `each` for every record with the number of the last packet until then, and in it. What
/// cannot be read further ends there, as an analysis does; only where nothing was read it fails.
pub fn each_record(
    source: impl Read + Send + 'static,
    mut each: impl FnMut(u64, &FileRecord<'_>) -> std::io::Result<()>,
) -> Result<Summary, CopyError> {
    let mut bytes = Unpack::new(source).map_err(ReadError::from)?;
    let (mut reader, mut number) = (Reader::new(), 0);
    let mut read = Ok(1);
    while matches!(read, Ok(1..)) {
        read = reader.fill(&mut bytes).map_err(ReadError::from);
        loop {
            match reader.next_record() {
                Ok(Some(record)) => {
                    number += u64::from(record.packet.is_some());
                    each(number, &record).map_err(CopyError::Write)?;
                }
                Ok(None) => break,
                Err(error) => {
                    read = Err(error);
                    break;
                }
            }
        }
    }
    match read {
        Err(cause) if number == 0 => Err(cause.into()),
        _ => Ok(reader.finish()),
    }
}
