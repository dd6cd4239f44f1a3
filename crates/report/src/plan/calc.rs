//! The answers of `fullpipe calc` as text: the path, the buffers it needs by each kernel's law,
//! what a given buffer allows, and the plan from default settings.

mod file;
mod grid;
mod host;
mod memory;

pub use file::render_file;
pub use grid::{render_fills, render_grid};
pub use host::{render_host, render_settings};
pub use memory::render_connections;

use crate::table::{Column, Table};
use crate::{Layout, Tone, plan, table::figure};
use fullpipe_flow::Language;
use fullpipe_model::law::bdp;
use fullpipe_model::tune::{BufferSheet, EndSheet, KernelSheet, LossSheet, Path, Sheet};
use fullpipe_model::units::Duration;

/// Whose settings the kernels of a sheet have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settings {
    /// Those that the kernel comes with.
    Defaults,
    /// Those of this host, at both ends.
    ThisHost,
}

/// The sheet as lines, each with its line break.
pub fn render(sheet: &Sheet, settings: Settings, layout: Layout) -> String {
    let language = layout.language;
    let Path { rate, rtt, .. } = sheet.path;
    let title = match language {
        Language::English => format!("Path: {rate} and {rtt} round trip"),
        Language::Chinese => format!("路径：{rate}，往返 {rtt}"),
    };
    let mut text = heading(&title, layout);
    text += &path_table(sheet, layout).render(layout);
    text.push('\n');
    text += &heading(
        match language {
            Language::English => "Buffers that keep one bandwidth-delay product in flight",
            Language::Chinese => "能保持一个带宽时延积在途的缓冲区",
        },
        layout,
    );
    text += &buffers_table(sheet, settings).render(layout);
    for kernel in &sheet.kernels {
        if let Some(buffer) = &kernel.buffer {
            text.push('\n');
            let (size, bytes, linux) = (buffer.buffer, buffer.buffer.get(), kernel.kernel);
            let title = match language {
                Language::English => {
                    format!("A buffer of {size:#} ({bytes} bytes) on Linux {linux}")
                }
                Language::Chinese => format!("Linux {linux} 上 {size:#}（{bytes} 字节）的缓冲区"),
            };
            text += &heading(&title, layout);
            text += &asked_table(sheet, buffer, layout).render(layout);
        }
    }
    if let Some(loss) = &sheet.loss {
        text.push('\n');
        let title = match language {
            Language::English => format!("Random loss of {}, one connection", loss.loss),
            Language::Chinese => format!("随机丢包 {}，一个连接", loss.loss),
        };
        text += &heading(&title, layout);
        text += &loss_table(loss, layout).render(layout);
    }
    for kernel in &sheet.kernels {
        text.push('\n');
        let linux = kernel.kernel;
        let title = match (language, settings) {
            (Language::English, Settings::Defaults) => {
                format!("Plan for Linux {linux} with its default settings")
            }
            (Language::English, Settings::ThisHost) => {
                "Plan for two hosts with the settings of this one".into()
            }
            (Language::Chinese, Settings::Defaults) => {
                format!("Linux {linux} 默认设置下的方案")
            }
            (Language::Chinese, Settings::ThisHost) => "两端都用本机设置时的方案".into(),
        };
        text += &heading(&title, layout);
        text += &plan::render(&kernel.plan, layout);
    }
    text
}

fn heading(title: &str, layout: Layout) -> String {
    layout.paint(Tone::Heading, title) + "\n"
}

fn path_table(sheet: &Sheet, layout: Layout) -> Table<3> {
    let language = layout.language;
    let mut table = Table::new([Column::text(""), Column::text(""), Column::text("")]);
    let mut row = |fact: &str, value: String, note: String| {
        table.row([layout.term(fact).into(), value, note]);
    };
    let (bdp, target) = (sheet.bdp, sheet.in_flight_target.bytes());
    row(
        "bandwidth-delay product",
        bdp.to_string(),
        match language {
            Language::English => format!("{bdp:#}, {} bytes in flight fill the path", bdp.get()),
            Language::Chinese => format!("{bdp:#}，在途 {} 字节即可填满路径", bdp.get()),
        },
    );
    row(
        "for the buffers",
        target.to_string(),
        match language {
            Language::English => format!("{target:#}, with an eighth of a queue: a plan's aim"),
            Language::Chinese => format!("{target:#}，含八分之一的队列：方案的目标"),
        },
    );
    let (mss, mtu) = (sheet.mss.get(), sheet.path.framing.mtu.get());
    row(
        "goodput at most",
        sheet.goodput.to_string(),
        match language {
            Language::English => format!("{:#}, {mss} of {mtu} bytes are data", sheet.goodput),
            Language::Chinese => format!("{:#}，{mtu} 字节中 {mss} 字节是数据", sheet.goodput),
        },
    );
    let trips = sheet.slow_start_round_trips;
    row(
        "slow start",
        sheet.slow_start.to_string(),
        match language {
            Language::English => {
                format!("{trips} round trips of doubling from 10 segments, at least")
            }
            Language::Chinese => format!("至少 {trips} 个往返，从 10 个报文段开始逐次加倍"),
        },
    );
    if let Some(transfer) = sheet.gigabyte {
        let lost = figure::percent(transfer.share_lost);
        row(
            "1 GB takes",
            transfer.total.to_string(),
            match language {
                Language::English => {
                    format!("at least; connecting and slow start are {lost} % of it")
                }
                Language::Chinese => format!("至少；其中建立连接和慢启动占 {lost} %"),
            },
        );
    }
    table
}

fn buffers_table(sheet: &Sheet, settings: Settings) -> Table<6> {
    let now = match settings {
        Settings::Defaults => "default",
        Settings::ThisHost => "it is",
    };
    let mut table = Table::new([
        Column::text("Linux"),
        Column::text("receive window by"),
        Column::figure("tcp_rmem max", "B"),
        Column::figure(now, "B"),
        Column::figure("tcp_wmem max", "B"),
        Column::count("window scale"),
    ]);
    for KernelSheet { kernel, window_law, rcvbuf_for_bdp, default_rcvbuf, window_scale, .. } in
        &sheet.kernels
    {
        table.row([
            kernel.to_string(),
            window_law.clone(),
            figure::bytes(*rcvbuf_for_bdp),
            figure::bytes(*default_rcvbuf),
            figure::bytes(sheet.sndbuf_for_bdp),
            window_scale.to_string(),
        ]);
    }
    table
}

fn asked_table(sheet: &Sheet, buffer: &BufferSheet, layout: Layout) -> Table<6> {
    let mut table = Table::new([
        Column::text("as"),
        Column::figure("window", "MB"),
        Column::figure("goodput", "Mbit/s"),
        Column::figure("", "MB/s"),
        Column::text("limited by"),
        Column::figure("fills it up to", "ms"),
    ]);
    for (name, end) in [("receive buffer", &buffer.receive), ("send buffer", &buffer.send)] {
        let EndSheet { window, goodput, limited_by, largest_rtt } = end;
        table.row([
            layout.term(name).into(),
            figure::megabytes(window.bytes()),
            figure::mbit_per_s(*goodput),
            figure::megabytes_per_s(*goodput),
            layout.language.limit(*limited_by).into(),
            figure::ms(*largest_rtt),
        ]);
    }
    // The textbook formula, which takes the buffer for a window.
    let naive = bdp::largest_rtt(buffer.buffer, sheet.path.rate).unwrap_or(Duration::MAX);
    let none = String::new;
    table.row([
        layout.term("without overhead").into(),
        figure::megabytes(buffer.buffer),
        none(),
        none(),
        none(),
        figure::ms(naive),
    ]);
    table
}

fn loss_table(loss: &LossSheet, layout: Layout) -> Table<4> {
    let mut table = Table::new([
        Column::text("congestion control"),
        Column::figure("goodput", "Mbit/s"),
        Column::figure("", "MB/s"),
        Column::count("connections that fill the path"),
    ]);
    let LossSheet { cubic, reno, reno_with_timeouts, .. } = loss;
    for (name, law) in [
        ("cubic (RFC 9438)", cubic),
        ("reno (Mathis)", reno),
        ("reno with timeouts (Padhye)", reno_with_timeouts),
    ] {
        table.row([
            layout.term(name).into(),
            figure::mbit_per_s(law.goodput),
            figure::megabytes_per_s(law.goodput),
            law.connections_to_fill.map_or(String::new(), |count| count.to_string()),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Charset;
    use fullpipe_model::tune::{Question, sheet};
    use fullpipe_model::units::{Bytes, Rate};

    fn asked(width: Option<u16>, kernel: Option<&str>) -> String {
        let path = Path::new("1gbit".parse().unwrap(), "50ms".parse().unwrap());
        let kernel = kernel.map(|text| text.parse().unwrap());
        let buffer = Some("4MiB".parse().unwrap());
        let question = Question { path, buffer, kernel, loss: None };
        let layout = Layout { width, charset: Charset::Ascii, ..Layout::default() };
        render(&sheet(&question), Settings::Defaults, layout)
    }

    const TOP: &str = "\
Path: 1 Gbit/s and 50 ms round trip
bandwidth-delay product  6.25 MB       5.96 MiB, 6250000 bytes in flight fill the path
for the buffers          7.031 MB      6.706 MiB, with an eighth of a queue: a plan's aim
goodput at most          965.3 Mbit/s  120.7 MB/s, 1448 of 1500 bytes are data
slow start               450 ms        9 round trips of doubling from 10 segments, at least
1 GB takes               8.776 s       at least; connecting and slow start are 5.6 % of it

Buffers that keep one bandwidth-delay product in flight
Linux  receive window by                         tcp_rmem max   default  tcp_wmem max  window scale
                                                            B         B             B
---------------------------------------------------------------------------------------------------
6.1    tcp_adv_win_scale 1                           12499999   6291456       9469697             7
6.18   scaling_ratio 170/256, sized for 128/256      12500000  33554432       9469697            10

A buffer of 4 MiB (4194304 bytes) on Linux 6.1
as                window  goodput         limited by      fills it up to
                      MB   Mbit/s   MB/s                              ms
------------------------------------------------------------------------
receive buffer     2.097    332.0  41.49  receive window           16.78
send buffer        2.768    440.4  55.05  send buffer              22.15
without overhead   4.194                                           33.55

A buffer of 4 MiB (4194304 bytes) on Linux 6.18
";

    #[test]
    fn both_generations_side_by_side() {
        let text = asked(Some(100), None);
        assert!(text.starts_with(TOP), "{text}");
        assert!(
            text.contains(
                "\nPlan for Linux 6.18 with its default settings\nExpected: 440.4 Mbit/s"
            ),
            "{text}"
        );
    }

    /// The figures drawn, read back with their headings' units, obey the laws: goodput x RTT is the
    /// window but for its bursts, and the window fills the path's rate at the RTT shown.
    #[test]
    fn the_figures_drawn_obey_the_laws() {
        let text = asked(None, Some("6.1"));
        for name in ["receive buffer ", "send buffer "] {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap();
            let words: Vec<&str> = line.split_whitespace().collect();
            let window: Bytes = format!("{} MB", words[2]).parse().unwrap();
            let goodput: Rate = format!("{} Mbit/s", words[3]).parse().unwrap();
            let same_goodput: Rate = format!("{} MB/s", words[4]).parse().unwrap();
            let largest: Duration = format!("{} ms", words[words.len() - 1]).parse().unwrap();
            let off = |a: Bytes| (a.as_f64() / window.as_f64() - 1.0).abs();
            assert!(off(goodput.over("50ms".parse().unwrap())) < 0.015, "{line}");
            assert!((same_goodput.fraction_of(goodput) - 1.0).abs() < 0.001, "{line}");
            assert!(off(bdp::bdp("1gbit".parse().unwrap(), largest)) < 0.001, "{line}");
        }
    }

    /// What `calc --json` prints: plain numbers under names with units, and a plan that reads back
    /// as itself.
    #[test]
    fn json_says_its_units_and_the_plan_reads_back() {
        let path = Path::new("1gbit".parse().unwrap(), "50ms".parse().unwrap());
        let sheet = sheet(&Question {
            path,
            buffer: None,
            kernel: Some("6.1".parse().unwrap()),
            loss: None,
        });
        let json = serde_json::to_value(&sheet).unwrap();
        assert_eq!(json["bdp_bytes"], 6_250_000);
        assert_eq!(json["gigabyte"]["amount_bytes"], 1_000_000_000);
        let plan = &json["kernels"][0]["plan"];
        assert_eq!(plan["path"]["rtt_us"], 50_000);
        assert_eq!(plan["before"]["limited_by"], "send_buffer");
        assert_eq!(plan["changes"][0]["setting"], "net.ipv4.tcp_wmem");
        assert_eq!(plan["changes"][0]["host"], "sender");
        let read: fullpipe_model::tune::Plan = serde_json::from_value(plan.clone()).unwrap();
        assert_eq!(read, sheet.kernels[0].plan);
    }

    #[test]
    fn in_chinese_no_english_is_left() {
        let path = Path::new("1gbit".parse().unwrap(), "146ms".parse().unwrap());
        let loss = Some("0.1%".parse().unwrap());
        let buffer = Some("4MiB".parse().unwrap());
        let sheet = sheet(&Question { path, buffer, kernel: None, loss });
        let layout = Layout { language: Language::Chinese, ..Layout::default() };
        let host = fullpipe_model::tune::HostSettings::defaults("6.12".parse().unwrap());
        let memory = Some("16GiB".parse().unwrap());
        let many = fullpipe_model::tune::ConnectionsSheet::new(path, &[host], 500, memory);
        let amount = "1GB".parse().unwrap();
        let text = [
            render(&sheet, Settings::Defaults, layout),
            render_connections(&many, layout),
            render_file(&fullpipe_model::tune::FileSheet::new(&sheet, amount), layout),
        ]
        .concat();
        // Names stay, and what is pasted.
        const NAMES: [&str; 4] = ["cubic", "reno", "default", "sized"];
        for line in text.lines().filter(|line| !line.contains("sysctl -w")) {
            let words = line
                .split(|letter: char| !letter.is_ascii_alphanumeric() && !"_.".contains(letter));
            let is_english =
                |word: &&str| word.len() > 3 && word.chars().all(|c| c.is_ascii_lowercase());
            for word in words.filter(is_english) {
                assert!(NAMES.contains(&word), "{word}: {line}");
            }
        }
    }

    #[test]
    fn one_kernel_asked_is_one_plan() {
        assert_eq!(asked(None, Some("5.15.0-91-generic")).matches("Plan for Linux").count(), 1);
    }
}
