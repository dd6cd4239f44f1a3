//! `fullpipe link set`, `status`, `list`: control of running links.

use super::control::{self, ControlAnswer, Request};
use super::live::{dropped, gateway_losses, summary};
use super::shared::{Status, Subject};
use super::words::PathOptions;
use crate::cmd::lab::{Clean, Cleaned};
use crate::failure::{Failure, Kind};
use crate::sentence::{Sentence, either};
use crate::terminal::{answer_layout, print, print_json};
use clap::Args;
use fullpipe_kernel::network::netns::NetNs;
use fullpipe_kernel::network::redirect::Redirect;
use fullpipe_report::{Column, Table, table::escape};

/// Change the path of a running link.
///
/// Replaces the options that are given and leaves the others. Packets that are on their way leave
/// as planned; new arrivals take the new path.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe link set --delay 100ms
  fullpipe link set --link eth0 --down-rate 1mbit --loss 2%
  fullpipe link set --to 10.0.0.5:443 --loss 100%          that port fails from now on")]
pub struct Set {
    /// The link; not needed if only one runs.
    #[arg(long, value_name = "NAME")]
    link: Option<String>,
    #[command(flatten)]
    words: PathOptions,
}

impl Set {
    pub fn run(self) -> Result<u8, Failure> {
        if self.words.0.is_empty() {
            return Err(Failure::new(
                Kind::Usage,
                Sentence::new(
                    "set link: no change is given; describe one, for example `--delay 100ms`",
                    "更改链路：没有给出更改；请描述一个，例如 `--delay 100ms`",
                ),
            ));
        }
        // These words alone need not make a path (`queue 20ms` needs a rate, which the link may
        // have), so the link checks them.
        control::ask(
            &control::the_link(self.link.as_deref())?,
            &Request::Set(self.words.0.absolute()),
        )
        .map(|_| 0)
    }
}

/// Show the path that a link emulates, and what it has done.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe link status
  fullpipe link status --link eth0 --json | jq .statistics.to_client.queue_bytes")]
pub struct ShowStatus {
    /// The link; not needed if only one runs.
    #[arg(long, value_name = "NAME")]
    link: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl ShowStatus {
    pub fn run(self) -> Result<u8, Failure> {
        let status = status(&control::the_link(self.link.as_deref())?)?;
        if self.json {
            print_json(&status)?;
        } else {
            print(&format!("{}: {}\n", status.name, escape::in_line(&subject(&status))))?;
            print(&format!("{}\n", escape::in_line(&status.words.to_string())))?;
            print(&format!("{}\n", summary(&status)))?;
            for lost in gateway_losses(&status) {
                print(&format!("{lost}\n"))?;
            }
        }
        Ok(0)
    }
}

/// List this user's running links.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe link list
  fullpipe link list --json | jq -r '.[].name'")]
pub struct ListLinks {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl ListLinks {
    pub fn run(self) -> Result<u8, Failure> {
        // A link that ends in the meantime is left out.
        let links: Vec<Status> =
            control::names()?.iter().filter_map(|name| status(name).ok()).collect();
        if self.json {
            print_json(&links)?;
            return Ok(0);
        }
        if links.is_empty() {
            print(either("No link runs.\n", "没有正在运行的链路。\n"))?;
            return Ok(0);
        }
        let headings = either(["link", "of", "path"], ["链路", "属于", "路径"]);
        let [name, of, path] = headings.map(Column::text);
        let dropped_packets = Column::count(either("dropped", "丢弃"));
        let mut table = Table::new([name, of, path, Column::count("packets"), dropped_packets]);
        for link in links {
            let statistics = link.statistics.clone().unwrap_or_default();
            let [up, down] = [&statistics.to_server, &statistics.to_client];
            let packets = up.link.departed_packets + down.link.departed_packets;
            let of = subject(&link);
            table.row([
                link.name,
                of,
                link.words.to_string(),
                packets.to_string(),
                (dropped(&up.link) + dropped(&down.link)).to_string(),
            ]);
        }
        print(&table.render(answer_layout()))?;
        Ok(0)
    }
}

fn subject(status: &Status) -> String {
    match &status.subject {
        Subject::Command(command) => format!("{} {command}", either("command", "命令")),
        Subject::Device(device) => format!("{} {device}", either("device", "设备")),
    }
}

fn status(name: &str) -> Result<Status, Failure> {
    match control::ask(name, &Request::Status)? {
        ControlAnswer::Status(status) => Ok(*status),
        ControlAnswer::Done | ControlAnswer::Error { .. } => {
            let message = Sentence::new(
                format!(
                    "ask link {name}: it did not answer with its status; is it of another version?"
                ),
                format!("询问链路 {name}：它没有以其状态作答；是否为另一版本？"),
            );
            Err(Failure::new(Kind::Run, message))
        }
    }
}

/// Clean up after links that were killed.
///
/// There is little to do: namespaces, devices and the redirection of a device's traffic end with
/// the processes that held them. What may be left is a control socket that nobody serves, before
/// Linux 6.6 a filter on the device that lets every packet pass, and what `fullpipe lab clean`
/// removes.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe link clean")]
pub struct CleanLinks {
    #[command(flatten)]
    clean: Clean,
}

impl CleanLinks {
    pub fn run(self) -> Result<u8, Failure> {
        let sockets = control::clean()?.into_iter();
        let mut cleaned: Vec<_> = sockets
            .map(|name| {
                Cleaned::gone(Sentence::new(
                    format!("Removed the socket of link {name}, which was killed."),
                    format!("已删除被终止的链路 {name} 的套接字。"),
                ))
            })
            .collect();
        let here =
            NetNs::current("this machine").map_err(|refused| Failure::new(Kind::Run, &refused))?;
        match Redirect::clean(&here).map_err(|refused| Failure::new(Kind::Run, &refused))? {
            0 => {}
            1 => cleaned.push(Cleaned::gone(Sentence::new(
                "Removed what a killed link left on 1 device.",
                "已清除一条被终止的链路在 1 个设备上留下的内容。",
            ))),
            count => cleaned.push(Cleaned::gone(Sentence::new(
                format!("Removed what killed links left on {count} devices."),
                format!("已清除被终止的链路在 {count} 个设备上留下的内容。"),
            ))),
        }
        self.clean.run_after(cleaned)
    }
}
