//! `fullpipe tune settings`.

use crate::failure::Failure;
use crate::terminal::{answer_layout, print, print_json};
use clap::Args;
use fullpipe_model::change::{Scope, Sysctl};
use fullpipe_report::plan::host_plan;

/// List what can be tuned: whose it is, and whether a pod may set it.
///
/// `namespace`: each network namespace has its own, so a container can have its own value.
/// `machine`: there is one for all. `unsafe` in a pod: only where the kubelet allows it with
/// --allowed-unsafe-sysctls.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe tune settings
  fullpipe tune settings --json")]
pub struct Settings {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Settings {
    pub fn run(self) -> Result<u8, Failure> {
        if self.json {
            let rows: Vec<_> = Sysctl::ALL
                .into_iter()
                .map(|sysctl| {
                    serde_json::json!({
                        "setting": sysctl.name(),
                        "belongs_to": match sysctl.scope() {
                            Scope::Namespace => "namespace",
                            Scope::Machine => "machine",
                        },
                        "kubernetes_safe_since": sysctl.kubernetes(),
                        "what": sysctl.what(),
                    })
                })
                .collect();
            print_json(&rows)?;
        } else {
            print(&host_plan::settings(answer_layout()))?;
        }
        Ok(0)
    }
}
