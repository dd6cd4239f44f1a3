//! HTTP/2's windows in a line for each direction, where its frames could be read.

use crate::labels;
use fullpipe_flow::connection::{Connection, Direction};
use fullpipe_flow::finding::words::with_commas;
use fullpipe_flow::{FlowControl, FlowWindow, Language};
use fullpipe_model::units::Bytes;

/// The most streams in a line.
const STREAMS: usize = 3;

/// Those lines; none where no frames were read, or none had data.
pub fn http2(connection: &Connection, language: Language) -> Vec<String> {
    let both = [Direction::ClientToServer, Direction::ServerToClient];
    let lines = both.into_iter().filter_map(|direction| {
        let control = connection.facts(direction).http2.as_deref()?;
        let way = labels::direction(language, direction);
        (control.data > Bytes::ZERO).then(|| line(control, way, language))
    });
    lines.collect()
}

fn line(control: &FlowControl, way: &str, language: Language) -> String {
    let FlowControl { streams, data, connection, is_whole, .. } = control;
    let window = with_commas(connection.window.get());
    let found = match (language, control.most_waited()) {
        (Language::English, None) if control.never_bound() => {
            "HTTP/2's windows never bound".to_owned()
        }
        (Language::English, None) if *is_whole => format!(
            "HTTP/2's windows were used up {} times, and its frames do not say whether that held it",
            control.used_up
        ),
        (Language::Chinese, None) if *is_whole => {
            format!("HTTP/2 的窗口用完了 {} 次，从帧中看不出是否因此等待", control.used_up)
        }
        (Language::English, None) => {
            "HTTP/2's windows did not bind as far as they were read".to_owned()
        }
        (Language::Chinese, None) if control.never_bound() => {
            "HTTP/2 的窗口从未成为限制".to_owned()
        }
        (Language::Chinese, None) => "在读到的范围内，HTTP/2 的窗口没有成为限制".to_owned(),
        (_, Some(_)) => {
            let all = control.worst.iter().take(STREAMS).chain([connection]);
            let waits = all.filter(|one| one.waits > 0).map(|one| waited(one, language));
            waits.collect::<Vec<_>>().join(if language == Language::English { "; " } else { "；" })
        }
    };
    match language {
        Language::English => {
            let count =
                if *streams == 1 { "1 stream".into() } else { format!("{streams} streams") };
            format!(
                "HTTP/2 {way}: {count}, {data} in frames, the connection's window {window} bytes: \
                 {found}"
            )
        }
        Language::Chinese => {
            format!(
                "HTTP/2 {way}：{streams} 个流，帧中数据 {data}，连接的窗口 {window} 字节：{found}"
            )
        }
    }
}

/// Who waited, for how much of its time.
fn waited(window: &FlowWindow, language: Language) -> String {
    let FlowWindow { stream, window: size, waited, .. } = window;
    let (percent, size) = (window.part() * 100.0, with_commas(size.get()));
    match (language, stream) {
        (Language::English, 0) => {
            format!("the connection waited for its window {percent:.0} % of the time ({waited})")
        }
        (Language::English, stream) => format!(
            "stream {stream} waited for its window of {size} bytes {percent:.0} % of its time \
             ({waited})"
        ),
        (Language::Chinese, 0) => format!("连接有 {percent:.0} % 的时间（{waited}）在等待其窗口"),
        (Language::Chinese, stream) => {
            format!("流 {stream} 有 {percent:.0} % 的时间（{waited}）在等待其 {size} 字节的窗口")
        }
    }
}
