//! The guide as a site: pages that any web server hands out, with a search that runs in the
//! browser.

use super::archive::Archive;
use super::tools::Tools;
use super::tree::packed;
use super::{Release, fresh, run, write};
use anyhow::{Context, ensure};
use std::path::{Path, PathBuf};

/// What the pictures and pages may have together.
const LARGEST: usize = 30_000_000;

/// Builds the site from the export, looks at its links, and packs it into `out`.
pub fn build(release: &Release, tools: &Tools, out: &Path) -> anyhow::Result<()> {
    let site = fresh(&release.folder.join("site"))?;
    run(tools.mdbook(release)?.args(["build", "docs", "--dest-dir"]).arg(&site))?;
    let mut files = Vec::new();
    below(&site, &mut files)?;
    files.sort();
    let stem = format!("fullpipe-guide-{}", release.version);
    let mut archive = Archive::new(release.time);
    let mut bytes_of_all = 0;
    for file in &files {
        let bytes = std::fs::read(file).with_context(|| format!("read {}", file.display()))?;
        if file.extension().is_some_and(|ending| ending == "html") {
            links_lead_somewhere(file, &String::from_utf8_lossy(&bytes))?;
        }
        bytes_of_all += bytes.len();
        let name = file.strip_prefix(&site)?.to_string_lossy();
        archive.file(&format!("{stem}/{name}"), 0o644, &bytes)?;
    }
    ensure!(bytes_of_all <= LARGEST, "the guide has {bytes_of_all} bytes, more than {LARGEST}");
    write(&out.join(format!("{stem}.tar.gz")), &packed(&archive.finish()?)?)
}

/// The files of a folder and of those in it.
fn below(folder: &Path, found: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() { below(&path, found)? } else { found.push(path) }
    }
    Ok(())
}

/// Each link of a page to another file of the site finds it.
fn links_lead_somewhere(page: &Path, html: &str) -> anyhow::Result<()> {
    let folder = page.parent().context("a page without a folder")?;
    let targets = ["href=\"", "src=\""].into_iter().flat_map(|start| html.split(start).skip(1));
    for target in targets.filter_map(|rest| rest.split('"').next()) {
        let file = target.split(['#', '?']).next().unwrap_or_default();
        let is_elsewhere = target.contains(':') || file.is_empty() || file.starts_with('/');
        ensure!(
            is_elsewhere || folder.join(file).exists(),
            "{}: a link to {target}, which is not there",
            page.display()
        );
    }
    Ok(())
}
