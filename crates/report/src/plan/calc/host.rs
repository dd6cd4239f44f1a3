//! What this host's settings fill on a path.

use super::heading;
use crate::table::{Column, Table};
use crate::{Layout, table::figure};
use fullpipe_flow::Language;
use fullpipe_model::change::Sysctl;
use fullpipe_model::tune::{HostSettings, HostSheet};

/// What the host fills, as lines, each with its line break.
pub fn render_host(sheet: &HostSheet, layout: Layout) -> String {
    let title = match layout.language {
        Language::English => format!("What this host fills of {} and {}", sheet.rate, sheet.rtt),
        Language::Chinese => {
            format!("本机在 {}、往返 {} 的路径上能填满多少", sheet.rate, sheet.rtt)
        }
    };
    let mut table = Table::new([
        Column::text("it is"),
        Column::figure("window", "MB"),
        Column::figure("goodput", "Mbit/s"),
        Column::figure("", "MB/s"),
        Column::text("limited by"),
        Column::figure("fills it up to", "ms"),
    ]);
    for (role, end) in [("the receiver", &sheet.receive), ("the sender", &sheet.send)] {
        table.row([
            layout.term(role).into(),
            figure::megabytes(end.window.bytes()),
            figure::mbit_per_s(end.goodput),
            figure::megabytes_per_s(end.goodput),
            layout.language.limit(end.limited_by).into(),
            figure::ms(end.largest_rtt),
        ]);
    }
    heading(&title, layout) + &table.render(layout)
}

/// A host's settings as lines, each with its line break.
pub fn render_settings(host: &HostSettings, layout: Layout) -> String {
    let mut table = Table::new([Column::text(""), Column::text("")]);
    for sysctl in Sysctl::OF_WINDOWS {
        let value = host.get(sysctl).map(|value| value.to_string());
        table.row([sysctl.to_string(), value.unwrap_or_default()]);
    }
    let title = match layout.language {
        Language::English => format!("This host: Linux {}", host.kernel),
        Language::Chinese => format!("本机：Linux {}", host.kernel),
    };
    heading(&title, layout) + &table.render(layout)
}
