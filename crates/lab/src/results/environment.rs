//! `environment.json`: where and by what the results were made.

use fullpipe_kernel::host::Host;
use fullpipe_kernel::run::sandbox::Privilege;
use serde::Serialize;

/// The program, the machine and the privilege of all runs in a directory.
#[derive(Debug, Clone, Serialize)]
pub struct Environment {
    /// The program's version.
    pub fullpipe: &'static str,
    /// The machine.
    #[serde(flatten)]
    pub host: Host,
    /// `root` or `user_namespace`.
    pub privilege: &'static str,
}

impl Environment {
    /// This machine, now.
    pub fn read(privilege: Privilege) -> Self {
        let privilege = match privilege {
            Privilege::Root => "root",
            Privilege::UserNamespace => "user_namespace",
        };
        Environment { fullpipe: env!("CARGO_PKG_VERSION"), host: Host::read(), privilege }
    }
}
