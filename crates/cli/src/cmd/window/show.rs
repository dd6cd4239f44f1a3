//! The followed connections as a table or as JSON.

use crate::failure::Failure;
use crate::terminal::{layout, print, remark, remark_json};
use fullpipe_agent::Connection;
use fullpipe_model::units::{Bytes, Duration, Rate, Window, column};
use fullpipe_model::window_control::Phase;
use fullpipe_report::{Column, Layout, Table, figure};
use std::net::SocketAddr;

/// Where and how connections are shown.
pub struct Display {
    pub json: bool,
    /// On standard error: standard output is the program's.
    pub on_error: bool,
    /// Whether windows are changed.
    pub control: bool,
    /// The largest buffer that the kernel grants to anybody.
    pub largest_buffer: Bytes,
}

/// A connection as JSON.
#[derive(serde::Serialize)]
struct Shown {
    local: SocketAddr,
    remote: SocketAddr,
    phase: &'static str,
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

impl From<&Connection> for Shown {
    fn from(one: &Connection) -> Shown {
        Shown {
            local: one.local,
            remote: one.remote,
            phase: phase(one.phase),
            window: one.window,
            promised: one.promised,
            drain: one.drain,
            queue: one.queue,
            queue_mean: one.queue_mean,
            queue_peak: one.queue_peak,
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

impl Display {
    /// Shows them, the largest window first.
    pub fn show(&self, connections: &[Connection]) -> Result<(), Failure> {
        let mut connections: Vec<&Connection> = connections.iter().collect();
        connections.sort_by_key(|one| (std::cmp::Reverse(one.window), one.local, one.remote));
        if self.json {
            let shown: Vec<Shown> = connections.into_iter().map(Shown::from).collect();
            let line = serde_json::to_string(&shown).map_err(std::io::Error::from)?;
            if self.on_error {
                remark_json(&line);
            } else {
                print(&format!("{line}\n"))?;
            }
            return Ok(());
        }
        let text = self.text(&connections, layout());
        if self.on_error {
            remark(text.trim_end());
        } else {
            print(&text)?;
        }
        Ok(())
    }

    fn text(&self, connections: &[&Connection], layout: Layout) -> String {
        if connections.is_empty() {
            return "No connection was followed: none was established, or only over loopback \
                    (--loopback), or none had a whole round trip.\n"
                .into();
        }
        let mut text = table(connections).render(layout);
        for line in self.remarks(connections) {
            text.push('\n');
            text += &line;
            text.push('\n');
        }
        text
    }

    /// What the figures mean.
    fn remarks(&self, connections: &[&Connection]) -> Vec<String> {
        let mut lines = Vec::new();
        let open = || connections.iter().filter(|one| !one.is_closed);
        let slow = || open().filter(|one| one.phase == Phase::Hold && !one.is_frozen);
        if !self.control && slow().count() > 0 {
            let held = Bytes::new(slow().map(|one| one.queue.get()).sum());
            let needed = Bytes::new(slow().map(|one| one.window.bytes().get()).sum());
            lines.push(format!(
                "{} slow readers hold {held} that they have not read; windows that follow them \
                 are {needed} together.",
                slow().count()
            ));
        }
        let frozen = connections.iter().filter(|one| one.is_frozen).count();
        if frozen > 0 {
            lines.push(format!(
                "{frozen} have a buffer that their program chose (SO_RCVBUF): --unfreeze follows \
                 them too."
            ));
        }
        let bound = Bytes::new(self.largest_buffer.get() / 16 * 15);
        if self.control && connections.iter().any(|one| one.buffer >= bound) {
            lines.push(format!(
                "A buffer has the largest size that this machine allows, {}: raise \
                 net.core.rmem_max (`fullpipe tune apply --set net.core.rmem_max=..`) if the \
                 reader should get more.",
                self.largest_buffer
            ));
        }
        lines
    }
}

fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Start => "start",
        Phase::Hold => "hold",
        Phase::Steady => "steady",
    }
}

fn table(connections: &[&Connection]) -> Table<9> {
    let mut table = Table::new([
        Column::text("this end"),
        Column::text("peer"),
        Column::text("phase"),
        Column::figure("window", "MB"),
        Column::figure("read", "Mbit/s"),
        Column::figure("queue, mean", "MB"),
        Column::figure("peak", "MB"),
        Column::figure("buffer", "MB"),
        Column::figure("RTT", "ms"),
    ]);
    for one in connections {
        table.row([
            one.local.to_string(),
            one.remote.to_string(),
            if one.is_frozen { "frozen" } else { phase(one.phase) }.into(),
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
            window: Window::new(Bytes::new(2_000_000)),
            promised: Window::new(Bytes::new(1_000_000)),
            drain: Some(Rate::from_bits_per_sec(200_000_000)),
            queue: Bytes::new(40_000_000),
            queue_mean: Bytes::new(30_000_000),
            queue_peak: Bytes::new(50_000_000),
            buffer: Bytes::new(100_000_000),
            rtt: Duration::from_millis(81),
            least_rtt: Duration::from_millis(80),
            acknowledgements: 1000,
            refusals: 0,
            is_frozen: false,
            is_closed: false,
        }
    }

    fn display(control: bool) -> Display {
        Display { json: false, on_error: false, control, largest_buffer: Bytes::new(100_000_000) }
    }

    #[test]
    fn a_dry_run_says_what_would_be_saved() {
        let text = display(false).text(&[&connection(), &connection()], Layout::default());
        assert!(text.contains("2 slow readers hold 80 MB"), "{text}");
        assert!(text.contains("are 4 MB together"), "{text}");
        assert!(!text.contains("rmem_max"), "{text}");
    }

    #[test]
    fn what_holds_a_window_is_named() {
        let frozen = Connection { is_frozen: true, ..connection() };
        let text = display(true).text(&[&connection(), &frozen], Layout::default());
        assert!(text.contains("machine allows, 100 MB") && text.contains("frozen"), "{text}");
        assert!(text.contains("1 have a buffer that their program chose"), "{text}");
        assert!(display(true).text(&[], Layout::default()).contains("--loopback"));
    }
}
