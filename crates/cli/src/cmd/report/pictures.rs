//! The graphs of a report as pictures: SVG, and PNG by resvg.

use crate::failure::{Failure, Kind};
use crate::terminal::remark;
use fullpipe_kernel::folder::write_into;
use fullpipe_report::graph::{Theme, graphs, svg};
use fullpipe_report::page::Page;
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{self, Tree};
use std::path::Path;

/// Pixels of a PNG for each of the picture's own: sharp in print and on dense screens.
const SCALE: f32 = 2.0;

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
/// No connection has graphs, a picture cannot be written, or the machine has no font for a PNG.
pub fn draw(page: &Page, folders: Folders<'_>, theme: Theme) -> Result<(), Failure> {
    let drawn = page.connections.iter().find(|shown| shown.connection.trace().is_some());
    let Some(drawn) = drawn else {
        let problem = "report: there is no connection with data to draw; give another capture or \
                       another --filter";
        return Err(Failure::new(Kind::Input, problem));
    };
    let connection = &drawn.connection.connection;
    let limit = drawn.connection.bulk().map(|diagnosis| diagnosis.limited_by());
    let limit = limit.map_or(String::new(), |first| {
        format!(": limited by {} for {:.0} % of the time", first.limit, first.share * 100.0)
    });
    let subtitle = format!("{} and {}{limit}", connection.client, connection.server);
    let fonts = folders.png.map(|_| fonts()).transpose()?;
    for graph in graphs(&drawn.connection, connection.bulk()) {
        let picture = svg(&graph, &subtitle, theme);
        if let Some(folder) = folders.svg {
            keep(folder, &format!("{}.svg", graph.name), picture.as_bytes())?;
        }
        if let (Some(folder), Some(fonts)) = (folders.png, &fonts) {
            let bytes = png(&picture, fonts).map_err(|cause| {
                Failure::new(
                    Kind::Run,
                    format!("draw {} as PNG: {cause}; --svg may do", graph.name),
                )
            })?;
            keep(folder, &format!("{}.png", graph.name), &bytes)?;
        }
    }
    Ok(())
}

/// How pictures are drawn: with the machine's fonts, and a sans-serif one for every text.
fn fonts() -> Result<usvg::Options<'static>, Failure> {
    let mut options = usvg::Options::default();
    let fonts = options.fontdb_mut();
    fonts.load_system_fonts();
    let family = fonts.faces().next().and_then(|face| face.families.first().cloned());
    let Some((family, _)) = family else {
        let problem = "draw PNG: this machine has no fonts; `apt-get install fonts-dejavu-core`, \
                       or --svg, whose viewer has its own";
        return Err(Failure::new(Kind::Missing, problem));
    };
    let sans = ["DejaVu Sans", "Noto Sans", "Liberation Sans", "Cantarell"];
    let has = |name: &&&str| {
        fonts.faces().any(|face| face.families.iter().any(|(family, _)| family == **name))
    };
    let chosen = sans.iter().find(has).map_or(family, |name| (*name).to_string());
    fonts.set_sans_serif_family(chosen.clone());
    options.font_family = chosen;
    Ok(options)
}

fn png(picture: &str, options: &usvg::Options<'_>) -> Result<Vec<u8>, String> {
    let tree = Tree::from_str(picture, options).map_err(|cause| cause.to_string())?;
    let size = tree.size().to_int_size();
    let scaled = size.scale_by(SCALE).ok_or("its size is none")?;
    let mut pixels = Pixmap::new(scaled.width(), scaled.height()).ok_or("its size is none")?;
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    pixels.encode_png().map_err(|cause| cause.to_string())
}

fn keep(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), Failure> {
    let path = folder.join(name);
    let written = std::fs::create_dir_all(folder).and_then(|()| write_into(&path, bytes));
    written.map_err(|cause| {
        let hint = "give a folder in which files can be written";
        Failure::new(Kind::Run, format!("write {}: {cause}; {hint}", path.display()))
    })?;
    remark(&format!("Picture: {}", path.display()));
    Ok(())
}
