//! `fullpipe demo`: a real transfer that does not fill its path, the reason, the settings that
//! follow, and the same transfer with them, side by side.

use super::lab::{default_folder, in_sandbox, run_one};
use super::report;
use crate::failure::{Failure, Kind};
use crate::sentence::{Sentence, either};
use crate::terminal::{answer_layout, print, print_json, remark};
use clap::Args;
use fullpipe_flow::Language;
use fullpipe_flow::schema::RunRow;
use fullpipe_kernel::host::Host;
use fullpipe_kernel::run::sandbox::Inside;
use fullpipe_lab::{
    LabError, Options, apply_plan, check_results_folder, load_scenarios, plan_tuning,
};
use fullpipe_model::change::Change;
use fullpipe_model::scenario::Scenario;
use fullpipe_model::tune::Plan;
use fullpipe_report::{Layout, plan, runs::rows, table::paragraph};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Show everything in half a minute: a transfer that fills less than half of a gigabit path, the
/// reason, the fix, and the proof.
///
/// Runs two real transfers between two real TCP stacks over an emulated path of 1 Gbit/s and 50 ms,
/// and writes a report with the graphs of both.
/// Nothing on this machine is changed: both stacks live in their own namespaces.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe demo
  fullpipe demo --verbose                          why each setting follows, and all figures
  fullpipe demo --json | jq '.after.goodput_bps / .before.goodput_bps'
  fullpipe demo --output tour/ --keep-captures")]
pub struct Demo {
    /// Print JSON: {"before": row, "after": row, "plan": [..]}.
    #[arg(long)]
    json: bool,
    /// Folder to keep results in, new or empty. Without it only the report stays, in
    /// fullpipe-results/TIME.
    #[arg(short, long = "output", alias = "out", value_name = "DIR")]
    out: Option<PathBuf>,
    /// Also keep the captures at both ends (pcap with nanoseconds).
    #[arg(long, requires = "out")]
    keep_captures: bool,
    /// Print why each setting follows, what else to know, and all figures of both runs.
    #[arg(short, long)]
    verbose: bool,
}

/// The experiment of the demo: B2 of the articles.
const PRESET: &str = "articles/b2";

#[derive(Serialize)]
struct Tour<'a> {
    before: &'a RunRow,
    after: &'a RunRow,
    plan: &'a [Change],
}

impl Demo {
    pub fn run(self) -> Result<u8, Failure> {
        if let Some(folder) = &self.out {
            // Fail now rather than after half a minute.
            check_results_folder(folder).map_err(LabError::from)?;
        }
        let mut before = load_scenarios(&[PRESET], &[], None)?.remove(0);
        before.name = "before".into();
        let version = Host::read().kernel_version();
        let version = version.ok_or_else(|| {
            let what = "read kernel version: not a Linux release";
            Failure::new(Kind::Run, Sentence::new(what, "读取内核版本：不是 Linux 的版本号"))
        })?;
        let plan = plan_tuning(&before, version).ok_or_else(|| {
            let what = format!("plan for {PRESET}: its link has no rate");
            Failure::new(
                Kind::Run,
                Sentence::new(what, format!("为 {PRESET} 制定方案：其链路没有速率")),
            )
        })?;
        let mut after = apply_plan(&before, &plan);
        after.name = "after".into();
        in_sandbox(|inside| self.tour(inside, &before, &after, &plan))
    }

    fn tour(
        &self,
        inside: &Inside,
        before: &Scenario,
        after: &Scenario,
        plan: &Plan,
    ) -> Result<u8, Failure> {
        let layout = answer_layout();
        self.say(&self.introduction(before, layout))?;
        let results = match &self.out {
            Some(folder) => folder.clone(),
            None => inside.journal().scratch_directory("demo").map_err(|error| {
                let what = Sentence::new("make a folder for the demo", "为演示创建文件夹");
                Failure::new(Kind::Run, what.and(&(&error).into()))
            })?,
        };
        let slow = run_one(inside, before, &options(results.join("before")))?;
        self.say(&self.reason(&slow, layout))?;
        self.say(&self.settings(plan, layout))?;
        let fast = run_one(inside, after, &options(results.join("after")))?;
        self.say(&self.gain(&slow, &fast, layout))?;
        self.say(&self.notes(&[&slow, &fast], layout))?;
        if let Some(folder) = &self.out {
            remark(&format!("\n{}{}", either("Results: ", "结果："), folder.display()));
        }
        let page = match &self.out {
            Some(folder) => folder.join("report.html"),
            None => default_folder()?.join("report.html"),
        };
        self.report(&results, plan, &page)?;
        if self.json {
            print_json(&Tour { before: &slow, after: &fast, plan: &plan.changes })?;
        }
        Ok(0)
    }

    /// Writes the report on both runs; then the captures have served, unless they are to stay.
    fn report(&self, results: &Path, plan: &Plan, page: &Path) -> Result<(), Failure> {
        let halves = ["before", "after"].map(|name| results.join(name));
        let mut content = report::results::page(&halves)?;
        content.title = "fullpipe demo".into();
        if let Some(lab) = &mut content.lab {
            lab.plan = plan.changes.clone();
        }
        report::write(&mut content, page)?;
        if self.keep_captures {
            return Ok(());
        }
        for folder in report::results::runs_of(&halves)? {
            for file in ["server.pcap", "client.pcap", "link.log"] {
                // What stays is only larger than it need be; the supervisor removes a scratch
                // folder with all that is in it.
                let _ = std::fs::remove_file(folder.join(file));
            }
        }
        Ok(())
    }

    fn introduction(&self, scenario: &Scenario, layout: Layout) -> String {
        let (rate, rtt) = (scenario.path.to_client.rate.unwrap_or_default(), scenario.path.rtt());
        let by_default = match layout.language {
            Language::English => "the kernel's default",
            Language::Chinese => "内核默认值",
        };
        let (server, client) = (&scenario.hosts.server.sysctl, &scenario.hosts.client.sysctl);
        let values = [server.get("net.ipv4.tcp_wmem"), client.get("net.ipv4.tcp_rmem")];
        let [wmem, rmem] = values.map(|value| value.map_or(by_default, |value| &value.0));
        let text = match (layout.language, self.verbose) {
            (Language::English, is_verbose) => {
                let buffers = format!(" (server tcp_wmem {wmem}, client tcp_rmem {rmem})");
                let buffers = if is_verbose { &buffers } else { "" };
                format!(
                    "A real transfer between two TCP stacks of this kernel over {rate} ({rate:#}) \
                     and {rtt}, with the buffers that many servers still have{buffers} ..."
                )
            }
            (Language::Chinese, is_verbose) => {
                let buffers = format!("（服务器 tcp_wmem {wmem}，客户端 tcp_rmem {rmem}）");
                let buffers = if is_verbose { &buffers } else { "" };
                format!(
                    "在 {rate}（{rate:#}）、往返 {rtt} 的路径上，本机内核的两个 TCP 协议栈之间的一次真实\
                     传输，缓冲区为许多服务器仍在使用的大小{buffers} ..."
                )
            }
        };
        format!("{}\n", paragraph::fill("", &text, layout.width))
    }

    /// What limited the first transfer, with its numbers.
    fn reason(&self, row: &RunRow, layout: Layout) -> String {
        let share = row.rate_nominal.map_or(0.0, |rate| row.goodput.fraction_of(rate)) * 100.0;
        let goodput = row.goodput;
        let limited = rows::limited_by_in(row, layout.language);
        if layout.language == Language::Chinese {
            let text = format!(
                "得到 {goodput}（{goodput:#}），是链路的 {share:.0} %。受限于：{limited} 的时间。"
            );
            return format!("\n{}\n", paragraph::fill("", &text, layout.width));
        }
        let got = format!("It got {goodput} ({goodput:#}), {share:.0} % of the link.");
        let finding = row.finding.as_ref().filter(|_| self.verbose);
        let why = sentence(finding.unwrap_or(&format!("limited by: {limited} of the time")));
        let sockets = row.limited_by_sockets.filter(|_| self.verbose).map(|limit| {
            let share = row.limit_share_sockets.unwrap_or_default() * 100.0;
            format!(" The sockets' own counters say: {limit} for {share:.0} %.")
        });
        let text = format!("{got} {why}.{}", sockets.unwrap_or_default());
        format!("\n{}\n", paragraph::fill("", &text, layout.width))
    }

    fn settings(&self, plan: &Plan, layout: Layout) -> String {
        let render = if self.verbose { plan::render } else { plan::in_short };
        let title = match layout.language {
            Language::English => "What follows from the path:",
            Language::Chinese => "由路径得出：",
        };
        format!("\n{title}\n\n{}", render(plan, layout))
    }

    fn gain(&self, before: &RunRow, after: &RunRow, layout: Layout) -> String {
        let compare = if self.verbose { rows::before_and_after } else { rows::gained };
        let table = compare(before, after, layout);
        let title = match layout.language {
            Language::English => "The same transfer with these settings:",
            Language::Chinese => "使用这些设置后的同一传输：",
        };
        format!("\n{title}\n\n{table}")
    }

    /// What a reader must know of the runs. In short, only what made a figure doubtful.
    fn notes(&self, rows: &[&RunRow], layout: Layout) -> String {
        let mut text = String::new();
        for row in rows {
            for note in row.notes.iter().filter(|_| self.verbose || !row.quiet) {
                let note = paragraph::fill(&format!("{}: ", row.name), note, layout.width);
                text += &format!("{note}\n");
            }
        }
        text
    }

    /// Prints for people; with --json standard output contains nothing but JSON.
    fn say(&self, text: &str) -> Result<(), Failure> {
        if !self.json {
            print(text)?;
        }
        Ok(())
    }
}

/// The report is drawn from the captures.
fn options(out: PathBuf) -> Options {
    Options { out: Some(out), keep_captures: true, ..Options::default() }
}

/// Capitalises the first letter.
fn sentence(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_model::limit::Limit;

    fn demo(verbose: bool) -> Demo {
        Demo { json: false, out: None, keep_captures: false, verbose }
    }

    /// A terminal is 80 columns wide and has 24 lines, the last of which is the next prompt.
    #[test]
    fn the_answer_fits_one_screen() {
        let layout = Layout { width: Some(80), ..Layout::default() };
        let before = load_scenarios(&[PRESET], &[], None).unwrap().remove(0);
        let plan = plan_tuning(&before, "6.12".parse().unwrap()).unwrap();
        let row = |limit| RunRow {
            goodput: "470.7mbit".parse().unwrap(),
            rate_nominal: Some("1gbit".parse().unwrap()),
            law: Some("449mbit".parse().unwrap()),
            limited_by: limit,
            quiet: true,
            ..RunRow::default()
        };
        let (slow, fast) = (row(Limit::SendBuffer), row(Limit::Link));
        let said = |demo: &Demo| {
            let pieces = [
                demo.introduction(&before, layout),
                demo.reason(&slow, layout),
                demo.settings(&plan, layout),
                demo.gain(&slow, &fast, layout),
                demo.notes(&[&slow, &fast], layout),
                "Report: fullpipe-results/2026-11-25T14-18-26Z/report.html\n".into(),
            ];
            pieces.concat()
        };
        let short = said(&demo(false));
        assert!(short.lines().count() < 24, "{short}");
        assert!(short.lines().all(|line| line.chars().count() <= 80), "{short}");
        for part in ["470.7 Mbit/s", "47 %", "send buffer", "net.ipv4.tcp_wmem", "tcp_rmem", "link"]
        {
            assert!(short.contains(part), "{part}: {short}");
        }
        let chinese = Layout { language: Language::Chinese, ..layout };
        let pieces = [
            demo(false).introduction(&before, chinese),
            demo(false).reason(&slow, chinese),
            demo(false).settings(&plan, chinese),
            demo(false).gain(&slow, &fast, chinese),
        ];
        let text = pieces.concat();
        assert!(text.lines().count() < 22 && !text.contains(" the "), "{text}");
        for part in ["47 %", "受限于：发送缓冲区", "发送方：", "之前", "链路"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let all = said(&demo(true));
        assert!(all.lines().count() > 30 && all.contains("To know:"), "{all}");
    }
}
