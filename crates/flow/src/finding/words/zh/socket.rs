//! What a socket and its host's settings show behind a limit.

use super::packets::reordering;
use crate::diagnosis::{Allowed, SSH_CHANNEL, SocketCause};
use fullpipe_model::units::Bytes;

pub fn claim(cause: &SocketCause) -> String {
    match *cause {
        SocketCause::WindowScaleMissing { allowed } => {
            format!("某一端的 SYN 没有提供窗口缩放，窗口不会超过 65,535 字节{}", at_most(allowed))
        }
        SocketCause::ReceiveBufferCapped { max, buffer, allowed } => {
            capped(["SO_RCVBUF", "net.core.rmem_max"], [max, buffer], allowed)
        }
        SocketCause::SendBufferCapped { max, buffer, allowed } => {
            capped(["SO_SNDBUF", "net.core.wmem_max"], [max, buffer], allowed)
        }
        SocketCause::ReceiveBufferFrozen { buffer, allowed } => {
            frozen("SO_RCVBUF", buffer, allowed)
        }
        SocketCause::SendBufferFrozen { buffer, allowed } => frozen("SO_SNDBUF", buffer, allowed),
        SocketCause::ReceiveBufferAtItsLargest { largest, allowed, .. } => {
            at_its_largest("net.ipv4.tcp_rmem", largest, allowed)
        }
        SocketCause::SendBufferAtItsLargest { largest, allowed, .. } => {
            at_its_largest("net.ipv4.tcp_wmem", largest, allowed)
        }
        SocketCause::WindowClamped { clamp, allowed } => {
            format!("TCP_WINDOW_CLAMP 把窗口限制在 {clamp:#}{}", at_most(allowed))
        }
        SocketCause::ApplicationDoesNotRead { most } => {
            format!("应用没有及时读取：套接字中最多积压 {most:#}")
        }
        SocketCause::PacedByApplication { bound, rate } => {
            format!("应用把 SO_MAX_PACING_RATE 设为 {bound}，套接字的发送速率为 {rate}")
        }
        SocketCause::DelayedAck { rtt, path_rtt } => {
            format!("小写入等待接收方推迟的 ACK：往返时间为 {rtt}，而路径本身为 {path_rtt}")
        }
        SocketCause::NotsentLowat { lowat, in_flight } => {
            format!("TCP_NOTSENT_LOWAT 只允许 {lowat:#} 等待发送，少于在途数据（{in_flight}）")
        }
        SocketCause::SshChannelWindow { under_way, grants, allowed } => format!(
            "SSH 通道窗口限制了数据：{SSH_CHANNEL:#} 中已有 {under_way} 在途，接收端追加了 {grants} 次额度{}",
            at_most(allowed)
        ),
        SocketCause::Reordering { needless, again } => reordering(needless, again),
        SocketCause::Timeouts { count, rto } => {
            format!("重传超时 {count} 次；定时器为 {rto}")
        }
        SocketCause::IdleRestart { count, most } => {
            format!("{count} 次停顿之后，拥塞窗口缩小（此前最多 {most} 个报文段）并重新增长")
        }
        SocketCause::SmallSegments { size, path_mtu: Some(mtu) } => {
            format!("每个报文段最多携带 {size:#}（内核认为路径 MTU 为 {mtu}）")
        }
        SocketCause::SmallSegments { size, path_mtu: None } => {
            format!("每个报文段最多携带 {size:#}（这是本端所通告的）")
        }
        SocketCause::DroppedOnArrival { count } => {
            format!("该套接字所在的主机丢弃了 {count} 个到达的报文段，因为套接字的内存已满")
        }
    }
}

fn capped(names: [&str; 2], [max, buffer]: [Bytes; 2], allowed: Option<Allowed>) -> String {
    let ([option, sysctl], allowed) = (names, at_most(allowed));
    format!("应用设置了 {option}，{sysctl}（{max}）把它限制在 {buffer:#}{allowed}")
}

fn frozen(option: &str, buffer: Bytes, allowed: Option<Allowed>) -> String {
    format!("应用设置了 {option}：缓冲区固定在 {buffer:#}{}", at_most(allowed))
}

fn at_its_largest(sysctl: &str, largest: Bytes, allowed: Option<Allowed>) -> String {
    format!("自动调整已达到 {sysctl} 的第三个值（{largest:#}）{}", at_most(allowed))
}

fn at_most(allowed: Option<Allowed>) -> String {
    allowed.map_or(String::new(), |Allowed { rate, rtt }| format!("，往返 {rtt} 时最高 {rate}"))
}
