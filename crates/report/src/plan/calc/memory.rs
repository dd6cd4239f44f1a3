//! What many connections may take of a host's memory.

use super::heading;
use crate::table::paragraph::fill;
use crate::table::{Column, Table};
use crate::{Layout, table::figure};
use fullpipe_model::tune::{ConnectionsSheet, Fit, MemoryFit, SocketMemory};

/// The memory of many connections as lines, each with its line break.
pub fn render_connections(sheet: &ConnectionsSheet, layout: Layout) -> String {
    let mut text = String::new();
    for host in &sheet.kernels {
        if !text.is_empty() {
            text.push('\n');
        }
        let title = match sheet.connections {
            1 => format!("Memory of a connection on Linux {}", host.kernel),
            count => format!("Memory of {count} connections on Linux {}", host.kernel),
        };
        text += &heading(&title, layout);
        let directions = [("receiving", &host.receive), ("sending", &host.send)];
        text += &buffers(directions, layout);
        for (direction, memory) in directions {
            text += &fill(&format!("{direction}: "), &needs(memory), layout.width);
            text.push('\n');
            if let (Some(fit), Some(given)) = (&memory.fit, sheet.memory) {
                let line = fits(fit, &format!("{given:#}"));
                text += &fill(&format!("{direction}: "), &line, layout.width);
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
            direction.into(),
            figure::mebibytes(memory.each),
            figure::mebibytes(memory.together),
            figure::mebibytes(memory.shared_each),
            figure::mebibytes(memory.shared_together),
        ]);
    }
    table.render(layout)
}

fn needs(memory: &SocketMemory) -> String {
    let mut text = format!(
        "at most {:#} in buffers; without pressure that needs net.ipv4.tcp_mem='{}', the default \
         of a machine with {:#}",
        memory.together, memory.tcp_mem, memory.memory_for_default
    );
    if let Some(count) = memory.connections_before_pressure {
        text += &format!("; this host's tcp_mem allows {count} such connections");
    }
    text
}

fn fits(fit: &MemoryFit, memory: &str) -> String {
    let share = figure::percent(fit.share);
    let verdict = match fit.verdict {
        Fit::WithDefaults => "fits with the default tcp_mem",
        Fit::WithTcpMem => "fits with tcp_mem set as above",
        Fit::No => "does not fit: more than half of it",
    };
    format!(
        "{share} % of {memory}, which {verdict}; half of it holds {} such connections",
        fit.connections_that_fit
    )
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
