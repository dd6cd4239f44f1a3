//! What is drawn: a snapshot, the user's choices, and what the terminal can show.

use super::row::Snapshot;
use super::view::View;
use fullpipe_flow::Language;
use fullpipe_model::units::Duration;
use fullpipe_report::Charset;

/// What is drawn.
#[derive(Clone, Copy)]
pub struct Screen<'a> {
    /// The connections.
    pub snapshot: &'a Snapshot,
    /// What the user chose.
    pub view: &'a View,
    /// The time between two looks.
    pub interval: Duration,
    /// The characters that the terminal shows.
    pub charset: Charset,
    /// The language of its words.
    pub language: Language,
    /// Whether it shows colours.
    pub has_colour: bool,
    /// Whether keys are obeyed: there is a selection, and a foot that names keys.
    pub has_keys: bool,
}
