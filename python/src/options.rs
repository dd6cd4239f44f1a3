//! Keyword arguments as the options of an analysis; their words are those of the command line.

use fullpipe_analyze::Options;
use fullpipe_columnar::RowSource;
use fullpipe_flow::Config;
use fullpipe_flow::capture::Layer;
use fullpipe_flow::connection::Labels;
use fullpipe_flow::connection::filter::Filter;
use fullpipe_flow::limit::CapturePoint;
use pyo3::PyResult;
use pyo3::exceptions::PyValueError;
use std::num::NonZeroUsize;

/// What the rows of this name are of.
///
/// # Errors
/// There are no such rows.
pub fn source_of(name: &str) -> PyResult<RowSource> {
    let sources: Vec<_> = RowSource::all().map(|source| (source.name(), source)).collect();
    word("rows", name, &sources)
}

/// The value that `given` stands for.
///
/// # Errors
/// It is none of `words`.
pub fn word<T: Copy>(option: &str, given: &str, words: &[(&str, T)]) -> PyResult<T> {
    if let Some((_, value)) = words.iter().find(|(word, _)| *word == given) {
        return Ok(*value);
    }
    let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
    let problem = format!("analyze: {option}={given:?}: possible values: {}", words.join(", "));
    Err(PyValueError::new_err(problem))
}

/// Options of an analysis.
///
/// # Errors
/// A word is unknown, the filter cannot be parsed, or there would be no thread.
pub fn options_of(
    filter: Option<&str>,
    capture_point: &str,
    layer: &str,
    labels: &str,
    threads: usize,
) -> PyResult<Options> {
    let points = [
        ("auto", CapturePoint::Unknown),
        ("sender", CapturePoint::SenderEdge),
        ("receiver", CapturePoint::ReceiverEdge),
    ];
    let filter = filter
        .map(str::parse::<Filter>)
        .transpose()
        .map_err(|error| PyValueError::new_err(error.to_string()))?;
    let threads = NonZeroUsize::new(threads)
        .ok_or_else(|| PyValueError::new_err("analyze: threads=0: there must be one or more"))?;
    let config = Config {
        filter,
        capture_point: word("capture_point", capture_point, &points)?,
        layer: word("layer", layer, &[("inner", Layer::Inner), ("outer", Layer::Outer)])?,
        labels: word(
            "labels",
            labels,
            &[("sack", Labels::Sack), ("wireshark", Labels::Wireshark)],
        )?,
        ..Config::default()
    };
    Ok(Options { config, threads })
}
