//! What a release has for Kubernetes: the manifests as they are, the chart as Helm packs it, and
//! kubectl's plugin.

use super::archive::Archive;
use super::tree::packed;
use super::{Release, write};
use anyhow::Context;
use std::path::{Path, PathBuf};

const FOLDER: &str = "contrib/kubernetes";

/// Writes all of them.
pub fn make(release: &Release, out: &Path) -> anyhow::Result<()> {
    for (name, to) in
        [("fullpipe", "kubernetes"), ("podmonitor", "podmonitor"), ("debug-role", "debug-role")]
    {
        let bytes = release.read(&format!("{FOLDER}/{name}.yaml"))?;
        write(&out.join(format!("fullpipe-{to}-{}.yaml", release.version)), &bytes)?;
    }
    let mut plugin = Archive::new(release.time);
    plugin.file(
        "kubectl-fullpipe",
        0o755,
        &release.read(&format!("{FOLDER}/kubectl-fullpipe"))?,
    )?;
    // krew wants one of this name.
    for (licence, to) in [("LICENSE-MIT", "LICENSE"), ("LICENSE-APACHE", "LICENSE-APACHE")] {
        plugin.file(to, 0o644, &release.read(licence)?)?;
    }
    write(&out.join(plugin_name(release)), &packed(&plugin.finish()?)?)?;
    let mut chart = Archive::new(release.time);
    let folder = format!("{FOLDER}/chart");
    for path in files_below(&release.source.join(&folder))? {
        let name = path.strip_prefix(release.source.join(&folder))?.display().to_string();
        chart.file(&format!("fullpipe/{name}"), 0o644, &std::fs::read(&path)?)?;
    }
    let name = format!("fullpipe-chart-{}.tgz", release.version);
    write(&out.join(name), &packed(&chart.finish()?)?)
}

/// The plugin's archive, which krew fetches.
pub fn plugin_name(release: &Release) -> String {
    format!("kubectl-fullpipe-{}.tar.gz", release.version)
}

/// Every file of a folder and of those in it, by name.
fn files_below(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files_below(&path)?);
        } else {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
