//! The graphs of a report as pictures: SVG, and PNG by librsvg's program.

use crate::failure::{Failure, Kind};
use crate::sentence::{Sentence, either};
use crate::terminal::remark;
use fullpipe_kernel::file::folder::write_into;
use fullpipe_report::graph::{Theme, graphs, svg};
use fullpipe_report::page::Page;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// Pixels of a PNG for each of the picture's own: sharp in print and on dense screens.
const SCALE: &str = "2";
/// Draws an SVG picture with the fonts of the machine, as desktops do.
const CONVERTER: &str = "rsvg-convert";

/// Where pictures go.
#[derive(Debug, Clone, Copy)]
pub struct Folders<'a> {
    /// For SVG.
    pub svg: Option<&'a Path>,
    /// For PNG.
    pub png: Option<&'a Path>,
}

/// Draws the graphs of the first connection that has any.
///
/// # Errors
/// No connection has graphs, a picture cannot be written, or the machine lacks what draws a PNG.
pub fn draw(page: &Page, folders: Folders<'_>, theme: Theme) -> Result<(), Failure> {
    let drawn = page.connections.iter().find(|shown| shown.connection.trace().is_some());
    let Some(drawn) = drawn else {
        let problem = Sentence::new(
            "report: there is no connection with data to draw; give another capture or \
             another --filter",
            "report：没有带数据的连接可画；请给出另一个抓包或另一个 --filter",
        );
        return Err(Failure::new(Kind::Input, problem));
    };
    let connection = &drawn.connection.connection;
    let limit = drawn.connection.bulk().map(|diagnosis| diagnosis.limited_by());
    let limit = limit.map_or(String::new(), |first| {
        format!(": limited by {} for {:.0} % of the time", first.limit, first.share * 100.0)
    });
    let subtitle = format!("{} and {}{limit}", connection.client, connection.server);
    for graph in graphs(&drawn.connection, connection.bulk()) {
        let picture = svg(&graph, &subtitle, theme);
        if let Some(folder) = folders.svg {
            keep(folder, &format!("{}.svg", graph.name), picture.as_bytes())?;
        }
        if let Some(folder) = folders.png {
            keep(folder, &format!("{}.png", graph.name), &png(graph.name, &picture)?)?;
        }
    }
    Ok(())
}

/// The picture as PNG.
fn png(name: &str, picture: &str) -> Result<Vec<u8>, Failure> {
    let failed = |why: &str| {
        let problem = Sentence::new(
            format!("draw {name} as PNG: {CONVERTER}: {why}; --svg may do"),
            format!("把 {name} 画成 PNG：{CONVERTER}：{why}；可改用 --svg"),
        );
        Failure::new(Kind::Run, problem)
    };
    let started = Command::new(CONVERTER)
        .args(["--format", "png", "--zoom", SCALE])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = started.map_err(|cause| match cause.kind() {
        ErrorKind::NotFound => Failure::new(
            Kind::Missing,
            Sentence::new(
                format!(
                    "draw {name} as PNG: there is no {CONVERTER} here; `apt-get install \
                     librsvg2-bin fonts-dejavu-core`, or --svg, or save the picture in the report's page"
                ),
                format!(
                    "把 {name} 画成 PNG：这里没有 {CONVERTER}；请 `apt-get install librsvg2-bin \
                     fonts-dejavu-core`，或用 --svg，或在报告页面中保存图片"
                ),
            ),
        ),
        _ => failed(&cause.to_string()),
    })?;
    let input = child.stdin.take();
    let ended = std::thread::scope(|scope| {
        // One that fails does not read all; that is for its exit code to say.
        scope.spawn(move || input.map(|mut input| input.write_all(picture.as_bytes())));
        child.wait_with_output()
    });
    let ended = ended.map_err(|cause| failed(&cause.to_string()))?;
    if !ended.status.success() || ended.stdout.is_empty() {
        return Err(failed(String::from_utf8_lossy(&ended.stderr).trim()));
    }
    Ok(ended.stdout)
}

fn keep(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), Failure> {
    let path = folder.join(name);
    let written = std::fs::create_dir_all(folder).and_then(|()| write_into(&path, bytes));
    written.map_err(|cause| {
        let path = path.display();
        let problem = Sentence::new(
            format!("write {path}: {cause}; give a folder in which files can be written"),
            format!("写入 {path}：{cause}；请给出可写入文件的文件夹"),
        );
        Failure::new(Kind::Run, problem)
    })?;
    remark(&format!("{}{}", either("Picture: ", "图片："), path.display()));
    Ok(())
}
