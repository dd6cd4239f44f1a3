//! The report: one self-contained HTML file with the verdict, the connections and their graphs.
//!
//! [`Page`] is what it shows. It serialises as `PageData` of `web/src/data.ts`, which is what the
//! page's own program reads; [`html`] puts it into the page that `web/` builds.
//!
//! Of a capture with many connections, a [`Shortlist`] keeps the worst while they pass by.

mod curve;
mod document;
mod interval;
mod shortlist;
mod shown;
mod span;

pub use curve::{Curve, CurvePoint, LawPoint, Unit, curves};
pub use document::{TooLarge, data, html, program};
pub use shortlist::Shortlist;
pub use shown::{ComparedPart, InputKind, Lab, LinkQueue, Page, ShownConnection, Source};

#[cfg(test)]
mod tests;
