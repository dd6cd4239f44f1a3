//! The followed connections as a table or as JSON.

use crate::failure::Failure;
use crate::terminal::{answer_layout, print, remark, remark_json};
use fullpipe_agent::Connection;
use fullpipe_flow::Language;
use fullpipe_model::tune::window_control::{Phase, Settings};
use fullpipe_model::units::{Bytes, Duration, Rate, Window, column};
use fullpipe_report::{Column, Layout, Table, table::figure};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// Where and how connections are shown.
pub struct Display {
    pub json: bool,
    /// On standard error: standard output is the program's.
    pub on_error: bool,
    /// Whether windows are changed.
    pub control: bool,
}

/// The connections at one moment.
#[derive(Debug, Serialize, Deserialize)]
pub struct Look {
    /// Those whose reader is slower than the path.
    pub slow_readers: usize,
    /// What they have received and not read.
    #[serde(rename = "held_bytes", with = "column::bytes")]
    pub held: Bytes,
    /// The windows that follow them, together.
    #[serde(rename = "needed_bytes", with = "column::bytes")]
    pub needed: Bytes,
    /// The largest buffer that the kernel grants to anybody.
    #[serde(rename = "largest_buffer_bytes", with = "column::bytes")]
    pub largest_buffer: Bytes,
    /// The largest window first.
    pub connections: Vec<Shown>,
}

/// A connection as JSON.
#[derive(Debug, Serialize, Deserialize)]
pub struct Shown {
    local: SocketAddr,
    remote: SocketAddr,
    phase: Phase,
    limited_by: LimitedBy,
    #[serde(rename = "window_bytes", with = "column::window")]
    window: Window,
    #[serde(rename = "promised_bytes", with = "column::window")]
    promised: Window,
    #[serde(rename = "drain_bps", with = "column::rate_optional")]
    drain: Option<Rate>,
    #[serde(rename = "queue_bytes", with = "column::bytes")]
    queue: Bytes,
    #[serde(rename = "queue_mean_bytes", with = "column::bytes")]
    queue_mean: Bytes,
    #[serde(rename = "queue_peak_bytes", with = "column::bytes")]
    queue_peak: Bytes,
    #[serde(rename = "out_of_order_bytes", with = "column::bytes")]
    out_of_order: Bytes,
    #[serde(rename = "buffer_bytes", with = "column::bytes")]
    buffer: Bytes,
    #[serde(rename = "rtt_us", with = "column::micros")]
    rtt: Duration,
    #[serde(rename = "least_rtt_us", with = "column::micros")]
    least_rtt: Duration,
    acknowledgements: u64,
    refusals: u64,
    frozen: bool,
    closed: bool,
}

/// What limits a connection, as far as its receiver can know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LimitedBy {
    /// Unread data stood for a round trip.
    ReceiverApplication,
    /// The peer uses the whole window, and it may still grow.
    ReceiveWindow,
    /// The window is the largest that this machine's settings allow, or the program's own buffer.
    ReceiveBuffer,
    /// The peer uses less than it may: it, or the path, is the limit.
    SenderOrPath,
}

impl LimitedBy {
    fn of(one: &Connection, settings: &Settings) -> LimitedBy {
        // What the peer sends in a round trip, and nearly all of an amount.
        let used = one.drain.map_or(Bytes::ZERO, |drain| drain.over(one.rtt));
        let uses = |amount: Bytes| used >= Bytes::new(amount.get() / 10 * 9);
        if one.is_slow_reader {
            LimitedBy::ReceiverApplication
        } else if one.is_frozen {
            // Half of a buffer is the kernel's overhead.
            let is_full = uses(Bytes::new(one.buffer.get() / 2));
            if is_full { LimitedBy::ReceiveBuffer } else { LimitedBy::SenderOrPath }
        } else if one.phase == Phase::Start || uses(one.window.bytes()) {
            let largest = settings.most.bytes().get();
            let is_largest = one.window.bytes().get() >= largest - largest / 16;
            if is_largest { LimitedBy::ReceiveBuffer } else { LimitedBy::ReceiveWindow }
        } else {
            LimitedBy::SenderOrPath
        }
    }

    fn words(self) -> &'static str {
        match self {
            LimitedBy::ReceiverApplication => "receiver application",
            LimitedBy::ReceiveWindow => "receive window",
            LimitedBy::ReceiveBuffer => "receive buffer",
            LimitedBy::SenderOrPath => "sender or path",
        }
    }
}

impl Shown {
    fn new(one: &Connection, settings: &Settings) -> Shown {
        Shown {
            local: one.local,
            remote: one.remote,
            phase: one.phase,
            limited_by: LimitedBy::of(one, settings),
            window: one.window,
            promised: one.promised,
            drain: one.drain,
            queue: one.queue,
            queue_mean: one.queue_mean,
            queue_peak: one.queue_peak,
            out_of_order: one.out_of_order,
            buffer: one.buffer,
            rtt: one.rtt,
            least_rtt: one.least_rtt,
            acknowledgements: one.acknowledgements,
            refusals: one.refusals,
            frozen: one.is_frozen,
            closed: one.is_closed,
        }
    }
}

impl Look {
    /// `settings`: the law's, as the agent was started; its largest window is the largest buffer
    /// that the kernel grants.
    pub fn new(connections: &[Connection], settings: &Settings) -> Look {
        let slow: Vec<&Connection> = connections
            .iter()
            .filter(|one| !one.is_closed && !one.is_frozen && one.is_slow_reader)
            .collect();
        let mut shown: Vec<Shown> =
            connections.iter().map(|one| Shown::new(one, settings)).collect();
        shown.sort_by_key(|one| (std::cmp::Reverse(one.window), one.local, one.remote));
        Look {
            slow_readers: slow.len(),
            held: Bytes::new(slow.iter().map(|one| one.queue.get()).sum()),
            needed: Bytes::new(slow.iter().map(|one| one.window.bytes().get()).sum()),
            largest_buffer: settings.most.bytes(),
            connections: shown,
        }
    }

    /// The number of connections that have not ended.
    pub fn open(&self) -> usize {
        self.connections.iter().filter(|one| !one.closed).count()
    }
}

impl Display {
    /// Shows them, the largest window first.
    pub fn show(&self, look: &Look) -> Result<(), Failure> {
        if self.json {
            let line = serde_json::to_string(look).map_err(std::io::Error::from)?;
            if self.on_error {
                remark_json(&line);
            } else {
                print(&format!("{line}\n"))?;
            }
            return Ok(());
        }
        let text = text(look, self.control, answer_layout());
        if self.on_error {
            remark(text.trim_end());
        } else {
            print(&text)?;
        }
        Ok(())
    }
}

/// The table and what its figures mean. `control`: whether windows are changed.
pub fn text(look: &Look, control: bool, layout: Layout) -> String {
    if look.connections.is_empty() {
        return match layout.language {
            Language::English => {
                "No connection was followed: none was established, or only over loopback \
                 (--loopback), or none had a whole round trip.\n"
            }
            Language::Chinese => {
                "没有跟踪到连接：没有建立连接，或只在环回上（--loopback），或没有一个有完整的往返。\n"
            }
        }
        .into();
    }
    let mut text = table(&look.connections, layout.language).render(layout);
    let lines = match layout.language {
        Language::English => remarks(look, control),
        Language::Chinese => remarks_zh(look, control),
    };
    for line in lines {
        text.push('\n');
        text += &line;
        text.push('\n');
    }
    text
}

fn remarks(look: &Look, control: bool) -> Vec<String> {
    let mut lines = Vec::new();
    if !control && look.slow_readers > 0 {
        lines.push(format!(
            "{} slow readers hold {} that they have not read; windows that follow them are {} \
             together.",
            look.slow_readers, look.held, look.needed
        ));
    }
    let frozen = look.connections.iter().filter(|one| one.frozen).count();
    if frozen > 0 {
        lines.push(format!(
            "{frozen} have a buffer that their program chose (SO_RCVBUF): --unfreeze follows \
             them too."
        ));
    }
    if control && look.connections.iter().any(|one| is_largest(one, look)) {
        lines.push(format!(
            "A buffer has the largest size that this machine allows, {}: raise \
             net.core.rmem_max (`fullpipe tune apply --set net.core.rmem_max=..`) if the \
             reader should get more.",
            look.largest_buffer
        ));
    }
    lines
}

fn remarks_zh(look: &Look, control: bool) -> Vec<String> {
    let mut lines = Vec::new();
    if !control && look.slow_readers > 0 {
        let Look { slow_readers, held, needed, .. } = look;
        lines.push(format!(
            "{slow_readers} 个慢的读取方积压了 {held} 未读；跟随它们的窗口合计为 {needed}。"
        ));
    }
    let frozen = look.connections.iter().filter(|one| one.frozen).count();
    if frozen > 0 {
        lines
            .push(format!("{frozen} 个的缓冲区由其程序设定（SO_RCVBUF）：--unfreeze 也跟踪它们。"));
    }
    if control && look.connections.iter().any(|one| is_largest(one, look)) {
        lines.push(format!(
            "有缓冲区已达本机允许的最大值 {}：若读取方应得到更多，请提高 net.core.rmem_max（`fullpipe tune apply \
             --set net.core.rmem_max=..`）。",
            look.largest_buffer
        ));
    }
    lines
}

/// Whether a buffer is about as large as this machine allows.
fn is_largest(one: &Shown, look: &Look) -> bool {
    one.buffer >= Bytes::new(look.largest_buffer.get() / 16 * 15)
}

fn phase(phase: Phase, language: Language) -> &'static str {
    match (phase, language) {
        (Phase::Start, Language::English) => "start",
        (Phase::Hold, Language::English) => "hold",
        (Phase::Steady, Language::English) => "steady",
        (Phase::Start, Language::Chinese) => "起始",
        (Phase::Hold, Language::Chinese) => "保持",
        (Phase::Steady, Language::Chinese) => "稳定",
    }
}

fn limited_by(by: LimitedBy, language: Language) -> &'static str {
    match (language, by) {
        (Language::English, by) => by.words(),
        (Language::Chinese, LimitedBy::ReceiverApplication) => "接收方应用",
        (Language::Chinese, LimitedBy::ReceiveWindow) => "接收窗口",
        (Language::Chinese, LimitedBy::ReceiveBuffer) => "接收缓冲区",
        (Language::Chinese, LimitedBy::SenderOrPath) => "发送方或路径",
    }
}

fn table(connections: &[Shown], language: Language) -> Table<10> {
    let [phases, read, mean, peak, buffer, ended, frozen] = match language {
        Language::English => ["phase", "read", "queue, mean", "peak", "buffer", "ended", "frozen"],
        Language::Chinese => ["阶段", "读取", "队列平均", "峰值", "缓冲区", "已结束", "已固定"],
    };
    let mut table = Table::new([
        Column::text("this end").leaves(6),
        Column::text("peer"),
        Column::text("limited by"),
        Column::text(phases).leaves(3),
        Column::figure("window", "MB").leaves(5),
        Column::figure(read, "Mbit/s"),
        Column::figure(mean, "MB"),
        Column::figure(peak, "MB").leaves(1),
        Column::figure(buffer, "MB").leaves(4),
        Column::figure("RTT", "ms").leaves(2),
    ]);
    for one in connections {
        table.row([
            one.local.to_string(),
            one.remote.to_string(),
            if one.closed { ended } else { limited_by(one.limited_by, language) }.into(),
            if one.frozen { frozen } else { phase(one.phase, language) }.into(),
            figure::megabytes(one.window.bytes()),
            one.drain.map_or_else(String::new, figure::mbit_per_s),
            figure::megabytes(one.queue_mean),
            figure::megabytes(one.queue_peak),
            figure::megabytes(one.buffer),
            figure::ms(one.rtt),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection() -> Connection {
        Connection {
            local: "10.77.0.2:50000".parse().unwrap(),
            remote: "10.77.0.1:80".parse().unwrap(),
            phase: Phase::Hold,
            is_slow_reader: true,
            window: Window::new(Bytes::new(2_000_000)),
            two_segments: Window::new(Bytes::new(2_896)),
            promised: Window::new(Bytes::new(1_000_000)),
            drain: Some(Rate::from_bits_per_sec(200_000_000)),
            queue: Bytes::new(40_000_000),
            queue_mean: Bytes::new(30_000_000),
            queue_peak: Bytes::new(50_000_000),
            out_of_order: Bytes::ZERO,
            buffer: Bytes::new(100_000_000),
            rtt: Duration::from_millis(81),
            least_rtt: Duration::from_millis(80),
            acknowledgements: 1000,
            refusals: 0,
            is_frozen: false,
            is_closed: false,
        }
    }

    fn settings() -> Settings {
        Settings { most: Window::new(Bytes::new(100_000_000)), ..Settings::default() }
    }

    fn words(connections: &[Connection], control: bool) -> String {
        text(&Look::new(connections, &settings()), control, Layout::default())
    }

    #[test]
    fn a_dry_run_says_what_would_be_saved() {
        let two = [connection(), connection()];
        let text = words(&two, false);
        assert!(text.contains("2 slow readers hold 80 MB"), "{text}");
        assert!(text.contains("are 4 MB together"), "{text}");
        assert!(!text.contains("rmem_max"), "{text}");
        let json = serde_json::to_value(Look::new(&two, &settings())).unwrap();
        assert_eq!(
            (&json["held_bytes"], &json["needed_bytes"]),
            (&80_000_000.into(), &4_000_000.into())
        );
    }

    #[test]
    fn what_holds_a_window_is_named() {
        let frozen = Connection { is_frozen: true, ..connection() };
        let text = words(&[connection(), frozen], true);
        assert!(text.contains("machine allows, 100 MB") && text.contains("frozen"), "{text}");
        assert!(text.contains("1 have a buffer that their program chose"), "{text}");
        assert!(words(&[], true).contains("--loopback"));
    }

    #[test]
    fn the_limit_follows_from_what_is_used() {
        let of = |one: Connection| LimitedBy::of(&one, &settings());
        assert_eq!(of(connection()), LimitedBy::ReceiverApplication);
        // A reader of 1 Mbit/s leaves a few segments.
        let slow = Connection { queue: Bytes::new(6_000), ..connection() };
        assert_eq!(of(slow), LimitedBy::ReceiverApplication);
        // Held, because the path has a queue.
        let settled = Connection { is_slow_reader: false, ..connection() };
        assert_eq!(of(settled.clone()), LimitedBy::ReceiveWindow);
        assert_eq!(Look::new(&[settled], &settings()).slow_readers, 0);
        let read = Connection {
            queue: Bytes::ZERO,
            phase: Phase::Steady,
            is_slow_reader: false,
            ..connection()
        };
        // 200 Mbit/s and 81 ms are 2.025 MB.
        assert_eq!(of(read.clone()), LimitedBy::ReceiveWindow);
        let wide = Connection { window: Window::new(Bytes::new(2_500_000)), ..read.clone() };
        assert_eq!(of(wide), LimitedBy::SenderOrPath);
        let largest = Connection {
            window: Window::new(Bytes::new(99_000_000)),
            drain: Some(Rate::from_bits_per_sec(9_700_000_000)),
            ..read
        };
        assert_eq!(of(largest), LimitedBy::ReceiveBuffer);
    }
}
