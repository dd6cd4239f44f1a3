//! What many connections may take of a host's memory.

use super::heading;
use crate::table::paragraph::fill;
use crate::table::{Column, Table};
use crate::{Layout, table::figure};
use fullpipe_flow::Language;
use fullpipe_model::tune::{ConnectionsSheet, Fit, MemoryFit, SocketMemory};

/// The memory of many connections as lines, each with its line break.
pub fn render_connections(sheet: &ConnectionsSheet, layout: Layout) -> String {
    let mut text = String::new();
    for host in &sheet.kernels {
        if !text.is_empty() {
            text.push('\n');
        }
        let (language, linux) = (layout.language, host.kernel);
        let title = match (language, sheet.connections) {
            (Language::English, 1) => format!("Memory of a connection on Linux {linux}"),
            (Language::English, count) => format!("Memory of {count} connections on Linux {linux}"),
            (Language::Chinese, count) => format!("Linux {linux} 上 {count} 个连接的内存"),
        };
        text += &heading(&title, layout);
        let directions = [("receiving", &host.receive), ("sending", &host.send)];
        text += &buffers(directions, layout);
        for (direction, memory) in directions {
            let start = match language {
                Language::English => format!("{direction}: "),
                Language::Chinese => format!("{}：", layout.term(direction)),
            };
            text += &fill(&start, &needs(memory, language), layout.width);
            text.push('\n');
            if let (Some(fit), Some(given)) = (&memory.fit, sheet.memory) {
                let line = fits(fit, &format!("{given:#}"), language);
                text += &fill(&start, &line, layout.width);
                text.push('\n');
            }
        }
    }
    text
}

fn buffers(directions: [(&str, &SocketMemory); 2], layout: Layout) -> String {
    let mut table = Table::new([
        Column::text(""),
        Column::figure("each", "MiB"),
        Column::figure("together", "MiB"),
        Column::figure("each, sharing it", "MiB"),
        Column::figure("together", "MiB"),
    ]);
    for (direction, memory) in directions {
        table.row([
            layout.term(direction).into(),
            figure::mebibytes(memory.each),
            figure::mebibytes(memory.together),
            figure::mebibytes(memory.shared_each),
            figure::mebibytes(memory.shared_together),
        ]);
    }
    table.render(layout)
}

fn needs(memory: &SocketMemory, language: Language) -> String {
    let SocketMemory { together, tcp_mem, memory_for_default, .. } = memory;
    let mut text = match language {
        Language::English => format!(
            "at most {together:#} in buffers; without pressure that needs \
             net.ipv4.tcp_mem='{tcp_mem}', the default of a machine with {memory_for_default:#}"
        ),
        Language::Chinese => format!(
            "缓冲区最多 {together:#}；要不进入内存压力，需要 net.ipv4.tcp_mem='{tcp_mem}'，即内存 \
             {memory_for_default:#} 的机器的默认值"
        ),
    };
    if let Some(count) = memory.connections_before_pressure {
        text += &match language {
            Language::English => format!("; this host's tcp_mem allows {count} such connections"),
            Language::Chinese => format!("；本机的 tcp_mem 允许 {count} 个这样的连接"),
        };
    }
    text
}

fn fits(fit: &MemoryFit, memory: &str, language: Language) -> String {
    let (share, count) = (figure::percent(fit.share), fit.connections_that_fit);
    let verdict = match (language, fit.verdict) {
        (Language::English, Fit::WithDefaults) => "fits with the default tcp_mem",
        (Language::English, Fit::WithTcpMem) => "fits with tcp_mem set as above",
        (Language::English, Fit::No) => "does not fit: more than half of it",
        (Language::Chinese, Fit::WithDefaults) => "用默认的 tcp_mem 放得下",
        (Language::Chinese, Fit::WithTcpMem) => "按上面设置 tcp_mem 放得下",
        (Language::Chinese, Fit::No) => "放不下：超过其一半",
    };
    match language {
        Language::English => format!(
            "{share} % of {memory}, which {verdict}; half of it holds {count} such connections"
        ),
        Language::Chinese => {
            format!("占 {memory} 的 {share} %，{verdict}；其一半可容纳 {count} 个这样的连接")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_model::tune::{HostSettings, Path};

    #[test]
    fn five_hundred_connections_say_what_they_need() {
        let path = Path::new("1gbit".parse().unwrap(), "146ms".parse().unwrap());
        let mut host = HostSettings::defaults("6.1".parse().unwrap());
        host.tcp_mem_pressure_pages = Some(383_867);
        let memory = Some("16GiB".parse().unwrap());
        let sheet = ConnectionsSheet::new(path, &[host], 500, memory);
        let text = render_connections(&sheet, Layout::default());
        for part in [
            "Memory of 500 connections on Linux 6.1",
            "receiving  40.000  20000.000",
            "net.ipv4.tcp_mem='3840000 5120000 7680000'",
            "this host's tcp_mem allows 37 such connections",
            "does not fit: more than half of it; half of it holds 204 such connections",
        ] {
            assert!(text.contains(part), "{part}:\n{text}");
        }
        // The pages shown are the memory shown.
        assert_eq!(5_120_000 * 4096, sheet.kernels[0].receive.together.get());
    }
}
