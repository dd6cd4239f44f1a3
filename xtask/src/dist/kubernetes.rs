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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::io::Read;

    /// The files of a packed archive with their modes.
    fn unpacked(path: &Path) -> BTreeMap<String, (u32, String)> {
        let packed = std::fs::File::open(path).unwrap();
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(packed));
        let mut found = BTreeMap::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let name = entry.path().unwrap().display().to_string();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            found.insert(name, (entry.header().mode().unwrap(), text));
        }
        found
    }

    /// Helm wants the chart in a folder of its name, and krew a plugin that it can run, with what
    /// its manifest names.
    #[test]
    fn helm_and_krew_find_what_they_look_for() {
        let out = tempfile::tempdir().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let release = Release {
            version: env!("CARGO_PKG_VERSION").into(),
            commit: String::new(),
            time: 0,
            folder: out.path().into(),
            source: source.clone(),
        };
        make(&release, out.path()).unwrap();
        let chart = out.path().join(format!("fullpipe-chart-{}.tgz", release.version));
        let chart = unpacked(&chart);
        let about = &chart["fullpipe/Chart.yaml"].1;
        // The image that is shipped with it.
        assert!(about.contains(&format!("appVersion: \"{}\"", release.version)), "{about}");
        assert!(chart.contains_key("fullpipe/templates/daemonset.yaml"), "{:?}", chart.keys());
        let plugin = unpacked(&out.path().join(plugin_name(&release)));
        assert_eq!(plugin["kubectl-fullpipe"].0, 0o755);
        let manifest = std::fs::read_to_string(source.join("contrib/packaging/krew.yaml")).unwrap();
        let wanted: Vec<&str> =
            manifest.lines().filter_map(|line| line.trim().strip_prefix("- from: ")).collect();
        assert_eq!(wanted.len(), plugin.len());
        for name in wanted {
            assert!(plugin.contains_key(name), "{name}: {:?}", plugin.keys());
        }
        let all = format!("fullpipe-kubernetes-{}.yaml", release.version);
        assert!(std::fs::read_to_string(out.path().join(all)).unwrap().contains("DaemonSet"));
    }
}
