//! What packets show behind a limit.

use crate::capture::segment::SshSoftware;
use crate::diagnosis::{
    AckPath, ApplicationWindow, DelayedAck, HTTP2_INITIAL, HostReordering, IdleRestart,
    NeededWindow, NoAnswer, PacketCause, PathMtu, Policer, ProtocolWindow, Reordering, SFTP_BLOCK,
    ScaleSign, Sharing, Timeouts, WaitedWindow, WindowScale,
};
use crate::finding::words::with_commas;
use crate::windows::{KnownWindow, is_about};
use fullpipe_model::units::{Bytes, Duration};
use std::fmt::Display;

pub fn claim(cause: PacketCause) -> String {
    match cause {
        PacketCause::NoAnswer(cause) => no_answer(cause),
        PacketCause::PathMtu(cause) => path_mtu(cause),
        PacketCause::WindowScale(cause) => window_scale(cause),
        PacketCause::Policer(cause) => policer(cause),
        PacketCause::Sharing(cause) => sharing(cause),
        PacketCause::Timeouts(cause) => timeouts(cause),
        PacketCause::IdleRestart(cause) => idle_restart(cause),
        PacketCause::DelayedAck(cause) => delayed_ack(cause),
        PacketCause::ApplicationWindow(cause) => application_window(cause),
        PacketCause::AckPath(cause) => ack_path(cause),
        PacketCause::HostReordering(cause) => host_reordering(cause),
        PacketCause::Reordering(Reordering { needless, again }) => reordering(needless, again),
    }
}

fn percent(part: f64) -> String {
    format!("占 {:.0} % 的时间", part * 100.0)
}

fn no_answer(cause: NoAnswer) -> String {
    let NoAnswer { attempts, time, is_half_open } = cause;
    if is_half_open {
        format!("没有应答：{time} 内对 SYN 应答了 {attempts} 次，没有任何回应")
    } else {
        format!("没有应答：{time} 内发送了 {attempts} 次 SYN，没有任何回应")
    }
}

fn path_mtu(cause: PathMtu) -> String {
    let PathMtu { lost, count, passed, time, is_missing } = cause;
    if is_missing {
        format!("很可能是路径 MTU 黑洞：缺少 {count} 个 {lost} 的报文段，而到达的都不超过 {passed}")
    } else {
        format!(
            "路径 MTU 黑洞：{passed} 的报文段能到达，而 {count} 个 {lost} 的报文段在 {time} \
             内无论重传多少次都未到达"
        )
    }
}

fn window_scale(cause: WindowScale) -> String {
    let WindowScale { taken, meant, sign } = cause;
    match sign {
        ScaleSign::Rewritten => format!(
            "窗口缩放因子被改写：接收方按其 SYN 所说，窗口为 {meant}，而两端之间的设备使它变成了 \
             {taken}"
        ),
        ScaleSign::StopsAtField => format!(
            "窗口缩放因子被改写：发送方在 {taken}（窗口字段的数值）处停下，而接收方的意思是 \
             {meant}：两端之间的设备改了缩放因子"
        ),
        ScaleSign::Dropped => format!(
            "两端之间有设备不认识窗口缩放：超过 {taken}（窗口字段的数值）的数据都没有到达，而接收方\
             允许 {meant}"
        ),
    }
}

fn policer(cause: Policer) -> String {
    let Policer { likely, rate, bucket, queue, drops_tails } = cause;
    let likely = format!("（可能性 {:.0} %）", likely * 100.0);
    if drops_tails {
        return format!(
            "限速器（policer）：路径不排队（延迟 {queue}）就丢弃突发的尾部：一次约可通过 \
             {bucket}，平均 {rate}，其自身的速率可能更高{likely}"
        );
    }
    let burst = match bucket {
        Bytes::ZERO => String::new(),
        bucket => format!("此前通过的突发至少为 {bucket}，"),
    };
    format!("限速器（policer）：路径不排队（延迟 {queue}）就丢包；{burst}此后传输 {rate}{likely}")
}

fn sharing(cause: Sharing) -> String {
    let Sharing { connections, total, part } = cause;
    format!(
        "多个连接共享路径：同时 {connections} 个连接合计稳定传输 {total}，此连接占 {:.0} %",
        part * 100.0
    )
}

fn timeouts(cause: Timeouts) -> String {
    let Timeouts { count, time, part } = cause;
    format!("重传超时：发送方 {count} 次等待定时器，共 {time}（{}）", percent(part))
}

fn idle_restart(cause: IdleRestart) -> String {
    let IdleRestart { count, time, part, before, after } = cause;
    format!(
        "空闲后重启：{count} 次停顿之后，拥塞窗口从头增长（停顿前在途 {before}，之后 {after}），\
         增长了 {time}（{}）",
        percent(part)
    )
}

fn delayed_ack(cause: DelayedAck) -> String {
    let DelayedAck { count, time, part } = cause;
    let each = Duration::from_nanos(time.as_nanos() / count.max(1));
    format!(
        "延迟 ACK 与 Nagle 算法：{count} 次小写入等待接收方推迟了 {each} 的 ACK，共 {time}（{}）",
        percent(part)
    )
}

fn application_window(cause: ApplicationWindow) -> String {
    if let Some(waited) = cause.waited {
        return waited_window(cause, waited);
    }
    let ApplicationWindow { count, time, part, bound, step, window, .. } = cause;
    let part = percent(part);
    match step {
        Some(step) => format!(
            "应用层窗口{}：对端应用只允许在其已取走的数据之外再发 {bound}，每条消息追加 {step}；其中 {count} \
             条到达时额度已全部用完，而接收窗口为 {window}，共 {time}（{part}）",
            named(&cause)
        ),
        None => format!(
            "应用层窗口{}：发送方 {count} 次在途最多 {bound} 就停下（接收窗口为 {window}），直到对端应用\
             应答，共 {time}（{part}）",
            named(&cause)
        ),
    }
}

/// A window of HTTP/2 that its frames show.
fn waited_window(cause: ApplicationWindow, waited: WaitedWindow) -> String {
    let ApplicationWindow { count, time, bound, .. } = cause;
    let WaitedWindow { stream, part, needed } = waited;
    let who = if stream == 0 { "整个连接".to_owned() } else { format!("流 {stream} ") };
    let needed = needed.map_or(String::new(), |NeededWindow { window, rate, rtt }| {
        format!("；路径需要 {window}（{rate}，{rtt}）")
    });
    format!(
        "HTTP/2 的窗口（由其帧得知）：{who}有 {:.0} % 的时间在等待它 {} 字节的窗口，共 {count} 次；其间\
         什么也没有发送，共 {time}{}{needed}",
        part * 100.0,
        with_commas(bound.get()),
        as_large_as(&cause).unwrap_or_default(),
    )
}

fn named(cause: &ApplicationWindow) -> String {
    let ApplicationWindow { protocol, granter, .. } = *cause;
    match protocol {
        ProtocolWindow::SshChannel(software) => format!("（SSH 通道{}）", of_ssh(cause, software)),
        ProtocolWindow::SftpRequests(count) => {
            let by = granter.program.map_or(String::new(), |by| format!("，由 {by} 发出"));
            format!("（SFTP：{count} 个 {SFTP_BLOCK:#} 的请求在途{by}）")
        }
        ProtocolWindow::Http2 => format!("（HTTP/2{}）", of_http2(cause)),
        ProtocolWindow::Of(protocol) => {
            let by_port = if granter.is_by_port { "，仅据端口" } else { "" };
            let by = granter.program.map_or(String::new(), |by| format!("，由 {by} 发出请求"));
            format!(
                "（{}{by_port}{by}{}）",
                protocol.words(),
                as_large_as(cause).unwrap_or_default()
            )
        }
        ProtocolWindow::Unknown => match granter.program {
            Some(by) => format!("（由 {by} 授予，协议未知）"),
            None => "（协议和实现均未知）".to_owned(),
        },
    }
}

fn of_ssh(cause: &ApplicationWindow, software: SshSoftware) -> String {
    let ApplicationWindow { bound, protocol, granter, .. } = *cause;
    match (granter.program, granter.default(protocol, bound)) {
        (Some(by), Some(known)) if known.is_as_large_as(bound) => {
            format!("：{by} 的额度为 {:#}，{}", known.window, changed_by(known))
        }
        (Some(by), Some(known)) => {
            format!("，由 {by} 授予，其默认值为 {:#}，{}", known.window, changed_by(known))
        }
        (Some(by), None) if software == SshSoftware::Other => {
            format!("，由 {by} 授予：未知的实现")
        }
        (Some(by), None) => format!("，由 {by} 授予"),
        (None, _) => {
            let by_port = if granter.is_by_port { "，仅据端口" } else { "" };
            format!("{by_port}：未知的实现{}", as_large_as(cause).unwrap_or_default())
        }
    }
}

fn of_http2(cause: &ApplicationWindow) -> String {
    let ApplicationWindow { bound, protocol, granter, .. } = *cause;
    if let Some(says) = granter.says.filter(|says| is_about(bound, *says)) {
        let by = granter.program.map_or(String::new(), |by| format!("{by} 的"));
        let like = as_large_as(cause).unwrap_or_default();
        return format!("：{by} SETTINGS 给每个流 {} 字节{like}", says.get());
    }
    match (granter.program, granter.default(protocol, bound)) {
        (Some(by), Some(known)) if known.is_as_large_as(bound) => {
            format!("：{by} 的额度为 {:#}，{}", known.window, changed_by(known))
        }
        _ if protocol.is_usual(bound) => {
            format!("：接收端没有追加额度，仅 {} 字节", HTTP2_INITIAL.get())
        }
        _ => {
            let like = as_large_as(cause).unwrap_or_else(|| "；未知的实现".to_owned());
            let unless = if granter.is_hidden { "，除非 TLS 里是别的协议" } else { "" };
            format!("{unless}：流或连接的窗口{like}")
        }
    }
}

fn as_large_as(cause: &ApplicationWindow) -> Option<String> {
    let like = cause.granter.like(cause.protocol, cause.bound).map(|known| {
        let own = if known.is_own { "（您自己的条目）" } else { "" };
        format!("{}{own}", known.named())
    });
    let like: Vec<String> = like.collect();
    (!like.is_empty()).then(|| format!("；与这些默认值相同：{}", like.join("；")))
}

fn changed_by(known: KnownWindow) -> String {
    let own = if known.is_own { "（您自己的条目）" } else { "" };
    match known.setting {
        Some(setting) => format!("可由 `{setting}` 更改{own}"),
        None => format!("没有已知的设置能更改它{own}"),
    }
}

fn ack_path(cause: AckPath) -> String {
    let AckPath { wait, excess, shortest, stretched, .. } = cause;
    format!(
        "ACK 的返回路径：往返时间比最短的（{shortest}）多出 {excess}，从时间戳看，其中 {wait} 是 \
         ACK 在返回途中等待；{:.0} % 的 ACK 确认了两个以上的报文段",
        stretched * 100.0
    )
}

/// What packets and sockets show alike.
pub(super) fn reordering(needless: impl Display, again: impl Display) -> String {
    format!("{again} 次重传中有 {needless} 次并无必要：路径使数据包乱序")
}

fn host_reordering(cause: HostReordering) -> String {
    let HostReordering { count, share } = cause;
    format!(
        "发送方主机自身乱序：{count} 个报文段（{:.2} %）在进入路径之前就以错误的顺序离开主机",
        share * 100.0
    )
}
