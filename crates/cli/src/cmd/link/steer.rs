//! `fullpipe link set`, `status`, `list`: control of running links.

use super::control::{self, ControlAnswer, Request};
use super::live::{dropped, gateway_losses, summary};
use super::shared::{Status, Subject};
use super::words::PathOptions;
use crate::cmd::lab::{Clean, Cleaned};
use crate::failure::{Failure, Kind};
use crate::terminal::{layout, print, print_json};
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
                "set link: no change is given; describe one, for example `--delay 100ms`",
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
            print("No link runs.\n")?;
            return Ok(0);
        }
        let [name, of, path] = ["link", "of", "path"].map(Column::text);
        let mut table =
            Table::new([name, of, path, Column::count("packets"), Column::count("dropped")]);
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
        print(&table.render(layout()))?;
        Ok(0)
    }
}

fn subject(status: &Status) -> String {
    match &status.subject {
        Subject::Command(command) => format!("command {command}"),
        Subject::Device(device) => format!("device {device}"),
    }
}

fn status(name: &str) -> Result<Status, Failure> {
    match control::ask(name, &Request::Status)? {
        ControlAnswer::Status(status) => Ok(*status),
        ControlAnswer::Done | ControlAnswer::Error { .. } => {
            let message = format!(
                "ask link {name}: it did not answer with its status; is it of another version?"
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
                Cleaned::gone(format!("Removed the socket of link {name}, which was killed."))
            })
            .collect();
        let here =
            NetNs::current("this machine").map_err(|refused| Failure::new(Kind::Run, refused))?;
        match Redirect::clean(&here).map_err(|refused| Failure::new(Kind::Run, refused))? {
            0 => {}
            1 => cleaned.push(Cleaned::gone("Removed what a killed link left on 1 device.".into())),
            count => cleaned
                .push(Cleaned::gone(format!("Removed what killed links left on {count} devices."))),
        }
        self.clean.run_after(cleaned)
    }
}
