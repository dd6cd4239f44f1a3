//! Downloads and servers that fail.

use super::{Sentence, told};
use crate::sentence::phrases::chinese as phrase;
use fullpipe_transfer::{Distrusted, DownloadError, GetError, GetNotice, Kept, ServerError};

impl From<&GetError> for Sentence {
    fn from(error: &GetError) -> Sentence {
        told(error, chinese(error))
    }
}

fn chinese(error: &GetError) -> String {
    match error {
        GetError::Url { url, problem } => {
            format!("获取 '{url}'：{problem}；写法示例：https://example.org/large.iso")
        }
        GetError::Option { option, value, must } => format!("{option} {value}：{must}"),
        GetError::Runtime(cause) => {
            format!("启动下载的事件循环：{cause}；进程的文件描述符可能已用完（见 ulimit -n）")
        }
        GetError::Lookup { host, source } => {
            format!("解析 '{host}'：{source}；请检查名字，或直接给出 IP 地址")
        }
        GetError::Connect { host, source } => {
            format!("连接 {host}：{source}；请检查地址和端口，以及路径上的防火墙")
        }
        GetError::Proxy { host, proxy, problem } => {
            format!("经代理 {proxy} 连接 {host}：{problem}；请检查代理，或使用 --noproxy")
        }
        GetError::Tls { host, problem, advice } => {
            format!("与 {host} 建立 TLS：{problem}；{advice}")
        }
        GetError::Timeout { url, what, waited, option } => format!(
            "获取 {url}：等待{}已 {waited}；服务器太慢或路径不通：请再试，或用 {option} 给更多时间",
            awaited(what)
        ),
        GetError::Answer { url, source } => format!(
            "获取 {url}：没有有效的 HTTP 应答（{source}）；请检查那里是否有 HTTP 服务器在监听"
        ),
        GetError::Status { url, status } => {
            format!("获取 {url}：服务器应答 {status}；{}", advice(status.as_u16()))
        }
        other => later(other),
    }
}

/// What happens once bytes have arrived.
fn later(error: &GetError) -> String {
    match error {
        GetError::Redirect { url, location, followed, problem } => {
            format!("获取 {url}：在 {followed} 次重定向之后转向 '{location}'：{problem}")
        }
        GetError::Short { url, received, expected, cause, kept } => {
            let all = expected.map_or("未知的总数".into(), |all| all.get().to_string());
            let kept = kept_zh(*kept);
            format!("接收 {url}：连接在 {} 字节（共 {all}）后结束：{cause}{kept}", received.get())
        }
        GetError::Framing { url, problem } => format!(
            "获取 {url}：应答有问题（{problem}），无法判断其正文在哪里结束（RFC 9112 第 6.3 节）；请告知\
             服务器的管理者，或换一个代理或镜像"
        ),
        GetError::WrongRange { url, asked, sent } => format!(
            "获取 {url}：请求的是字节 {asked}，服务器发来 '{sent}'；没有保留任何内容：请试 --connections 1，\
             或告知服务器的管理者"
        ),
        GetError::Changed { url, what } => format!(
            "获取 {url}：下载期间服务器上的文件改变了（{what}）；请再次运行同一命令重新开始"
        ),
        GetError::Hash { url, expected, found, part } => format!(
            "校验 {url}：SHA-256 为 {found}，不是 {expected}；内容保存在 {}，下次运行将重新开始",
            part.display()
        ),
        GetError::Busy { path } => format!(
            "写入 {}：另一个下载正打开着此文件；请等它结束，或用 -o 换一个文件",
            path.display()
        ),
        GetError::Output { path, source, hint, kept } => {
            format!("写入 {}：{source}；{}{}", path.display(), phrase(hint), kept_zh(*kept))
        }
        GetError::Stopped { url, received, kept } => {
            format!("获取 {url}：在 {received} 后停止{}", kept_zh(*kept))
        }
        GetError::OutOfTime { url, received, limit, kept } => {
            format!("获取 {url}：在 --max-time 允许的 {limit} 内收到 {received}{}", kept_zh(*kept))
        }
        // The others are told above.
        other => other.to_string(),
    }
}

impl From<&GetNotice> for Sentence {
    fn from(notice: &GetNotice) -> Sentence {
        let chinese = match notice {
            GetNotice::Distrusted(Distrusted { path, why, cause }) => {
                let cause = cause.iter().map(|cause| format!("：{cause}")).collect::<String>();
                format!("{} {}{cause}：从第一个字节开始", path.display(), phrase(why))
            }
            GetNotice::AnotherFile => {
                "文件与上次运行的不是同一个，或无法继续：从其第一个字节开始".to_owned()
            }
            GetNotice::AnotherUrl => {
                "上次运行把另一个 URL 下载到此文件：从本次 URL 的第一个字节开始".to_owned()
            }
            GetNotice::OneConnection(why) => format!("只用一个连接：{}", phrase(why)),
            GetNotice::Refused { number, error, why } => {
                let why = error.as_ref().map_or_else(|| phrase(why).to_owned(), chinese);
                format!("第 {number} 个连接被拒绝（{why}）：保留 {} 个", number - 1)
            }
            GetNotice::Again { error, delay } => format!("{}；{delay} 后再试", chinese(error)),
            GetNotice::Anew { error, delay } => {
                format!("{}；{delay} 后从第一个字节重新开始", chinese(error))
            }
            GetNotice::Withheld { host, fields } => {
                format!("被重定向到另一台服务器 {host}：未向其发送 {fields}")
            }
            GetNotice::Unprotected => {
                "从 https 重定向到 http，路径上的任何人都能读取和更改文件：仍然\
                                       继续，因为有 --sha256 校验"
                    .to_owned()
            }
        };
        told(notice, chinese)
    }
}

fn advice(status: u16) -> &'static str {
    match status {
        401 | 403 => "可能需要凭证：-H 'Authorization: ..'",
        404 | 410 => "请检查路径",
        429 => "它要求减少请求：请稍候，或用 --connections 1",
        500..=599 => "请稍后再试",
        _ => "请检查 URL",
    }
}

fn awaited(what: &str) -> &str {
    match what {
        "a connection" => "连接",
        "the head of the answer" => "应答头",
        "more of the body" => "后续正文",
        other => other,
    }
}

fn kept_zh(kept: Kept) -> &'static str {
    match kept {
        Kept::Unsaid => "",
        Kept::Continues => "；已收到的内容保留着，同一命令会继续",
        Kept::IfRanges => {
            "；已收到的内容保留着，若服务器支持范围请求（它没有说明：Accept-Ranges），同一命令会继续"
        }
        Kept::Nothing(_) => "；没有保留任何内容：同一命令会重新开始",
        Kept::Stream => "；输出是流，同一命令会重新开始：用 -o FILE 则可以继续",
    }
}

impl From<&DownloadError> for Sentence {
    fn from(error: &DownloadError) -> Sentence {
        let chinese = match error {
            DownloadError::Connect { peer, source, hint } => {
                format!("连接 {peer}：{source}；{}", phrase(hint))
            }
            DownloadError::NoResponse { url, elapsed, .. } => {
                format!("获取 {url}：等待应答 {elapsed} 后停止；请检查路径，或给更多时间")
            }
            DownloadError::Status { url, status } => {
                format!("获取 {url}：服务器应答 {status}；请检查路径")
            }
            other => format!("下载失败：{other}"),
        };
        told(error, chinese)
    }
}

impl From<&ServerError> for Sentence {
    fn from(error: &ServerError) -> Sentence {
        let chinese = match error {
            ServerError::Bind { addr, source, hint } => {
                format!("监听 {addr}：{source}；{}", phrase(hint))
            }
            ServerError::SocketOption { option, value, addr, source, hint } => format!(
                "在监听 {addr} 的套接字上设置 {option} = {value}：{source}；{}",
                phrase(hint)
            ),
            ServerError::Directory { path, source } => {
                format!("提供目录 {}：{source}；请给出可读并可进入的现有目录", path.display())
            }
            ServerError::Option { option, value, must } => {
                format!("服务器选项 {option} = {value}：{must}")
            }
            ServerError::Runtime { source } => format!(
                "启动服务器的事件循环：{source}；进程的文件描述符可能已用完（见 ulimit -n）"
            ),
        };
        told(error, chinese)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn each_notice_names_the_same_things_in_each_language() {
        let error = || GetError::Changed { url: "http://a.example/f".into(), what: "ETag".into() };
        let delay = fullpipe_model::units::Duration::from_secs(2);
        let path = PathBuf::from("/tmp/f.part");
        let left = Distrusted { path, why: "cannot be read", cause: Some("EIO".into()) };
        let why = "it does not say how long the file is";
        let withheld =
            GetNotice::Withheld { host: "b.example:80".into(), fields: "X-Key, Cookie".into() };
        for (notice, named) in [
            (GetNotice::Distrusted(left), &["/tmp/f.part", "EIO"][..]),
            (GetNotice::AnotherFile, &[]),
            (GetNotice::AnotherUrl, &["URL"]),
            (GetNotice::OneConnection(why), &[]),
            (GetNotice::Refused { number: 3, error: None, why }, &["3", "2"]),
            (GetNotice::Refused { number: 3, error: Some(error()), why: "" }, &["a.example"]),
            (GetNotice::Again { error: error(), delay }, &["a.example", "ETag", "2 s"]),
            (GetNotice::Anew { error: error(), delay }, &["a.example", "ETag", "2 s"]),
            (withheld, &["b.example:80", "X-Key, Cookie"]),
            (GetNotice::Unprotected, &["https", "--sha256"]),
        ] {
            let sentence = Sentence::from(&notice);
            for word in named {
                assert!(sentence.english().contains(word), "{word}: {}", sentence.english());
                assert!(sentence.chinese().contains(word), "{word}: {}", sentence.chinese());
            }
            assert!(!sentence.chinese().contains(why), "{}", sentence.chinese());
        }
    }
}
