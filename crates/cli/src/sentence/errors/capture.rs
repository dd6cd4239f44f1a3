//! Captures that cannot be read, and filters that cannot be understood.

use super::{Sentence, told, within};
use fullpipe_analyze::Error;
use fullpipe_flow::capture::ReadError;
use fullpipe_flow::connection::filter::{FilterError, FilterProblem};
use fullpipe_flow::{KeyLogError, WindowsError};
use fullpipe_model::observe::PrefixesError;
use fullpipe_model::observe::tool_result::ParseResultError;

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
        Error::Result { name, cause } => {
            format!("{name}：读取结果：{}", within(cause))
        }
        Error::Thread => "读取抓包：一个线程失败".into(),
    }
}

impl From<&ParseResultError> for Sentence {
    fn from(error: &ParseResultError) -> Sentence {
        let chinese = match error {
            ParseResultError::Json(problem) => format!("{problem}；文件是否被截断或修改？"),
            ParseResultError::Unknown => {
                "它不是 iperf3 --json、ndt7 或 fullpipe why --record 的结果；\
                 能读取的 JSON 只有这些"
                    .into()
            }
            ParseResultError::Failed(why) => format!("该测试失败：{why}"),
            ParseResultError::Protocol(protocol) => {
                format!("它是 {protocol} 的测试，而只有 TCP 有所寻找的限制")
            }
            ParseResultError::NoIntervals => {
                "其中没有 TCP 流的时段；iperf3 --json 会输出它们，除非给出 -i 0".into()
            }
            ParseResultError::NoTcpInfo => "服务器的测量中没有 TCPInfo".into(),
            ParseResultError::Long => "它超过 64 MiB；请输出更长的时段（iperf3 -i 10）".into(),
            ParseResultError::Impossible => "其中一个数字大于任何内核的".into(),
        };
        told(error, chinese)
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

impl From<&PrefixesError> for Sentence {
    fn from(error: &PrefixesError) -> Sentence {
        let chinese = match error {
            PrefixesError::Csv { line, problem } => format!("第 {line} 行：{problem}"),
            PrefixesError::Header { line, column, text } => format!(
                "第 {line} 行第 {column} 列：'{text}' 不是列名，或重复出现；列名有 prefix、site、provider、region，\
                 前两个必须给出"
            ),
            PrefixesError::Columns { line, columns } => {
                format!("第 {line} 行：有 {columns} 列；应为 prefix,site[,provider,region]")
            }
            PrefixesError::Prefix { line, column, text } => format!(
                "第 {line} 行第 {column} 列：'{text}' 不是前缀；请写成 192.0.2.0/24 或 2001:db8::/32"
            ),
            PrefixesError::Bits { line, column, text, meant } => {
                format!("第 {line} 行第 {column} 列：{text} 在其长度之后还有位；请写成 {meant}")
            }
            PrefixesError::Name { line, column } => {
                format!("第 {line} 行第 {column} 列：名称为空、太长，或含有终端不显示的字符")
            }
            PrefixesError::Twice { line, column, text, first } => {
                format!("第 {line} 行第 {column} 列：{text} 在第 {first} 行已经出现；请只留一个")
            }
            PrefixesError::Empty => {
                "其中没有前缀；请为每个前缀写一行：prefix,site[,provider,region]".into()
            }
        };
        told(error, chinese)
    }
}

/// Of a filter of connections.
pub fn of_value(cause: &(dyn std::error::Error + 'static)) -> Option<Sentence> {
    let error = cause.downcast_ref::<FilterError>()?;
    let FilterError { filter, problem, examples } = error;
    let example = examples.split(", ").next().unwrap_or_default();
    Some(told(
        error,
        format!("读取过滤条件 '{filter}'：{}；写法示例：{example}", of_filter(problem)),
    ))
}

/// What is wrong with it.
fn of_filter(problem: &FilterProblem) -> String {
    match problem {
        FilterProblem::NoEnd(word) => format!("'{word}' 处应为 'and'、'or' 或结尾"),
        FilterProblem::Deep { most } => format!("括号和 'not' 超过 {most} 层"),
        FilterProblem::Ends => "结尾处还缺一个条件".into(),
        FilterProblem::Unclosed => "缺少 ')'".into(),
        FilterProblem::LiveOnly(word) => format!("'{word}' 只用于实时连接：抓包中没有进程"),
        FilterProblem::OneDirection(word) => {
            format!("'{word}' 只取连接的一个方向；请写 'host' 或 'port'")
        }
        FilterProblem::NoValue(word) => format!("'{word}' 之后需要一个值"),
        FilterProblem::NoCondition(word) => format!("'{word}' 处应为一个条件"),
        FilterProblem::Unknown { word, known } => {
            format!("没有条件 '{word}'；可用的是 {}", known.replace(", ", "、"))
        }
        FilterProblem::Length { text, longest } => {
            format!("'{text}' 的 '/' 之后须为 0 到 {longest} 的长度")
        }
        FilterProblem::Range(text) => format!("'{text}' 不是范围；写法示例：8000-8080"),
        FilterProblem::Address(text) => {
            format!("'{text}' 不是 IPv4 或 IPv6 地址（不解析主机名）")
        }
        FilterProblem::Port(text) => format!("'{text}' 不是 0 到 65535 的端口"),
        FilterProblem::Pid(text) => format!("'{text}' 不是进程号"),
    }
}
