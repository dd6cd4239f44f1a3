//! Quantities, names and scenarios that make no sense.

use super::{Sentence, told, within};
use fullpipe_kernel::host::sysctl::NameError;
use fullpipe_lab::ShardError;
use fullpipe_model::change::{ParseKnobError, ParseMemTripleError, ValueError};
use fullpipe_model::law::kernel_version::ParseKernelVersionError;
use fullpipe_model::link::{TableError, TraceError, WordsError};
use fullpipe_model::scenario::{OverrideError, Position, ScenarioError};
use fullpipe_model::tune::MeasuredPathError;
use fullpipe_model::tune::prove::RebuildError;
use fullpipe_model::units::ParseError;
use std::error::Error;

/// Of an option's value.
pub fn of_value(cause: &(dyn Error + 'static)) -> Option<Sentence> {
    let of = cause.downcast_ref::<ParseError>().map(Sentence::from);
    let of = of.or_else(|| cause.downcast_ref::<ParseKnobError>().map(Sentence::from));
    let of = of.or_else(|| cause.downcast_ref::<ValueError>().map(Sentence::from));
    let of = of.or_else(|| cause.downcast_ref::<ParseKernelVersionError>().map(Sentence::from));
    let of = of.or_else(|| cause.downcast_ref::<WordsError>().map(Sentence::from));
    let of = of.or_else(|| cause.downcast_ref::<OverrideError>().map(Sentence::from));
    let of = of.or_else(|| cause.downcast_ref::<ParseMemTripleError>().map(Sentence::from));
    let of = of.or_else(|| cause.downcast_ref::<NameError>().map(Sentence::from));
    of.or_else(|| cause.downcast_ref::<ShardError>().map(Sentence::from))
}

/// A quantity's name.
fn quantity(english: &str) -> &str {
    match english {
        "rate" => "速率",
        "size" => "大小",
        "time" => "时间",
        "probability" => "概率",
        "queue" => "队列",
        other => other,
    }
}

/// How it is written.
fn example(english: &str) -> &str {
    match english {
        "1gbit (bits) or 125MB/s (bytes)" => "1gbit（比特）或 125MB/s（字节）",
        "6.25MB (10^6 bytes) or 16MiB (2^20 bytes)" => "6.25MB（10^6 字节）或 16MiB（2^20 字节）",
        "146ms, 50us or 1.5s" => "146ms、50us 或 1.5s",
        "1% or 0.01" => "1% 或 0.01",
        "100% for always" => "100%（总是）",
        other => other,
    }
}

impl From<&ParseError> for Sentence {
    fn from(error: &ParseError) -> Sentence {
        let chinese = match error {
            ParseError::NoNumber { quantity: of, text, example: like } => {
                format!("{} '{text}'：没有数字；写法示例：{}", quantity(of), example(like))
            }
            ParseError::Unit { quantity: of, text, example: like, .. } => {
                format!(
                    "{} '{text}'：缺少单位，或单位不明；写法示例：{}",
                    quantity(of),
                    example(like)
                )
            }
            ParseError::Range { quantity: of, text, min, max } => {
                format!("{} '{text}'：超出范围，须在 {min} 与 {max} 之间", quantity(of))
            }
        };
        told(error, chinese)
    }
}

impl From<&ParseKnobError> for Sentence {
    fn from(error: &ParseKnobError) -> Sentence {
        let chinese = format!(
            "设置 '{}'：没有叫这个名字的可调项；写法示例：net.ipv4.tcp_rmem、'device eth0 txqueuelen' \
             或 'route default dev eth0 initcwnd'（`fullpipe tune settings` 列出全部）",
            error.text
        );
        told(error, chinese)
    }
}

impl From<&ValueError> for Sentence {
    fn from(error: &ValueError) -> Sentence {
        let ValueError { knob, value, wanted } = error;
        told(error, format!("设置 {knob}：'{value}' 不是它的值；请写 {wanted}"))
    }
}

impl From<&ParseKernelVersionError> for Sentence {
    fn from(error: &ParseKernelVersionError) -> Sentence {
        let chinese = format!(
            "内核版本 '{}'：无法读取；写法示例：6.1 或 6.12.8-amd64，如 uname -r 所示",
            error.text
        );
        told(error, chinese)
    }
}

impl From<&ParseMemTripleError> for Sentence {
    fn from(error: &ParseMemTripleError) -> Sentence {
        let chinese = format!(
            "内存三元组 '{}'：不是三个整数字节数；写法示例：4096 131072 6291456",
            error.text
        );
        told(error, chinese)
    }
}

impl From<&WordsError> for Sentence {
    fn from(error: &WordsError) -> Sentence {
        let WordsError { word, text, problem, example } = error;
        told(error, format!("{word} '{text}' 有误（{problem}）；写法示例：{example}"))
    }
}

impl From<&OverrideError> for Sentence {
    fn from(error: &OverrideError) -> Sentence {
        told(error, format!("请写 KEY=VALUE，例如 link.rtt=50ms（{error}）"))
    }
}

impl From<&ShardError> for Sentence {
    fn from(error: &ShardError) -> Sentence {
        told(error, "写法示例：3/16，即十六片中的第三片")
    }
}

impl From<&TraceError> for Sentence {
    fn from(error: &TraceError) -> Sentence {
        let chinese = match error {
            TraceError::Line { line, text } => {
                format!("轨迹：第 {line} 行 '{text}' 不是整数毫秒")
            }
            TraceError::Order { line, time } => {
                format!("轨迹：第 {line} 行为 {time} ms，早于上一行；时间不能减小")
            }
            TraceError::Empty => "轨迹：最后的时间是其长度，至少为 1 ms".into(),
            TraceError::TooLong => "轨迹：行数太多".into(),
        };
        told(error, chinese)
    }
}

impl From<&TableError> for Sentence {
    fn from(error: &TableError) -> Sentence {
        let chinese = match error {
            TableError::Name(name) => format!(
                "没有分布 {name}；可用的是 uniform、normal、pareto、paretonormal、file:PATH 和 table:N,N,.."
            ),
            TableError::Entry { index, text } => {
                format!("分布表：第 {index} 项 '{text}' 不是 -32768 与 32767 之间的整数")
            }
            TableError::Size(count) => format!("分布表：有 {count} 项，数目不合要求"),
        };
        told(error, chinese)
    }
}

impl From<&MeasuredPathError> for Sentence {
    fn from(error: &MeasuredPathError) -> Sentence {
        let chinese = match error {
            MeasuredPathError::Json(cause) => {
                format!("读取测得的路径：不是 JSON：{cause}；请用 `fullpipe why --json` 写出")
            }
            MeasuredPathError::None => {
                "读取测得的路径：其中没有：没有一项带有 rtt_us 和 goodput_bps\
                                        （本身或在键 path 之下）；请用 `fullpipe why --json` 写出"
                    .into()
            }
            MeasuredPathError::Number { asked, found } => {
                format!("读取测得的路径：没有编号为 {asked} 的连接：有路径的连接共 {found} 个")
            }
            MeasuredPathError::Impossible(cause) => format!("读取测得的路径：{cause}"),
        };
        told(error, chinese)
    }
}

/// "line 2, column 8: ".
fn place(position: &Option<Position>) -> String {
    position
        .as_ref()
        .map_or_else(String::new, |at| format!("第 {} 行第 {} 列：", at.line, at.column))
}

impl From<&ScenarioError> for Sentence {
    fn from(error: &ScenarioError) -> Sentence {
        let chinese = match error {
            ScenarioError::Toml { position, key, problem } => {
                let key = key.as_ref().map_or_else(String::new, |key| format!("（`{key}`）"));
                format!("{}{problem}{key}", place(position))
            }
            ScenarioError::Row { row, problem } => format!("{row}：{problem}"),
            ScenarioError::IncludeAndOwn => {
                "`include` 列出其他场景：不能与 [hosts]、[link]、[transfer]、\
                                             [matrix]、[[cases]] 或 [[also]] 同用"
                    .into()
            }
            ScenarioError::TooManyRuns { runs, most } => format!(
                "cases、matrix 和 repeat 共有 {runs} 次运行，超过一条命令的上限 {most}：请缩短列表，或减少重复"
            ),
            ScenarioError::TooMuchText { rows, text } => format!(
                "[matrix] 和 cases 把一张大表变成 {rows} 行，共 {text} B：请缩短列表，或拆分文件"
            ),
            ScenarioError::EmptyAxis(name) => {
                format!("[matrix] \"{name}\" 没有值：请给出至少有一项的列表")
            }
            ScenarioError::Name(name) => {
                format!("名字 '{name}'：请用字母、数字、'-'、'_'、'.'、'='、'/'，最多 100 个")
            }
        };
        told(error, chinese)
    }
}

impl From<&RebuildError> for Sentence {
    fn from(error: &RebuildError) -> Sentence {
        let RebuildError::Scenario(cause) = error;
        told(error, format!("重建测得的路径：{}", within(cause)))
    }
}
