//! Captures that cannot be read, and filters that cannot be understood.

use super::{Sentence, told, within};
use fullpipe_analyze::Error;
use fullpipe_flow::capture::ReadError;
use fullpipe_flow::connection::filter::FilterError;
use fullpipe_flow::{KeyLogError, WindowsError};

impl From<&Error> for Sentence {
    fn from(error: &Error) -> Sentence {
        told(error, chinese(error))
    }
}

fn chinese(error: &Error) -> String {
    match error {
        Error::Open { path, cause } => {
            format!("打开 {}：{cause}；抓包文件由 tcpdump -w 或 dumpcap 生成", path.display())
        }
        Error::Read { name, cause } => format!("{name}：{}", within(cause)),
        Error::Empty { name } => {
            format!("{name}：读取抓包：其中什么也没有；抓包至少有一个文件头")
        }
        Error::Cut { name, bytes, packets } => format!(
            "{name}：读取抓包：文件在一个数据包中间结束，最后一个完整的包之后还有 {bytes} 字节；\
             已分析之前的 {packets} 个数据包"
        ),
        Error::Sample { name, line, cause, samples } => {
            format!("{name}：读取采样：第 {line} 行：{cause}；已分析之前的 {samples} 次采样")
        }
        Error::Thread => "读取抓包：一个线程失败".into(),
    }
}

impl From<&ReadError> for Sentence {
    fn from(error: &ReadError) -> Sentence {
        let chinese = match error {
            ReadError::Format { magic } => format!(
                "读取抓包：文件以 '{}' 开头，既不是 pcap、pcapng，也不是 snoop（或它们的 gzip、zstd、\
                 xz、lz4 压缩）；用其他方式压缩的请先解压并以 `-` 为文件名（`bzcat FILE | fullpipe \
                 analyze -`），其他格式请用 `editcap -F pcapng IN OUT` 转换",
                magic.escape_ascii()
            ),
            ReadError::Record { offset, problem, packets } => format!(
                "读取抓包：第 {offset} 字节处的记录有误（{problem}）；已读取之前的数据包，共 {packets} 个"
            ),
            ReadError::Source(cause) => format!("读取抓包：{cause}；已读取之前的数据包"),
        };
        told(error, chinese)
    }
}

impl From<&KeyLogError> for Sentence {
    fn from(error: &KeyLogError) -> Sentence {
        let chinese = match error {
            KeyLogError::NoSecrets { lines } => format!(
                "其 {lines} 行中没有一行是 NSS 密钥日志的密钥：CLIENT_TRAFFIC_SECRET_0、\
                 SERVER_TRAFFIC_SECRET_0（TLS 1.3）或 CLIENT_RANDOM（TLS 1.2），后接两个十六进制数"
            ),
        };
        Sentence::new(error.to_string(), chinese)
    }
}

impl From<&WindowsError> for Sentence {
    fn from(error: &WindowsError) -> Sentence {
        let chinese = match error {
            WindowsError::Toml { line, problem } => format!("第 {line} 行：{problem}"),
            WindowsError::Protocol { line, name } => {
                format!("第 {line} 行：没有协议 '{name}'；可用的见结果的 protocol 列")
            }
            WindowsError::Window { line, problem } => {
                format!("第 {line} 行：窗口大小有误：{problem}")
            }
            WindowsError::Version { line, text } => {
                format!("第 {line} 行：'{text}' 不是版本；请给出前两个数字，如 9.2")
            }
            WindowsError::NoBanner { line } => {
                format!("第 {line} 行：版本在程序自称的名字之后读取；请同时给出 banner")
            }
            WindowsError::Text { line, key } => {
                format!("第 {line} 行：`{key}` 为空、太长，或含有终端不显示的字符")
            }
            WindowsError::Empty => "其中没有 [[window]]".into(),
        };
        told(error, chinese)
    }
}

/// Of a filter of connections.
pub fn of_value(cause: &(dyn std::error::Error + 'static)) -> Option<Sentence> {
    let error = cause.downcast_ref::<FilterError>()?;
    Some(told(
        error,
        format!(
            "无法理解这个过滤条件；可用 host、net、port、portrange、and、or、not 和括号（{error}）"
        ),
    ))
}
