//! `fullpipe tune verify`.

use crate::failure::Failure;
use crate::sentence::{Sentence, either};
use crate::terminal::{answer_layout, print, print_json};
use clap::Args;
use fullpipe_host::verify::{Seen, verify};
use fullpipe_report::{Column, Table};

/// Show on live sockets which settings are in force.
///
/// Opens sockets on loopback in this network namespace, looks at what the kernel gave them, and
/// pushes data until their buffers grow no more. Says of each setting whether a socket follows it,
/// or why that cannot be seen here. Queues and routes that an apply has set are asked of the kernel
/// as a packet would meet them. Changes nothing; needs no privilege.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe tune verify
  fullpipe tune verify --json

Exit codes: 0 nothing contradicts the settings; 1 a socket does not follow one.")]
pub struct Verify {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Verify {
    pub fn run(self) -> Result<u8, Failure> {
        let checks = verify()?;
        if self.json {
            print_json(&checks)?;
        } else {
            let headings = either(
                ["setting", "value", "in force", "seen by"],
                ["设置", "值", "是否生效", "依据"],
            );
            let mut table = Table::new(headings.map(Column::text));
            for check in &checks {
                let seen = match check.seen {
                    Seen::InForce => either("yes", "是"),
                    Seen::NotInForce => either("NO", "否"),
                    Seen::CannotBeSeen => either("cannot be seen", "看不出"),
                };
                table.row([
                    check.setting.clone(),
                    check.value.clone(),
                    seen.into(),
                    Sentence::from(&check.how).here().into(),
                ]);
            }
            print(&table.render(answer_layout()))?;
        }
        Ok(u8::from(checks.iter().any(|check| check.seen == Seen::NotInForce)))
    }
}
