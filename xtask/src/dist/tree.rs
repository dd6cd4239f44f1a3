//! Every file of a package at the place where it is installed.

use super::{Architecture, Release, files, fresh, output, run, write};
use anyhow::{Context, ensure};
use flate2::{Compression, write::GzEncoder};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the program writes of itself.
pub struct Pages {
    /// For each language, where its man pages are installed, and the folder that has them.
    man: Vec<(&'static str, PathBuf)>,
    /// For each shell, where its completions are installed, and what they are.
    completions: Vec<(&'static str, String)>,
    /// The JSON Schemas of what it prints, by the names of their files.
    schemas: Vec<(String, String)>,
}

/// Where the JSON Schemas are installed.
pub const SCHEMAS: &str = "usr/share/fullpipe/schema";

const MAN: [(&str, &str); 2] = [("en", "usr/share/man/man1"), ("zh", "usr/share/man/zh_CN/man1")];
const SHELLS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/fullpipe"),
    ("zsh", "usr/share/zsh/vendor-completions/_fullpipe"),
    ("fish", "usr/share/fish/vendor_completions.d/fullpipe.fish"),
];

impl Pages {
    /// Asks the program for its man pages, completions and schemas.
    pub fn written_by(program: &Path, release: &Release) -> anyhow::Result<Pages> {
        let mut man = Vec::new();
        for (language, place) in MAN {
            let folder = fresh(&release.folder.join("man").join(language))?;
            run(Command::new(program)
                .args(["man", "--language", language, "--output"])
                .arg(&folder))?;
            man.push((place, folder));
        }
        let completions = SHELLS.iter().map(|(shell, place)| {
            Ok((*place, output(Command::new(program).args(["completions", shell]))?))
        });
        let completions = completions.collect::<anyhow::Result<_>>()?;
        Ok(Pages { man, completions, schemas: schemas(program)? })
    }
}

/// The JSON Schema of every kind of row, and those of the questions and answers of `fullpipe mcp`.
fn schemas(program: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let listed = output(Command::new(program).args(["schema", "--json"]))?;
    let listed: Vec<serde_json::Value> = serde_json::from_str(&listed)?;
    ensure!(!listed.is_empty(), "the program lists no schema");
    let mut all = Vec::new();
    for one in &listed {
        let kind = one["kind"].as_str().context("a schema without a name")?;
        let schema = output(Command::new(program).args(["schema", kind, "--json"]))?;
        all.push((format!("{kind}.schema.json"), schema));
    }
    let tools = output(Command::new(program).args(["mcp", "--tools"]))?;
    all.push(("mcp-tools.json".into(), tools));
    Ok(all)
}

/// Lays the files of a package out below target/dist/NAME/root; returns that folder.
pub fn lay_out(
    release: &Release,
    target: Architecture,
    program: &Path,
    pages: &Pages,
    licences: &str,
) -> anyhow::Result<PathBuf> {
    let root = fresh(&release.folder.join(release.stem(target)))?.join("root");
    let binary = root.join("usr/bin/fullpipe");
    write(&binary, &std::fs::read(program).context("read the program")?)?;
    std::fs::set_permissions(&binary, PermissionsExt::from_mode(0o755))?;
    for (place, folder) in &pages.man {
        for (name, _) in files(folder)? {
            let to = root.join(format!("{place}/{name}.gz"));
            write(&to, &packed(&std::fs::read(folder.join(name))?)?)?;
        }
    }
    for (path, text) in &pages.completions {
        write(&root.join(path), text.as_bytes())?;
    }
    for (name, schema) in &pages.schemas {
        write(&root.join(SCHEMAS).join(name), schema.as_bytes())?;
    }
    for (name, _) in files(&release.source.join("contrib/systemd"))? {
        let unit = release.read(&format!("contrib/systemd/{name}"))?;
        write(&root.join("usr/lib/systemd/system").join(name), &unit)?;
    }
    let doc = root.join("usr/share/doc/fullpipe");
    write(&doc.join("README.md"), &release.read("README.md")?)?;
    write(&doc.join("changelog.gz"), &packed(&release.read("CHANGELOG.md")?)?)?;
    write(&doc.join("licences-of-crates.gz"), &packed(licences.as_bytes())?)?;
    for of_others in ["grafana/fullpipe-dashboard.json", "prometheus/fullpipe-rules.yml"] {
        let (_, name) = of_others.split_once('/').context("a file without a folder")?;
        write(&doc.join(name), &release.read(&format!("contrib/{of_others}"))?)?;
    }
    write(&doc.join("changelog.Debian.gz"), &packed(debian_changelog(release)?.as_bytes())?)?;
    let ours = [
        b"Copyright: The fullpipe authors. MIT or Apache-2.0, as you like:".to_vec(),
        release.read("LICENSE-MIT")?,
        release.read("LICENSE-APACHE")?,
    ];
    write(&doc.join("copyright"), &ours.join(&b"\n\n"[..]))?;
    let overrides = release.read("contrib/packaging/lintian-overrides")?;
    write(&root.join("usr/share/lintian/overrides/fullpipe"), &overrides)?;
    Ok(root)
}

/// What Debian's policy wants of every package: its versions, in Debian's own format.
fn debian_changelog(release: &Release) -> anyhow::Result<String> {
    let time = format!("@{}", release.time);
    let date = output(Command::new("date").args(["-R", "-u", "-d", &time]))?;
    let who = "The fullpipe authors <fullpipe@example.org>";
    Ok(format!(
        "fullpipe ({}-1) unstable; urgency=medium\n\n  * What is new is in changelog.gz.\n\n -- {who}  {date}",
        release.version
    ))
}

/// With gzip, without a name and a time.
pub fn packed(bytes: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::best());
    packer.write_all(bytes)?;
    Ok(packer.finish()?)
}
