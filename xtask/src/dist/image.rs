//! A container's image of the program and nothing else, made without a daemon: an OCI layout in a
//! tar, as `podman load`, `docker load` and `skopeo copy oci-archive:` read it.

use super::archive::Archive;
use super::tree::packed;
use super::{Architecture, Release, digest, write};
use anyhow::{Context, ensure};
use serde_json::{Value, json};
use std::path::Path;

/// What an image may have.
pub const LARGEST: usize = 16_000_000;
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// Writes the image of `program`.
pub fn make(
    release: &Release,
    target: Architecture,
    program: &Path,
    out: &Path,
) -> anyhow::Result<()> {
    let mut layer = Archive::new(release.time);
    layer.folder("tmp/", 0o1777)?;
    layer.folder("usr/", 0o755)?;
    layer.folder("usr/bin/", 0o755)?;
    let bytes = std::fs::read(program).context("read the program")?;
    layer.file("usr/bin/fullpipe", 0o755, &bytes)?;
    let layer = layer.finish()?;
    let created = date(release.time)?;
    let labels = json!({
        "org.opencontainers.image.title": "fullpipe",
        "org.opencontainers.image.description": "Finds what keeps a TCP transfer from filling its path",
        "org.opencontainers.image.version": release.version,
        "org.opencontainers.image.revision": release.commit,
        "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
        "org.opencontainers.image.created": created,
    });
    let config = json!({
        "architecture": target.debian(),
        "os": "linux",
        "created": created,
        "config": {
            "Entrypoint": ["/usr/bin/fullpipe"],
            "Env": ["PATH=/usr/bin"],
            "Labels": labels,
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{}", digest(&layer))]},
        "history": [{"created": created, "created_by": "cargo xtask dist"}],
    });
    let mut blobs = Blobs::default();
    let layer = blobs.add(LAYER, packed(&layer)?);
    let config = blobs.add(CONFIG, serde_json::to_vec(&config)?);
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": config,
        "layers": [layer],
        "annotations": labels,
    });
    let mut manifest = blobs.add(MANIFEST, serde_json::to_vec(&manifest)?);
    manifest["annotations"] = json!({
        "org.opencontainers.image.ref.name": release.version,
        // What docker and podman call the image that they load.
        "io.containerd.image.name": format!("docker.io/library/fullpipe:{}", release.version),
    });
    let index = json!({"schemaVersion": 2, "manifests": [manifest]});
    let mut archive = Archive::new(release.time);
    archive.file("oci-layout", 0o644, br#"{"imageLayoutVersion":"1.0.0"}"#)?;
    archive.file("index.json", 0o644, &serde_json::to_vec(&index)?)?;
    for (name, bytes) in &blobs.all {
        archive.file(&format!("blobs/sha256/{name}"), 0o644, bytes)?;
    }
    let archive = archive.finish()?;
    let name = format!("{}.oci.tar", release.stem(target));
    ensure!(archive.len() <= LARGEST, "{name}: {} bytes, more than {LARGEST}", archive.len());
    write(&out.join(name), &archive)
}

/// What an image consists of, each part by its digest.
#[derive(Default)]
struct Blobs {
    all: Vec<(String, Vec<u8>)>,
}

impl Blobs {
    /// Adds a part; returns its description.
    fn add(&mut self, media_type: &str, bytes: Vec<u8>) -> Value {
        let name = digest(&bytes);
        let size = bytes.len();
        self.all.push((name.clone(), bytes));
        json!({"mediaType": media_type, "digest": format!("sha256:{name}"), "size": size})
    }
}

/// A time as RFC 3339 writes it.
fn date(time: u64) -> anyhow::Result<String> {
    let text = super::output(
        std::process::Command::new("date")
            .args(["-u", "+%Y-%m-%dT%H:%M:%SZ", "-d"])
            .arg(format!("@{time}")),
    )?;
    Ok(text.trim().to_owned())
}
