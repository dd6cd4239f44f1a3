//! What the user chose to see: order, filter, selection, and what each key does.

use super::row::{Id, Row, Snapshot};
use fullpipe_flow::connection::filter::LiveFilter;
use ratatui_crossterm::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::cmp::Reverse;

/// The state of the screen that keys change.
#[derive(Debug, Clone, Default)]
pub struct View {
    /// What is shown.
    pub page: Page,
    /// The order of the list.
    pub sort: Sort,
    /// What the list is restricted to.
    pub filter: LiveFilter,
    /// The text of a filter that is being typed.
    pub typing: Option<String>,
    /// Whether the picture stands still.
    pub is_paused: bool,
    /// The connection that is selected. None before the first key that means one: the mark is at
    /// the top then, whatever is there.
    pub selected: Option<Id>,
    /// Where the selected one was when it was last in the list.
    pub place: usize,
}

/// What is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Page {
    /// The list of connections.
    #[default]
    List,
    /// The selected connection.
    Details,
    /// The keys and letters; any key goes back to the list.
    Help,
}

/// The order of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Sort {
    /// By the time that is lost to limits.
    #[default]
    Lost,
    /// By rate.
    Rate,
    /// By segments sent again.
    Retransmitted,
    /// By the process's name.
    Process,
    /// By the other end's address.
    Address,
}

impl Sort {
    /// The word in the heading.
    pub fn word(self) -> &'static str {
        match self {
            Sort::Lost => "lost",
            Sort::Rate => "rate",
            Sort::Retransmitted => "retransmitted",
            Sort::Process => "process",
            Sort::Address => "address",
        }
    }
}

/// What a key asks of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Draw again.
    Draw,
    /// End.
    Quit,
    /// End, as by an interrupt.
    Interrupt,
    /// Stop, until the shell continues it.
    Suspend,
}

impl View {
    /// The rows that the list shows, in its order.
    pub fn rows<'a>(&self, snapshot: &'a Snapshot) -> Vec<&'a Row> {
        let mut rows: Vec<&Row> =
            snapshot.rows.iter().filter(|row| row.passes(&self.filter)).collect();
        match self.sort {
            Sort::Lost => rows.sort_by_cached_key(|row| Reverse((row.lost(), row.rate))),
            Sort::Rate => rows.sort_by_key(|row| Reverse(row.rate)),
            Sort::Retransmitted => rows.sort_by_key(|row| Reverse(row.retransmissions)),
            // Those without a process last.
            Sort::Process => rows.sort_by_cached_key(|row| {
                let name = row.process.as_ref().map(|process| process.name.clone());
                (name.is_none(), name)
            }),
            Sort::Address => rows.sort_by_key(|row| (row.remote, row.local)),
        }
        rows
    }

    /// The place of the selection in the rows. Where it is gone, it is what took its place.
    pub fn place(&self, rows: &[&Row]) -> usize {
        let found = rows.iter().position(|row| Some(row.id) == self.selected);
        found.unwrap_or(self.place.min(rows.len().saturating_sub(1)))
    }

    /// Notes the place of the selection in what is shown next. One that left the list gives the
    /// selection to what took its place; its details stay open.
    pub fn settle(&mut self, snapshot: &Snapshot) {
        let rows = self.rows(snapshot);
        let place = self.place(&rows);
        if self.selected.is_some() && self.page != Page::Details && !rows.is_empty() {
            (self.selected, self.place) = (Some(rows[place].id), place);
        }
    }

    /// Orders the list anew, with the mark on the connection that has it.
    fn order(&mut self, sort: Sort, snapshot: &Snapshot) {
        let rows = self.rows(snapshot);
        self.selected = self.selected.or(rows.get(self.place(&rows)).map(|row| row.id));
        self.sort = sort;
    }

    /// Obeys a key; `page_rows` is how far a page is.
    pub fn press(&mut self, key: KeyEvent, snapshot: &Snapshot, page_rows: usize) -> Request {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if control => return Request::Interrupt,
            KeyCode::Char('z') if control => return Request::Suspend,
            _ if self.typing.is_some() => self.type_key(key.code),
            _ if self.page == Page::Help => self.page = Page::List,
            KeyCode::Char('q') => return Request::Quit,
            KeyCode::Esc if self.page == Page::List && !self.filter.is_any() => {
                self.filter = LiveFilter::default();
            }
            KeyCode::Esc | KeyCode::Backspace | KeyCode::Left => self.page = Page::List,
            KeyCode::Enter | KeyCode::Right => self.open(snapshot),
            KeyCode::Char('?' | 'h') => self.page = Page::Help,
            KeyCode::Char('/') => self.typing = Some(self.filter_text()),
            KeyCode::Char('p' | ' ') => self.is_paused = !self.is_paused,
            KeyCode::Char('l') => self.order(Sort::Lost, snapshot),
            KeyCode::Char('r') => self.order(Sort::Rate, snapshot),
            KeyCode::Char('t') => self.order(Sort::Retransmitted, snapshot),
            KeyCode::Char('n') => self.order(Sort::Process, snapshot),
            KeyCode::Char('a') => self.order(Sort::Address, snapshot),
            other => self.step(other, snapshot, page_rows),
        }
        Request::Draw
    }

    /// The filter as it would be typed; nothing where it selects all.
    fn filter_text(&self) -> String {
        if self.filter.is_any() { String::new() } else { self.filter.to_string() }
    }

    fn open(&mut self, snapshot: &Snapshot) {
        let rows = self.rows(snapshot);
        if let Some(row) = rows.get(self.place(&rows)) {
            (self.selected, self.page) = (Some(row.id), Page::Details);
        }
    }

    fn step(&mut self, key: KeyCode, snapshot: &Snapshot, page_rows: usize) {
        let rows = self.rows(snapshot);
        let (at, last) = (self.place(&rows), rows.len().saturating_sub(1));
        let to = match key {
            KeyCode::Up | KeyCode::Char('k') => at.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => at + 1,
            KeyCode::PageUp => at.saturating_sub(page_rows),
            KeyCode::PageDown => at + page_rows,
            KeyCode::Home | KeyCode::Char('g') => 0,
            KeyCode::End | KeyCode::Char('G') => last,
            _ => return,
        };
        self.selected = rows.get(to.min(last)).map(|row| row.id);
    }

    fn type_key(&mut self, key: KeyCode) {
        let Some(text) = &mut self.typing else { return };
        match key {
            KeyCode::Enter => {
                self.filter = LiveFilter::typed(text);
                self.typing = None;
            }
            KeyCode::Esc => self.typing = None,
            KeyCode::Backspace => {
                text.pop();
            }
            KeyCode::Char(letter) => text.push(letter),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{row, snapshot};
    use super::*;
    use proptest::prelude::*;

    fn press(view: &mut View, code: KeyCode) -> Request {
        view.press(KeyEvent::new(code, KeyModifiers::NONE), &snapshot(), 5)
    }

    #[test]
    fn each_order_has_its_first() {
        let snapshot = snapshot();
        let mut view = View::default();
        let first = |view: &View| view.rows(&snapshot)[0].clone();
        let lost = first(&view);
        assert!(snapshot.rows.iter().all(|row| row.lost() <= lost.lost()));
        press(&mut view, KeyCode::Char('r'));
        let fastest = first(&view);
        assert!(snapshot.rows.iter().all(|row| row.rate <= fastest.rate));
        assert_ne!(fastest.id, lost.id, "the example distinguishes them");
        press(&mut view, KeyCode::Char('n'));
        assert_eq!(first(&view).process.unwrap().name, "curl");
        assert!(view.rows(&snapshot).last().unwrap().process.is_none(), "unknown ones are last");
    }

    #[test]
    fn a_filter_is_typed_and_cleared() {
        let mut view = View::default();
        for key in "/nginX".chars() {
            press(&mut view, KeyCode::Char(key));
        }
        press(&mut view, KeyCode::Backspace);
        assert!(view.filter.is_any(), "it is in force when it is complete");
        press(&mut view, KeyCode::Enter);
        assert_eq!((view.filter.to_string().as_str(), view.rows(&snapshot()).len()), ("ngin", 1));
        press(&mut view, KeyCode::Esc);
        assert_eq!(view.rows(&snapshot()).len(), snapshot().rows.len());
    }

    #[test]
    fn the_selection_stays_with_its_connection() {
        let (mut view, snapshot) = (View::default(), snapshot());
        press(&mut view, KeyCode::Down);
        let selected = view.selected.unwrap();
        press(&mut view, KeyCode::Char('r'));
        assert_eq!(view.rows(&snapshot)[view.place(&view.rows(&snapshot))].id, selected);
        press(&mut view, KeyCode::Enter);
        assert_eq!((view.page, view.selected), (Page::Details, Some(selected)));
        press(&mut view, KeyCode::Esc);
        assert_eq!(view.page, Page::List);
        let one = Snapshot { rows: vec![row()], ..Snapshot::default() };
        view.selected = Some((9, 9));
        assert_eq!(view.place(&view.rows(&one)), 0, "one that is gone is the first");
    }

    #[test]
    fn another_order_leaves_the_mark_where_it_is() {
        let (mut view, snapshot) = (View::default(), snapshot());
        let marked = view.rows(&snapshot)[0].id;
        press(&mut view, KeyCode::Char('r'));
        assert_ne!(view.rows(&snapshot)[0].id, marked, "the example distinguishes them");
        assert_eq!(view.rows(&snapshot)[view.place(&view.rows(&snapshot))].id, marked);
    }

    #[test]
    fn what_takes_the_place_of_one_that_is_gone_is_selected() {
        let (mut view, mut snapshot) = (View::default(), snapshot());
        view.settle(&snapshot);
        assert_eq!(view.selected, None, "nothing is selected before somebody selects");
        press(&mut view, KeyCode::Down);
        view.settle(&snapshot);
        let (gone, next) = (view.rows(&snapshot)[1].id, view.rows(&snapshot)[2].id);
        assert_eq!((view.selected, view.place), (Some(gone), 1));
        // It stays on its connection where that one moves, and the details of one stay open.
        snapshot.rows.retain(|row| row.id != gone);
        view.page = Page::Details;
        view.settle(&snapshot);
        assert_eq!(view.selected, Some(gone));
        view.page = Page::List;
        view.settle(&snapshot);
        assert_eq!(view.selected, Some(next), "not the first of the list");
        snapshot.rows.clear();
        view.settle(&snapshot);
        assert_eq!(view.place(&view.rows(&snapshot)), 0);
    }

    #[test]
    fn control_keys_and_letters() {
        let control = |letter| KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL);
        let mut view = View::default();
        assert_eq!(view.press(control('c'), &snapshot(), 1), Request::Interrupt);
        assert_eq!(view.press(control('z'), &snapshot(), 1), Request::Suspend);
        assert_eq!(press(&mut view, KeyCode::Char('?')), Request::Draw);
        assert_eq!(view.page, Page::Help);
        press(&mut view, KeyCode::Char('q'));
        assert_eq!(view.page, Page::List, "any key leaves the help");
        assert_eq!(press(&mut view, KeyCode::Char('q')), Request::Quit);
    }

    proptest! {
        #[test]
        fn any_keys_leave_a_screen_that_can_be_drawn(keys in "[ -~]{0,40}", arrows in 0_usize..8) {
            let mut view = View::default();
            for key in keys.chars() {
                press(&mut view, KeyCode::Char(key));
                press(&mut view, [KeyCode::Up, KeyCode::Down, KeyCode::PageUp, KeyCode::PageDown,
                    KeyCode::Home, KeyCode::End, KeyCode::Enter, KeyCode::Esc][arrows]);
            }
            let rows = snapshot();
            prop_assert!(view.place(&view.rows(&rows)) <= rows.rows.len());
        }
    }
}
